//! Comparisons of runs with known results. The results are from other programs, or follow from the
//! construction of the runs.

use std::fmt::Write as _;
use std::path::PathBuf;

use prove::columns::{self, Columns};
use prove::{
    Design, Error, Group, Judgement, Metric, NoRates, Pairing, Question, Run, Sides, Summary, Unit,
    Verdict, judge, sides,
};
use testdata::Rng;

pub(crate) const QUESTION: Question = Question { margin: 0.02 };

pub(crate) fn file(text: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

pub(crate) fn columns() -> Columns {
    Columns {
        value: "frame_ms".to_owned(),
        run: Some("run".to_owned()),
        by: Some("driver".to_owned()),
    }
}

/// Logarithms of the ratios of ten pairs. The test compares their centre, bounds and probability with results
/// of SciPy 1.17 and R.
pub(crate) const D: [f64; 10] = [
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
    let both = sides::within(groups, Some("old"), Some("new"), Pairing::Found).unwrap();
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
    // With a smaller margin, the change matters; with a greater margin, it does not.
    let with = |margin| self::judgement(&both, Question { margin }).lines[0].verdict;
    assert_eq!(with(0.005), Some(Verdict::Higher));
    assert_eq!(with(0.05), Some(Verdict::Same));
}

pub(crate) fn uniform(rng: &mut Rng) -> f64 {
    (rng.below(1 << 20) as f64 + 0.5) / f64::from(1 << 20)
}

/// Returns runs of samples. The logarithms of the samples have a logistic distribution. The slowest 2 % of
/// the samples are multiplied by `late`.
pub(crate) fn runs(
    rng: &mut Rng,
    runs: u32,
    samples: usize,
    median: f64,
    late: f64,
) -> Vec<Vec<f64>> {
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
        column: None,
        unit: Unit::Nanoseconds,
        runs: runs
            .map(|(number, values)| Run::new(number.to_string(), values, 0))
            .collect(),
    }
}

pub(crate) fn judged(before: Vec<Vec<f64>>, after: Vec<Vec<f64>>, design: Design) -> Judgement {
    let sides = Sides {
        name: "frames".to_owned(),
        design,
        before: group(before),
        after: group(after),
        alone: [0, 0],
        same_names: 0,
        has_looks: false,
    };
    judgement(&sides, QUESTION)
}

pub(crate) fn judgement(sides: &Sides, question: Question) -> Judgement {
    judge(sides, &Summary::read(sides).unwrap(), question).unwrap()
}

