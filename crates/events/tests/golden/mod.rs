//! Comparison of whole real traces with the output of TraceEvent, another program that reads traces.
//!
//! Tables in these modules list each difference and its reason, so no difference is hidden. Each test prints
//! how many items were compared (visible with `--nocapture`).

#![allow(clippy::print_stdout)] // The tests print the numbers of compared items.

mod baseline;
mod coverage;
mod expected;
mod facts;
mod fields;
mod kinds;
mod order;
mod trace;

use std::collections::{BTreeMap, VecDeque};

use baseline::Baseline;
use facts::Facts;
use fields::{DecodedEvent, Outcome};
use trace::Decodable;

/// Result of comparing a trace with a baseline.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    kinds: usize,
    events: usize,
    fields: usize,
    /// Number of fields that do not exist in an event's version. TraceEvent prints such fields as empty or
    /// zero.
    absent: usize,
    /// Number of fields that differ for a known reason.
    explained: usize,
}

/// Compares a trace with its baseline. Compares the number of events of each kind, and each field of the
/// first events of each kind.
fn compare(name: &str) -> Sum {
    let baseline = Baseline::read(name);
    let mut lines = BTreeMap::<&str, VecDeque<_>>::new();
    for line in baseline.events() {
        lines.entry(line.kind).or_default().push_back(line);
    }
    let trace = Decodable::open(&[&format!("perfview__{name}.etl")]);
    let mut facts = Facts::default();
    trace.for_each(|event, decoded| facts.learn(event, decoded));

    let mut sum = Sum::default();
    let mut counts = BTreeMap::<String, usize>::new();
    let mut notes = BTreeMap::<String, usize>::new();
    let mut faults = Vec::new();
    trace.for_each(|event, decoded| {
        let (provider, event_name) = kinds::name(event, decoded);
        let kind = format!("{provider}/{event_name}");
        let left_out = kinds::reason_left_out(&kind, decoded);
        if let Some(reason) = left_out.or(kinds::reason_not_in_baselines(&kind)) {
            *notes
                .entry(format!("left out: {kind}: {reason}"))
                .or_default() += 1;
            return;
        }
        let line = lines.get_mut(&*kind).and_then(VecDeque::pop_front);
        *counts.entry(kind.clone()).or_default() += 1;
        let Some(line) = line else { return };
        sum.events += 1;
        if (event.time_ns() - line.time_us * 1000).abs() > 500 {
            faults.push(format!("{} ns: {}", event.time_ns(), line.text));
        }
        let ours = DecodedEvent {
            event,
            decoded,
            facts: &facts,
        };
        for (field, text) in line.fields {
            match fields::compare(&kind, field, text, &ours) {
                Outcome::Equal => sum.fields += 1,
                Outcome::Absent => sum.absent += 1,
                Outcome::Explained(reason) => {
                    sum.explained += 1;
                    *notes
                        .entry(format!("{kind} {field}: {reason}"))
                        .or_default() += 1;
                }
                Outcome::Different(ours) => {
                    faults.push(format!("{field}={text}, ours {ours}: {}", line.text));
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
    faults.extend(counts.keys().map(|kind| format!("they have no {kind}")));
    let missing = lines.values().flatten();
    faults.extend(missing.map(|line| format!("missing: {}", line.text)));

    println!("{name}: {sum:?}");
    for (note, count) in notes {
        println!("{count:7} {note}");
    }
    assert!(faults.is_empty(), "{name}:\n{}", faults.join("\n"));
    assert_eq!(sum.events, baseline.events().len());
    let fields: usize = baseline.events().iter().map(|line| line.fields.len()).sum();
    assert_eq!(sum.fields + sum.absent + sum.explained, fields);
    sum
}

#[test]
fn windows_8() {
    let sum = Sum {
        kinds: 152,
        events: 480,
        fields: 4912,
        absent: 73,
        explained: 95,
    };
    assert_eq!(compare("net.4.5.2.x64"), sum);
}

#[test]
fn windows_7() {
    let sum = Sum {
        kinds: 129,
        events: 495,
        fields: 5441,
        absent: 107,
        explained: 96,
    };
    assert_eq!(compare("net.4.5.x86-win7"), sum);
}

#[test]
fn collections_of_net() {
    let sum = Sum {
        kinds: 21,
        events: 52,
        fields: 552,
        absent: 4,
        explained: 0,
    };
    assert_eq!(compare("gcevents"), sum);
}

#[test]
fn primitive_types() {
    let sum = Sum {
        kinds: 2,
        events: 6,
        fields: 106,
        absent: 0,
        explained: 5,
    };
    assert_eq!(compare("primitive-types"), sum);
}

/// Compares the order of events in a trace with TraceEvent's order. The trace consists of four files of one
/// session.
#[test]
fn order_over_files() {
    let names = testdata::bytes("etl/golden/diaghub-etls.event-names.txt");
    let names = String::from_utf8(names).unwrap();
    let names: Vec<&str> = names.trim_start_matches('\u{feff}').lines().collect();
    let trace = Decodable::open(&[
        "perfview__diaghub__diaghub.etl",
        "perfview__diaghub__diaghub.kernel.1.etl",
        "perfview__diaghub__diaghub.user_paged.1.etl",
        "perfview__diaghub__diaghub.user_injected.1.etl",
    ]);
    let order = order::Order {
        events: 95_506,
        ties: 15_441,
        open: 122,
    };
    assert_eq!(order::compare(&trace, &names), order);
}

/// Expected number of events without a layout, by file and provider. The files contain no description of
/// these events.
const UNDECODED: &[(&str, &str, usize)] = &[
    (
        "perfview__diaghub__diaghub.kernel.1.etl",
        "6f669bfa-816a-4204-a824-47c8e6a00474",
        1,
    ),
    (
        "perfview__diaghub__diaghub.user_paged.1.etl",
        "6f669bfa-816a-4204-a824-47c8e6a00474",
        1,
    ),
    (
        "perfview__diaghub__diaghub.user_injected.1.etl",
        "9e5f9046-43c6-4f62-ba13-7b19896253ff",
        3,
    ),
    (
        "gpuvis__wintracecmd.etl",
        "8f8f13b1-60eb-4b6a-a433-de86104115ac",
        14_533,
    ),
    (
        "gpuvis__wintracecmd.etl",
        "Microsoft-Windows-DxgKrnl",
        123_826,
    ),
    ("tx__HTTP_Server.etl", "Microsoft-Windows-HttpService", 2041),
    // These are WPP messages, and the decoder has no TMF file for them.
    (
        "findneedle__wppemitter-nonselfdesc.etl",
        "9b93a332-c452-3e71-64f7-55130c7de2e4",
        30,
    ),
];

#[test]
fn whatever_a_trace_describes_is_decoded() {
    let mut undecoded = Vec::new();
    for (file, truth) in testdata::traces() {
        let file = file.strip_prefix("etl/").unwrap();
        let coverage = coverage::coverage(file);
        println!("{file}: {coverage:?}");
        assert_eq!(truth["total_events"], coverage.events, "{file}");
        let of_file = coverage.undecoded.into_iter();
        undecoded.extend(of_file.map(|(provider, n)| (file.to_owned(), provider, n)));
    }
    let expected = UNDECODED
        .iter()
        .map(|(file, provider, n)| (*file, *provider, *n));
    let undecoded = undecoded
        .iter()
        .map(|(file, provider, n)| (&**file, &**provider, *n));
    assert_eq!(undecoded.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}
