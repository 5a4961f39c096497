//! Comparisons of runs with known results. The results are from other programs, or follow from the
//! construction of the runs.

use std::fmt::Write as _;
use std::path::PathBuf;

use prove::columns::{self, Columns};
use prove::{
    Design, Error, Group, Judgement, Metric, Question, Run, Sides, Summary, Unit, Verdict, judge,
    sides,
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

/// Logarithms of the ratios of ten pairs. The test compares their centre, bounds and probability with results
/// of SciPy 1.17 and R.
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
    let judgement = judgement(&both, QUESTION);
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
    // With a smaller margin, the change matters. With a greater margin, the change does not matter.
    let with = |margin| self::judgement(&both, Question { margin }).lines[0].verdict;
    assert_eq!(with(0.005), Some(Verdict::Higher));
    assert_eq!(with(0.05), Some(Verdict::Same));
}

fn uniform(rng: &mut Rng) -> f64 {
    (rng.below(1 << 20) as f64 + 0.5) / f64::from(1 << 20)
}

/// Returns runs of samples. The logarithms of the samples have a logistic distribution. The slowest 2 % of
/// the samples are multiplied by `late`.
fn runs(rng: &mut Rng, runs: u32, samples: usize, median: f64, late: f64) -> Vec<Vec<f64>> {
    let sample = |rng: &mut Rng| {
        let place = uniform(rng);
        let tail = if place > 0.98 { late } else { 1.0 };
        median * (0.5 * (place / (1.0 - place)).ln()).exp() * tail
    };
    let runs = 0..runs;
    runs.map(|_| (0..samples).map(|_| sample(rng)).collect())
        .collect()
}

fn group(runs: Vec<Vec<f64>>) -> Group {
    let runs = runs.into_iter().enumerate();
    Group {
        name: "frames".to_owned(),
        unit: Unit::Nanoseconds,
        runs: runs
            .map(|(number, values)| Run::new(number.to_string(), values, 0))
            .collect(),
    }
}

fn judged(before: Vec<Vec<f64>>, after: Vec<Vec<f64>>, design: Design) -> Judgement {
    let sides = Sides {
        name: "frames".to_owned(),
        design,
        before: group(before),
        after: group(after),
    };
    judgement(&sides, QUESTION)
}

fn judgement(sides: &Sides, question: Question) -> Judgement {
    judge(sides, &Summary::read(sides).unwrap(), question).unwrap()
}

fn verdicts(judgement: &Judgement) -> Vec<Option<Verdict>> {
    judgement.lines.iter().map(|line| line.verdict).collect()
}

#[test]
fn a_change_of_the_tail_only_is_found_there_only() {
    let mut rng = Rng(5);
    let mut found = 0;
    for _ in 0..20 {
        let before = runs(&mut rng, 20, 10_000, 1e6, 1.0);
        let after = runs(&mut rng, 20, 10_000, 1e6, 2.0);
        let verdicts = verdicts(&judged(before, after, Design::Paired));
        assert!(!matches!(
            verdicts[0],
            Some(Verdict::Higher | Verdict::Lower)
        ));
        found += u32::from(verdicts[2] == Some(Verdict::Higher));
    }
    assert!(found >= 18, "{found} of 20");
}

#[test]
fn too_short_runs_have_no_high_quantiles() {
    let mut rng = Rng(5);
    let mut one = || runs(&mut rng, 6, 2_000, 1e6, 1.0);
    let verdicts = verdicts(&judged(one(), one(), Design::Paired));
    // p99.9 needs runs with 10,000 samples, because then ten samples exceed it.
    assert!(verdicts[2].is_some());
    assert_eq!(verdicts[3], None);
}

