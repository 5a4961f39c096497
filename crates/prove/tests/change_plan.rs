//! Verdicts about plans of `laglab tune plan`. The measurements and traces have known true values.

use crate::written;

use std::path::Path;

use imports::SampleConditions;
use prove::change_plan::{
    Answer, Evidence, MeasurePlan, PlaceCheck, Probe, Side, Times, Verdict, Wishes, verdict,
};
use prove::measured::{Key, MeasuredFile};
use prove::{Group, Run, Unit};
use simulated::Simulated;
use statistics::Design;
use tables::{Cache, Options};
use testdata::Rng;
use tune::catalogue::Catalogue;
use tune::machine::{Edition, Machine};
use written::WrittenRun;

/// Plans changes of a machine. The registry of this machine has none of the planned values.
fn plan(requests: &[&str]) -> MeasurePlan {
    let text = "Windows Registry Editor Version 5.00\r\n\
        [HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Control\\Session Manager\\kernel]\r\n\"x\"=dword:1\r\n\
        [HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Control\\PriorityControl]\r\n\
        \"Win32PrioritySeparation\"=dword:2\r\n\
        [HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Memory Management]\r\n\
        \"DisablePagingExecutive\"=dword:0\r\n";
    let inputs = tune::inputs::read("now.reg", text.as_bytes()).unwrap();
    let machine = Machine {
        name: None,
        build: Some(22631),
        edition: Some(Edition::Pro),
    };
    let requests: Vec<_> = requests.iter().map(|it| it.parse().unwrap()).collect();
    let plan = tune::plan::Plan::new(&requests, &inputs, &machine, &[]).unwrap();
    MeasurePlan::of_changes(&plan, &Wishes::default())
}

fn judged(plan: &MeasurePlan, evidence: &Evidence) -> Verdict {
    verdict(plan, evidence).unwrap()
}

fn timer_plan() -> MeasurePlan {
    plan(&["GlobalTimerResolutionRequests=1"])
}

#[test]
fn a_plan_asks_for_what_the_catalogue_says() {
    let plan = plan(&[
        "GlobalTimerResolutionRequests=1",
        "Win32PrioritySeparation=0x28",
        "DisablePagingExecutive=1",
    ]);
    let [sleep] = plan.measurements.as_slice() else {
        panic!("{plan:?}");
    };
    assert_eq!(
        (sleep.probe, sleep.method.as_str()),
        (Probe::Sleep, "Sleep")
    );
    assert_eq!(sleep.reasons[0].setting, "globaltimer");
    let count = format!("--count {}", sleep.runs * sleep.samples_per_run);
    for (command, side) in [(&sleep.before, "before"), (&sleep.after, "after")] {
        assert!(command.contains(&format!("--runs {} {count}", sleep.runs)));
        assert!(
            command.ends_with(&format!("-o {side}/sleep.parquet")),
            "{command}"
        );
    }
    let [ready] = plan.recordings.as_slice() else {
        panic!("{plan:?}");
    };
    assert_eq!((ready.times, ready.traces), (Times::Ready, 3));
    assert_eq!(ready.reasons[0].setting, "win32prioritysep");
    let [unknown] = plan.not_shown.as_slice() else {
        panic!("{plan:?}");
    };
    assert_eq!(unknown.setting, "disablepagingexec");
    assert_eq!(MeasurePlan::parse(&plan.to_text()).unwrap(), plan);
    // The source of each reason must be one of the sources of its setting.
    let reasons = sleep.reasons.iter().chain(&ready.reasons);
    for reason in reasons {
        let mut settings = Catalogue::get().settings().iter();
        let setting = settings
            .find(|setting| setting.id == reason.setting)
            .unwrap();
        assert!(setting.sources.contains(&reason.source));
    }
}

/// Returns a value with a normal distribution (Box-Muller).
fn normal(rng: &mut Rng) -> f64 {
    let mut unit = || (rng.below(1 << 24) as f64 + 0.5) / f64::from(1 << 24);
    let (radius, angle) = ((-2.0 * unit().ln()).sqrt(), std::f64::consts::TAU * unit());
    radius * angle.cos()
}

