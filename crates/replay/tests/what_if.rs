//! Predictions against the simulator: each change is also made in the scenario, and the prediction is compared with
//! what the second simulation records.

use crate::pairs;

use pairs::{Pair, distance, predicted, record, shipped, workload};
use replay::{Metric, Note, Prediction, RecordedWorkload, Refusal, Row};
use sim::replay::{
    self as model, Interrupt, Moment, Options, Part, Process, Step, Thread, Wait, Wake, Workload,
};
use simulated::{Simulated, list, number};

fn row<'p>(prediction: &'p Prediction, process: &str) -> &'p Row {
    let mut rows = prediction.rows.iter();
    rows.find(|row| row.thread_id.is_none() && row.process.as_deref() == Some(process))
        .unwrap_or_else(|| panic!("no row of {process}"))
}

/// Checks the processor time of each replayed process against the truth of the simulation, and its waits against the
/// record.
#[test]
fn the_record_is_reproduced() {
    for (scenario, settings, at_least) in [
        ("healthy", &["duration=3s"][..], 8),
        ("foreground-boost", &["duration=3s"], 8),
        ("lock-convoy", &["duration=3s"], 6),
        ("load", &["duration=0.1s"], 4),
    ] {
        let simulated = Simulated::new(scenario, settings);
        let recorded = workload(&simulated).expect("a workload");
        let prediction = predicted(&recorded, &[], 0);
        let mut judged = 0;
        let mut errors = Vec::new();
        for process in list(&simulated.truth, "processes") {
            let id = number(process, "id") as u32;
            let found = prediction.rows.iter().find(|row| {
                row.thread_id.is_none() && row.process_id == id && row.refused.is_none()
            });
            let Some(row) = found else { continue };
            judged += 1;
            let true_ns = number(process, "cpu_ns") as f64;
            let cpu = row.get(Metric::Cpu).expect("processor time").replayed_ns;
            // The clock interrupt takes 1 µs for each timer, which the trace does not log.
            let error = distance(cpu, true_ns, 1e6);
            assert!(error < 0.02, "{scenario} {id}: {cpu} of {true_ns}");
            errors.extend(row.left_out.iter().map(|_| f64::INFINITY));
            let waits = row.metrics.iter().filter(|of| of.metric != Metric::Cpu);
            errors.extend(waits.map(|of| {
                let floor_ns = row.floor_ns(of.metric);
                distance(of.replayed_ns, of.recorded_ns, floor_ns)
            }));
        }
        errors.sort_by(f64::total_cmp);
        let good = errors.iter().filter(|error| **error < 0.05).count();
        assert!(
            good > 0 && good * 4 >= errors.len() * 3,
            "{scenario}: {errors:?}"
        );
        assert!(
            judged >= at_least,
            "{scenario}: only {judged} processes are reproduced"
        );
    }
}

/// Checks each kind of change: the predicted number of the process that it concerns is near the truth and on the right
/// side of the record, and the bar has the truth.
#[test]
fn changes_are_predicted() {
    let cases = [
        ("priority-separation=0x14", "game.exe", Metric::ReadyMedian),
        ("priority:game.exe=high", "game.exe", Metric::ReadyTotal),
        ("affinity:build.exe=0-3", "build.exe", Metric::ReadyTotal),
        ("remove:raid.sys", "build.exe", Metric::ReadyTotal),
        ("disk:0.5x", "backup.exe", Metric::Cpu),
        ("rank:off", "build.exe", Metric::ReadyTotal),
    ];
    let all = pairs::all(1);
    let predict = |change: &str| {
        let is_it = |pair: &&Pair| pair.change == change;
        let pair = all.iter().rev().find(is_it).expect("a pair");
        pair.judge(4)
    };
    std::thread::scope(|scope| {
        for (change, process, metric) in cases {
            let predict = &predict;
            scope.spawn(move || {
                let (judged, _) = predict(change);
                let mut judged = judged.iter();
                let of = judged.find(|of| of.process == process && of.metric == metric);
                let of = of.unwrap_or_else(|| panic!("{change}: {process} is refused"));
                assert!(of.is_inside(), "{change}: {of:?}");
                // A share of the effect, on a logarithmic scale.
                assert!(of.error() < 0.1 + 0.1 * of.effect(), "{change}: {of:?}");
                let is_less = of.true_ns < of.recorded_ns;
                assert_eq!(
                    is_less,
                    of.predicted_ns < of.recorded_ns,
                    "{change}: {of:?}"
                );
            });
        }
    });
}

