//! Tests of the named causes: interrupts, busy waiting, timers and the network. The reported causes are
//! compared with the truth files of simulations.

use std::collections::BTreeMap;

use explain::Scope;
use serde_json::Value;
use simulated::{Simulated, list, number, sums, text};

use super::explained::{Explained, during};

/// Explains a simulated trace with its symbols.
fn explained(trace: &Simulated) -> Value {
    Explained::with_symbols(trace, Scope::default()).explanation
}

/// Returns the findings of a theory.
fn found<'e>(explanation: &'e Value, theory: &str) -> Vec<&'e Value> {
    let findings = list(explanation, "findings").iter();
    findings
        .filter(|finding| finding["theory"] == theory)
        .collect()
}

/// Returns the judgement of a theory about the trace.
fn judgement(explanation: &Value, theory: &str) -> String {
    let mut theories = list(explanation, "theories").iter();
    let verdict = theories
        .find(|verdict| verdict["theory"] == theory)
        .unwrap();
    text(&verdict["judgement"])
}

/// Returns the rows of the first evidence whose title contains `title`. Each row is an object with a value
/// for each column.
fn rows(finding: &Value, title: &str) -> Vec<Value> {
    let evidence = list(finding, "evidence").iter();
    let mut evidence = evidence.filter(|evidence| text(&evidence["title"]).contains(title));
    let evidence = evidence
        .next()
        .unwrap_or_else(|| panic!("no {title} in {finding}"));
    let names = list(evidence, "columns").iter().map(|c| text(&c["name"]));
    let names: Vec<String> = names.collect();
    let rows = list(evidence, "rows").iter().map(|row| {
        let cells = names.iter().cloned().zip(row.as_array().unwrap().clone());
        Value::Object(cells.collect())
    });
    rows.collect()
}

fn real(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap()
}

#[track_caller]
fn assert_near(found: f64, expected: f64, share: f64) {
    assert!(
        (found - expected).abs() <= share * expected,
        "{found}, not {expected} within {share}"
    );
}

/// Returns the sums of the truth file for the routines in a time range, by kind and name. The sums are the number of
/// runs and the duration in nanoseconds. The truth file does not distinguish message-signalled interrupts.
fn told(window: &Value) -> BTreeMap<(String, String), [i64; 2]> {
    let all = list(window, "routines").iter();
    let all = all.filter(|routine| routine["cpu"].is_null());
    let told = all.map(|routine| {
        let sums = ["count", "exclusive_ns"].map(|key| number(routine, key));
        ((text(&routine["kind"]), text(&routine["routine"])), sums)
    });
    told.collect()
}

/// Returns rows of evidence by kind and name, in the same form as [`told`] for the truth file.
fn shown(rows: &[Value]) -> BTreeMap<(String, String), [i64; 2]> {
    let shown = rows.iter().map(|row| {
        let kind = text(&row["kind"]).replace("msi", "isr");
        let key = (kind, text(&row["function"]));
        (key, [number(row, "times"), number(row, "exclusive_ns")])
    });
    shown.collect()
}