/// Checks the planned number of runs. A change as large as the standard deviation of the runs must be found
/// in 90 % of the cases.
#[test]
fn the_planned_runs_find_a_change_as_large_as_their_scatter() {
    let runs = timer_plan().measurements[0].runs;
    let mut rng = Rng(1);
    let mut detected = 0;
    for _ in 0..400 {
        let mut side = |shift: f64| -> Vec<f64> {
            (0..runs)
                .map(|_| 100.0 + shift + normal(&mut rng))
                .collect()
        };
        let (before, after) = (side(0.0), side(1.0));
        let compared = statistics::compare(&before, &after, Design::Unpaired).unwrap();
        detected += u32::from(compared.p <= 0.05);
    }
    // With 400 cases, three standard deviations are 4.5 %.
    assert!(
        (342..=400).contains(&detected),
        "{detected} of 400 with {runs}"
    );
}

/// True values of one measured side.
#[derive(Clone, Copy)]
struct Truth {
    runs: usize,
    samples: usize,
    median_ns: f64,
    /// Standard deviation of the runs, as a share of the median.
    scatter: f64,
}

const USUAL: Truth = Truth {
    runs: 31,
    samples: 100,
    median_ns: 1e6,
    scatter: 0.01,
};

fn runs(rng: &mut Rng, truth: Truth) -> Vec<Run> {
    let values = values(rng, truth).into_iter().enumerate();
    values
        .map(|(number, values)| Run::new(number.to_string(), values, 0))
        .collect()
}

/// Returns the samples of each run.
fn values(rng: &mut Rng, truth: Truth) -> Vec<Vec<f64>> {
    let each = (0..truth.runs).map(|_| {
        let median = truth.median_ns * (truth.scatter * normal(rng)).exp();
        let values = (0..truth.samples).map(|_| (median * (0.05 * normal(rng)).exp()).round());
        values.collect()
    });
    each.collect()
}

fn conditions(computer: &str) -> SampleConditions {
    SampleConditions {
        computer: Some(computer.to_owned()),
        cpu: Some("CPU".to_owned()),
        cpus: Some(8),
        system: Some("Windows 10.0.22631".to_owned()),
        ..SampleConditions::default()
    }
}

fn sleep_key() -> Key {
    Key {
        probe: "sleep".to_owned(),
        method: "Sleep".to_owned(),
        setting: "default scheduling".to_owned(),
        phase: None,
        requested_ns: Some(1_000_000),
        size_bytes: None,
    }
}

fn measured(rng: &mut Rng, truth: Truth) -> MeasuredFile {
    let key = sleep_key();
    let group = Group {
        name: key.name(),
        column: None,
        unit: Unit::Nanoseconds,
        runs: runs(rng, truth),
    };
    MeasuredFile {
        conditions: Some(conditions("HERE")),
        groups: vec![(key, group)],
    }
}

fn evidence(before: MeasuredFile, after: MeasuredFile) -> Evidence {
    let side = |file| Side {
        measured: vec![file],
        ..Side::default()
    };
    Evidence {
        before: side(before),
        after: side(after),
    }
}

/// Returns measurements of both sides. The true median after the change is `factor` times the median before.
fn changed(rng: &mut Rng, truth: Truth, factor: f64) -> Evidence {
    let after = Truth {
        median_ns: truth.median_ns * factor,
        ..truth
    };
    evidence(measured(rng, truth), measured(rng, after))
}

#[test]
fn each_truth_has_its_verdict() {
    let plan = timer_plan();
    let mut rng = Rng(2);
    let noisy = Truth {
        scatter: 0.2,
        ..USUAL
    };
    for (truth, factor, answer) in [
        (USUAL, 0.66, Answer::Helped),
        (USUAL, 1.5, Answer::Harmed),
        (USUAL, 1.0, Answer::NoDifference),
        (noisy, 1.0, Answer::Unknown),
    ] {
        let verdict = judged(&plan, &changed(&mut rng, truth, factor));
        assert_eq!(verdict.answer, answer, "{verdict:?}");
        let check = &verdict.checks[0];
        assert_eq!(check.settings, ["globaltimer"]);
        assert!(
            check.result.contains("31 runs before, 31 runs after"),
            "{check:?}"
        );
        // All runs before the change were measured before all runs after it, so a doubt about the order remains.
        assert!(check.doubts[0].contains("did not alternate"), "{check:?}");
        assert_eq!(verdict.settle.is_empty(), answer != Answer::Unknown);
        assert_eq!(answer.is_yes(), answer == Answer::Helped);
    }
}

