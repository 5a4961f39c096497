//! `laglab explain`: that its queries give what it shows, that nothing is found where nothing is
//! wrong, and its figures against the truth of scenarios and real traces.

mod explained;
mod program;
mod simulated;

use std::collections::BTreeMap;

use explained::Explained;
use serde_json::Value;
use simulated::{Simulated, list, number};

/// Count of a kernel event in the truth of a trace, all versions.
fn count(truth: &Value, class: &str, opcode: u64) -> i64 {
    let events = list(truth, "kernel_events").iter();
    let of = events.filter(|e| e["cls"] == class && e["opcode"] == opcode);
    of.map(|e| number(e, "count")).sum()
}

/// The cells of a column of the first evidence that has it.
fn column(findings: &[&Value], name: &str) -> Vec<Value> {
    let mut all = findings
        .iter()
        .flat_map(|finding| list(finding, "evidence"));
    let place = |evidence: &Value| {
        let mut columns = list(evidence, "columns").iter();
        columns.position(|column| column["name"] == name)
    };
    let found = all.find_map(|evidence| Some((evidence, place(evidence)?)));
    let (evidence, place) = found.unwrap_or_else(|| panic!("no column {name}"));
    let rows = list(evidence, "rows").iter();
    rows.map(|row| row[place].clone()).collect()
}

fn sum(cells: &[Value]) -> i64 {
    cells.iter().map(|cell| cell.as_i64().unwrap()).sum()
}

/// Counts that an independent reader made, and that nothing is called a problem which the trace
/// cannot tell.
#[test]
fn real_traces_are_explained_by_what_is_in_them() {
    let (mut with_samples, mut with_disk) = (0, 0);
    for (path, truth) in testdata::traces() {
        let name = path.trim_start_matches("etl/");
        let explained = Explained::new(name, &[]);
        assert_eq!(
            explained.report["info"]["trace"]["events"], truth["total_events"],
            "{name}"
        );
        let samples = count(&truth, "PerfInfo", 46);
        if samples > 0 {
            let of = explained.of("cpu-use");
            let found = sum(&column(&of, "busy")) + sum(&column(&of, "idle"));
            assert_eq!(found, samples, "{name}: samples");
            with_samples += 1;
        }
        if count(&truth, "Thread", 36) == 0 {
            for theory in ["outranked", "saturation", "quantum", "suspended", "clocks"] {
                assert_eq!(explained.judgement(theory), "not_recorded", "{name}");
            }
        }
        let requests: i64 = [10, 11, 14]
            .map(|op| count(&truth, "DiskIo", op))
            .iter()
            .sum();
        assert_eq!(
            explained.judgement("disks") == "not_recorded",
            requests == 0,
            "{name}"
        );
        with_disk += u32::from(requests > 0);
        let faults = count(&truth, "PageFault", 32);
        assert_eq!(
            explained.judgement("hard-faults") == "not_recorded",
            faults == 0,
            "{name}"
        );
        #[cfg(feature = "sql")]
        explained.check_queries(&[]);
    }
    assert!(
        with_samples > 2 && with_disk > 1,
        "the data shows too little"
    );
}

#[test]
fn nothing_is_wrong_where_nothing_is() {
    for seed in ["1", "2", "3"] {
        let healthy = Simulated::new("healthy", &["--seed", seed]);
        let explained = Explained::new(&healthy.trace, &["--symbols", &healthy.symbols]);
        assert_eq!(explained.complaints(), [""; 0], "seed {seed}");
        #[cfg(feature = "sql")]
        explained.check_queries(&["--symbols", &healthy.symbols]);
    }
}