/// Checks ten seconds of a scenario against the article "A backup server flooded by DPCs". The article gives
/// the number of DPCs of NDIS in ten seconds, and their CPU time in seconds.
#[test]
fn floods_come_first_and_are_the_published_ones() {
    for (scenario, dpcs, seconds) in [
        ("dpc-flood-teaming", 163_230, 36.8),
        ("dpc-flood-no-teaming", 55_000, 37.7),
    ] {
        let flood = Simulated::new(scenario, &[]);
        let explanation = Explained::with_symbols(&flood, during(20_000, 30_000)).explanation;
        let first = &explanation["findings"][0];
        assert_eq!(first["theory"], "locked-cpus", "{first}");
        assert_eq!(first["severity"], "problem");
        let routines = rows(first, "DPCs and ISRs that ended in this time");
        let window = flood.window("flood");
        assert_eq!(shown(&routines), told(window), "{scenario}");
        assert_eq!(routines[0]["function"], "ndis.sys!ndisInterruptDpc");
        assert_eq!(number(&routines[0], "times"), dpcs);
        assert_near(
            number(&routines[0], "exclusive_ns") as f64 / 1e9,
            seconds,
            0.005,
        );
        let cpus = rows(first, "by CPU");
        let locked = cpus.iter().filter(|cpu| real(cpu, "share") > 80.0);
        let mut locked: Vec<i64> = locked.map(|cpu| number(cpu, "cpu")).collect();
        locked.sort_unstable();
        assert_eq!(locked, [0, 2, 4, 6]);
        let sentence = text(&first["sentence"]);
        assert!(sentence.contains("CPUs 0, 2, 4 and 6"), "{sentence}");
        let delay_ns = number(&first["delay"], "ns");
        assert_near(delay_ns as f64, 10e9, 0.02);
        let mean_ns = real(&routines[0], "mean_ns");
        assert_near(mean_ns / 1e9, seconds / dpcs as f64, 0.005);

        // Without a time range, `explain` finds the time of the flood itself. In the scenario, the flood
        // starts at 17 s.
        let explanation = explained(&flood);
        let first = &explanation["findings"][0];
        assert_eq!(first["theory"], "locked-cpus", "{first}");
        let from_ns = number(&first["during"], "start");
        assert!(
            (16_800_000_000..=17_200_000_000).contains(&from_ns),
            "{first}"
        );

        // Checks the modules in which DPCs spent their time. The tolerance of 1 percentage point is four
        // standard deviations of a share of the samples. storport.sys is left out, because most of its
        // samples were on other CPUs.
        let inside = rows(first, "Modules inside these routines");
        let functions = list(window, "functions").iter();
        let mut modules = sums(functions, "cpu_ns", |row| module(&text(&row["function"])));
        modules.remove("storport.sys");
        let all: i64 = modules.values().sum();
        for row in inside.iter().take(3) {
            let of_module = modules[&text(&row["module"])];
            let share = 100.0 * of_module as f64 / all as f64;
            assert!((real(row, "share") - share).abs() < 1.0, "{row} {share}");
        }
    }
}

/// Returns the module of a name such as `module!function`.
fn module(name: &str) -> String {
    name.split('!').next().unwrap_or(name).to_owned()
}

#[test]
fn traffic_that_is_served_well_locks_no_cpu() {
    for scenario in ["dpc-flood-no-ids", "dpc-flood-scaled-out"] {
        let server = Simulated::new(scenario, &[]);
        let explanation = explained(&server);
        assert_eq!(
            judgement(&explanation, "locked-cpus"),
            "against",
            "{scenario}"
        );
        let findings = list(&explanation, "findings").iter();
        for finding in findings.filter(|finding| finding["severity"] != "information") {
            let sentence = text(&finding["sentence"]);
            assert!(!sentence.contains("storport.sys"), "{sentence}");
        }
    }
}

/// Checks figures of the article "Low throughput when copying files": 80 Mb/s instead of 400 Mb/s, and CPU
/// time in cng.sys.
#[test]
fn signing_is_named_before_the_flood_that_it_makes() {
    let copy = Simulated::new("smb-signing-on", &[]);
    let explanation = explained(&copy);
    let first = &explanation["findings"][0];
    assert_eq!(first["theory"], "smb-security", "{first}");
    assert_eq!(first["severity"], "problem");
    // The CPU that signing locks must not be a second problem, and interrupts of the adapter must not be
    // blamed.
    let findings = list(&explanation, "findings").iter();
    let problems = findings.filter(|finding| finding["severity"] == "problem");
    assert_eq!(problems.count(), 1);
    let mut findings = list(&explanation, "findings").iter();
    let locked = findings.find(|finding| finding["theory"] == "locked-cpus");
    let remedies = locked.unwrap()["remedies"].to_string();
    assert!(!remedies.contains("RSS"), "{remedies}");
    let moved = &rows(first, "Data that SMB moved")[0];
    let received = number(&list(&copy.truth, "flows")[0], "received_bytes");
    assert_eq!(number(moved, "size_bytes"), received);
    assert_near(real(moved, "bits_per_second") / 1e6, 80.0, 0.02);
    let functions = list(copy.window("trace"), "functions").iter();
    let in_dpcs = functions.filter(|function| function["kind"] == "dpc");
    let in_dpcs = sums(in_dpcs, "cpu_ns", |row| module(&text(&row["function"])));
    let share = 100.0 * in_dpcs["cng.sys"] as f64 / in_dpcs.values().sum::<i64>() as f64;
    let inside = &rows(first, "inside DPCs")[0];
    assert_eq!(inside["module"], "cng.sys");
    assert!(
        (real(inside, "share") - share).abs() < 1.0,
        "{inside} {share}"
    );
    let remedies = list(first, "remedies").iter();
    let remedies: Vec<String> = remedies.map(|remedy| text(remedy).to_lowercase()).collect();
    assert!(!remedies.is_empty());
    assert!(!remedies.iter().any(|remedy| remedy.contains("disable")));

    let copy = Simulated::new("smb-signing-off", &[]);
    let explanation = explained(&copy);
    assert_eq!(judgement(&explanation, "smb-security"), "against");
    assert_eq!(judgement(&explanation, "locked-cpus"), "against");
}

