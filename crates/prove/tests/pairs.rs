//! Pairs of runs: which runs form pairs, and what pairs can show.

use std::fmt::Write as _;

use prove::columns::{self, Columns};
use prove::{Design, Judgement, Pairing, Scale, Summary, Verdict, sides};
use testdata::Rng;

use crate::compare::{D, QUESTION, columns, file, judged, judgement, runs, uniform, verdicts};

/// Writes one value per run and driver, and compares both drivers.
fn of_rows(rows: &[(u32, &str, f64)]) -> Judgement {
    paired_by(rows, Pairing::Found)
}

fn paired_by(rows: &[(u32, &str, f64)], pairing: Pairing) -> Judgement {
    let mut text = String::from("run,driver,frame_ms\n");
    for (run, driver, value) in rows {
        writeln!(text, "{run},{driver},{value}").unwrap();
    }
    let (_folder, path) = file(text.as_bytes());
    let groups = columns::read(&path, &columns()).unwrap();
    judgement(
        &sides::within(groups, Some("old"), Some("new"), pairing).unwrap(),
        QUESTION,
    )
}

/// Compares ten runs of a CSV file with 10 ms before and 11 ms after the change. One cell is empty.
#[test]
fn a_run_without_a_value_is_left_out_with_its_pair() {
    let mut text = String::from("run,driver,frame_ms\n");
    for run in 0..10 {
        let old = if run == 7 { "" } else { "10.0" };
        writeln!(text, "{run},old,{old}\n{run},new,11.{run}").unwrap();
    }
    let (_folder, path) = file(text.as_bytes());
    let groups = || columns::read(&path, &columns()).unwrap();
    let both = sides::within(groups(), Some("old"), Some("new"), Pairing::Found).unwrap();
    let doubt = |doubts: &[String], expected: &str| {
        assert!(doubts.iter().any(|doubt| doubt == expected), "{doubts:?}");
    };
    let paired = judgement(&both, QUESTION);
    assert_eq!(
        (paired.runs_before, paired.runs_after, paired.unknown),
        (9, 9, 0)
    );
    assert_eq!(verdicts(&paired), [Some(Verdict::Higher)]);
    // The expected value is the median of 11.0 to 11.9 without 11.7.
    assert_eq!(paired.lines[0].after, Some(11.4e6));
    let left_out = "1 pair of runs is left out, because a run has no value (run 7).";
    doubt(&paired.doubts, left_out);
    let summary = Summary::read(&both).unwrap();
    let plan = prove::plan(&both, &summary, QUESTION).unwrap();
    assert_eq!((plan.pilot, plan.lines[0].forecast.is_some()), (9, true));
    doubt(&plan.doubts, left_out);
    let picture = prove::picture(&both, &summary).unwrap();
    assert_eq!(picture.runs.map(|runs| runs.len()), [9, 9]);

    // If no column of runs is given, each row is a run, and the empty cell is in row 15.
    let rows = Columns {
        run: None,
        ..columns()
    };
    let groups = columns::read(&path, &rows).unwrap();
    let unpaired = judgement(
        &sides::within(groups, Some("old"), Some("new"), Pairing::Found).unwrap(),
        QUESTION,
    );
    assert_eq!((unpaired.runs_before, unpaired.runs_after), (9, 10));
    assert_eq!(verdicts(&unpaired), [Some(Verdict::Higher)]);
    doubt(
        &unpaired.doubts,
        "1 run before the change and 0 after it are left out, because a run has no value (run 15).",
    );

    // In a history, a point without a value is left out.
    let history = |text: &str| {
        let (_folder, path) = file(text.as_bytes());
        let groups = columns::read(
            &path,
            &Columns {
                by: None,
                ..columns()
            },
        )
        .unwrap();
        prove::histories(vec![("runs.csv".to_owned(), groups)]).unwrap()
    };
    let mut text = String::from("run,frame_ms\n");
    for run in 0..24 {
        let value = match run {
            3 => String::new(),
            run => (if run < 12 { 10.0 } else { 11.0 } + f64::from(run % 3) / 100.0).to_string(),
        };
        writeln!(text, "b{run},{value}").unwrap();
    }
    let found = history(&text);
    assert_eq!(
        (found[0].points.len(), &found[0].left_out[..]),
        (23, &["b3".to_owned()][..])
    );
    let starts = found[0].lines[0]
        .segments
        .iter()
        .map(|of| found[0].points[of.first].clone());
    assert_eq!(starts.collect::<Vec<_>>(), ["b0", "b12"]);
}