/// Units of the program with the focus, and of others.
#[test]
fn quanta_are_those_of_the_setting() {
    for (scenario, with_focus, without, setting) in [
        ("foreground-boost", 18, 6, "0x2, 0x26"),
        ("foreground-boost-0x14", 12, 12, "0x14"),
        ("foreground-boost-0x28", 18, 18, "0x28, 0x29, 0x2A"),
    ] {
        let desktop = Simulated::new(scenario, &["--duration", "5s"]);
        let explained = Explained::new(&desktop.trace, &[]);
        let of = explained.of("quantum");
        let (names, units) = (column(&of, "process"), column(&of, "units"));
        // Of each process the length of most turns, which comes first.
        let mut seen = BTreeMap::new();
        for (name, units) in names.iter().zip(&units) {
            seen.entry(name.as_str().unwrap()).or_insert(units);
        }
        let mut compared = 0;
        for process in list(&desktop.truth["quantum"], "processes") {
            let (name, id) = (process["name"].as_str().unwrap(), &process["id"]);
            let told = number(process, "units");
            assert_eq!(
                told,
                if name == "game.exe" {
                    with_focus
                } else {
                    without
                }
            );
            if let Some(units) = seen.get(format!("{name} ({id})").as_str()) {
                assert_eq!(**units, told, "{scenario}: {process}");
                compared += 1;
            }
        }
        assert!(compared >= 4, "{scenario}: {compared}");
        let sentence = of[0]["sentence"].as_str().unwrap();
        assert!(sentence.contains(setting), "{sentence}");
        #[cfg(feature = "sql")]
        explained.check_queries(&[]);
    }
}

#[test]
fn a_freeze_is_found_and_what_it_cost() {
    let frozen = Simulated::new("frozen", &[]);
    let moments = list(&frozen.truth, "moments").iter();
    let at = |what: &str| {
        let mut of = moments.clone().filter(|moment| moment["what"] == what);
        number(of.next().unwrap(), "at_ns")
    };
    let (froze, thawed) = (at("freeze"), at("thaw"));
    let thread = &list(&frozen.truth, "watched_threads");
    let watched = thread
        .iter()
        .find(|thread| thread["process"].to_string().contains("Calculator.exe"));
    let suspended = list(watched.unwrap(), "longest_waits").iter();
    let suspended = suspended.filter(|wait| wait["reason"].to_string().contains("Suspended"));
    let lost = suspended
        .map(|wait| number(wait, "waited_ns"))
        .max()
        .unwrap();

    let explained = Explained::new(&frozen.trace, &[]);
    let first = &explained.findings()[0];
    assert_eq!(first["theory"], "frozen");
    assert_eq!(first["severity"], "problem");
    let evidence = &list(first, "evidence")[0]["rows"][0];
    // The service that freezes logs it right before, and that it thaws right after.
    for (cell, truth) in [(1, froze), (2, thawed)] {
        let off = evidence[cell].as_i64().unwrap() - truth;
        assert!(off.abs() < 10_000, "{evidence} is {off} ns off");
    }
    let cost = number(&first["loss"], "lost_ns");
    assert!((cost - lost).abs() < 100_000, "{cost}, not {lost}");
    #[cfg(feature = "sql")]
    explained.check_queries(&[]);
}

#[test]
fn what_is_lost_and_clocks_that_disagree_are_said() {
    let lost = Simulated::new("lost-events", &[]);
    let explained = Explained::new(&lost.trace, &[]);
    let of = explained.of("capture");
    let (kinds, counts) = (column(&of, "kind"), column(&of, "lost"));
    let place = kinds.iter().position(|kind| kind == "events_lost").unwrap();
    assert_eq!(counts[place], lost.truth["events_lost"]);
    #[cfg(feature = "sql")]
    explained.check_queries(&[]);

    let clocks = Simulated::new("clock-trouble", &[]);
    let explained = Explained::new(&clocks.trace, &[]);
    let of = explained.of("clocks");
    assert_eq!(of.len(), 1);
    // Processor 5 is the one that is 20 ms ahead of most.
    let ahead = column(&of, "ahead_ns");
    let most = (0..ahead.len()).max_by_key(|row| ahead[*row].as_i64());
    assert_eq!(column(&of, "readying_cpu")[most.unwrap()], 5);
    for ns in ahead {
        assert!(ns.as_i64().unwrap() <= 20_000_000);
    }
    #[cfg(feature = "sql")]
    explained.check_queries(&[]);
}