/// Checks that a delay is counted once. Long DPCs, and the CPUs that they lock, are symptoms of the DPCs'
/// cause.
#[test]
fn long_dpcs_that_lock_a_cpu_are_its_symptoms() {
    for (scenario, root, symptoms) in [
        (
            "smb-signing-on",
            "smb-security",
            vec!["locked-cpus", "long-interrupts"],
        ),
        ("dpc-flood-teaming", "locked-cpus", vec!["long-interrupts"]),
    ] {
        let explanation = explained(&Simulated::new(scenario, &[]));
        let first = &explanation["findings"][0];
        assert_eq!(first["theory"], root);
        let why: Vec<String> = list(first, "why").iter().map(text).collect();
        for theory in symptoms {
            let symptom = found(&explanation, theory)[0];
            assert_eq!(symptom["severity"], "information", "{scenario}: {symptom}");
            let sentence = text(&symptom["sentence"]);
            assert!(why.iter().any(|why| why.contains(&sentence)), "{why:?}");
        }
    }
}

/// Compares the USB drivers of Microsoft and of the vendor. Their interrupts are equal. The durations of
/// their DPCs differ, but all are within the limit.
#[test]
fn longer_dpcs_within_the_limit_are_no_problem() {
    let mut means = Vec::new();
    for (scenario, driver) in [
        ("usb-wdf01000", "Wdf01000.sys"),
        ("usb-amdxhc31", "amdxhc31.sys"),
    ] {
        let mouse = Simulated::new(scenario, &[]);
        let explanation = explained(&mouse);
        let mut theories = list(&explanation, "theories").iter();
        let verdict = theories.find(|verdict| verdict["theory"] == "long-interrupts");
        let verdict = verdict.unwrap();
        assert_eq!(verdict["judgement"], "against", "{verdict}");
        let routines = rows(verdict, "DPCs and ISRs");
        assert_eq!(shown(&routines), told(mouse.window("trace")), "{scenario}");
        assert_eq!(routines[0]["module"], driver);
        means.push(real(&routines[0], "mean_ns"));
    }
    assert!(means[0] > 2.0 * means[1], "{means:?}");
}

/// Checks a figure of "What Outranks Thread Priority?": after resume, i8042prt.sys waits in a loop for 700
/// ms.
#[test]
fn busy_waiting_drivers_are_named_with_their_time() {
    let resume = Simulated::new("busy-wait-resume", &[]);
    let truth = list(&resume.truth, "threads").iter();
    let truth = truth.filter(|thread| text(&thread["name"]).starts_with("power up "));
    let truth: BTreeMap<i64, i64> = truth
        .map(|thread| (number(thread, "thread_id"), number(thread, "cpu_ns")))
        .collect();
    let explanation = explained(&resume);
    let with_symbols = found(&explanation, "busy-waiting");
    assert_eq!(with_symbols.len(), 3);
    assert_eq!(with_symbols[0]["severity"], "problem");
    let sentence = text(&with_symbols[0]["sentence"]);
    assert!(
        sentence.starts_with("i8042prt.sys kept CPUs in a wait loop for 7"),
        "{sentence}"
    );
    let without = Explained::new(&resume.trace).explanation;
    let likely = found(&without, "busy-waiting");
    assert_eq!(likely.len(), 3);
    for (finding, severity) in with_symbols
        .iter()
        .map(|finding| (*finding, "problem"))
        .chain(likely.iter().map(|finding| (*finding, "warning")))
    {
        assert_eq!(finding["severity"], severity);
        let thread = &rows(finding, "by thread")[0];
        assert_eq!(thread["process"], "System (4)");
        let cpu_ns = truth[&number(thread, "thread_id")];
        // The tolerance of 2 % covers one sample at the start, one sample at the end, and 60 µs of other work
        // between two waits.
        assert_near(number(thread, "waited_ns") as f64, cpu_ns as f64, 0.02);
        assert_near(number(&finding["delay"], "ns") as f64, cpu_ns as f64, 0.02);
    }
    let likely = text(&likely[0]["sentence"]);
    assert!(
        likely.starts_with("i8042prt.sys probably kept CPUs in a wait loop"),
        "{likely}"
    );
}