pub(crate) fn verdicts(judgement: &Judgement) -> Vec<Option<Verdict>> {
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

/// Checks equal sides of 6 runs with 1,000 samples each. Each run has one stall of 20 samples. The threshold of stalls is
/// inside the stalls, so that about half of their samples are late.
#[test]
fn a_stall_that_is_partly_late_counts_once() {
    let mut rng = Rng(88);
    let mut side = || {
        let mut side = runs(&mut rng, 6, 1_000, 1e6, 1.0);
        for run in &mut side {
            run.iter_mut().for_each(|value| *value = value.min(9e6));
            let start = 100 + rng.below(800);
            for value in &mut run[start..start + 20] {
                *value = 1e7 + uniform(&mut rng) * 1e8;
            }
        }
        side
    };
    let stalls = judged(side(), side(), Design::Unpaired).stalls.unwrap();
    assert!((50..70).contains(&stalls.late_before), "{stalls:?}");
    assert_eq!((stalls.before, stalls.after), (6, 6));
}

/// Compares equal sides whose runs have one stall of 20 samples in every tenth run. Intervals with 95 % confidence miss a
/// ratio of 1 in at most 5 % of the rounds, and three standard errors.
#[test]
fn rates_of_stalls_differ_as_rarely_as_stated() {
    let mut rng = Rng(1);
    let rounds = testdata::rounds(300);
    let mut wrong = 0;
    for _ in 0..rounds {
        let mut side = || {
            let mut side: Vec<Vec<f64>> = (0..12)
                .map(|_| (0..200).map(|_| (0.3 * normal(&mut rng)).exp()).collect())
                .collect();
            for run in &mut side {
                if rng.below(10) == 0 {
                    let start = rng.below(180);
                    for value in &mut run[start..start + 20] {
                        *value += -5.0 * uniform(&mut rng).ln();
                    }
                }
            }
            side
        };
        let stalls = judged(side(), side(), Design::Unpaired).stalls;
        let rates = stalls.and_then(|stalls| stalls.rates);
        wrong += u32::from(
            rates.is_some_and(|it| it.low > 1.0 || it.high.is_some_and(|high| high < 1.0)),
        );
    }
    let share = f64::from(wrong) / rounds as f64;
    let error = (0.05 * 0.95 / rounds as f64).sqrt();
    assert!(share <= 0.05 + 3.0 * error, "{share}");
}

#[test]
fn too_few_runs_have_no_verdict() {
    let mut rng = Rng(9);
    for (design, before, after) in [
        (Design::Paired, 5, 5),
        (Design::Unpaired, 3, 3),
        (Design::Unpaired, 1, 39),
        (Design::Unpaired, 8, 2),
        (Design::Unpaired, 3, 5),
        (Design::Unpaired, 2, 100),
    ] {
        let mut side = |count, median| runs(&mut rng, count, 2_000, median, 1.0);
        let judgement = judged(side(before, 1e6), side(after, 9e6), design);
        for line in &judgement.lines {
            assert_eq!(line.comparison, None, "{line:?}");
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
            b"run,driver,frame_ms\n1,old,1e300\n",
            "line 2: `1e300` in the column `frame_ms` is too large or too small; give 0, or values",
        ),
        (
            b"run,driver,frame_ms\n1,old,-1e-200\n",
            "line 2: `-1e-200` in the column `frame_ms` is too large",
        ),
        (
            b"run,driver,frame_ms,frame_ms\n1,old,1,2\n",
            "it has several columns named `frame_ms`; rename them",
        ),
        (
            b"run,driver\n1,old\n",
            "it has no column `frame_ms`; its columns are run, driver",
        ),
        (b"run,driver,frame_ms\n1,old\n", "header line"),
        (b"\xff\xfe\x00,\n", "it is not UTF-8 text"),
        (b"", "it is empty"),
        (b"run,driver,frame_ms\n", "it has columns, but no rows"),
        (
            b"run;driver;frame_ms\n1;old;10,5\n",
            "run;driver;frame_ms; separate columns by commas",
        ),
    ] {
        let (_folder, path) = file(text);
        let error = columns::read(&path, &columns()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let (_folder, path) = file(b"run,driver,frame_ms\n1,old,1\n1,new,2\n1,newer,3\n2,old,\n");
    let groups = columns::read(&path, &columns()).unwrap();
    assert_eq!(groups[0].runs[1].samples(), 1);
    let sides_of = |before, after| sides::within(groups.clone(), before, after, Pairing::Found);
    for (before, after, expected) in [
        (None, None, "choose two with --before and --after"),
        (Some("old"), Some("ne"), "is a part of several names"),
        (Some("old"), Some("x"), "nothing measured is called `x`"),
        (Some("old"), Some("old"), "with itself"),
    ] {
        let error = sides_of(before, after).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    // If no column of runs is given, each row is a run. The file does not show which rows belong together, so the rows
    // form no pairs.
    let rows = Columns {
        run: None,
        ..columns()
    };
    let ungrouped = columns::read(&path, &rows).unwrap();
    let rows = sides::within(ungrouped, Some("old"), Some("new"), Pairing::Found).unwrap();
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
            column: None,
            unit: Unit::Nanoseconds,
            runs,
        });
        let sides = Sides {
            name: "frames".to_owned(),
            design: Design::Paired,
            before,
            after,
            alone: [0, 0],
            same_names: 0,
            has_looks: false,
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
            alone: [0, 0],
            same_names: 0,
            has_looks: false,
        };
        prove::plan(&sides, &Summary::read(&sides).unwrap(), QUESTION).unwrap()
    };
    let plan = pilot(32, 1_000);
    let median = &plan.lines[0];
    // The logarithm of a sample is 0.5 times a logistic number, whose density at the median is 1/4. The median of 1,000
    // samples therefore has the standard deviation 0.5 · 2 / √1,000. The difference of two medians has √2 times this
    // standard deviation.
    let scatter = 2.0_f64.sqrt() / 1_000.0_f64.sqrt();
    let found = median.forecast.unwrap().scatter;
    assert!(
        (found / scatter - 1.0).abs() < 0.45,
        "{found}, not {scatter}"
    );
    // In this simulation, runs differ only by chance within the runs. The true share is 1, so the estimated share must
    // be high.
    assert!(median.within_runs.unwrap() > 0.4, "{median:?}");
    let half = median.half_width.unwrap();
    assert!(half.low < half.centre && half.centre < half.high);
    assert!(median.detectable.is_sorted_by(|a, b| a.change > b.change));
    // p99.9 needs 10,000 samples.
    assert!(plan.lines[3].not_planned.is_some() && plan.lines[3].pairs.is_none());
    let few = pilot(5, 1_000);
    let reason = few.lines[0].not_planned.as_deref().unwrap();
    assert!(reason.starts_with("too few pairs of runs (5"), "{reason}");
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
    assert!(reason.starts_with("too few points (9"), "{reason}");
    // If there is only one file, its runs are the points.
    let one = vec![(
        "a.csv".to_owned(),
        vec![group(runs(&mut rng, 12, 100, 1e6, 1.0))],
    )];
    let one = prove::histories(one).unwrap();
    assert_eq!((one[0].points.len(), one[0].lines.len()), (12, 2));
    assert!(prove::histories(Vec::new()).is_err());
}

/// Checks a regression of 25 % that was repaired after six points.
#[test]
fn a_repaired_regression_in_a_history_has_two_ends() {
    let mut rng = Rng(17);
    let mut file = |number: usize| {
        let is_slow = (7..13).contains(&number);
        let median = if is_slow { 1.25e6 } else { 1e6 };
        let runs = group(runs(&mut rng, 3, 1_000, median, 1.0));
        (format!("{number}.csv"), vec![runs])
    };
    let repaired = prove::histories((0..20).map(&mut file).collect()).unwrap();
    let segments = repaired[0].lines[0].segments.iter();
    let starts: Vec<usize> = segments.map(|segment| segment.first).collect();
    assert_eq!(starts, [0, 7, 13]);
}

/// Checks three sessions before and three sessions after a change, with four runs each, on the same machine. The
/// argument `sessions` has the factor by which the values of each session are multiplied.
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
                    column: None,
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
    // The probability of a wrong doubt about one side is 2.5 %. The limit is 2.5 of 100 plus three standard deviations,
    // which is 7.
    let wrong = (0..100).filter(|_| has_doubt([1.0; 3])).count();
    assert!(wrong <= 7, "{wrong} of 100");
}