/// Checks that equal sides count as helped or harmed in at most 5 % of cases. The margin is nearly 0, so that it hides
/// no difference.
#[test]
fn equal_sides_differ_as_rarely_as_stated() {
    let plan = MeasurePlan {
        margin: 1e-9,
        ..timer_plan()
    };
    let mut rng = Rng(3);
    let rounds = 300;
    let wrong = (0..rounds).filter(|_| {
        let verdict = judged(&plan, &changed(&mut rng, USUAL, 1.0));
        verdict.answer != Answer::Unknown
    });
    // 5 % of 300 rounds are 15 rounds. 15 plus three standard deviations is 26.
    let wrong = wrong.count();
    assert!(wrong <= 26, "{wrong} of {rounds}");
}

/// Asserts that the verdict is unknown, that the check or the verdict states the reason `why`, and that there
/// is advice.
fn assert_unknown(found: &Verdict, why: &str) {
    assert_eq!(found.answer, Answer::Unknown, "{found:?}");
    let results = found.checks.iter().map(|check| &check.result);
    let mut texts = results.chain(&found.why);
    assert!(texts.any(|text| text.contains(why)), "{found:?}");
    assert!(!found.settle.is_empty(), "{found:?}");
}

#[test]
fn what_the_plan_did_not_ask_for_has_no_verdict() {
    let plan = timer_plan();
    let mut rng = Rng(4);
    let good = Truth {
        median_ns: 5e5,
        ..USUAL
    };
    let mut with = |change: &dyn Fn(&mut MeasuredFile)| {
        let before = measured(&mut rng, USUAL);
        let mut after = measured(&mut rng, good);
        change(&mut after);
        judged(&plan, &evidence(before, after))
    };
    assert_eq!(with(&|_| {}).answer, Answer::Helped);
    let other = with(&|file| file.groups[0].0.probe = "net".to_owned());
    assert_unknown(
        &other,
        "Another probe was measured after the change: net, not sleep",
    );
    let other = with(&|file| file.groups[0].0.method = "waitable-timer".to_owned());
    assert_unknown(&other, "`waitable-timer, default scheduling, 1.0 ms`");
    let other = with(&|file| file.groups[0].0.requested_ns = Some(2_000_000));
    assert_unknown(&other, "Something else was measured after the change");
    let other = with(&|file| file.groups[0].0.setting = "time-critical".to_owned());
    assert_unknown(&other, "Something else was measured after the change");
    let few = with(&|file| file.groups[0].1.runs.truncate(10));
    assert_unknown(
        &few,
        "Too few runs after the change: 10; the plan asks for 31",
    );
    let short = with(&|file| {
        file.groups[0].1.runs[7] = Run::new("7".to_owned(), vec![5e5; 99], 0);
    });
    assert_unknown(&short, "30, and 1 with fewer than 100 samples each");
    let foreign = with(&|file| file.conditions = Some(conditions("THERE")));
    assert_unknown(&foreign, "different machines: HERE and THERE");
    let foreign = with(&|file| {
        let conditions = file.conditions.as_mut().unwrap();
        conditions.computer = None;
        conditions.cpus = Some(4);
    });
    assert_unknown(&foreign, "different machines: 8 CPUs and 4 CPUs");
    let nothing = with(&|file| file.groups.clear());
    assert_unknown(&nothing, "Nothing was measured after the change");
    // Unknown conditions, another build of Windows and additional runs are doubts, but no errors.
    for (change, doubt) in [
        (
            &(|file: &mut MeasuredFile| file.conditions = None) as &dyn Fn(&mut MeasuredFile),
            "does not state on which machine",
        ),
        (
            &|file| {
                let conditions = file.conditions.as_mut().unwrap();
                conditions.system = Some("Windows 10.0.26100".to_owned());
            },
            "The system changed, too",
        ),
        (
            &|file| {
                let mut run = file.groups[0].1.runs[0].clone();
                run.name = "more".to_owned();
                file.groups[0].1.runs.push(run);
            },
            "more than the 31 of the plan",
        ),
    ] {
        let verdict = with(change);
        assert_eq!(verdict.answer, Answer::Helped);
        let doubts = &verdict.checks[0].doubts;
        assert!(doubts.iter().any(|it| it.contains(doubt)), "{doubts:?}");
    }
}