/// Traces without needed evidence are refused, and the refusal names what to record.
#[test]
fn missing_evidence_is_refused() {
    const ALL: [&str; 6] = [
        "PROC_THREAD",
        "LOADER",
        "CSWITCH",
        "DISPATCHER",
        "DPC",
        "INTERRUPT",
    ];
    for missing in ["PROC_THREAD", "CSWITCH", "DISPATCHER", "DPC", "INTERRUPT"] {
        let kept: Vec<String> = (ALL.iter())
            .filter(|keyword| **keyword != missing)
            .map(|keyword| format!("{keyword:?}"))
            .collect();
        let kernel = format!("record.kernel=[{}]", kept.join(", "));
        let refusal = workload(&Simulated::new("healthy", &["duration=1s", &kernel])).unwrap_err();
        assert!(
            refusal.to_string().contains(missing),
            "{missing}: {refusal}"
        );
    }
    let kernel = format!("record.kernel={ALL:?}");
    assert!(workload(&Simulated::new("healthy", &["duration=1s", &kernel])).is_ok());
    let lost = workload(&Simulated::new("lost-events", &["duration=5s"])).unwrap_err();
    assert!(matches!(lost, Refusal::Lost(_)), "{lost}");
    let only = "record.kernel=[\"PROC_THREAD\"]";
    assert!(workload(&Simulated::new("healthy", &["duration=1s", only])).is_err());
}

/// Without a recorded focus or quanta, other quanta are not predicted.
#[test]
fn quanta_need_the_focus() {
    let refusal = |scenario: &str, settings: &[&str]| {
        let recorded = workload(&Simulated::new(scenario, settings)).expect("a workload");
        let change = "priority-separation=0x28".parse().expect("a change");
        let scope = replay::Scope::default();
        let predicted = replay::predict(&recorded, &[change], &scope, 0, &|| true);
        predicted.unwrap_err().to_string()
    };
    let fixed = "machine.win32_priority_separation=0x28";
    let unfocused = refusal("foreground-boost", &["duration=2s", fixed]);
    assert!(
        unfocused.contains("Microsoft-Windows-Win32k"),
        "{unfocused}"
    );
    let idle = refusal("rank-stall", &["duration=10s"]);
    assert!(idle.contains("no quantum ended"), "{idle}");
}

/// The replay does not read kernel stacks from the disk, so it must not predict the thread that waits for its stack.
#[test]
fn missing_mechanisms_are_refused() {
    let recorded = record("stack-paged-out", shipped("stack-paged-out"), &[]);
    let prediction = predicted(&recorded, &["priority:mail.exe=high"], 0);
    let mut refused = prediction
        .rows
        .iter()
        .filter_map(|row| row.refused.as_deref());
    assert!(refused.any(|why| why.contains("kernel stack")));
}

/// The search finds that a higher priority class helps a program that waits for others.
#[test]
fn a_search_ranks_changes() {
    let recorded = record("office", pairs::OFFICE, &[]);
    let scope = replay::Scope {
        processes: vec!["game.exe".to_owned()],
        ..replay::Scope::default()
    };
    let (found, tried) = replay::search(&recorded, &scope, &|| true).expect("a search");
    assert!(tried >= 5, "{tried}");
    assert!(found.is_sorted_by(|a, b| a.gain_ns >= b.gain_ns));
    let changes: Vec<&str> = (found.iter())
        .flat_map(|found| found.prediction.changes.iter().map(String::as_str))
        .collect();
    assert!(changes.contains(&"priority:game.exe=high"), "{changes:?}");
    // All candidates share the replays without a change. This must not differ from a prediction of one change.
    let best = &found[0];
    let change = best.prediction.changes[0].parse().expect("a change");
    let alone = replay::predict(&recorded, &[change], &scope, 0, &|| true).expect("a prediction");
    assert_eq!(alone, best.prediction);
    for found in found.iter().filter(|found| found.prediction.is_bound) {
        let total = found.prediction.rows[0].get(Metric::ReadyTotal);
        let total = total.expect("waits for a CPU");
        assert_eq!(found.gain_ns, total.recorded_ns - total.bar.low_ns);
    }
}