/// Checks an unchanged machine that is measured in several sessions on each side. The sessions differ by 5 %, and the
/// runs of a session by 2 %. If runs counted as independent, almost every second comparison would show a difference.
#[test]
fn equal_sides_of_differing_sessions_differ_as_rarely_as_stated() {
    let mut rng = Rng(33);
    for (sessions, runs) in [(5, 6), (3, 8)] {
        let mut side = || {
            let files = (0..sessions).map(|_| {
                let session = 0.05 * normal(&mut rng);
                let run = |number: i32| {
                    let value = 10.0 * (session + 0.02 * normal(&mut rng)).exp();
                    Run::new(number.to_string(), vec![value], 0)
                };
                vec![Group {
                    name: "frame_ms".to_owned(),
                    column: None,
                    unit: Unit::Other,
                    runs: (0..runs).map(run).collect(),
                }]
            });
            sides::joined(files.collect())
        };
        let rounds = 100;
        let (mut wrong, mut by_session) = (0, 0);
        for _ in 0..rounds {
            let (before, after) = (side(), side());
            let all = sides::between(before, after, false).unwrap();
            let judgement = judgement(&all[0], QUESTION);
            let line = &judgement.lines[0];
            let is_sure = !matches!(line.verdict, None | Some(Verdict::Unknown | Verdict::Same));
            wrong += u32::from(is_sure);
            if let Some(counted) = judgement.sessions {
                assert_eq!(counted, [sessions as usize; 2]);
                let compared = line.comparison.map(|comparison| comparison.runs);
                assert_eq!(compared, (sessions >= 4).then_some(sessions as usize));
                by_session += 1;
            }
        }
        // 5 % of 100 rounds are 5. 5 plus three standard deviations is 11.
        assert!(wrong <= 11, "{wrong} of {rounds} with {sessions} sessions");
        assert!(by_session >= 90, "{by_session} of {rounds}");
    }
}

