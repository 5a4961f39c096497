//! Tests of `laglab explain`: explanations of real traces, options, and queries of evidence, which must return the
//! shown rows. The crate `explain` tests the explanations of simulated traces.

use crate::explained;
use crate::program;

use explained::Explained;
use serde_json::Value;
use simulated::{Simulated, column, list, number, sum};

/// Returns the number of events with a class and an opcode, summed over all versions. An independent reader
/// counted them.
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
            let of = explained.by_theory("cpu-use");
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

/// Checks the answer for a trace without context switches. The answer must be that the trace does not show the cause. It
/// must not claim that the machine was fine.
#[test]
fn traces_without_events_are_not_reported_as_healthy() {
    for trace in ["perfview__SelfDescribingSingleEvent.etl", "s4__SIH.etl"] {
        let text = program::text(&["explain", trace]);
        assert!(
            text.contains("does not show why the machine lagged"),
            "{text}"
        );
        assert!(!text.contains("No noticeable delay"), "{text}");
    }
}

/// Checks that the first screen fits into a small terminal and contains the most important
/// sentence.
#[test]
fn the_answer_fits_on_the_first_screen() {
    for scenario in testdata::cases(sim::shipped::names()) {
        let simulated = Simulated::new(scenario, &["record.stacks=[]"]);
        let trace = simulated.trace.as_str();
        check_screen(&program::text(&["explain", trace]), scenario);
        let asked = program::text(&["explain", trace, "--from", "0", "--to", "2"]);
        check_screen(&asked, scenario);
    }
}

fn check_screen(text: &str, scenario: &str) {
    assert!(text.lines().count() <= 24, "{scenario}: {text}");
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest.unwrap() <= 100, "{scenario}: {text}");
    assert!(text.contains("   simulated   "), "{scenario}: {text}");
    let starts = ["PROBLEM 1 ", "WARNING 1 ", "NOTE 1 ", "RESULT "];
    let answer = text.lines().nth(2).unwrap();
    let is_answer = starts.iter().any(|start| answer.starts_with(start));
    assert!(is_answer, "{scenario}: {text}");
    assert!(text.lines().last().unwrap().starts_with("MORE "), "{text}");
}