/// Checks that Sleep(1) takes as long as PC-Tuning measured, and that each duration has the right cause.
#[test]
fn short_sleeps_have_the_right_cause() {
    for (scenario, severity, because) in [
        ("timer-own", "information", "and got it"),
        (
            "timer-foreign",
            "information",
            "only for the process that made it",
        ),
        ("timer-global", "information", "lets requests count for all"),
        ("timer-occluded", "warning", "neither visible nor audible"),
    ] {
        let sleep = Simulated::new(scenario, &[]);
        let measured = &list(&sleep.truth, "measured")[0];
        let explanation = explained(&sleep);
        let findings = found(&explanation, "timers");
        let of_it = findings.iter().find(|finding| {
            let sentence = text(&finding["sentence"]);
            sentence.starts_with("MeasureSleep.exe") && sentence.contains(because)
        });
        let finding = of_it.unwrap_or_else(|| panic!("{scenario}: {findings:#?}"));
        assert_eq!(finding["severity"], severity, "{scenario}");
        let sleeps = &rows(finding, "Sleeps shorter")[0];
        assert_eq!(
            real(sleeps, "median_ns") as i64,
            number(measured, "median_ns")
        );
        assert_eq!(number(sleeps, "shortest_ns"), number(measured, "min_ns"));
        // The last sleep may not be complete when the trace ends, so one sleep may be missing.
        let difference = number(sleeps, "sleeps") - number(measured, "count");
        assert!(difference.abs() <= 1, "{sleeps} {measured}");
        let request = &rows(finding, "The request")[0];
        assert_eq!(number(request, "finest_ns"), 500_000);
    }
}

#[test]
fn marks_are_reported_and_not_judged() {
    for (scenario, mark) in [("dscp-marked", 46), ("dscp-bleached", 0)] {
        let game = Simulated::new(scenario, &[]);
        let explanation = explained(&game);
        let marking = found(&explanation, "packet-marking");
        assert_eq!(marking.len(), 1);
        assert_eq!(marking[0]["severity"], "information");
        let sent = rows(marking[0], "Packets sent");
        let flow = &list(&game.truth, "flows")[0];
        let marks = sent
            .iter()
            .map(|row| (row["dscp"].to_string(), row["packets"].clone()));
        let marks = Value::Object(marks.collect());
        assert_eq!(marks, flow["sent_by_dscp"], "{scenario}");
        assert_eq!(sent[0]["dscp"], mark);
        assert!(text(&sent[0]["process"]).starts_with("game.exe"));
    }
}

/// Checks figures of the article "How many RSS Queues do you need?": the packets of a game are received on
/// one CPU, the packets of many streams on two CPUs.
#[test]
fn receiving_is_spread_as_the_flows_are() {
    for (scenario, cpus) in [("rss-300kbps", vec![1]), ("rss-1gbps", vec![0, 1])] {
        let game = Simulated::new(scenario, &[]);
        let explanation = explained(&game);
        let spread = found(&explanation, "receive-spread");
        let by_cpu = rows(spread[0], "by CPU");
        let mut served: Vec<i64> = by_cpu.iter().map(|row| number(row, "cpu")).collect();
        served.sort_unstable();
        assert_eq!(served, cpus, "{scenario}");
        let flow = &list(&game.truth, "flows")[0];
        let received = flow["received_by_cpu"].as_object().unwrap();
        assert_eq!(received.len(), cpus.len());

        let throughput = found(&explanation, "network-throughput");
        let process = &rows(throughput[0], "by process")[0];
        assert_eq!(
            number(process, "received_bytes"),
            number(flow, "received_bytes")
        );
        assert!(text(&process["process"]).starts_with("game.exe"));
    }
}

#[test]
fn a_healthy_desktop_gives_no_alarm() {
    for seed in ["1", "2", "3"] {
        let healthy = Simulated::new("healthy", &[&format!("seed={seed}")]);
        let explained = Explained::with_symbols(&healthy, Scope::default());
        assert_eq!(explained.complaints(), [""; 0], "seed {seed}");
        for theory in [
            "locked-cpus",
            "long-interrupts",
            "busy-waiting",
            "timers",
            "smb-security",
            "receive-spread",
            "packet-marking",
        ] {
            assert_ne!(explained.judgement(theory), "for", "{theory}, seed {seed}");
        }
    }
}