/// Returns a value with a normal distribution (Box-Muller).
fn normal(rng: &mut Rng) -> f64 {
    let (radius, angle) = (
        (-2.0 * uniform(rng).ln()).sqrt(),
        std::f64::consts::TAU * uniform(rng),
    );
    radius * angle.cos()
}

/// Compares six pairs of runs whose medians fall by two thirds. Three quantiles are compared at once, so a certain
/// verdict needs seven pairs.
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

/// Compares 14 runs of each side. Their order has a probability of 0.035 by chance (Mann-Whitney statistic 52, SciPy
/// 1.17). Two quantiles are compared at once, and for them this probability is too high. The number of runs is no
/// obstacle, because the least possible probability of 14 runs on each side is 5e-8.
#[test]
fn many_runs_that_are_unsure_need_more_than_one_run() {
    let ranks_before = [1, 2, 3, 4, 5, 7, 9, 11, 13, 15, 17, 19, 25, 26];
    let of = |ranks: &mut dyn Iterator<Item = i32>| -> Vec<Vec<f64>> {
        let run = |rank| {
            let samples = (0..150).map(|sample| 1.0 + f64::from(sample) / 1e4);
            samples.map(|value| value * 1.01_f64.powi(rank)).collect()
        };
        ranks.map(run).collect()
    };
    let before = of(&mut ranks_before.into_iter());
    let after = of(&mut (1..=28).filter(|rank| !ranks_before.contains(rank)));
    let judgement = judged(before, after, Design::Unpaired);
    for line in &judgement.lines[..2] {
        assert!(
            (line.comparison.unwrap().p - 0.0350450).abs() < 1e-6,
            "{line:?}"
        );
        assert_eq!(
            (line.verdict, line.is_too_many),
            (Some(Verdict::Unknown), false)
        );
        // A change of 2 % is a sixth of the standard deviation of two runs. For such a change, Noether's formula
        // needs more than 400 runs.
        assert!(line.more.unwrap() > 300, "{line:?}");
    }
}

#[test]
fn late_samples_everywhere_are_no_stalls() {
    let mut rng = Rng(52);
    let before = runs(&mut rng, 6, 2_000, 1e6, 1.0);
    let after = runs(&mut rng, 6, 2_000, 1e9, 1.0);
    assert_eq!(judged(before.clone(), after, Design::Unpaired).stalls, None);
    // Three runs do not show how much the rate of stalls differs from run to run.
    let few = judged(before[..3].to_vec(), before[3..].to_vec(), Design::Unpaired);
    assert_eq!(few.stalls.unwrap().rates, None);
}