#[test]
fn the_plan_and_the_sides_must_belong_together() {
    let mut plan = timer_plan();
    let mut rng = Rng(5);
    let same = measured(&mut rng, USUAL);
    let verdict = judged(&plan, &evidence(same.clone(), same));
    assert_unknown(&verdict, "Both sides have the same measurement");
    assert_unknown(
        &judged(&plan, &Evidence::default()),
        "Nothing was measured before",
    );

    let mut helped = changed(&mut rng, USUAL, 0.5);
    let seen = |as_planned| {
        vec![PlaceCheck {
            place: "HKLM\\x".to_owned(),
            as_planned,
        }]
    };
    let unproven = judged(&plan, &helped);
    assert!(unproven.doubts.iter().any(|it| it.contains("check.ps1")));
    helped.after.places = seen(true);
    let proven = judged(&plan, &helped);
    assert_eq!((proven.answer, proven.doubts.len()), (Answer::Helped, 0));
    helped.after.places = seen(false);
    assert_unknown(
        &judged(&plan, &helped),
        "HKLM\\x does not have the planned value after the change",
    );
    helped.after.places.clear();
    plan.computer = Some("ELSEWHERE".to_owned());
    assert_unknown(
        &judged(&plan, &helped),
        "different machines: ELSEWHERE and HERE",
    );
    plan.computer = Some("here".to_owned());
    assert_eq!(judged(&plan, &helped).answer, Answer::Helped);
}

/// Adds a second measurement to the plan, for packets. Checks how the answers of both checks are combined.
#[test]
fn one_verdict_joins_all_checks() {
    let mut plan = timer_plan();
    let mut packets = plan.measurements[0].clone();
    packets.probe = Probe::Net;
    plan.measurements.push(packets);
    let mut rng = Rng(6);
    let mut joined = |sleep: f64, net: Option<f64>| {
        let mut evidence = changed(&mut rng, USUAL, sleep);
        if let Some(factor) = net {
            let mut second = changed(&mut rng, USUAL, factor);
            for (into, from) in [
                (&mut evidence.before, &mut second.before),
                (&mut evidence.after, &mut second.after),
            ] {
                from.measured[0].groups[0].0.probe = "net".to_owned();
                into.measured.append(&mut from.measured);
            }
        }
        judged(&plan, &evidence)
    };
    assert_eq!(joined(0.5, Some(1.0)).answer, Answer::Helped);
    assert_eq!(joined(1.0, Some(1.5)).answer, Answer::Harmed);
    assert_eq!(joined(1.0, Some(1.0)).answer, Answer::NoDifference);
    let both = joined(0.5, Some(1.5));
    assert_eq!(both.answer, Answer::Unknown);
    assert!(both.why.unwrap().starts_with("Some times are shorter"));
    assert_unknown(&joined(0.5, None), "Another probe was measured");
    assert_eq!(joined(1.5, None).answer, Answer::Harmed);
    let nothing = MeasurePlan {
        measurements: Vec::new(),
        ..timer_plan()
    };
    let verdict = judged(&nothing, &Evidence::default());
    assert!(
        verdict
            .why
            .unwrap()
            .starts_with("No measurement or trace is known")
    );
}

/// Writes runs of sleeps in the format of `laglab measure`.
fn write(path: &Path, runs: &[Vec<f64>], conditions: Option<&SampleConditions>) {
    let runs = (0..).zip(runs).map(|(number, values)| WrittenRun {
        method: "Sleep",
        number,
        start_ns: i64::from(number) * 1_000_000_000,
        interval_ns: 2_000_000,
        values,
    });
    written::write(path, runs, conditions);
}