/// Checks that `--why` shows one finding in full, and names the findings that exist.
#[test]
fn a_finding_is_shown_in_full_by_its_number() {
    let stall = Simulated::new("rank-stall", &[]);
    let why = program::text(&["explain", &stall.trace, "--why", "1"]);
    assert!(why.contains("LockApp.exe"), "{why}");
    // Each examined cause has an answer.
    let answers = why
        .lines()
        .map(|line| line.trim_start().split("  ").next().unwrap_or_default());
    let answers = answers.filter(|answer| ["yes", "no", "not recorded"].contains(answer));
    assert_eq!(answers.count(), 11, "{why}");
    assert!(!why.contains("indexer.exe (124), priority"), "{why}");
    for number in ["0", "99"] {
        let output = program::laglab(&["explain", &stall.trace, "--why", number]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(error.contains("there are findings 1 to "), "{error}");
    }
}

/// Checks that the short form is one line of JSON with the first finding of the whole explanation.
#[test]
fn the_brief_answer_is_short() {
    let stall = Simulated::new("rank-stall", &[]);
    let trace = stall.trace.as_str();
    let brief = program::text(&["explain", trace, "--json", "--brief"]);
    assert_eq!(brief.lines().count(), 1);
    assert!(brief.len() <= 6_000, "{} bytes", brief.len());
    let brief: Value = serde_json::from_str(&brief).unwrap();
    let whole = Explained::new(trace, &[]);
    assert_eq!(
        brief["findings"][0]["delay_ns"],
        whole.findings()[0]["delay"]["ns"]
    );
    let sentence = brief["findings"][0]["sentence"].as_str().unwrap();
    assert!(sentence.contains("“LockApp.exe”"), "{sentence}");
    let output = program::laglab(&["explain", trace, "--brief"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("add --json"), "{error}");
}

/// Checks that options limit the scope to a time range, a thread or a process.
#[test]
fn options_limit_the_scope() {
    let stall = Simulated::new("rank-stall", &[]);
    let part = Explained::new(&stall.trace, &["--from", "11", "--to", "26"]);
    let (from, to) = (11_000_000_000, 26_000_000_000);
    let all = part.findings().iter();
    let in_scope: Vec<&Value> = all.filter(|found| found["off_topic"] != true).collect();
    assert!(!in_scope.is_empty() && in_scope.len() < part.findings().len());
    for found in in_scope {
        let during = &found["during"];
        let meets = number(during, "start") < to && from < number(during, "end");
        assert!(meets, "{found}");
    }

    let mut threads = list(&stall.truth, "watched_threads").iter();
    let thread = threads.find(|thread| thread["process"]["name"] == "LockApp.exe");
    let thread = thread.unwrap();
    let wait = &list(thread, "longest_ready_waits")[0];
    let middle = i64::midpoint(number(wait, "readied_ns"), number(wait, "ran_ns"));
    let (id, at) = (thread["thread_id"].to_string(), format!("{middle}ns"));
    for asked in [["--thread", &id], ["--process", "lockapp"]] {
        let explained = Explained::new(&stall.trace, &[&asked[..], &["--at", &at]].concat());
        let first = &explained.findings()[0];
        let sentence = first["sentence"].as_str().unwrap();
        assert!(sentence.contains("LockApp.exe"), "{asked:?}: {sentence}");
        assert_eq!(column(&[first], "ready_from_ns")[0], wait["readied_ns"]);
        assert_eq!(column(&[first], "start_ns")[0], wait["ran_ns"]);
    }

    let asked = ["--between-focus", "logonui", "LockApp"];
    let explained = Explained::new(&stall.trace, &asked);
    let path = explained.by_theory("long-waits").into_iter().find(|found| {
        let sentence = found["sentence"].as_str().unwrap();
        sentence.starts_with("Critical path")
    });
    let moments = list(&stall.truth, "moments").iter();
    let focus: Vec<&Value> = moments.filter(|moment| moment["what"] == "focus").collect();
    let is_of = |moment: &&Value, process: &str| moment["process"]["name"] == process;
    let to = focus.iter().position(|moment| is_of(moment, "LockApp.exe"));
    let to = to.unwrap();
    let from = focus[..to]
        .iter()
        .rfind(|moment| is_of(moment, "LogonUI.exe"));
    let during = &path.unwrap()["during"];
    assert_eq!(during["start"], from.unwrap()["at_ns"]);
    assert_eq!(during["end"], focus[to]["at_ns"]);
}

/// All processors are busy from 30.4 s to 49.8 s. Trims the trace to a part of this time, and checks that the
/// explanation of the part also reports busy processors.
#[test]
fn a_part_of_a_trace_is_as_busy_as_it_was() {
    let stall = Simulated::new("rank-stall", &[]);
    let watched = list(&stall.truth, "watched_threads").iter();
    let waits = watched.flat_map(|thread| list(thread, "longest_ready_waits"));
    let longest = waits.max_by_key(|wait| number(wait, "ready_ns")).unwrap();
    let (readied_ns, ran_ns) = (number(longest, "readied_ns"), number(longest, "ran_ns"));
    assert!(readied_ns < 31_000_000_000 && ran_ns > 33_000_000_000);
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("part.etl");
    let part = part.to_str().unwrap();
    program::text(&[
        "trim",
        &stall.trace,
        "-o",
        part,
        "--from",
        "31",
        "--to",
        "33",
    ]);
    let explained = Explained::new(part, &["--no-cache"]);
    assert_eq!(explained.judgement("suspended"), "against");
    let span = &explained.report["explanation"]["span"];
    let span = number(span, "start")..number(span, "end");
    assert!((span.start - 31_000_000_000).abs() < 20_000_000, "{span:?}");
    assert!((span.end - 33_000_000_000).abs() < 20_000_000, "{span:?}");
    let busy = column(&explained.by_theory("cpu-use"), "busy_ns");
    let (busy, cpus) = (busy[0].as_i64().unwrap(), 8);
    let off = cpus * 2_000_000_000 - busy;
    assert!((0..busy / 100).contains(&off), "{busy}");
}

/// Tests that the queries of evidence return the shown rows.
#[cfg(feature = "sql")]
mod with_sql {
    use super::*;

    /// Supplied scenarios with all kinds of findings.
    const SCENARIOS: &[&str] = &[
        "affinity-pinned",
        "busy-wait-resume",
        "clock-trouble",
        "dpc-flood-no-teaming",
        "dpc-flood-teaming",
        "dscp-marked",
        "frozen",
        "healthy",
        "lock-convoy",
        "lost-events",
        "priority-starved",
        "rank-stall",
        "rank-walk",
        "rss-300kbps",
        "smb-signing-off",
        "smb-signing-on",
        "stack-paged-out",
        "timer-global",
        "timer-occluded",
        "timer-own",
        "usb-amdxhc31",
        "usb-wdf01000",
    ];

    fn check(simulated: &Simulated, options: &[&str]) {
        Explained::new(&simulated.trace, options).check_queries(&[]);
    }

    fn check_with_symbols(scenario: &str, seed: u32) {
        let simulated = Simulated::new(scenario, &[&format!("seed={seed}")]);
        let symbols = ["--symbols", &simulated.symbols];
        Explained::new(&simulated.trace, &symbols).check_queries(&symbols);
    }

    #[test]
    fn queries_with_names_of_functions_return_the_shown_rows() {
        let healthy = (1..=3).map(|seed| (seed, "healthy"));
        let all = (7..).zip(SCENARIOS.iter().copied()).chain(healthy);
        testdata::for_each_in_parallel(testdata::cases(all), |(seed, scenario)| {
            check_with_symbols(scenario, seed)
        });
    }

    #[test]
    fn queries_without_symbols_return_the_shown_rows() {
        for scenario in testdata::cases([
            "clock-trouble",
            "frozen",
            "lock-convoy",
            "lost-events",
            "priority-starved",
            "rank-stall",
        ]) {
            check(&Simulated::new(scenario, &[]), &[]);
        }
        for scenario in testdata::cases([
            "foreground-boost",
            "foreground-boost-0x14",
            "foreground-boost-0x28",
        ]) {
            check(&Simulated::new(scenario, &["duration=5s"]), &[]);
        }
    }

    #[test]
    fn queries_about_a_time_range_return_the_shown_rows() {
        let signing = Simulated::new("smb-signing-on", &[]);
        check(&signing, &[]);
        check(&signing, &["--from", "2", "--to", "4"]);
    }

    #[test]
    fn queries_of_a_suspended_machine_return_the_shown_rows() {
        for (scenario, at) in [("lock-convoy", "5.2s"), ("frozen", "5s")] {
            let asleep = format!(
                "extends = \"{scenario}\"\ntitle = \"Asleep\"\n[[at]]\ntime = \"{at}\"\nsuspend = \"2s\"\n"
            );
            check(&Simulated::of_text(scenario, &asleep, &[]), &[]);
        }
    }

    #[test]
    fn queries_of_responses_return_the_shown_rows() {
        let scenario = r#"
            extends = "healthy"
            title = "A window computes three times, and is then killed while it computes"
            duration = "8s"
            [process."winword.exe"]
            focus = false
            [[at]]
            time = "7900ms"
            focus = "winword.exe"
            [[add.process]]
            name = "paint.exe"
            focus = true
            [[add.process.thread]]
            name = "window"
            program = [ { repeat = 3, steps = [ { message = true }, { run = "400ms" }, { sleep = "20ms" }, { run = "300ms" } ] }, { message = true }, { run = "2s" }, { exit = true } ]
            [[add.process]]
            name = "input.exe"
            [[add.process.thread]]
            name = "poster"
            program = [ { forever = [ { sleep = "60ms" }, { post = "paint.exe" } ] } ]
        "#;
        check(&Simulated::of_text("responses", scenario, &[]), &[]);
    }

    #[test]
    fn queries_of_threads_that_still_wait_return_the_shown_rows() {
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
        check(&Simulated::of_text("starved", scenario, &[]), &[]);
    }
}

/// Checks that the advice about what to record is printed once, although many theories need the same events.
#[test]
fn what_to_record_is_said_once() {
    let said = program::text(&["explain", "filtrace__etw.etl", "--all"]);
    let not_recorded = said.matches("  not recorded  ").count();
    assert!(not_recorded > 3, "{said}");
    let advice: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("laglab record --for "))
        .collect();
    assert_eq!(advice.len(), 1, "{advice:?}");
    assert!(
        advice[0].starts_with("  To answer the questions marked as not recorded, record "),
        "{advice:?}"
    );
}