/// Checks that a blank line of a file with one column is a row without a value. Otherwise, the following rows would get
/// other numbers.
#[test]
fn blank_lines_of_one_column_count() {
    let mut text = String::from("frame_ms\n");
    for row in 1..=24 {
        let value = if row <= 12 { 10.0 } else { 11.0 } + f64::from(row % 3) / 100.0;
        match row {
            4 => text += "\r\n",
            row if row % 2 == 0 => writeln!(text, "{value}\r").unwrap(),
            _ => writeln!(text, "{value}").unwrap(),
        }
    }
    text += "\n\n";
    let (_folder, path) = file(text.as_bytes());
    let columns = Columns {
        run: None,
        by: None,
        ..columns()
    };
    let groups = columns::read(&path, &columns).unwrap();
    let found = prove::histories(vec![("runs.csv".to_owned(), groups)]).unwrap();
    assert_eq!(found[0].left_out, ["4"]);
    let points = &found[0].points;
    assert_eq!((points.len(), &points[3][..]), (23, "5"));
    let starts = found[0].lines[0].segments.iter();
    let starts: Vec<&str> = starts.map(|of| points[of.first].as_str()).collect();
    assert_eq!(starts, ["1", "13"]);
}

/// Checks pairs that all have the same change. They do not show how much pairs scatter.
#[test]
fn pairs_without_scatter_have_no_plan() {
    for value in ["0", "10"] {
        let mut text = String::from("run,driver,frame_ms\n");
        for run in 0..8 {
            writeln!(text, "{run},old,{value}\n{run},new,{value}").unwrap();
        }
        let (_folder, path) = file(text.as_bytes());
        let groups = columns::read(&path, &columns()).unwrap();
        let both = sides::within(groups, Some("old"), Some("new"), Pairing::Found).unwrap();
        let plan = prove::plan(&both, &Summary::read(&both).unwrap(), QUESTION).unwrap();
        let line = &plan.lines[0];
        assert_eq!((line.pairs, line.half_width), (None, None));
        assert!(line.detectable.is_empty(), "{line:?}");
        let reason = line.not_planned.as_deref().unwrap();
        assert!(reason.contains("same change"), "{reason}");
    }
}

/// Compares ten pairs, one of which is disturbed. The comparison and the plan must need the same number of pairs for
/// the same change.
#[test]
fn a_comparison_and_a_plan_need_the_same_pairs() {
    let mut disturbed = D;
    disturbed[4] += 2.2;
    let of = |differences: &[f64]| {
        let rows = differences.iter().zip(0_u32..);
        let rows = rows.flat_map(|(d, run)| [(run, "old", 10.0), (run, "new", 10.0 * d.exp())]);
        let mut text = String::from("run,driver,frame_ms\n");
        for (run, driver, value) in rows {
            writeln!(text, "{run},{driver},{value}").unwrap();
        }
        let (_folder, path) = file(text.as_bytes());
        let groups = columns::read(&path, &columns()).unwrap();
        let both = sides::within(groups, Some("old"), Some("new"), Pairing::Found).unwrap();
        let plan = prove::plan(&both, &Summary::read(&both).unwrap(), QUESTION).unwrap();
        (judgement(&both, QUESTION), plan)
    };
    let centred: Vec<f64> = disturbed.iter().map(|d| d - 0.027).collect();
    let (judgement, plan) = of(&centred);
    assert_eq!(judgement.lines[0].verdict, Some(Verdict::Unknown));
    let pairs = plan.lines[0].pairs.unwrap();
    assert_eq!(judgement.lines[0].more, Some(pairs - 10));
    // The standard deviation is about 0.03. For a change of 0.75 standard deviations, Noether's formula needs 28
    // pairs.
    assert!((20..120).contains(&pairs), "{pairs}");

    let wild: Vec<f64> = centred.iter().map(|d| 100.0 * d).collect();
    let (judgement, plan) = of(&wild);
    assert!(judgement.lines[0].more.unwrap() > 10_000);
    let reason = plan.lines[0].not_planned.as_deref().unwrap();
    assert!(
        reason.contains("more than 10,000 pairs would be needed, because the pairs scatter"),
        "{reason}"
    );
    assert_eq!(
        prove::needed_text(10_000, "pair", "pairs"),
        "about 10,000 pairs"
    );
}