#[test]
fn an_even_number_of_runs_has_the_mean_of_the_middle_ones() {
    let single = |values: [f64; 4]| values.map(|value| vec![value]).to_vec();
    let found = judged(
        single([4.0, 1.0, 2.0, 9.0]),
        single([7.0, 5.0, 8.0, 6.0]),
        Design::Unpaired,
    );
    assert_eq!(
        (found.lines[0].before, found.lines[0].after),
        (Some(3.0), Some(6.5))
    );
    let zeros = judged(single([0.0; 4]), single([0.0; 4]), Design::Unpaired);
    assert_eq!(zeros.lines[0].verdict, Some(Verdict::Same));
}

/// Searches the histories of two things. Each of their four quantiles doubles after the fifth point. Eight searches at
/// once need 11 points.
#[test]
fn few_points_of_several_metrics_are_not_searched() {
    let mut rng = Rng(53);
    let mut file = |point: u32| {
        let median = if point < 5 { 1e6 } else { 2e6 };
        let named = |name: &str, runs| Group {
            name: name.to_owned(),
            column: None,
            ..group(runs)
        };
        let groups = ["a", "b"].map(|name| named(name, runs(&mut rng, 1, 10_000, median, 1.0)));
        (format!("{point}.csv"), groups.to_vec())
    };
    let mut search = |points: u32| prove::histories((0..points).map(&mut file).collect()).unwrap();
    let reason = search(10)[0].lines[0].not_searched.clone().unwrap();
    assert!(
        reason.starts_with("too few points for 8 metrics at once (10; they need 11"),
        "{reason}"
    );
    let found = search(11);
    assert_eq!(found[0].lines[0].not_searched, None);
    assert_eq!(found[0].lines[0].segments.len(), 2, "{found:?}");
}

/// Compares frames that take one or two refreshes of the display. Twice as many frames take two refreshes after the
/// change, but the median stays the same.
#[test]
fn a_change_of_shares_is_not_the_same() {
    let frames = |slow: usize, all: usize| -> Vec<Vec<f64>> {
        let take = |number| if number % all < slow { 33.3 } else { 16.7 };
        (0..200).map(|number| vec![take(number)]).collect()
    };
    let changed = judged(frames(2, 10), frames(4, 10), Design::Unpaired);
    assert_eq!(
        changed.lines[0].verdict,
        Some(Verdict::Higher),
        "{changed:?}"
    );
    // The geometric mean of the frames becomes 2^0.2 times as long.
    let centre = changed.lines[0].comparison.unwrap().change.centre;
    assert!(
        (centre - (33.3_f64 / 16.7).powf(0.2)).abs() < 1e-9,
        "{centre}"
    );
    let doubt = |of: &Judgement| {
        of.doubts
            .iter()
            .any(|it| it.starts_with("Most runs have equal values"))
    };
    assert!(doubt(&changed), "{:?}", changed.doubts);
    let few = judged(
        frames(1, 10)[..20].to_vec(),
        frames(3, 10)[..20].to_vec(),
        Design::Unpaired,
    );
    assert_ne!(few.lines[0].verdict, Some(Verdict::Same));
    let equal = judged(vec![vec![16.7]; 12], vec![vec![16.7]; 12], Design::Unpaired);
    assert_eq!(equal.lines[0].verdict, Some(Verdict::Same));
}

/// Checks runs in which most samples are 0, so that the quantiles of different runs are equal.
#[test]
fn different_runs_with_equal_quantiles_are_no_copies() {
    let run = |late: usize| -> Vec<f64> {
        (0..1_000)
            .map(|number| {
                if number == late {
                    50.0
                } else {
                    f64::from(u8::from(number % 100 == 7))
                }
            })
            .collect()
    };
    let runs = |from: usize| (from..from + 5).map(run).collect::<Vec<_>>();
    let doubts = judged(runs(100), runs(200), Design::Unpaired).doubts;
    assert!(
        !doubts.iter().any(|it| it.contains("same samples")),
        "{doubts:?}"
    );
}

