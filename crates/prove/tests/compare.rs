//! Comparisons of runs whose results are known from other programs, or by construction.

use std::fmt::Write as _;
use std::path::PathBuf;

use prove::columns::{self, Columns};
use prove::{
    Design, Error, Group, Judgement, Metric, Question, Run, Sides, Unit, Verdict, judge, sides,
};
use testdata::Rng;

const QUESTION: Question = Question { margin: 0.02 };

fn file(text: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn columns() -> Columns {
    Columns {
        value: "frame_ms".to_owned(),
        run: Some("run".to_owned()),
        by: Some("driver".to_owned()),
    }
}

/// Logarithms of ratios of ten pairs, with their centre, bounds and probability from SciPy 1.17 and R.
const D: [f64; 10] = [
    0.031, -0.012, 0.045, 0.022, 0.058, 0.017, 0.009, 0.064, -0.004, 0.038,
];

#[test]
fn pairs_of_a_csv_file_give_the_published_result() {
    let mut text = String::from("run,driver,frame_ms\n");
    for (run, d) in D.iter().enumerate() {
        writeln!(text, "{run},new,{}\n{run},old,10", 10.0 * d.exp()).unwrap();
    }
    let (_folder, path) = file(text.as_bytes());
    let groups = columns::read(&path, &columns()).unwrap();
    let both = sides::within(groups, Some("old"), Some("new")).unwrap();
    assert_eq!(
        (both.design, both.before.unit),
        (Design::Paired, Unit::Nanoseconds)
    );
    let judgement = judge(&both, QUESTION);
    let [line] = judgement.lines.as_slice() else {
        panic!("{:?}", judgement.lines);
    };
    assert_eq!((line.metric, line.before), (Metric::Value, Some(10e6)));
    let comparison = line.comparison.unwrap();
    for (found, expected) in [
        (comparison.change.centre, 1.027_368),
        (comparison.change.low, 1.009_041),
        (comparison.change.high, 1.046_028),
        (comparison.p, 0.013_671_875),
    ] {
        assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
    }
    assert_eq!(line.verdict, Some(Verdict::SlightlyHigher));
    // With a smaller margin, the change matters; with a greater one, it does not.
    let with = |margin| judge(&both, Question { margin }).lines[0].verdict;
    assert_eq!(with(0.005), Some(Verdict::Higher));
    assert_eq!(with(0.05), Some(Verdict::Same));
}

/// Returns runs of samples whose logarithms have this spread. `late` changes the slowest 2 %.
fn group(rng: &mut Rng, runs: u32, samples: usize, median: f64, late: f64) -> Group {
    let uniform = |rng: &mut Rng| (rng.below(1 << 20) as f64 + 0.5) / f64::from(1 << 20);
    let run = |number: u32| Run {
        name: number.to_string(),
        values: (0..samples)
            .map(|_| {
                let place = uniform(rng);
                let tail = if place > 0.98 { late } else { 1.0 };
                median * (0.5 * (place / (1.0 - place)).ln()).exp() * tail
            })
            .collect(),
        unknown: 0,
    };
    Group {
        name: "frames".to_owned(),
        unit: Unit::Nanoseconds,
        runs: (0..runs).map(run).collect(),
    }
}

fn judged(before: Group, after: Group, design: Design) -> Judgement {
    let sides = Sides {
        name: "frames".to_owned(),
        design,
        before,
        after,
    };
    judge(&sides, QUESTION)
}

fn verdicts(judgement: &Judgement) -> Vec<Option<Verdict>> {
    judgement.lines.iter().map(|line| line.verdict).collect()
}

#[test]
fn a_change_of_the_tail_only_is_found_there_only() {
    let mut rng = Rng(5);
    let mut found = 0;
    for _ in 0..20 {
        let before = group(&mut rng, 20, 2_000, 1e6, 1.0);
        let after = group(&mut rng, 20, 2_000, 1e6, 2.0);
        let judgement = judged(before, after, Design::Paired);
        let verdicts = verdicts(&judgement);
        assert_ne!(verdicts[0], Some(Verdict::Higher));
        // 2,000 samples are too few for p99.9, of which ten must be beyond it.
        assert_eq!(verdicts[3], None);
        found += u32::from(verdicts[2] == Some(Verdict::Higher));
    }
    assert!(found >= 18, "{found} of 20");
}

#[test]
fn equal_systems_differ_as_rarely_as_stated() {
    let mut rng = Rng(6);
    for design in [Design::Paired, Design::Unpaired] {
        let mut wrong = 0;
        for _ in 0..200 {
            let mut one = || group(&mut rng, 10, 100, 1e6, 1.0);
            let (before, after) = (one(), one());
            let judgement = judged(before, after, design);
            let is_wrong = |verdict: &Option<Verdict>| {
                !matches!(verdict, None | Some(Verdict::Same | Verdict::Unknown))
            };
            wrong += u32::from(verdicts(&judgement).iter().any(is_wrong));
        }
        // At most 5 % of 200 are expected, which is 10; three standard deviations more are 19.
        assert!(wrong <= 19, "{wrong} of 200, {design:?}");
    }
}

#[test]
fn a_second_mode_is_named_with_its_share() {
    let mut rng = Rng(7);
    let before = group(&mut rng, 8, 1_000, 1e6, 1.0);
    let mut after = group(&mut rng, 8, 1_000, 1e6, 1.0);
    for run in &mut after.runs {
        run.values
            .iter_mut()
            .step_by(5)
            .for_each(|value| *value *= 1_000.0);
    }
    let judgement = judged(before, after, Design::Paired);
    let last = judgement.modes.last().unwrap();
    assert_eq!(judgement.modes.len(), 2);
    assert!(last.before < 0.001, "{}", last.before);
    assert!((last.after - 0.2).abs() < 0.01, "{}", last.after);
    assert!((3e8..3e9).contains(&last.mode.peak), "{}", last.mode.peak);
}

#[test]
fn a_stall_counts_once_however_many_samples_it_delays() {
    let mut rng = Rng(8);
    let calm = |rng: &mut Rng| {
        let mut calm = group(rng, 6, 1_000, 1e6, 1.0);
        for run in &mut calm.runs {
            run.values
                .iter_mut()
                .for_each(|value| *value = value.min(9e6));
        }
        calm
    };
    let (mut before, mut after) = (calm(&mut rng), calm(&mut rng));
    // Two stalls in each run before the change, one after it.
    for run in &mut before.runs {
        run.values[100..103].fill(1e9);
        run.values[700..703].fill(1e9);
    }
    for run in &mut after.runs {
        run.values[400..403].fill(1e9);
    }
    let stalls = judged(before, after, Design::Paired).stalls.unwrap();
    assert_eq!((stalls.before, stalls.after), (12, 6));
    assert_eq!((stalls.late_before, stalls.late_after), (36, 18));
}

#[test]
fn too_few_runs_have_no_verdict() {
    let mut rng = Rng(9);
    for (design, runs) in [(Design::Paired, 5), (Design::Unpaired, 3)] {
        let mut one = |median| group(&mut rng, runs, 2_000, median, 1.0);
        let judgement = judged(one(1e6), one(9e6), design);
        for line in &judgement.lines {
            assert_eq!(line.verdict, None, "{line:?}");
            assert!(line.not_compared.is_some(), "{line:?}");
        }
    }
}

#[test]
fn broken_files_are_errors_that_say_what_to_do() {
    for (text, expected) in [
        (&b"run,driver,frame_ms\n1,old,NaN\n"[..], "line 2: `NaN`"),
        (
            b"run,driver,frame_ms\n1,old,1e999\n",
            "is not a finite number",
        ),
        (
            b"run,driver\n1,old\n",
            "it has no column `frame_ms`; its columns are run, driver",
        ),
        (b"run,driver,frame_ms\n1,old\n", "header line"),
        (b"\xff\xfe\x00,\n", "it is not UTF-8 text"),
        (b"", "no column"),
    ] {
        let (_folder, path) = file(text);
        let error = columns::read(&path, &columns()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let (_folder, path) = file(b"run,driver,frame_ms\n1,old,1\n1,new,2\n1,newer,3\n2,old,\n");
    let groups = columns::read(&path, &columns()).unwrap();
    assert_eq!(groups[0].runs[1].unknown, 1);
    let sides_of = |before, after| sides::within(groups.clone(), before, after);
    for (before, after, expected) in [
        (None, None, "choose two with --before and --after"),
        (Some("old"), Some("ne"), "is a part of several names"),
        (Some("old"), Some("x"), "nothing measured is called `x`"),
        (Some("old"), Some("old"), "with itself"),
    ] {
        let error = sides_of(before, after).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    // Rows make no pairs: nothing tells which of them belong together.
    let rows = Columns {
        run: None,
        ..columns()
    };
    let ungrouped = columns::read(&path, &rows).unwrap();
    let rows = sides::within(ungrouped, Some("old"), Some("new")).unwrap();
    assert_eq!(rows.design, Design::Unpaired);
    // An exact name is chosen, even if others contain it.
    assert_eq!(
        sides_of(Some("old"), Some("new")).unwrap().after.name,
        "new"
    );
    let none = sides::between(groups[..1].to_vec(), groups[1..].to_vec(), false);
    assert!(matches!(none, Err(Error::Sides(_))));
}
