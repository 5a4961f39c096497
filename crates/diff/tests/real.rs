//! Comparisons of real traces with themselves and with each other.

use crate::recorded;

use diff::{Conclusion, Diff, ReadOptions, Recording, Unit};
use recorded::{adds_up, diff, per_work};
use tables::{Cache, Options};
use wording::Sentence;

fn recordings() -> Vec<(String, Recording)> {
    let traces = testdata::traces().into_iter();
    let each = traces.map(|(name, _)| {
        let store = imports::open_store(&[testdata::path(&name)], Cache::Off).unwrap();
        let recording = Recording::read(&store, &ReadOptions::default(), Options::default());
        (name, recording.unwrap())
    });
    each.collect()
}

/// Checks that the comparison has no impossible numbers.
fn makes_sense(about: &str, diff: &Diff) {
    adds_up(diff);
    for change in diff.per_second.iter().chain(per_work(diff)) {
        for sum in [change.before, change.after] {
            assert!(
                sum.ns.is_finite() && sum.count >= 0.0,
                "{about}: {change:?}"
            );
            // Sums of nanoseconds are exact except for rounding errors.
            assert!(sum.ns >= -1e-3, "{about}: {change:?}");
        }
        let p = [change.adjusted_p, change.adjusted_mean_p];
        assert!(
            p.into_iter().flatten().all(|p| (0.0..=1.0).contains(&p)),
            "{about}: {change:?}"
        );
        let missing = &diff.besides;
        assert!(
            !missing.recorded_before_only.contains(&change.kind),
            "{about}"
        );
        assert!(
            !missing.recorded_after_only.contains(&change.kind),
            "{about}"
        );
        let are_few = diff.before.units.min(diff.after.units) < Unit::Block.min_count();
        assert_eq!(are_few, change.conclusion == Conclusion::TooFew, "{about}");
    }
    for unmatched in &diff.unmatched {
        for share in [unmatched.before, unmatched.after] {
            assert!((0.0..=1.0).contains(&share), "{about}: {unmatched:?}");
        }
    }
    for finding in &diff.findings {
        assert!(!finding.evidence.is_empty(), "{about}: {finding:?}");
        let text = format!("{} {}", finding.sentence, Sentence::joined(&finding.why));
        assert!(
            !text.contains("NaN") && !text.contains("inf "),
            "{about}: {text}"
        );
    }
    assert!(!diff.answer().is_empty());
}

#[test]
fn real_traces_are_compared_without_nonsense() {
    let all = recordings();
    let mut compared = 0;
    for (before_name, before) in &all {
        let own = diff(before, before);
        makes_sense(before_name, &own);
        assert_eq!(
            own.besides,
            diff::OtherDifferences::default(),
            "{before_name}"
        );
        assert!(own.findings.is_empty(), "{before_name}: {}", own.answer());
        assert!(
            own.per_second.iter().all(|change| change.ns() == 0.0),
            "{before_name}"
        );
        for (after_name, after) in &all {
            let about = format!("{before_name} and {after_name}");
            let diff = diff(before, after);
            makes_sense(&about, &diff);
            compared += diff.per_second.len();
        }
    }
    assert!(compared > 300, "{compared} rows");
}
