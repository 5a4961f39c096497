//! Tests with damaged or incomplete traces. The cause of the scenario must still be found, and nothing else.
//! The expected findings come from a simulation that differs only in the events that it logs.

use std::collections::BTreeSet;

use serde_json::Value;
use simulated::{Simulated, column, list, number, sum, text};

use super::explained::Explained;

/// Setting that loses the events of two processors for a second, during the long wait in the scenario.
const LOSS: &str = r#"trouble.lose=[{from="35s",to="36s",cpus=[2,5]}]"#;

/// Setting with two wrong clocks: the clock of processor 4 is always ahead, and the clock of processor 5
/// jumps during the long wait.
const SKEW: &str = r#"trouble.skew=[{cpu=4,ahead="5ms"},{cpu=5,ahead="20ms",from="36s"}]"#;

/// Settings of a desktop with two processors.
const TWO_CPUS: [&str; 4] = [
    "machine.processors=2",
    "disk.0.cpu=1",
    "device.audio.cpus=[1]",
    "device.display.cpus=[1]",
];

/// Returns the names and ids of the processes in a finding.
fn processes(finding: &Value) -> Vec<String> {
    let subjects = list(finding, "subjects").iter();
    let processes = subjects.filter(|subject| subject["kind"] == "process");
    processes
        .map(|process| format!("{} ({})", text(&process["name"]), process["id"]))
        .collect()
}

/// Returns the theory of each finding that is more than information. For waits, also returns the process.
fn complaints(explained: &Explained) -> BTreeSet<(String, String)> {
    let findings = explained.findings().iter();
    let grave = findings.filter(|found| found["severity"] != "information");
    grave
        .map(|found| {
            let process = match found["theory"].as_str() {
                Some("long-waits") => processes(found).first().cloned(),
                _ => None,
            };
            (text(&found["theory"]), process.unwrap_or_default())
        })
        .collect()
}

/// Asserts that each of the findings is also in the explanation of the complete trace: with the same theory
/// and, for waits, the same process. Findings of the theory `trouble` are about the damage and are not
/// checked.
#[track_caller]
fn assert_of(whole: &Explained, trouble: &str, found: &BTreeSet<(String, String)>) {
    for (theory, process) in found.iter().filter(|(theory, _)| theory != trouble) {
        let mut all = whole.findings().iter();
        let is_told = all.any(|told| {
            told["theory"] == **theory
                && told["severity"] != "information"
                && (process.is_empty() || processes(told).contains(process))
        });
        assert!(is_told, "{theory} {process}");
    }
}

/// Returns start and end of the longest wait of a program in the truth file.
fn longest_wait(simulated: &Simulated, process: &str) -> (i64, i64) {
    let watched = list(&simulated.truth, "watched_threads").iter();
    let of_it = watched.filter(|thread| thread["process"]["name"] == process);
    let waits = of_it.flat_map(|thread| list(thread, "longest_ready_waits"));
    let longest = waits.max_by_key(|wait| number(wait, "ready_ns")).unwrap();
    (number(longest, "readied_ns"), number(longest, "ran_ns"))
}

#[test]
fn a_wait_through_lost_events_counts_from_their_end() {
    for seed in ["seed=1", "seed=2"] {
        let whole = Simulated::new("rank-stall", &[seed]);
        let lossy = Simulated::new("rank-stall", &[LOSS, seed]);
        assert_eq!(whole.truth["processes"], lossy.truth["processes"]);
        let explained = Explained::new(&lossy.trace);
        let first = &explained.findings()[0];
        let sentence = text(&first["sentence"]);
        assert!(sentence.contains("LockApp.exe"), "{seed}: {sentence}");
        assert!(sentence.contains("its rank was 2"), "{seed}: {sentence}");
        let (_, ran_ns) = longest_wait(&lossy, "LockApp.exe");
        let delay_ns = number(&first["delay"], "ns");
        // Events are lost until 36 s. Some samples show that the thread may have run until then, so the
        // certain part of the wait starts at 36 s.
        let off = (delay_ns - (ran_ns - 36_000_000_000)).abs();
        assert!(off < 50_000_000, "{seed}: {delay_ns}");
        let whole = Explained::new(&whole.trace);
        assert_of(&whole, "capture", &complaints(&explained));
    }
}

