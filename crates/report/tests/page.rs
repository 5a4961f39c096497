//! Checks three things: charts match the truth files of simulations, texts match the explanation, and no
//! trace can inject a script into the page.

use std::collections::BTreeMap;
use std::sync::Arc;

use explain::Scope;
use report::Explained;
use serde_json::Value;
use session::{SymbolOptions, TraceTables, Unobserved};
use simulated::{Simulated, list, number, text};
use tables::Cache;

/// Opens a trace, and explains it.
fn explained(trace: &str) -> (TraceTables, Explained) {
    let files = [testdata::path("etl").join(trace)];
    let tables = TraceTables::open(&files, Cache::Off, Arc::new(Unobserved)).unwrap();
    tables.make(&report::tables()).unwrap();
    let symbols = SymbolOptions::default();
    let (explained, _) = Explained::read(&tables, Scope::default(), &symbols).unwrap();
    (tables, explained)
}

/// Returns the report of a trace as HTML. The path is relative to the folder of the real traces.
fn page(trace: &str) -> String {
    let (tables, explained) = explained(trace);
    report::page(&tables, &explained, None, &[]).unwrap()
}

/// Returns the data of the charts in a report.
fn data(page: &str) -> Value {
    serde_json::from_str(json_of(page)).unwrap()
}

fn json_of(page: &str) -> &str {
    let (_, rest) = page.split_once("type=\"application/json\"").unwrap();
    let (_, rest) = rest.split_once('>').unwrap();
    rest.split_once("</script>").unwrap().0
}

/// Escapes text for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Sums shares of time (millionths of a bucket of `cpus` CPUs). Returns nanoseconds. The last bucket may be
/// shorter.
fn sum_ns(data: &Value, shares: &Value, cpus: usize) -> f64 {
    let (start, end) = (number(data, "start_ns"), number(data, "end_ns"));
    let bucket = number(data, "bucket_ns");
    let lengths = (0..).map(|i| bucket.min(end - start - i * bucket));
    let shares = shares
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s.as_f64().unwrap());
    let parts = shares.zip(lengths);
    parts
        .map(|(share, ns)| share / 1e6 * ns as f64 * cpus as f64)
        .sum()
}

/// Number of buckets of a chart. Shares are rounded down to millionths, so the error increases with the number of
/// buckets and CPUs.
const BUCKETS: usize = 480;

#[track_caller]
fn assert_about(found: f64, told: i64, data: &Value, cpus: usize) {
    let cut = number(data, "bucket_ns") as f64 / 1e6 * (BUCKETS * cpus) as f64;
    let told = told as f64;
    assert!(
        found <= told + 1.0 && found >= told - cut,
        "{found}, not {told}"
    );
}