#[test]
fn files_keep_their_conditions() {
    let folder = tempfile::tempdir().unwrap();
    let (with, without) = (
        folder.path().join("with.parquet"),
        folder.path().join("without.parquet"),
    );
    let mut rng = Rng(7);
    let of_file = values(&mut rng, USUAL);
    write(&with, &of_file, Some(&conditions("HERE")));
    write(&without, &of_file, None);
    let file = MeasuredFile::read(&with).unwrap();
    assert_eq!(file.conditions, Some(conditions("HERE")));
    assert_eq!(file.groups[0].0, sleep_key());
    assert_eq!(file.groups[0].1.runs.len(), of_file.len());
    assert_eq!(MeasuredFile::read(&without).unwrap().conditions, None);
    let shorter = Truth {
        median_ns: 4e5,
        ..USUAL
    };
    write(
        &without,
        &values(&mut rng, shorter),
        Some(&conditions("HERE")),
    );
    let after = MeasuredFile::read(&without).unwrap();
    let verdict = judged(&timer_plan(), &evidence(file, after));
    assert_eq!(verdict.answer, Answer::Helped, "{verdict:?}");
}

fn recordings(scenario: &str, seeds: std::ops::Range<u32>) -> Vec<diff::Recording> {
    let each = seeds.map(|seed| recorded(&Simulated::new(scenario, &[&format!("seed={seed}")])));
    each.collect()
}

fn recorded(simulated: &Simulated) -> diff::Recording {
    let store = imports::open_store(&[simulated.trace.clone().into()], Cache::Off).unwrap();
    diff::Recording::read(&store, &diff::ReadOptions::default(), Options::default()).unwrap()
}

/// Checks scenarios in which a filter driver is removed. After the change, each DPC takes longer, but one KiB of
/// traffic costs only 16.1 µs in ndis.sys instead of 19.9 µs (true values of the scenarios).
#[test]
fn traces_have_a_verdict() {
    let mut plan = plan(&["Win32PrioritySeparation=0x28"]);
    let recording = &mut plan.recordings[0];
    recording.times = Times::Dpcs;
    recording.seconds = 1.0;
    let side = |recordings| Side {
        recordings,
        ..Side::default()
    };
    let of = |before: &str, after: &str| Evidence {
        before: side(recordings(before, 1..4)),
        after: side(recordings(after, 4..7)),
    };
    // After the change, another driver serves the USB controller, so the plan must name the driver that matters.
    let other_driver = of("usb-wdf01000", "usb-amdxhc31");
    assert_unknown(
        &judged(&plan, &other_driver),
        "Less time for Wdf01000.sys, but more for amdxhc31.sys",
    );
    plan.recordings[0].row = Some("NDIS.sys".to_owned());
    let (with, without) = ("dpc-flood-teaming", "dpc-flood-no-teaming");
    let mut sides = of(with, without);
    let verdict = judged(&plan, &sides);
    assert_eq!(verdict.answer, Answer::Helped, "{verdict:?}");
    let check = &verdict.checks[0];
    assert!(
        check.result.contains("per KiB of network traffic"),
        "{check:?}"
    );
    std::mem::swap(&mut sides.before, &mut sides.after);
    let verdict = judged(&plan, &sides);
    assert_eq!(verdict.answer, Answer::Harmed, "{verdict:?}");
    // The disk's driver has the same amount of work on both sides, but the network has more.
    plan.recordings[0].row = Some("storport.sys".to_owned());
    let verdict = judged(&plan, &sides);
    assert_eq!(verdict.answer, Answer::NoDifference, "{verdict:?}");
    plan.recordings[0].row = Some("ndis.sys".to_owned());
    sides.before = side(recordings(with, 7..10));
    let verdict = judged(&plan, &sides);
    assert_eq!(verdict.answer, Answer::NoDifference, "{verdict:?}");

    plan.recordings[0].row = Some("absent.sys".to_owned());
    assert_unknown(&judged(&plan, &sides), "The traces have no such times");
    plan.recordings[0].row = Some("ndis.sys".to_owned());
    plan.recordings[0].seconds = 1e6;
    assert_unknown(&judged(&plan, &sides), "the plan asks for 1000000 s");
    plan.recordings[0].seconds = 1.0;
    plan.computer = Some("ELSEWHERE".to_owned());
    let named = sides.before.recordings[0].computer().is_some();
    let verdict = judged(&plan, &sides);
    assert_eq!(verdict.answer == Answer::Unknown, named, "{verdict:?}");
    plan.computer = None;
    sides.after.recordings.pop();
    assert_unknown(&judged(&plan, &sides), "Too few traces after the change: 2");
}