/// A workload that was written and read again gives the same prediction.
#[test]
fn a_file_gives_the_same_prediction() {
    let recorded = record("healthy", shipped("healthy"), &["duration=1s".to_owned()]);
    let mut bytes = Vec::new();
    replay::write(&recorded, &mut bytes).expect("written");
    let read = replay::read(&bytes[..]).expect("read");
    let both = [&recorded, &read].map(|of| predicted(of, &["priority:winword.exe=high"], 1));
    assert_eq!(both[0], both[1]);
}

/// Simulates a scenario of Windows 10, and writes another build number into the header of the trace.
fn of_build(scenario: &str, build: u32) -> Result<RecordedWorkload, Refusal> {
    let simulated = Simulated::new(scenario, &["duration=1s"]);
    let mut bytes = std::fs::read(&simulated.trace).expect("a trace");
    let at = bytes[..512]
        .windows(4)
        .position(|of| of == 19_045_u32.to_le_bytes());
    let at = at.expect("the build in the header");
    bytes[at..at + 4].copy_from_slice(&build.to_le_bytes());
    std::fs::write(&simulated.trace, bytes).expect("a written trace");
    workload(&simulated)
}

/// Builds without known rules are refused, and doubtful rules are noted.
#[test]
fn builds_without_known_rules_are_refused() {
    assert_eq!(of_build("healthy", 0).unwrap_err(), Refusal::BuildUnknown);
    assert_eq!(
        of_build("healthy", 6_002).unwrap_err(),
        Refusal::Build(6_002)
    );
    for (build, is_shared, is_doubted) in [
        (7_601, false, false),
        (17_763, true, false),
        (19_045, false, false),
        (26_100, false, true),
    ] {
        let notes = of_build("timer-foreign", build).expect("a workload").notes;
        assert_eq!(notes.contains(&Note::SharedTimer), is_shared, "{build}");
        assert_eq!(notes.contains(&Note::SlicesDoubted), is_doubted, "{build}");
    }
}

/// The edition decides the default quanta. The trace has it in the name of the product.
#[test]
fn the_edition_is_read() {
    for (is_server, setting) in [
        (true, "machine.server=true"),
        (false, "machine.server=false"),
    ] {
        let recorded = workload(&Simulated::new("healthy", &["duration=1s", setting]));
        let recorded = recorded.expect("a workload");
        assert_eq!(recorded.workload.machine.server, is_server);
        assert!(!recorded.notes.contains(&Note::EditionUnknown));
    }
    let simulated = Simulated::new("healthy", &["duration=1s"]);
    let mut bytes = std::fs::read(&simulated.trace).expect("a trace");
    let product: Vec<u8> = "Windows 10 Pro"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let places = bytes.windows(product.len()).enumerate();
    let places: Vec<usize> = places
        .filter(|(_, of)| *of == product)
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + 2].fill(0);
    }
    std::fs::write(&simulated.trace, bytes).expect("a written trace");
    let recorded = workload(&simulated).expect("a workload");
    assert!(recorded.notes.contains(&Note::EditionUnknown));
}

