//! Checks three things: pictures match the truth files of simulations, texts match the explanation, and no
//! trace can inject a script into the page.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use explain::Scope;
use explore::Explorer;
use report::ExplainedTrace;
use serde_json::Value;
use session::{SymbolOptions, TraceTables, Unobserved};
use simulated::{Simulated, list, number, text};
use tables::Cache;

/// Opens a trace, and explains it.
fn explained(trace: &str) -> (TraceTables, ExplainedTrace) {
    let files = [testdata::path("etl").join(trace)];
    let tables = TraceTables::open(&files, Cache::Off, Arc::new(Unobserved)).unwrap();
    tables.make(&report::tables()).unwrap();
    let symbols = SymbolOptions::default();
    let (explained, _) = ExplainedTrace::read(&tables, Scope::default(), &symbols).unwrap();
    (tables, explained)
}

/// Returns the report of a trace as HTML. The path is relative to the folder of the real traces.
fn page(trace: &str) -> String {
    let (tables, explained) = explained(trace);
    page_of(&tables, &explained)
}

fn page_of(tables: &TraceTables, explained: &ExplainedTrace) -> String {
    let explorer = Explorer::new(Arc::clone(tables.store()), None, 100_000_000);
    report::page(&explorer, explained, None, &[], &AtomicBool::new(false)).unwrap()
}

/// Returns the data of the pictures in a report.
fn data(page: &str) -> Value {
    let mut data: Value = serde_json::from_str(json_of(page)).unwrap();
    data["report"].take()
}

/// Returns the answer that a picture draws. The picture has a title, and the answer a kind.
#[track_caller]
fn answer<'d>(data: &'d Value, title: &str, kind: &str) -> &'d Value {
    let mut pictures = list(data, "pictures").iter();
    let picture = pictures.find(|picture| picture["title"] == title);
    let picture = picture.unwrap_or_else(|| panic!("{title} is not drawn"));
    &picture["answer"][kind]
}

/// Returns the series of a timeline by their labels.
#[track_caller]
fn series<'d>(data: &'d Value, title: &str) -> BTreeMap<String, &'d Value> {
    let series = list(answer(data, title, "timeline"), "series").iter();
    series.map(|one| (text(&one["label"]), one)).collect()
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

/// Sums the values of a series.
fn sum(series: &Value) -> i64 {
    let values = list(series, "values").iter();
    values.map(|value| value.as_i64().unwrap()).sum()
}

#[test]
fn time_ranks_and_focus_match_the_truth() {
    let stall = Simulated::new("rank-stall", &[]);
    let page = page(&stall.trace);
    let data = data(&page);
    let processes = list(&stall.truth, "processes").iter();
    let cpu_ns: BTreeMap<String, i64> = processes
        .map(|process| {
            let name = format!("{} ({})", text(&process["name"]), number(process, "id"));
            (name, number(process, "cpu_ns"))
        })
        .collect();
    let (mut found, mut of_interrupts) = (0, 0.0);
    for (name, layer) in series(&data, "Utilization by process, thread") {
        let Some(told) = cpu_ns.get(&name) else {
            continue;
        };
        // The tolerance is needed, because context switches do not separate the time of a thread from the
        // time of interrupts.
        let interrupted = (sum(layer) - told) as f64 / *told as f64;
        assert!((-0.001..0.01).contains(&interrupted), "{name}: not {told}");
        of_interrupts += interrupted;
        found += 1;
    }
    assert!(found == 9 && of_interrupts > 0.0, "{found}");

    // The scenario is about the rank of LockApp, so the chart must show LockApp, and only processes with a rank.
    let ranked = series(&data, "Rank over time");
    let watched = stall.truth["watched_threads"].as_array().unwrap().iter();
    let outranked = watched.filter(|thread| {
        let ranks = thread["ranks_at_switch_out"].to_string();
        ranks.contains("2")
    });
    for thread in outranked {
        let name = text(&thread["process"]);
        assert!(ranked.keys().any(|line| line.starts_with(&name)), "{name}");
    }
    assert!(ranked.values().all(|line| number(line, "total") > 0));
    // Process id 0 means that no process has the focus.
    let moments = list(&stall.truth, "moments").iter();
    let mut focus = moments.filter(|moment| moment["what"] == "focus");
    assert!(focus.any(|moment| moment["process"]["id"] == 0));
    let focused = series(&data, "Window in focus");
    for gained in list(&stall.truth, "moments") {
        if gained["what"] == "focus" && gained["process"]["id"] != 0 {
            let name = text(&gained["process"]["name"]);
            assert!(focused.keys().any(|line| line.starts_with(&name)), "{name}");
        }
    }
    assert!(page.contains("class=\"simulated\""));
}