/// Checks that copies of a trace or measurement count once. They do not show how much the recordings of a side differ
/// by chance.
#[test]
fn copies_count_once() {
    let mut plan = plan(&["Win32PrioritySeparation=0x28"]);
    plan.recordings[0].times = Times::Dpcs;
    plan.recordings[0].row = Some("ndis.sys".to_owned());
    plan.recordings[0].seconds = 1.0;
    let side = |scenario: &str, seeds: &[u32]| {
        let mut side = Side::default();
        for seed in seeds {
            for recording in recordings(scenario, *seed..seed + 1) {
                side.add_recording(recording);
            }
        }
        side
    };
    let (with, without) = ("dpc-flood-teaming", "dpc-flood-no-teaming");
    let mut sides = Evidence {
        before: side(with, &[1, 1, 1]),
        after: side(without, &[4, 4, 4]),
    };
    assert_unknown(
        &judged(&plan, &sides),
        "Too few traces before the change: 1 (2 traces are copies of another trace and left out",
    );
    sides.before = side(with, &[1, 2, 3, 3]);
    assert_unknown(&judged(&plan, &sides), "Too few traces after the change: 1");
    sides.after = side(without, &[4, 5, 6]);
    let verdict = judged(&plan, &sides);
    assert_eq!(verdict.answer, Answer::Helped, "{verdict:?}");
    let doubts = &verdict.checks[0].doubts;
    let is_copy = |doubt: &String| doubt.starts_with("1 trace is a copy of another trace");
    assert!(doubts.iter().any(is_copy), "{doubts:?}");
    sides.after = side(with, &[3, 7, 8]);
    assert_unknown(&judged(&plan, &sides), "A trace is on both sides");

    let plan = timer_plan();
    let mut rng = Rng(8);
    let half = Truth { runs: 16, ..USUAL };
    let better = Truth {
        median_ns: 5e5,
        ..USUAL
    };
    let (first, second) = (measured(&mut rng, half), measured(&mut rng, half));
    let mut sides = evidence(first.clone(), measured(&mut rng, better));
    sides.before.measured.push(first);
    assert_unknown(
        &judged(&plan, &sides),
        "Too few runs before the change: 16 (1 measurement is a copy of another measurement",
    );
    sides.before.measured.push(second);
    let verdict = judged(&plan, &sides);
    assert_eq!(verdict.answer, Answer::Helped, "{verdict:?}");
    let doubts = &verdict.checks[0].doubts;
    let is_copy = |doubt: &String| doubt.starts_with("1 measurement is a copy");
    assert!(doubts.iter().any(is_copy), "{doubts:?}");
}

/// Checks that the advice states a command only once, if the plan has the same command for both sides.
#[test]
fn advice_states_a_command_once() {
    let mut plan = timer_plan();
    plan.measurements[0].after = plan.measurements[0].before.clone();
    let same = measured(&mut Rng(9), USUAL);
    let verdict = judged(&plan, &evidence(same.clone(), same));
    let command = &plan.measurements[0].before;
    assert_eq!(
        verdict.settle[0].matches(command.as_str()).count(),
        1,
        "{verdict:?}"
    );
}

/// Checks two scenarios with different quanta. Before the change, only the program with the focus has long quanta;
/// after it, all programs have long quanta (settings of the scenarios). All CPUs are busy, so the sum of the waits
/// stays the same, but each wait of System is longer.
#[test]
fn longer_waits_are_harm_even_if_there_are_fewer() {
    let mut plan = plan(&["Win32PrioritySeparation=0x28"]);
    plan.recordings[0].row = Some("System".to_owned());
    plan.recordings[0].seconds = 1.0;
    let side = |scenario, seeds| Side {
        recordings: recordings(scenario, seeds),
        ..Side::default()
    };
    let mut sides = Evidence {
        before: side("foreground-boost", 1..4),
        after: side("foreground-boost-0x28", 4..7),
    };
    let verdict = judged(&plan, &sides);
    assert_eq!(verdict.answer, Answer::Harmed, "{verdict:?}");
    assert!(
        verdict.checks[0].result.contains("each wait"),
        "{verdict:?}"
    );
    std::mem::swap(&mut sides.before, &mut sides.after);
    let verdict = judged(&plan, &sides);
    assert_eq!(verdict.answer, Answer::Helped, "{verdict:?}");
}