/// Returns runs with two modes, at 1 ms and at 4 ms. `share` is the share of the samples in the second mode.
fn two_modes(rng: &mut Rng, share: f64) -> Vec<Vec<f64>> {
    let mut all = runs(rng, 20, 1_000, 1.0, 1.0);
    for value in all.iter_mut().flatten() {
        let place = if uniform(rng) < share { 4e6 } else { 1e6 };
        // The samples have a narrow distribution around `place`, the peak of their mode.
        *value = place * value.powf(0.1);
    }
    all
}

#[test]
fn a_move_between_two_modes_is_named() {
    let mut rng = Rng(12);
    let (mut named, mut wrong) = (0, 0);
    for _ in 0..20 {
        let before = two_modes(&mut rng, 0.30);
        let after = two_modes(&mut rng, 0.35);
        if let Some(moved) = judged(before, after, Design::Paired).moved {
            assert!((0.8e6..1.25e6).contains(&moved.from), "{moved:?}");
            assert!((3.2e6..5e6).contains(&moved.to), "{moved:?}");
            assert!((moved.share - 0.05).abs() < 0.02, "{moved:?}");
            named += 1;
        }
        let (before, after) = (two_modes(&mut rng, 0.3), two_modes(&mut rng, 0.3));
        wrong += u32::from(judged(before, after, Design::Paired).moved.is_some());
    }
    assert!(named >= 18 && wrong <= 4, "{named} and {wrong} of 20");
}

#[test]
fn equal_systems_differ_as_rarely_as_stated() {
    let mut rng = Rng(6);
    for design in [Design::Paired, Design::Unpaired] {
        let mut wrong = 0;
        for _ in 0..200 {
            let mut one = || runs(&mut rng, 10, 100, 1e6, 1.0);
            let (before, after) = (one(), one());
            let judgement = judged(before, after, design);
            let is_wrong = |verdict: &Option<Verdict>| {
                !matches!(verdict, None | Some(Verdict::Same | Verdict::Unknown))
            };
            wrong += u32::from(verdicts(&judgement).iter().any(is_wrong));
        }
        // The expected number is at most 5 % of 200, which is 10. 10 plus three standard deviations is 19.
        assert!(wrong <= 19, "{wrong} of 200, {design:?}");
    }
}

#[test]
fn a_second_mode_is_named_with_its_share() {
    let mut rng = Rng(7);
    let before = runs(&mut rng, 8, 1_000, 1e6, 1.0);
    let mut after = runs(&mut rng, 8, 1_000, 1e6, 1.0);
    for run in &mut after {
        run.iter_mut()
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
        let mut calm = runs(rng, 6, 1_000, 1e6, 1.0);
        for run in &mut calm {
            run.iter_mut().for_each(|value| *value = value.min(9e6));
        }
        calm
    };
    let (mut before, mut after) = (calm(&mut rng), calm(&mut rng));
    // Each run has two stalls before the change, and one stall after the change.
    for run in &mut before {
        run[100..103].fill(1e9);
        run[700..703].fill(1e9);
    }
    for run in &mut after {
        run[400..403].fill(1e9);
    }
    let stalls = judged(before, after, Design::Paired).stalls.unwrap();
    assert_eq!((stalls.before, stalls.after), (12, 6));
    assert_eq!((stalls.late_before, stalls.late_after), (36, 18));
}