#[test]
fn time_ranks_and_focus_match_the_truth() {
    let stall = Simulated::new("rank-stall", &[]);
    let page = page(&stall.trace);
    let data = data(&page);
    let cpus = list(&stall.truth, "processors").len();
    let processes = list(&stall.truth, "processes").iter();
    let cpu_ns: BTreeMap<String, i64> = processes
        .map(|process| {
            let name = format!("{} ({})", text(&process["name"]), number(process, "id"));
            (name, number(process, "cpu_ns"))
        })
        .collect();
    let layers = list(&data["processes"], "layers");
    let (mut found, mut of_interrupts) = (0, 0.0);
    for layer in layers {
        let Some(told) = cpu_ns.get(&text(&layer["name"])) else {
            continue;
        };
        // The tolerance is needed, because context switches do not separate the time of a thread from the
        // time of interrupts.
        let drawn = sum_ns(&data, &layer["shares"], cpus);
        let interrupted = (drawn - *told as f64) / *told as f64;
        assert!((-0.001..0.01).contains(&interrupted), "{layer}: not {told}");
        of_interrupts += interrupted;
        found += 1;
    }
    assert!(found == 9 && of_interrupts > 0.0, "{layers:?}");

    // The scenario is about the rank of LockApp, so the chart must show LockApp.
    let ranked = list(&data, "ranks").iter();
    let ranked: Vec<String> = ranked.map(|line| text(&line["name"])).collect();
    let watched = stall.truth["watched_threads"].as_array().unwrap().iter();
    let outranked = watched.filter(|thread| {
        let ranks = thread["ranks_at_switch_out"].to_string();
        ranks.contains("2")
    });
    for thread in outranked {
        let name = text(&thread["process"]);
        assert!(ranked.iter().any(|line| line.starts_with(&name)), "{name}");
    }
    // Process id 0 means that no process has the focus.
    let moments = list(&stall.truth, "moments").iter();
    let focus = moments.filter(|moment| moment["what"] == "focus");
    let (lost, gained): (Vec<&Value>, Vec<&Value>) =
        focus.partition(|moment| moment["process"]["id"] == 0);
    for (moments, edge) in [(gained, 1), (lost, 2)] {
        let told: Vec<i64> = moments.iter().map(|m| number(m, "at_ns")).collect();
        assert_drawn(&told, &drawn(&data, "focus", edge));
    }
    assert!(page.contains("class=\"simulated\""));

    // While the machine was suspended, no process used a CPU.
    let slept = told(&stall.truth, "resume")[0] - told(&stall.truth, "suspend")[0];
    let untold = layers.iter().find(|layer| layer["kind"] == "untold");
    let drawn = sum_ns(&data, &untold.unwrap()["shares"], cpus) / cpus as f64;
    assert!(
        (drawn - slept as f64).abs() < 0.1 * slept as f64,
        "{drawn}, not {slept}"
    );
}

#[test]
fn interrupts_match_the_truth() {
    let flood = Simulated::new("dpc-flood-no-teaming", &["duration=2s"]);
    let data = data(&page(&flood.trace));
    let (mut dpc_ns, mut dpcs) = (BTreeMap::new(), 0);
    for routine in list(flood.window("trace"), "routines") {
        // Threaded DPCs are left out, because other threads can preempt them.
        if routine["kind"] != "dpc" && routine["kind"] != "timer_dpc" {
            continue;
        }
        match routine["cpu"].as_i64() {
            Some(cpu) => *dpc_ns.entry(cpu).or_insert(0) += number(routine, "exclusive_ns"),
            None => dpcs += number(routine, "count"),
        }
    }
    let numbers = list(&data["cpus"], "numbers").iter();
    let drawn = list(&data["cpus"], "dpc");
    for (cpu, shares) in numbers.map(|cpu| cpu.as_i64().unwrap()).zip(drawn) {
        match dpc_ns.remove(&cpu) {
            Some(told) => assert_about(sum_ns(&data, shares, 1), told, &data, 1),
            None => assert!(shares.is_null(), "CPU {cpu}"),
        }
    }
    assert!(dpc_ns.is_empty());
    // Each cell has three numbers: bucket, class and count.
    let cells = list(&data["dpc_durations"], "cells").chunks(3);
    let counted: i64 = cells.map(|cell| cell[2].as_i64().unwrap()).sum();
    assert_eq!(counted, dpcs);
}

/// Returns the times of a kind of event in the truth file.
fn told(truth: &Value, what: &str) -> Vec<i64> {
    let moments = list(truth, "moments").iter();
    let of_that = moments.filter(|moment| moment["what"] == what);
    of_that.map(|moment| number(moment, "at_ns")).collect()
}

/// Returns the starts (`place` is 1) or the ends (`place` is 2) of the drawn bands.
fn drawn(data: &Value, track: &str, place: usize) -> Vec<i64> {
    let tracks = list(&data["tracks"], track).iter();
    let bands = tracks.flat_map(|track| list(track, "bands"));
    bands.map(|band| band[place].as_i64().unwrap()).collect()
}

/// Asserts that each true time is drawn. The tolerance is 100 ns, which is the resolution of times in traces.
#[track_caller]
fn assert_drawn(told: &[i64], drawn: &[i64]) {
    assert!(!told.is_empty());
    for at in told {
        let found = drawn.iter().any(|drawn| (drawn - at).abs() < 100);
        assert!(found, "{at}: {drawn:?}");
    }
}