/// Checks the same change without a named row, and with other seeds. Chance decides which programs had to wait longer, so
/// the answer may be unknown. But the mean waits are two to three times as long (31 and 94 ms are the lengths of quanta),
/// so the answer is not that nothing changed.
#[test]
fn longer_waits_are_never_no_difference() {
    let mut plan = plan(&["Win32PrioritySeparation=0x28"]);
    plan.recordings[0].seconds = 30.0;
    let side = |scenario, seeds: std::ops::Range<u32>| Side {
        recordings: seeds
            .map(|seed| {
                let settings = [format!("seed={seed}"), "duration=30s".to_owned()];
                let settings = settings.each_ref().map(String::as_str);
                recorded(&Simulated::new(scenario, &settings))
            })
            .collect(),
        ..Side::default()
    };
    let verdict = judged(
        &plan,
        &Evidence {
            before: side("foreground-boost", 1..4),
            after: side("foreground-boost-0x28", 11..14),
        },
    );
    assert!(
        matches!(verdict.answer, Answer::Harmed | Answer::Unknown),
        "{verdict:?}"
    );
    assert!(verdict.checks[0].result.contains("wait"), "{verdict:?}");
}

/// Checks a device whose rate and durations of DPCs stay the same while the network traffic grows twelvefold.
#[test]
fn more_traffic_does_not_help_other_devices() {
    let mut plan = plan(&["Win32PrioritySeparation=0x28"]);
    let recording = &mut plan.recordings[0];
    recording.times = Times::Dpcs;
    recording.row = Some("noisy.sys".to_owned());
    recording.seconds = 10.0;
    let text = r#"
        extends = "healthy"
        title = "A desktop with a noisy device"
        duration = "12s"
        [[add.device]]
        name = "noisy"
        every = "exp(80ms)"
        cpus = [3]
        isr = { in = ["noisy.sys!Isr"], cost = "uniform(4us, 9us)" }
        dpc = { in = ["noisy.sys!Dpc"], cost = "exp(8ms)" }
    "#;
    let side = |every: &str, seeds: std::ops::Range<u32>| {
        let each = seeds.map(|seed| {
            let settings = [format!("seed={seed}"), format!("flow.0.every=exp({every})")];
            let settings = settings.each_ref().map(String::as_str);
            recorded(&Simulated::of_text("noisy", text, &settings))
        });
        Side {
            recordings: each.collect(),
            ..Side::default()
        }
    };
    let verdict = judged(
        &plan,
        &Evidence {
            before: side("25ms", 1..4),
            after: side("2ms", 4..7),
        },
    );
    let check = &verdict.checks[0];
    assert!(
        matches!(check.answer, Answer::Unknown | Answer::NoDifference),
        "{check:?}"
    );
    assert!(check.result.contains(" per second before"), "{check:?}");
}

#[test]
fn damaged_plans_are_refused() {
    let text = plan(&[
        "GlobalTimerResolutionRequests=1",
        "Win32PrioritySeparation=0x28",
    ])
    .to_text();
    for (from, to, why) in [
        ("version = 1", "version = 2", "unsupported version 2"),
        ("margin = 0.02", "margin = 0.0", "invalid margin 0"),
        ("margin = 0.02", "margin = nan", "invalid margin NaN"),
        ("runs = 31", "runs = 1", "invalid runs 1: give 4 to 4096"),
        ("runs = 31", "runs = 99999999999", "invalid runs"),
        ("runs = 31", "runs = -1", "not a plan"),
        ("quantile = 0.5", "quantile = 0.7", "invalid quantile 0.7"),
        ("traces = 3", "traces = 1", "invalid traces 1"),
        ("seconds = 30.0", "seconds = inf", "invalid seconds"),
        (
            "probe = \"sleep\"",
            "probe = \"nap\"",
            "unknown variant `nap`",
        ),
        ("margin", "margins", "unknown field `margins`"),
    ] {
        assert!(text.contains(from), "{from} in {text}");
        let error = MeasurePlan::parse(&text.replacen(from, to, 1)).unwrap_err();
        assert!(error.to_string().contains(why), "{to}: {error}");
    }
    for end in (0..text.len()).step_by(97) {
        // A truncated plan must be refused, or it is a valid plan with fewer measurements. Parsing must not
        // panic.
        let _ = MeasurePlan::parse(&text[..end]);
    }
    assert!(MeasurePlan::parse("\u{0}\u{1}").is_err());
}