#[test]
fn pairs_that_were_not_measured_next_to_each_other_are_a_doubt() {
    let old = (0..8).map(|run| (run, "old", 10.0 + f64::from(run)));
    let new = (0..8).map(|run| (run, "new", 5.0 + f64::from(run)));
    let has = |judgement: &Judgement, words: &str| {
        judgement.doubts.iter().any(|doubt| doubt.contains(words))
    };
    let after: Vec<_> = old
        .clone()
        .chain(new.clone())
        .chain([(8, "old", 1.0)])
        .collect();
    let after = paired_by(&after, Pairing::ByName);
    assert_eq!(
        (after.design, after.alternated),
        (Design::Paired, Some(false))
    );
    assert!(has(&after, "next to each other"), "{:?}", after.doubts);
    assert!(
        has(&after, "1 run before the change and 0 after"),
        "{:?}",
        after.doubts
    );
    let turns = old
        .zip(new)
        .enumerate()
        .flat_map(|(turn, (old, new))| match turn % 2 {
            0 => [old, new],
            _ => [new, old],
        });
    let turns = of_rows(&turns.collect::<Vec<_>>());
    assert_eq!((turns.alternated, turns.doubts), (Some(true), Vec::new()));
}

/// Compares runs of one file, of which only some have a partner with the same name: runs 0 to 11 before and runs 6 to 23
/// after the change, and sides with a single equal name.
#[test]
fn some_equal_names_make_no_pairs() {
    let mut rng = Rng(11);
    let mut value = || 1.0 + uniform(&mut rng) / 50.0;
    let old: Vec<_> = (0..12).map(|run| (run, "old", value())).collect();
    let new: Vec<_> = (6..24).map(|run| (run, "new", value())).collect();
    let one: Vec<_> = (11..24).map(|run| (run, "new", value())).collect();
    let with_runs = |judgement: &Judgement| {
        (
            judgement.design,
            judgement.runs_before,
            judgement.runs_after,
        )
    };
    let rows = [&old[..], &new[..]].concat();
    let some = of_rows(&rows);
    assert_eq!(with_runs(&some), (Design::Unpaired, 12, 18));
    let doubts = some.doubts.join(" ");
    assert!(
        doubts.contains("6 runs before the change have the name of a run after it"),
        "{doubts}"
    );
    assert!(doubts.contains("did not alternate"), "{doubts}");
    let single = of_rows(&[&old[..], &one[..]].concat());
    assert_eq!(with_runs(&single), (Design::Unpaired, 12, 13));
    // The caller decides: pairs, or no pairs and no doubt about names.
    let paired = paired_by(&rows, Pairing::ByName);
    assert_eq!(with_runs(&paired), (Design::Paired, 6, 6));
    let doubts = paired.doubts.join(" ");
    assert!(
        doubts.contains("6 runs before the change and 12 after it have no partner"),
        "{doubts}"
    );
    let unpaired = paired_by(&rows, Pairing::Unpaired);
    assert_eq!(with_runs(&unpaired), (Design::Unpaired, 12, 18));
    assert!(
        !unpaired.doubts.join(" ").contains("have the name of a run"),
        "{:?}",
        unpaired.doubts
    );
}

/// Compares the published runs of `statistics`, one side after the other in one file, with equal names on both sides.
#[test]
fn runs_of_one_file_that_did_not_alternate_have_no_pairs() {
    let old = [10.9, 11.2, 10.4, 12.2, 11.0, 10.7, 11.1, 10.8];
    let new = [12.1, 11.4, 13.0, 12.7, 11.9, 12.3, 15.8, 12.0];
    let side = |name: &'static str, values: [f64; 8]| {
        (0..8).map(move |run: u32| (run, name, values[run as usize]))
    };
    let rows: Vec<_> = side("old", old).chain(side("new", new)).collect();
    let judgement = of_rows(&rows);
    assert_eq!(judgement.design, Design::Unpaired);
    // The exact Mann-Whitney test of SciPy 1.17 gives this probability.
    let p = judgement.lines[0].comparison.unwrap().p;
    assert!((p - 0.001_864_8).abs() < 5e-8, "{p}");
    let doubts = judgement.doubts.join(" ");
    assert!(doubts.contains("did not alternate"), "{doubts}");
}