#[test]
fn a_copied_file_of_single_values_is_a_doubt() {
    let mut rng = Rng(53);
    let mut side = |copies: usize| -> Vec<Group> {
        let values = (0..8).map(|_| vec![100.0 + normal(&mut rng)]);
        let file = vec![group(values.collect())];
        sides::joined(vec![file; copies])
    };
    let mut has_copy = |copies| {
        let both = sides::between(side(copies), side(1), false).unwrap();
        let doubts = judgement(&both[0], QUESTION).doubts;
        doubts
            .iter()
            .any(|doubt| doubt.starts_with("8 runs have the same samples"))
    };
    assert!(has_copy(2));
    assert!(!has_copy(1));
}

/// Checks equal sides whose runs have different random rates of stalls. The counts of the sides differ by more than one
/// common rate explains.
#[test]
fn rates_of_stalls_that_differ_from_run_to_run_have_no_bounds() {
    let mut rng = Rng(54);
    let mut side = |rates: &[usize]| -> Vec<Vec<f64>> {
        let runs = rates.iter().map(|rate| -> Vec<f64> {
            // Late samples are not neighbours here, because neighbouring late samples would be one stall.
            let late = |number: usize| number / 50 < *rate && number % 50 == 3;
            (0..1_000)
                .map(|number| {
                    if late(number) {
                        100.0
                    } else {
                        1.0 + 0.1 * normal(&mut rng)
                    }
                })
                .collect()
        });
        runs.collect()
    };
    let differing = judged(
        side(&[1, 12, 1, 1, 20]),
        side(&[9, 1, 1, 2, 20]),
        Design::Unpaired,
    );
    let stalls = differing.stalls.unwrap();
    assert_eq!(
        (stalls.rates, stalls.no_rates),
        (None, Some(NoRates::RunsDiffer))
    );
    let alike = judged(
        side(&[6, 5, 6, 5, 6]),
        side(&[5, 6, 6, 5, 6]),
        Design::Unpaired,
    );
    let stalls = alike.stalls.unwrap();
    let rates = stalls.rates.unwrap();
    assert!(rates.low < 1.0 && rates.high.unwrap() > 1.0, "{rates:?}");
}

/// Checks rows that count as runs but depend on each other: they form a slow wave.
#[test]
fn rows_that_depend_on_each_other_are_a_doubt() {
    let mut rng = Rng(55);
    let mut side = |memory: f64| -> Vec<Vec<f64>> {
        let mut last = 0.0;
        let runs = (0..60).map(|_| {
            last = memory * last + normal(&mut rng);
            vec![100.0 + last]
        });
        runs.collect()
    };
    let doubts = |of: Judgement| {
        of.doubts
            .iter()
            .any(|it| it.starts_with("Neighbouring rows resemble"))
    };
    assert!(doubts(judged(side(0.9), side(0.9), Design::Unpaired)));
    let independent = (0..50).filter(|_| doubts(judged(side(0.0), side(0.0), Design::Unpaired)));
    assert!(independent.count() <= 2);
}

#[test]
fn large_cells_and_too_many_groups_are_short_errors() {
    let read = |text: String, by: Option<&str>| {
        let (_folder, path) = file(text.as_bytes());
        let columns = Columns {
            run: None,
            by: by.map(str::to_owned),
            ..columns()
        };
        columns::read(&path, &columns).unwrap_err().to_string()
    };
    let long = read(format!("frame_ms\n{}x\n", "1".repeat(1 << 20)), None);
    assert!(long.len() < 500 && long.contains("111…"), "{}", long.len());
    let heading = "y".repeat(1 << 20);
    let wide = read(format!("{heading},z\n1,2\n"), None);
    assert!(wide.len() < 500 && wide.contains("yyy…"), "{}", wide.len());
    let many: String = (0..2_000).map(|row| format!("{row},1\n")).collect();
    let many = read(format!("driver,frame_ms\n{many}"), Some("driver"));
    assert!(
        many.contains("more than 1000 things are measured; give the column"),
        "{many}"
    );
}

