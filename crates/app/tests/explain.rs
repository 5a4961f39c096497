//! Tests of `laglab explain`. Queries return the shown rows, healthy traces have no findings, and figures
//! match real traces and the truth files of simulations.

mod explained;
mod program;
mod simulated;

use std::collections::BTreeMap;

use explained::{Explained, column, sum};
use serde_json::Value;
use simulated::{Simulated, list, number, text};

/// Returns the number of events of all versions with a class and an opcode, as an independent reader counted
/// them.
fn count(truth: &Value, class: &str, opcode: u64) -> i64 {
    let events = list(truth, "kernel_events").iter();
    let of = events.filter(|e| e["cls"] == class && e["opcode"] == opcode);
    of.map(|e| number(e, "count")).sum()
}

/// Compares numbers of events with the counts of an independent reader. Also checks that theories whose
/// events are missing are reported as not recorded.
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

/// Checks that traces without context switches get no statement about waits.
#[test]
fn traces_without_events_are_not_reported_as_healthy() {
    for trace in ["perfview__SelfDescribingSingleEvent.etl", "s4__SIH.etl"] {
        let text = program::text(&["explain", trace]);
        assert!(text.contains("does not show why it lagged"), "{text}");
        assert!(!text.contains("No noticeable delay"), "{text}");
    }
}

/// Checks that findings within the scope come first, and that all others are marked as out of scope.
#[test]
fn findings_in_scope_come_first() {
    let stall = Simulated::new("rank-stall", &[]);
    let whole = Explained::new(&stall.trace, &[]);
    for theory in ["suspended", "outranked", "cpu-use"] {
        assert_eq!(whole.judgement(theory), "for", "{theory}");
    }
    assert!(
        whole
            .findings()
            .iter()
            .all(|found| found["off_topic"].is_null())
    );

    let (from, to) = (11_000_000_000, 26_000_000_000);
    let part = Explained::new(&stall.trace, &["--between", "11", "26"]);
    let is_off_topic: Vec<bool> = part
        .findings()
        .iter()
        .map(|f| f["off_topic"] == true)
        .collect();
    assert!(is_off_topic.is_sorted(), "{is_off_topic:?}");
    for found in part
        .findings()
        .iter()
        .filter(|found| found["off_topic"] != true)
    {
        let during = &found["during"];
        let meets = number(during, "start") < to && from < number(during, "end");
        assert!(meets, "{found}");
    }
}

#[test]
fn healthy_traces_have_no_problems() {
    for seed in ["1", "2", "3"] {
        let healthy = Simulated::new("healthy", &["--seed", seed]);
        let explained = Explained::new(&healthy.trace, &["--symbols", &healthy.symbols]);
        assert_eq!(explained.complaints(), [""; 0], "seed {seed}");
        #[cfg(feature = "sql")]
        explained.check_queries(&["--symbols", &healthy.symbols]);
    }
}

#[test]
fn freezes_are_found_with_their_cost() {
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
    // The service that freezes the program logs an event right before the freeze and right after the thaw.
    for (cell, truth) in [(1, froze), (2, thawed)] {
        let off = evidence[cell].as_i64().unwrap() - truth;
        assert!(off.abs() < 10_000, "{evidence} is {off} ns off");
    }
    let cost = number(&first["delay"], "ns");
    assert!((cost - lost).abs() < 100_000, "{cost}, not {lost}");
    #[cfg(feature = "sql")]
    explained.check_queries(&[]);
}

#[test]
fn lost_events_and_skewed_clocks_are_reported() {
    let lost = Simulated::new("lost-events", &[]);
    let explained = Explained::new(&lost.trace, &[]);
    let of = explained.of("capture");
    let (kinds, counts) = (column(&of, "kind"), column(&of, "lost"));
    let place = kinds.iter().position(|kind| kind == "events_lost").unwrap();
    assert_eq!(counts[place], lost.truth["events_lost"]);
    // CPU time of a run that seems to span the lost second is not counted, so the reported time is not larger
    // than the true one.
    let truth = list(&lost.truth, "processes").iter();
    let told: BTreeMap<String, i64> = truth
        .map(|process| {
            let name = format!("{} ({})", text(&process["name"]), number(process, "id"));
            (name, number(process, "cpu_ns"))
        })
        .collect();
    let used = explained.of("cpu-use");
    for (process, ns) in column(&used, "process").iter().zip(column(&used, "cpu_ns")) {
        let (told, ns) = (told[process.as_str().unwrap()], ns.as_i64().unwrap());
        // Tolerance of 2 %: context switches do not separate the time of a thread from the time of
        // interrupts.
        assert!(
            ns as f64 <= told as f64 * 1.02,
            "{process}: {ns}, not {told}"
        );
    }
    #[cfg(feature = "sql")]
    explained.check_queries(&[]);

    let clocks = Simulated::new("clock-trouble", &[]);
    let explained = Explained::new(&clocks.trace, &[]);
    let of = explained.of("clocks");
    assert_eq!(of.len(), 1);
    // In this scenario, the clock of processor 5 is 20 ms ahead of most others.
    let ahead = column(&of, "ahead_ns");
    let most = (0..ahead.len()).max_by_key(|row| ahead[*row].as_i64());
    assert_eq!(column(&of, "readying_cpu")[most.unwrap()], 5);
    for ns in ahead {
        assert!(ns.as_i64().unwrap() <= 20_000_000);
    }
    #[cfg(feature = "sql")]
    explained.check_queries(&[]);
}

/// Checks that advice about recording is printed once, though many theories of this trace need the same events.
#[test]
fn what_to_record_is_said_once() {
    let said = program::text(&["explain", "filtrace__etw.etl"]);
    let not_recorded = said.matches("  not recorded  ").count();
    assert!(not_recorded > 3, "{said}");
    let advice: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("laglab record --for "))
        .collect();
    assert_eq!(advice.len(), 1, "{advice:?}");
    assert!(
        advice[0].starts_with("  To answer the questions that are not recorded, record "),
        "{advice:?}"
    );
}