#[test]
fn runs_without_pairs_that_alternated_have_no_doubt_about_it() {
    let old = |run: u32| (run, "old", 10.0 + f64::from(run));
    let new = |run: u32| (run, "new", 5.0 + f64::from(run));
    let in_turn = |rows: &[(u32, &str, f64)]| {
        let judgement = paired_by(rows, Pairing::Unpaired);
        assert_eq!(judgement.design, Design::Unpaired);
        let doubts = judgement.doubts.join(" ");
        !doubts.contains("did not alternate")
    };
    let strict: Vec<_> = (0..8).flat_map(|run| [old(run), new(run)]).collect();
    assert!(in_turn(&strict));
    // The side that begins also alternates.
    let turned: Vec<_> = (0..8)
        .flat_map(|run| match run % 2 {
            0 => [old(run), new(run)],
            _ => [new(run), old(run)],
        })
        .collect();
    assert!(in_turn(&turned));
    // If a run is missing, its neighbours are of the same side.
    let with_gap: Vec<_> = strict.iter().copied().filter(|it| *it != new(3)).collect();
    assert!(in_turn(&with_gap));
    let few = [old(0), old(1), new(0), new(1)];
    assert!(!in_turn(&few));
    let blocks: Vec<_> = (0..2)
        .flat_map(|block| {
            let runs = block * 4..block * 4 + 4;
            runs.clone().map(old).chain(runs.map(new))
        })
        .collect();
    assert!(!in_turn(&blocks));
}

#[test]
fn one_pair_has_no_neighbours() {
    let one = of_rows(&[(0, "old", 1.0), (0, "new", 2.0)]);
    assert_eq!((one.design, one.alternated), (Design::Paired, None));
}

/// Compares a published benchmark of 4 pairs: ticks to read 4,000 files with ReadFile and with an I/O ring. By NumPy, the
/// median of the Walsh averages is a ratio of .96837. 4 pairs never have 95 % confidence; 6 pairs may have it.
#[test]
fn four_pairs_are_unknown_and_need_two_more() {
    let read_file = [
        24_600_140_797.0,
        20_453_198_839.0,
        20_623_863_171.0,
        20_346_912_325.0,
    ];
    let ring = [
        22_419_537_722.0,
        19_735_951_191.0,
        20_185_793_675.0,
        20_002_724_133.0,
    ];
    let pairs = (0..4).zip(read_file.into_iter().zip(ring));
    let rows: Vec<_> = pairs
        .flat_map(|(run, (old, new))| [(run, "old", old), (run, "new", new)])
        .collect();
    let few = of_rows(&rows);
    let line = &few.lines[0];
    assert_eq!((line.verdict, line.more), (Some(Verdict::Unknown), Some(2)));
    let estimate = line.estimate.unwrap();
    assert_eq!((estimate.runs, estimate.scale), (4, Scale::Ratio));
    assert!((estimate.change - 0.968_37).abs() < 5e-6, "{estimate:?}");
    assert_eq!(few.column.as_deref(), Some("frame_ms"));
}

#[test]
fn a_copy_of_a_run_is_a_doubt() {
    let mut rng = Rng(51);
    let mut one = || runs(&mut rng, 6, 200, 1e6, 1.0);
    let same = one();
    let doubts = judged(same.clone(), same, Design::Unpaired).doubts;
    assert!(
        doubts
            .iter()
            .any(|doubt| doubt.starts_with("6 runs have the same samples")),
        "{doubts:?}"
    );
    let doubts = judged(one(), one(), Design::Unpaired).doubts;
    assert!(
        !doubts.iter().any(|doubt| doubt.contains("same samples")),
        "{doubts:?}"
    );
}