#[test]
fn interrupts_match_the_truth() {
    let flood = Simulated::new("dpc-flood-no-teaming", &["duration=2s"]);
    let data = data(&page(&flood.trace));
    let (mut of_cpus, mut dpcs): (BTreeMap<i64, i64>, i64) = (BTreeMap::new(), 0);
    for routine in list(flood.window("trace"), "routines") {
        // Threaded DPCs are left out, because other threads can preempt them.
        let is_dpc = routine["kind"] == "dpc" || routine["kind"] == "timer_dpc";
        match routine["cpu"].as_i64() {
            Some(cpu) => *of_cpus.entry(cpu).or_insert(0) += number(routine, "exclusive_ns"),
            None if is_dpc => dpcs += number(routine, "count"),
            None => {}
        }
    }
    // The CPUs with most time have a line.
    let drawn = series(&data, "DPC and ISR time by CPU");
    assert_eq!(drawn.len(), 9.min(of_cpus.len()));
    for (cpu, series) in drawn {
        // Times of the chart include the routines that interrupted them.
        let (drawn, told) = (sum(series), of_cpus[&cpu.parse().unwrap()]);
        assert!(drawn >= told - 1_000, "CPU {cpu}: {drawn}, not {told}");
    }
    let counts = list(answer(&data, "DPC durations over time", "heat"), "counts");
    let counts = counts.iter().flat_map(|slice| slice.as_array().unwrap());
    let counted: i64 = counts.map(|count| count.as_i64().unwrap()).sum();
    assert_eq!(counted, dpcs);
}

/// Returns the times of a kind of event in the truth file.
fn told(truth: &Value, what: &str) -> Vec<i64> {
    let moments = list(truth, "moments").iter();
    let of_that = moments.filter(|moment| moment["what"] == what);
    of_that.map(|moment| number(moment, "at_ns")).collect()
}

#[test]
fn freezes_match_the_truth() {
    let frozen = Simulated::new("frozen", &[]);
    let data = data(&page(&frozen.trace));
    let [starts, ends] = ["freeze", "thaw"].map(|what| told(&frozen.truth, what));
    assert!(!starts.is_empty() && starts.len() == ends.len());
    let told = ends.iter().sum::<i64>() - starts.iter().sum::<i64>();
    let drawn = series(&data, "Frozen processes");
    let drawn: i64 = drawn.values().map(|series| sum(series)).sum();
    // The resolution of times in traces is 100 ns.
    let tolerance = 200 * starts.len() as i64;
    assert!((drawn - told).abs() < tolerance, "{drawn}, not {told}");
}

#[test]
fn the_page_has_the_whole_explanation() {
    let stall = Simulated::new("rank-stall", &["duration=52s"]);
    let (tables, explained) = explained(&stall.trace);
    let page = page_of(&tables, &explained);
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
    let data = data(&page);
    let mut names = series(&data, "Utilization by process, thread").into_keys();
    assert!(names.any(|name| name.starts_with(NAME)));
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
    // Texts of the script itself are no addresses that the page loads.
    let (text, _) = page.split_once("</main>").unwrap();
    for outside in ["http://", "src=\"", "@import", "url("] {
        assert!(!text.contains(outside), "{outside}");
    }
}

#[test]
fn missing_events_are_reported() {
    let page = page("perfview__SelfDescribingSingleEvent.etl");
    assert!(page.contains("The trace has no context switches"));
    assert!(page.contains("The trace has no DPCs and ISRs"));
    assert!(page.contains("does not show why the machine lagged"));
    assert!(!page.contains("No noticeable delay"));
    // Nothing but the number of its events can be drawn.
    let data = data(&page);
    let mut pictures = list(&data, "pictures").iter();
    assert!(pictures.all(|picture| picture["view"]["table"] == "events"));
    assert!(!page.contains("class=\"simulated\""));
}

#[test]
fn a_real_trace_has_a_page_of_modest_size() {
    for trace in ["filtrace__etw.etl", "perfview__net.4.5.x86-win7.etl"] {
        let page = page(trace);
        assert!(page.len() < 1_000_000, "{trace}: {}", page.len());
        let json = json_of(&page).len();
        assert!(json < 500_000, "{trace}: {json}");
        assert!(page.contains("data-picture=\"0\""), "{trace}");
    }
}