#[test]
fn saturation_is_who_ran_and_when() {
    let starved = Simulated::new("priority-starved", &[]);
    let explained = Explained::new(&starved.trace, &[]);
    let of = explained.of("saturation");
    assert_eq!(of.len(), 1);
    // "A renderer keeps all eight processors busy at priority 8 from 1 s to 17 s."
    let during = &of[0]["during"];
    let (start, end) = (number(during, "start"), number(during, "end"));
    assert!((start - 1_000_000_000).abs() < 200_000_000, "{start}");
    assert!((end - 17_000_000_000).abs() < 200_000_000, "{end}");
    assert!(
        column(&of, "process")[0]
            .as_str()
            .unwrap()
            .starts_with("blender.exe")
    );
    assert_eq!(column(&of, "priority")[0], 8);
    #[cfg(feature = "sql")]
    explained.check_queries(&[]);
}

#[test]
fn cpu_time_by_process_is_the_truths() {
    let stall = Simulated::new("rank-stall", &[]);
    let explained = Explained::new(&stall.trace, &[]);
    let of = explained.of("cpu-use");
    let names = column(&of, "process");
    let times = column(&of, "cpu_ns");
    assert!(names.len() > 5);
    for (name, ns) in names.iter().zip(&times) {
        let name = name.as_str().unwrap();
        let of_truth = list(&stall.truth, "processes").iter().find(|process| {
            name == format!("{} ({})", process["name"].as_str().unwrap(), process["id"])
        });
        // Switches tell of interrupts too, which the truth leaves out of a process's time.
        let told = number(of_truth.unwrap(), "cpu_ns");
        let off = ns.as_i64().unwrap() - told;
        assert!((0..told / 20).contains(&off), "{name}: {ns}, not {told}");
    }
    // It sleeps for about 16 s.
    let asleep = explained.of("suspended");
    let silent = sum(&column(&asleep, "silent_ns"));
    assert!((silent - 15_550_000_000).abs() < 500_000_000, "{silent}");
    #[cfg(feature = "sql")]
    explained.check_queries(&[]);
}

/// What each scenario is about comes first: the theory that finds it, or none above information.
const CAUSES: &[(&str, Option<&str>)] = &[
    ("affinity-pinned", Some("long-waits")),
    ("busy-wait-resume", Some("busy-waiting")),
    ("clock-trouble", Some("clocks")),
    ("dpc-flood-no-teaming", Some("locked-cpus")),
    ("dpc-flood-teaming", Some("locked-cpus")),
    ("dscp-marked", None),
    ("frozen", Some("frozen")),
    ("healthy", None),
    ("lost-events", Some("capture")),
    ("priority-starved", Some("long-waits")),
    ("rank-stall", Some("long-waits")),
    ("rank-walk", None),
    ("rss-300kbps", None),
    ("smb-signing-off", None),
    ("smb-signing-on", Some("smb-security")),
    ("stack-paged-out", Some("long-waits")),
    ("timer-global", None),
    ("timer-occluded", Some("timers")),
    ("timer-own", None),
    ("usb-amdxhc31", None),
    ("usb-wdf01000", None),
];

#[test]
fn what_a_scenario_is_about_comes_first_and_queries_give_what_is_shown() {
    for (n, (scenario, cause)) in (7..).zip(CAUSES) {
        let simulated = Simulated::new(scenario, &["--seed", &n.to_string()]);
        let symbols = ["--symbols", &simulated.symbols];
        let explained = Explained::new(&simulated.trace, &symbols);
        let first = &explained.findings()[0];
        match cause {
            Some(cause) => {
                assert_eq!(first["theory"], *cause, "{scenario}: {first:#}");
                assert_ne!(first["severity"], "information", "{scenario}: {first:#}");
            }
            None => assert_eq!(explained.complaints(), [""; 0], "{scenario}"),
        }
        #[cfg(feature = "sql")]
        explained.check_queries(&symbols);
    }
}
