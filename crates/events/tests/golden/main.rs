//! Whole real traces against what other readers say of them.
//!
//! The dumps are TraceEvent's, an unrelated reader. Where it says something else, a table says what
//! and why; nothing is left out silently.

mod baseline;
mod facts;
mod fields;
mod kinds;
mod trace;

use std::collections::BTreeMap;

use baseline::Baseline;
use facts::Facts;
use fields::{Outcome, Printed};
use trace::Decodable;

/// What a comparison with a dump amounted to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    kinds: usize,
    events: usize,
    fields_equal: usize,
    fields_absent: usize,
    fields_explained: usize,
}

/// Compares a trace with its dump.
fn compare(name: &str) -> Sum {
    let baseline = Baseline::read(name);
    let decodable = Decodable::open(&[&format!("perfview__{name}.etl")]);
    let mut facts = Facts::default();
    decodable.for_each(|event, decoded| facts.learn(event, decoded));

    let mut lines: BTreeMap<&str, std::vec::IntoIter<_>> = BTreeMap::new();
    let mut all = BTreeMap::<&str, Vec<_>>::new();
    for line in baseline.events() {
        all.entry(line.kind).or_default().push(line);
    }
    for (kind, of_kind) in all {
        lines.insert(kind, of_kind.into_iter());
    }

    let mut sum = Sum::default();
    let mut counts = BTreeMap::<String, usize>::new();
    let mut explained = BTreeMap::<(String, String, &str), usize>::new();
    let mut faults = Vec::new();
    decodable.for_each(|event, decoded| {
        let (provider, event_name) = kinds::name(event, decoded);
        let kind = format!("{provider}/{event_name}");
        if kinds::reason_left_out(&kind, decoded).is_some() {
            return;
        }
        // The dump has the first events of each kind.
        let line = lines.get_mut(&*kind).and_then(Iterator::next);
        *counts.entry(kind.clone()).or_default() += 1;
        let Some(line) = line else { return };
        sum.events += 1;
        if (event.time_ns() - line.time_us * 1000).abs() > 500 {
            faults.push(format!("{} ns, in {}", event.time_ns(), line.text));
        }
        let printed = Printed {
            event,
            decoded,
            facts: &facts,
        };
        for (field, text) in line.fields {
            match fields::compare(&kind, field, text, &printed) {
                Outcome::Equal => sum.fields_equal += 1,
                Outcome::Absent => sum.fields_absent += 1,
                Outcome::Explained(reason) => {
                    sum.fields_explained += 1;
                    *explained
                        .entry((kind.clone(), field.to_owned(), reason))
                        .or_default() += 1;
                }
                Outcome::Different(ours) => {
                    faults.push(format!("{kind}: {field}={text}, ours {ours}"));
                }
            }
        }
    });
    for (kind, count) in baseline.counts() {
        sum.kinds += 1;
        let ours = counts.remove(kind).unwrap_or(0);
        if ours != count {
            faults.push(format!("{count} of {kind}, ours {ours}"));
        }
    }
    faults.extend(
        counts
            .into_iter()
            .map(|(kind, n)| format!("none of {kind}, ours {n}")),
    );
    println!("{name}: {sum:?}");
    for ((kind, field, reason), n) in explained {
        println!("  differ: {n} of {kind} {field}: {reason}");
    }
    assert!(
        faults.is_empty(),
        "{name}: {} faults\n{}",
        faults.len(),
        faults.join("\n")
    );
    sum
}

#[test]
fn windows_8() {
    compare("net.4.5.2.x64");
}

#[test]
fn windows_7() {
    compare("net.4.5.x86-win7");
}

#[test]
fn event_source() {
    compare("gcevents");
}

#[test]
fn tracelogging() {
    compare("primitive-types");
}