#[test]
fn a_side_without_values_is_an_error() {
    let (_folder, path) = file(b"run,driver,frame_ms\n1,old,\n2,old,\n1,new,1\n2,new,2\n");
    let groups = columns::read(&path, &columns()).unwrap();
    for (before, after, when) in [("old", "new", "before"), ("new", "old", "after")] {
        let both =
            sides::within(groups.clone(), Some(before), Some(after), Pairing::ByName).unwrap();
        let summary = Summary::read(&both).unwrap();
        let errors = [
            judge(&both, &summary, QUESTION).unwrap_err(),
            prove::plan(&both, &summary, QUESTION).unwrap_err(),
        ];
        let expected = format!(
            "cannot compare {before} → {after}: no run {when} the change has a value; give a measurement"
        );
        for error in errors {
            assert!(matches!(error, Error::NoValues { .. }), "{error:?}");
            assert!(error.to_string().starts_with(&expected), "{error}");
        }
    }
}

#[test]
fn too_many_rows_as_runs_are_refused_with_advice() {
    let rows = |factor: f64| (0..5_000).map(move |row| vec![factor * f64::from(1_000 + row % 7)]);
    let judgement = judged(rows(1.0).collect(), rows(2.0).collect(), Design::Paired);
    let reason = judgement.lines[0].not_compared.as_deref();
    let expected = "too many pairs of runs (5000; the maximum is 4096); join rows to runs with --run, or give fewer files";
    assert_eq!(reason, Some(expected));
}

/// Compares equal sides in measurements that end as soon as the median seems to differ. The option `--until-sure` of
/// `laglab measure` does the same. Such a measurement tests its data several times. Intervals that ignore this are
/// wrong in far more than 5 % of cases.
#[test]
fn measurements_that_end_when_they_are_sure_differ_as_rarely_as_stated() {
    const SURE: Question = Question { margin: 0.0 };
    let mut rng = Rng(51);
    let excludes_1 = |judgement: &Judgement| {
        let median = judgement.lines[0].comparison.unwrap().change;
        median.low > 1.0 || median.high < 1.0
    };
    let differs = |judgement: &Judgement| {
        let is_wrong = |verdict: &Option<Verdict>| {
            !matches!(verdict, None | Some(Verdict::Same | Verdict::Unknown))
        };
        verdicts(judgement).iter().any(is_wrong)
    };
    let (mut wrong, mut wrong_intervals, mut without_looks) = (0, 0, 0);
    for _ in 0..200 {
        let mut side = || runs(&mut rng, 64, 100, 1e6, 1.0);
        let all = [side(), side()];
        let of = |pairs: usize, has_looks: bool| {
            let [before, after] = [0, 1].map(|side: usize| group(all[side][..pairs].to_vec()));
            let sides = Sides {
                name: "frames".to_owned(),
                design: Design::Paired,
                before,
                after,
                alone: [0, 0],
                same_names: 0,
                has_looks,
            };
            judgement(&sides, SURE)
        };
        let looks = || [8, 12, 16, 24, 32, 48, 64].into_iter();
        let mut ends = looks().map(|pairs| of(pairs, true));
        let end = ends.find(excludes_1).unwrap_or_else(|| of(64, true));
        wrong += u32::from(differs(&end));
        wrong_intervals += u32::from(excludes_1(&end));
        without_looks += u32::from(looks().any(|pairs| excludes_1(&of(pairs, false))));
    }
    // The expected number is at most 5 % of 200, which is 10. 10 plus three standard deviations is 19.
    assert!(wrong <= 19, "{wrong} of 200");
    assert!(wrong_intervals <= 19, "{wrong_intervals} of 200");
    assert!(without_looks > 19, "{without_looks} of 200");
}