#[test]
fn lost_events_of_one_of_two_cpus_make_no_waits() {
    for seed in 101..109 {
        let seed = format!("seed={seed}");
        let settings = [&TWO_CPUS[..], &["trouble.lose.0.cpus=[1]", &seed]].concat();
        let lossy = Simulated::new("lost-events", &settings);
        let explained = Explained::new(&lossy.trace);
        let only = BTreeSet::from([("capture".to_owned(), String::new())]);
        assert_eq!(complaints(&explained), only, "{seed}");
    }
}

/// Checks that CPU time by rank does not contain a run within which events are lost.
#[test]
fn lost_events_add_no_time_to_a_rank() {
    let scenario = r#"
        extends = "lost-events"
        title = "Ranks and lost events"
        duration = "8s"
        [[group]]
        name = "background"
        bias = 2
        background = true
        [[add.process]]
        name = "ranked.exe"
        group = "background"
        [[add.process.thread]]
        name = "worker"
        affinity = [5]
        program = [ { forever = [ { run = "300ms" }, { sleep = "300ms" } ] } ]
    "#;
    let lossy = Simulated::of_text("ranks-and-lost-events", scenario, &[]);
    let mut processes = list(&lossy.truth, "processes").iter();
    let truth = processes.find(|process| process["name"] == "ranked.exe");
    let truth_ns = number(truth.unwrap(), "cpu_ns");
    let explained = Explained::new(&lossy.trace);
    let found = explained.by_theory("outranked");
    let ranked_ns = sum(&column(&found, "cpu_ns"));
    assert!(
        truth_ns / 2 < ranked_ns && ranked_ns <= truth_ns,
        "{ranked_ns}, not {truth_ns}"
    );
}

/// Checks that a gap in a trace makes no false waits. Four megabytes (about four seconds) during the long
/// wait are overwritten or cut out. No counter shows that events are lost.
#[test]
fn a_gap_makes_no_waits() {
    let stall = Simulated::new("rank-stall", &[]);
    let whole = Explained::new(&stall.trace);
    let bytes = std::fs::read(&stall.trace).unwrap();
    let hole = [&bytes[..12_000_000], &[0; 4_000_000], &bytes[16_000_000..]].concat();
    let cut = [&bytes[..12_000_000], &bytes[16_000_123..]].concat();
    for part in [hole, cut] {
        std::fs::write(&stall.trace, part).unwrap();
        let explained = Explained::new(&stall.trace);
        assert_of(&whole, "capture", &complaints(&explained));
        let first = text(&explained.findings()[0]["sentence"]);
        assert!(first.contains("LockApp.exe"), "{first}");
    }
}

/// Checks a thread that seems to run before it was readied, because two CPUs have different clocks. The thread's next
/// run must not count as the end of the wait.
#[test]
fn clocks_that_disagree_make_no_waits_of_a_busy_machine() {
    for seed in ["seed=1", "seed=2", "seed=3"] {
        let whole = Simulated::new("rank-stall", &[seed]);
        let skewed = Simulated::new("rank-stall", &[SKEW, seed]);
        let explained = Explained::new(&skewed.trace);
        let whole = Explained::new(&whole.trace);
        assert_of(&whole, "clocks", &complaints(&explained));
        for found in explained.by_theory("clocks") {
            let sentence = text(&found["sentence"]);
            let (_, by) = sentence.split_once("CPU 4's clock is ahead by ").unwrap();
            assert!(
                by.starts_with("5.0 ms") || by.starts_with("4."),
                "{sentence}"
            );
        }
        let first = &explained.findings()[0];
        let (readied_ns, ran_ns) = longest_wait(&skewed, "LockApp.exe");
        let delay_ns = number(&first["delay"], "ns");
        let off = (delay_ns - (ran_ns - readied_ns)).abs();
        assert!(off <= 20_000_000, "{seed}: {delay_ns}");
    }
}