/// The replay needs processors that divide into nodes and cores, also if each node has an odd number of them.
#[test]
fn nodes_with_an_odd_number_of_processors_are_replayed() {
    const TEXT: &str = r#"
title = "Two nodes with three processors each"
duration = "1s"
[machine]
processors = 6
threads_per_core = 1
nodes = 2
[[process]]
name = "game.exe"
[[process.thread]]
name = "render"
count = 8
program = [ { forever = [ { run = "2ms" }, { sleep = "1ms" } ] } ]
"#;
    let recorded = record("nodes", TEXT, &[]);
    let machine = &recorded.workload.machine;
    assert_eq!(
        (machine.cpus, machine.nodes, machine.threads_per_core),
        (6, 2, 1)
    );
    let prediction = predicted(&recorded, &["priority:game.exe=high"], 0);
    assert!(!prediction.rows.is_empty());
}

/// Ranks that follow from the use of the processors are not kept, even if 1 is the highest.
#[test]
fn ranks_between_0_and_1_move() {
    let text = shipped("rank-walk").replace("bias = 2\n", "bias = 0\n");
    let settings = ["duration=2s", "scheduler.highest_rank=1"].map(str::to_owned);
    let recorded = record("rank-walk", &text, &settings);
    assert!(
        recorded.notes.contains(&Note::RanksMove),
        "{:?}",
        recorded.notes
    );
    let stalled = record("rank-stall", shipped("rank-stall"), &[]);
    assert!(stalled.notes.contains(&Note::Ranks), "{:?}", stalled.notes);
}

/// Returns a workload of a machine with one processor and one process. `wakes` has times, and threads whose first wait
/// after their start ends then.
fn one_cpu(threads: Vec<Thread>, wakes: &[(u64, u32)], moments: Vec<Moment>) -> Workload {
    let interrupt = |(at_ns, thread): &(u64, u32)| Interrupt {
        at_ns: Some(*at_ns),
        parts: vec![Part {
            wakes: vec![Wake {
                thread: *thread,
                wait: 0,
                boost: 0,
            }],
            ..Part::default()
        }],
        ..Interrupt::default()
    };
    Workload {
        duration_ns: 100_000_000,
        processes: vec![Process::default()],
        threads,
        interrupts: wakes.iter().map(interrupt).collect(),
        moments,
        ..Workload::default()
    }
}

/// A thread that never gets the processor waits until the end of the measured time.
#[test]
fn open_waits_count() {
    let hog = Thread {
        base_priority: 12,
        starts_ns: Some(0),
        steps: vec![Step::Run(1_000_000_000)],
        ..Thread::default()
    };
    let starved = Thread {
        base_priority: 8,
        steps: vec![Step::Wait(Wait::Event(0)), Step::Run(1_000)],
        ..Thread::default()
    };
    let workload = one_cpu(vec![hog, starved], &[(10_000_000, 1)], Vec::new());
    for (measured, expected_ns) in [
        (None, 90_000_000_u64),
        (Some(5_000_000..50_000_000), 40_000_000),
    ] {
        let options = Options {
            measured,
            ..Options::default()
        };
        let replayed = model::run(&workload.clone().into(), &options, |_| true).expect("a replay");
        let [hog, starved] = &replayed.threads[..] else {
            panic!("two threads")
        };
        assert_eq!(starved.ready_ns, [expected_ns]);
        assert_eq!(starved.response_ns, [expected_ns]);
        // The start of a thread ends no wait.
        assert!(hog.ready_ns.is_empty() && hog.response_ns.is_empty());
    }
}

/// A freeze does not split a response, and the end of the thread ends it.
#[test]
fn a_response_goes_on_during_a_freeze() {
    let thread = Thread {
        base_priority: 8,
        starts_ns: Some(0),
        steps: vec![
            Step::Run(1_000_000),
            Step::Wait(Wait::Event(0)),
            Step::Run(2_000_000),
            Step::Exit,
        ],
        ..Thread::default()
    };
    let freeze = [
        (6_000_000, model::Change::Freeze(0)),
        (16_000_000, model::Change::Thaw(0)),
    ];
    let moments = freeze.map(|(at_ns, change)| Moment { at_ns, change });
    let workload = one_cpu(vec![thread], &[(5_000_000, 0)], moments.into());
    let replayed = model::run(&workload.into(), &Options::default(), |_| true).expect("a replay");
    let used = &replayed.threads[0];
    // After the wait and after the freeze.
    assert_eq!(used.ready_ns.len(), 2, "{used:?}");
    // From 5 ms to 16 ms, or to 17 ms if the freeze stopped the thread at once.
    let [response_ns] = used.response_ns[..] else {
        panic!("{used:?}")
    };
    assert!(
        (10_900_000..12_500_000).contains(&response_ns),
        "{response_ns}"
    );
}

