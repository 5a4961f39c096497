//! Statistical power: changes that must be found.

use crate::recorded;

use diff::{Conclusion, Kind, ReadOptions, Recording};
use recorded::{adds_up, diff, find, first_subjects, read};
use simulated::Simulated;

/// Records 30 s of a healthy desktop. A program works for the time `run`, 50 times a second.
fn with_load(run: &str, seed: u32) -> Recording {
    let text = format!(
        r#"
        extends = "healthy"
        title = "A healthy desktop with a steady load"
        duration = "30s"
        [[add.process]]
        name = "load.exe"
        [[add.process.thread]]
        name = "load"
        program = [ {{ resolution = "0.5ms" }}, {{ forever = [ {{ sleep = "exp(19ms)" }}, {{ run = "{run}" }} ] }} ]
        "#
    );
    let simulated = Simulated::of_text("load", &text, &[&format!("seed={seed}")]);
    read(&simulated, &ReadOptions::default())
}

/// Compares 20 pairs of recordings. At least 90 % of the pairs must show the change. Pairs of two recordings before the
/// change have no difference, so at most 5 % of these pairs may show a difference.
#[test]
fn a_change_of_a_fifth_is_found() {
    const PAIRS: u32 = 20;
    let (mut found, mut first, mut unchanged) = (0, 0, Vec::new());
    for seed in 1..=PAIRS {
        let before = with_load("lognormal(1ms, 0.3)", seed);
        let after = with_load("lognormal(1200us, 0.3)", 100 + seed);
        let diff = diff(&before, &after);
        adds_up(&diff);
        let load = find(&diff.per_second, Kind::Program, "load.exe");
        // The load is 5 % of a CPU.
        assert!((0.04..0.06).contains(&(load.before.ns / 1e9)), "{load:?}");
        found += u32::from(load.conclusion == Conclusion::Differs);
        first += u32::from(first_subjects(&diff).contains(&"load.exe".to_owned()));
        unchanged.push(before);
    }
    assert!(found * 10 >= PAIRS * 9, "{found} of {PAIRS}");
    assert!(first * 10 >= PAIRS * 9, "{first} of {PAIRS} first");
    let (mut pairs, mut wrong) = (0, 0);
    for (n, before) in unchanged.iter().enumerate() {
        for after in &unchanged[..n] {
            pairs += 1;
            wrong += u32::from(!diff(before, after).findings.is_empty());
        }
    }
    assert_eq!(pairs, 190);
    assert!(wrong * 20 <= pairs, "{wrong} of {pairs}");
}