#[test]
fn freezes_match_the_truth() {
    let frozen = Simulated::new("frozen", &[]);
    let data = data(&page(&frozen.trace));
    assert_drawn(&told(&frozen.truth, "freeze"), &drawn(&data, "freezes", 1));
    assert_drawn(&told(&frozen.truth, "thaw"), &drawn(&data, "freezes", 2));
}

#[test]
fn the_page_has_the_whole_explanation() {
    let stall = Simulated::new("rank-stall", &["duration=52s"]);
    let (tables, explained) = explained(&stall.trace);
    let page = report::page(&tables, &explained, None, &[]).unwrap();
    let explanation = &serde_json::to_value(&explained.explanation).unwrap();
    let findings = list(explanation, "findings");
    let all = |value: &'static str| findings.iter().filter_map(move |f| f[value].as_array());
    let mut said: Vec<&Value> = findings.iter().map(|found| &found["sentence"]).collect();
    said.extend(all("remedies").chain(all("doubts")).flatten());
    let mut evidence: Vec<&Value> = all("evidence").flatten().collect();
    // Findings also show the verdicts of their theories, so only other theories have a separate verdict.
    let others = list(explanation, "theories").iter();
    let others = others.filter(|theory| findings.iter().all(|f| f["theory"] != theory["theory"]));
    for verdict in all("weighed").flatten().chain(others) {
        said.extend([&verdict["question"], &verdict["because"]]);
        evidence.extend(verdict["evidence"].as_array().into_iter().flatten());
    }
    said.extend(
        evidence
            .iter()
            .flat_map(|table| [&table["title"], &table["query"]]),
    );
    assert!(said.len() > 3, "{explanation}");
    for text in said.into_iter().map(text) {
        assert!(page.contains(&escaped(&text)), "{text}");
    }
}

#[test]
fn no_name_in_a_trace_becomes_markup_or_script() {
    const NAME: &str = "<img src=x onerror=alert(1)>&<script>.exe";
    let healthy = sim::shipped::text("healthy").unwrap();
    let name = |name: &str| format!("name = \"{name}\"\n");
    let hostile = healthy.replace(&name("explorer.exe"), &name(NAME));
    assert_ne!(hostile, healthy);
    let hostile = Simulated::of_text("hostile", &hostile, &["duration=1s"]);
    let page = page(&hostile.trace);
    assert!(!page.contains("<img"));
    assert!(page.contains(&escaped(NAME)));
    assert!(!json_of(&page).contains(['<', '>', '&']));
    let layers = data(&page)["processes"]["layers"].clone();
    let names: Vec<String> = layers
        .as_array()
        .unwrap()
        .iter()
        .map(|l| text(&l["name"]))
        .collect();
    assert!(names.iter().any(|name| name.starts_with(NAME)), "{names:?}");
    // The page's policy only allows scripts with the nonce of the page, and loads nothing from outside.
    let (_, policy) = page
        .split_once("Content-Security-Policy\" content=\"")
        .unwrap();
    let policy = policy.split_once('"').unwrap().0;
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert!(!policy.contains("script-src 'unsafe"), "{policy}");
    let (_, nonce) = policy.split_once("'nonce-").unwrap();
    let nonce = format!("nonce=\"{}\"", nonce.split_once('\'').unwrap().0);
    assert_eq!(
        page.matches("<script").count(),
        page.matches(&nonce).count()
    );
    for outside in ["http://", "src=\"", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn missing_events_are_reported() {
    let page = page("perfview__SelfDescribingSingleEvent.etl");
    assert!(page.contains("The trace has no context switches"));
    assert!(page.contains("The trace has no DPCs and ISRs"));
    assert!(page.contains("does not show why the machine lagged"));
    assert!(!page.contains("No noticeable delay"));
    assert!(!page.contains("<figure"));
    assert!(!page.contains("class=\"simulated\""));
}

#[test]
fn a_real_trace_has_a_page_of_modest_size() {
    for trace in ["filtrace__etw.etl", "perfview__net.4.5.x86-win7.etl"] {
        let page = page(trace);
        assert!(page.len() < 1_000_000, "{trace}: {}", page.len());
        assert!(page.contains("data-chart=\"processes\""), "{trace}");
    }
}