/// The recording ends while a thread has waited since 30.333 s because of its rank (see the text of the scenario).
#[test]
fn a_recorded_wait_that_does_not_end_counts() {
    let settings = ["duration=40s".to_owned()];
    let recorded = record("rank-stall", shipped("rank-stall"), &settings);
    let prediction = predicted(&recorded, &["rank:off"], 0);
    let row = row(&prediction, "LockApp.exe");
    let total_ns = row.recorded(Metric::ReadyTotal).expect("waits");
    assert!((9.6e9..10.2e9).contains(&total_ns), "{total_ns}");
    let total = row.get(Metric::ReadyTotal);
    let total = total.unwrap_or_else(|| panic!("{row:?}"));
    assert!(total.predicted_ns < 1e9, "{total:?}");
}

/// The bound is the far end of the bar. A bound together with a change that is none is no bound. Parts that are unknown
/// are absent.
#[test]
fn bounds_and_unknown_parts() {
    let recorded = record("healthy", shipped("healthy"), &["duration=1s".to_owned()]);
    let mut parts = recorded.workload.interrupts.iter().flat_map(|of| &of.parts);
    let module = parts.find_map(|part| part.module.as_deref());
    let remove = format!("remove:{}", module.expect("a module"));
    let bound = predicted(&recorded, &[&remove], 1);
    assert!(bound.is_bound);
    let both = predicted(&recorded, &[&remove, "priority:winword.exe=high"], 0);
    assert!(!both.is_bound);
    let metrics = |of: &Prediction| -> Vec<replay::PredictedMetric> {
        let metrics = of.rows.iter().flat_map(|row| &row.metrics);
        metrics.cloned().collect()
    };
    for of in metrics(&bound) {
        let far_ns = if of.predicted_ns < of.recorded_ns {
            of.bar.low_ns
        } else {
            of.bar.high_ns
        };
        assert_eq!(of.bound_ns, of.differs().then_some(far_ns));
        assert!(of.bar.chance.is_some(), "{of:?}");
    }
    for of in metrics(&both) {
        assert!(of.bound_ns.is_none() && of.bar.chance.is_none(), "{of:?}");
    }
    let unchanged = predicted(&recorded, &[], 5);
    assert!(!unchanged.is_bound && unchanged.replays == 0 && unchanged.varied.is_empty());
    let json = serde_json::to_value(&unchanged).expect("JSON");
    let row = &json["rows"][0];
    assert!(row["replay_error"]["share"].is_f64(), "{row}");
    assert_eq!(row["metrics"][0]["bar"].get("chance"), None, "{row}");
}

/// Errors of the scope are typed.
#[test]
fn a_wrong_scope_is_refused() {
    let recorded = record("healthy", shipped("healthy"), &["duration=1s".to_owned()]);
    let refusal = |scope: &replay::Scope| {
        let predicted = replay::predict(&recorded, &[], scope, 0, &|| true);
        predicted.unwrap_err()
    };
    let process = refusal(&replay::Scope {
        processes: vec!["absent.exe".to_owned()],
        ..replay::Scope::default()
    });
    assert!(
        matches!(&process, replay::PredictError::Process(name) if name == "absent.exe"),
        "{process}"
    );
    let thread = refusal(&replay::Scope {
        threads: vec![u32::MAX],
        ..replay::Scope::default()
    });
    assert!(
        matches!(thread, replay::PredictError::Thread(u32::MAX)),
        "{thread}"
    );
}