#[test]
fn too_few_runs_have_no_verdict() {
    let mut rng = Rng(9);
    for (design, count) in [(Design::Paired, 5), (Design::Unpaired, 3)] {
        let mut one = |median| runs(&mut rng, count, 2_000, median, 1.0);
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
    assert_eq!(groups[0].runs[1].samples(), 1);
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
    // Without a column of runs, each row is a run. Nothing shows which rows belong together, so the rows form
    // no pairs.
    let rows = Columns {
        run: None,
        ..columns()
    };
    let ungrouped = columns::read(&path, &rows).unwrap();
    let rows = sides::within(ungrouped, Some("old"), Some("new")).unwrap();
    assert_eq!(rows.design, Design::Unpaired);
    // A group with exactly this name is selected, even if other names contain this name.
    assert_eq!(
        sides_of(Some("old"), Some("new")).unwrap().after.name,
        "new"
    );
    let none = sides::between(groups[..1].to_vec(), groups[1..].to_vec(), false);
    assert!(matches!(none, Err(Error::Sides(_))));
}

/// Checks that the effect of the order is found if the second run of each pair takes 10 % longer. Each run
/// also has random noise of 1 %.
#[test]
fn an_effect_of_the_order_is_found() {
    let mut rng = Rng(14);
    let mut found = |order: f64, alternates: bool| {
        let mut groups = [Vec::new(), Vec::new()];
        for pair in 0..12_i64 {
            for (side, runs) in groups.iter_mut().enumerate() {
                let is_second = (side == 1) == (pair % 2 == 0 || !alternates);
                let slower = if is_second { 1.0 + order } else { 1.0 };
                let noise = 1.0 + 0.01 * (uniform(&mut rng) - 0.5);
                let mut run = Run::new(pair.to_string(), vec![1e6 * slower * noise], 0);
                run.began = Some(2 * pair + i64::from(is_second));
                runs.push(run);
            }
        }
        let [before, after] = groups.map(|runs| Group {
            name: "frames".to_owned(),
            unit: Unit::Nanoseconds,
            runs,
        });
        let sides = Sides {
            name: "frames".to_owned(),
            design: Design::Paired,
            before,
            after,
        };
        judgement(&sides, QUESTION)
    };
    let with = found(0.1, true);
    let effect = with.lines[0].order.unwrap();
    assert!(effect.matters, "{effect:?}");
    let counts = (effect.order.before_began, effect.order.after_began);
    assert_eq!(counts, (6, 6));
    assert!(
        (effect.order.second.centre - 1.1).abs() < 0.01,
        "{effect:?}"
    );
    assert!(!found(0.0, true).lines[0].order.unwrap().matters);
    // If the same side always begins, the effect of the order looks like an effect of the change.
    let always = found(0.1, false);
    assert_eq!(always.lines[0].order, None);
    let doubt = "The run before the change began in every pair";
    assert!(always.doubts[0].starts_with(doubt), "{:?}", always.doubts);
}

#[test]
fn a_pilot_plans_the_pairs() {
    let mut rng = Rng(15);
    let mut pilot = |pairs: u32, samples: usize| {
        let before = group(runs(&mut rng, pairs, samples, 1e6, 1.0));
        let after = group(runs(&mut rng, pairs, samples, 1e6, 1.0));
        let sides = Sides {
            name: "frames".to_owned(),
            design: Design::Paired,
            before,
            after,
        };
        prove::plan(&sides, &Summary::read(&sides).unwrap(), QUESTION).unwrap()
    };
    let plan = pilot(32, 1_000);
    let median = &plan.lines[0];
    // The logarithm of a sample is 0.5 times a logistic number, whose density at the median is 1/4. So the
    // standard deviation of the median of 1,000 samples is 0.5 · 2 / √1,000. The standard deviation of the
    // difference of two medians is √2 times as large.
    let scatter = 2.0_f64.sqrt() / 1_000.0_f64.sqrt();
    let found = median.forecast.unwrap().scatter;
    assert!(
        (found / scatter - 1.0).abs() < 0.45,
        "{found}, not {scatter}"
    );
    // In this simulation, runs differ only by chance within the runs. So the true share is 1, and the
    // estimated share must be high.
    assert!(median.within_runs.unwrap() > 0.4, "{median:?}");
    let half = median.half_width.unwrap();
    assert!(half.low < half.centre && half.centre < half.high);
    assert!(median.detectable.is_sorted_by(|a, b| a.change > b.change));
    // p99.9 needs 10,000 samples.
    assert!(plan.lines[3].not_planned.is_some() && plan.lines[3].pairs.is_none());
    let few = pilot(5, 1_000);
    let reason = few.lines[0].not_planned.as_deref().unwrap();
    assert!(reason.starts_with("too few pairs of runs: 5"), "{reason}");
}

/// Checks that a change of 10 % at the 13th point of a history is found.
#[test]
fn a_change_in_a_history_is_found() {
    let mut rng = Rng(16);
    let mut file = |number: usize| {
        let median = if number < 12 { 1e6 } else { 1.1e6 };
        let runs = group(runs(&mut rng, 3, 1_000, median, 1.0));
        (format!("{number}.csv"), vec![runs])
    };
    let files: Vec<(String, Vec<Group>)> = (0..24).map(&mut file).collect();
    let histories = prove::histories(files).unwrap();
    let [history] = histories.as_slice() else {
        panic!("{histories:?}");
    };
    assert_eq!(history.points.len(), 24);
    let median = &history.lines[0];
    assert_eq!(median.metric, Metric::Quantile(0.5));
    let ends: Vec<(usize, usize)> = median
        .segments
        .iter()
        .map(|it| (it.first, it.last))
        .collect();
    assert_eq!(ends, [(0, 11), (12, 23)]);
    let ratio = median.segments[1].median / median.segments[0].median;
    assert!((ratio - 1.1).abs() < 0.03, "{ratio}");
    // Nine points are too few.
    let few = prove::histories((0..9).map(&mut file).collect()).unwrap();
    let reason = few[0].lines[0].not_searched.as_deref().unwrap();
    assert!(reason.starts_with("too few points: 9"), "{reason}");
    // If there is only one file, its runs are the points.
    let one = vec![(
        "a.csv".to_owned(),
        vec![group(runs(&mut rng, 12, 100, 1e6, 1.0))],
    )];
    let one = prove::histories(one).unwrap();
    assert_eq!((one[0].points.len(), one[0].lines.len()), (12, 2));
    assert!(prove::histories(Vec::new()).is_err());
}

/// Measures the same machine in three sessions a side, with four runs each. A session differs by its factor.
#[test]
fn files_that_differ_more_than_their_runs_are_a_doubt() {
    let mut rng = Rng(31);
    let mut has_doubt = |sessions: [f64; 3]| {
        let mut side = |_| {
            let files = sessions.map(|factor| {
                let values = runs(&mut rng, 4, 50, factor, 1.0).into_iter().enumerate();
                let values = values.map(|(run, values)| Run::new(run.to_string(), values, 0));
                vec![Group {
                    name: "frame_ms".to_owned(),
                    unit: Unit::Other,
                    runs: values.collect(),
                }]
            });
            sides::joined(files.into())
        };
        let [before, after] = [0, 1].map(&mut side);
        let all = sides::between(before, after, false).unwrap();
        let doubts = judgement(&all[0], QUESTION).doubts;
        doubts.iter().any(|doubt| doubt.contains("files before"))
    };
    assert!(has_doubt([1.0, 2.0, 3.0]));
    // A side errs in 2.5 %: three standard deviations above 2.5 of 100 are 7.
    let wrong = (0..100).filter(|_| has_doubt([1.0; 3])).count();
    assert!(wrong <= 7, "{wrong} of 100");
}

/// Six pairs of runs whose medians fall by two thirds. Three quantiles at once need seven pairs to be sure.
#[test]
fn one_more_pair_is_enough_where_only_several_quantiles_make_a_change_unsure() {
    let mut rng = Rng(41);
    let mut sides = |pairs| {
        let before = runs(&mut rng, pairs, 2_000, 3.0, 1.0);
        judged(
            before,
            runs(&mut rng, pairs, 2_000, 1.0, 1.0),
            Design::Paired,
        )
    };
    let six = sides(6);
    assert_eq!(six.lines[0].verdict, Some(Verdict::Unknown));
    assert_eq!(six.lines[0].more, Some(1));
    assert_eq!(sides(7).lines[0].verdict, Some(Verdict::Lower));
}