/// Checks the priority of a starved thread. Windows raises the thread to priority 15 at the end of its wait.
/// If clocks disagree, priority 15 must not be reported as the priority during the wait.
#[test]
fn a_starved_thread_has_its_own_priority_by_any_clock() {
    let skew = r#"trouble.skew=[{cpu=4,ahead="5ms"},{cpu=5,ahead="20ms",from="5s"}]"#;
    let starved = Simulated::new("priority-starved", &[skew, "duration=12s"]);
    let explained = Explained::new(&starved.trace);
    for found in explained.by_theory("long-waits") {
        let sentence = text(&found["sentence"]);
        assert!(!sentence.contains("priority 15"), "{sentence}");
        assert!(
            !sentence.contains("the dispatcher looks only"),
            "{sentence}"
        );
    }
}

/// Checks that the finding about CPU time mentions a clock jump of 20 ms within a run.
#[test]
fn cpu_time_of_skewed_clocks_is_doubted() {
    let trouble = Simulated::new("clock-trouble", &[]);
    let explained = Explained::new(&trouble.trace);
    let used = &explained.by_theory("cpu-use")[..1];
    let (names, times) = (column(used, "process"), column(used, "cpu_ns"));
    let mut off = 0;
    for (name, ns) in names.iter().zip(&times) {
        let mut of_truth = list(&trouble.truth, "processes").iter();
        let of_truth = of_truth.find(|process| {
            text(name) == format!("{} ({})", text(&process["name"]), process["id"])
        });
        off += (ns.as_i64().unwrap() - number(of_truth.unwrap(), "cpu_ns")).abs();
    }
    assert!((15_000_000..25_000_000).contains(&off), "{off}");
    let doubts = used[0]["doubts"].to_string();
    assert!(doubts.contains("clocks disagree by 20.0 ms"), "{doubts}");
}

/// Checks a trace without events about ready threads. The answer about waits must be *not recorded*.
#[test]
fn unrecorded_waits_are_reported_as_not_recorded() {
    let less = r#"record.kernel=["PROC_THREAD","LOADER","CSWITCH","PROFILE"]"#;
    let pinned = Simulated::new("affinity-pinned", &[less, "duration=6s"]);
    let explained = Explained::new(&pinned.trace);
    let mut theories = list(&explained.explanation, "theories").iter();
    let waits = theories.find(|verdict| verdict["theory"] == "long-waits");
    let because = text(&waits.unwrap()["because"]);
    assert!(because.contains("are not recorded"), "{because}");
}

/// Checks that threads of one program that starve until the end of the trace are reported as one finding.
#[test]
fn threads_that_still_wait_are_one_finding() {
    let scenario = r#"
        extends = "priority-starved"
        title = "Twelve threads of a low priority starve until the end"
        duration = "4s"
        [[add.process]]
        name = "indexer.exe"
        class = "below-normal"
        [[add.process.thread]]
        name = "index"
        count = 12
        program = [ { until = "1500ms" }, { run = "400ms" }, { until = "1h" } ]
    "#;
    let starved = Simulated::of_text("starved", scenario, &[]);
    let explained = Explained::new(&starved.trace);
    let of_it: Vec<&Value> = (explained.by_theory("long-waits").into_iter())
        .filter(|found| text(&found["sentence"]).contains("of indexer.exe"))
        .collect();
    assert_eq!(of_it.len(), 1, "{of_it:#?}");
    // Other processes that wait for the same program are rows, too.
    assert!(column(&of_it, "since_ns").len() >= 12);
    let sentence = text(&of_it[0]["sentence"]);
    assert!(sentence.contains("11 more such waits"), "{sentence}");
}
