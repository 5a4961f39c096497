//! Tests of `laglab simulate`: traces that laglab can read, and arguments that are refused.

use crate::program;

use std::collections::HashSet;
use std::fs;

use serde_json::{Value, json};

/// Small scenario with two threads on one processor.
const SMALL: &str = r#"
    title = "Two threads take turns"
    duration = "1s"
    [machine]
    processors = 1
    threads_per_core = 1
    [[process]]
    name = "spinner.exe"
    [[process.thread]]
    count = 2
    program = [{ forever = [{ run = "50ms" }] }]
"#;

fn simulate(scenario: &str, more: &[&str]) -> (tempfile::TempDir, Value, Value) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("small.toml");
    fs::write(&file, scenario).unwrap();
    let trace = dir.path().join("small.etl");
    let (file, out) = (file.to_str().unwrap(), trace.to_str().unwrap());
    let report = program::json(&[&["simulate", "--json", file, "-o", out], more].concat());
    let truth = fs::read_to_string(dir.path().join("small.truth.json")).unwrap();
    (dir, report, serde_json::from_str(&truth).unwrap())
}

#[test]
fn the_demo_explains_the_trace_that_it_writes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("small.toml");
    fs::write(&file, SMALL).unwrap();
    let trace = dir.path().join("small.etl");
    let (file, out) = (file.to_str().unwrap(), trace.to_str().unwrap());
    let text = program::text(&["demo", file, "-o", out]);
    let explained = program::text(&["explain", out]);
    assert!(explained.contains("simulated"), "{explained}");
    let rest = text.strip_prefix(&explained).expect("the same explanation");
    for command in ["explain", "open"] {
        assert!(rest.contains(&format!("{command} {out}")), "{rest}");
    }
    let scenario = program::laglab(&["demo", file, "-o", file]);
    assert_eq!(scenario.status.code(), Some(2));
    assert_eq!(fs::read_to_string(file).unwrap(), SMALL);
}

#[test]
fn simulated_traces_can_be_read() {
    let (dir, report, truth) = simulate(SMALL, &[]);
    let trace = dir.path().join("small.etl");
    let stats = program::json(&["stats", "--json", trace.to_str().unwrap()]);
    // Both `stats` and `simulate` count the header, because the header is an event too.
    let events = stats["total_events"].as_u64();
    assert!(events > Some(1));
    assert_eq!(report["events"].as_u64(), events);
    assert_eq!(truth["events"].as_u64(), events);
    assert_eq!(truth["simulated"], Value::Bool(true));
    assert_eq!(
        report["bytes"].as_u64(),
        Some(fs::metadata(trace).unwrap().len())
    );
    // Two threads share the only processor, so it is never idle.
    let idle = truth["processors"][0]["idle_ns"].as_u64().unwrap();
    assert!(idle < 1_000_000, "{idle} ns idle");
}

#[test]
fn settings_and_seeds_change_the_trace_and_nothing_else_does() {
    let bytes = |more: &[&str]| {
        let (dir, ..) = simulate(SMALL, more);
        fs::read(dir.path().join("small.etl")).unwrap()
    };
    let same = bytes(&[]);
    assert!(same == bytes(&[]), "the same again");
    assert!(same != bytes(&["--windows", "11-25H2"]));
    assert!(same != bytes(&["--set", "process.0.thread.0.count=3"]));
    assert!(same.len() > bytes(&["--events", "100"]).len());
    assert!(same.len() > bytes(&["--compress"]).len());
    let (.., truth) = simulate(SMALL, &["--seed", "7", "--duration", "100ms"]);
    assert_eq!(truth["seed"], 7);
    assert_eq!(truth["duration_ns"], 100_000_000);
}

#[test]
fn shipped_scenarios_are_listed_and_shown() {
    let list = program::json(&["simulate", "--list", "--json"]);
    let names: Vec<&str> = (list.as_array().unwrap().iter())
        .map(|scenario| scenario["name"].as_str().unwrap())
        .collect();
    assert!(
        names.is_sorted() && names.contains(&"rank-stall"),
        "{names:?}"
    );
    for name in names {
        assert!(program::text(&["simulate", name, "--show"]).contains("title ="));
    }
}

#[test]
fn a_scenario_is_shown_as_json() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("small.toml");
    fs::write(&file, SMALL).unwrap();
    let file = file.to_str().unwrap();
    let shown = program::json(&["simulate", file, "--show", "--json"]);
    assert_eq!(shown, json!({"scenario": file, "toml": SMALL}));
    let shown = program::json(&["simulate", "rank-stall", "--show", "--json"]);
    assert_eq!(shown["scenario"], "rank-stall");
    let shipped = include_str!("../../../scenarios/rank-stall.toml");
    assert_eq!(shown["toml"], shipped);
}

#[test]
fn scenario_errors_have_a_place() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bad.toml");
    let name = file.to_str().unwrap();
    let refuses = |args: &[&str], what: &str| {
        let output = program::laglab(args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(
            error.contains(what) && error.lines().count() == 1,
            "{error}"
        );
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
        assert!(left.len() <= 1, "{left:?} were left behind");
    };
    refuses(&["simulate", "nowhere"], "unknown scenario `nowhere`");
    fs::write(
        &file,
        "title = \"x\"\nduration = \"3 bananas\"\n[machine]\n",
    )
    .unwrap();
    refuses(&["simulate", name], "bad.toml:2:12: ");
    fs::write(&file, [0xFF, 0xFE, 0]).unwrap();
    refuses(&["simulate", name], "not UTF-8");
    fs::write(&file, SMALL).unwrap();
    refuses(&["simulate", name, "--windows", "12"], "`12`");
    refuses(
        &["simulate", name, "--set", "process.other.id=3"],
        "`process` has no `other`",
    );
    let nowhere = dir.path().join("none").join("x.etl");
    refuses(
        &["simulate", name, "-o", nowhere.to_str().unwrap()],
        "folder does not exist",
    );
    // The command must not replace the scenario file or a device.
    refuses(&["simulate", name, "-o", name], "is the scenario file");
    if cfg!(unix) {
        refuses(
            &["simulate", name, "-o", "/dev/null"],
            "is a device or pipe",
        );
    }
    // A program that loops without any time passing is rejected.
    fs::write(&file, SMALL.replace("run = \"50ms\"", "mark = \"again\"")).unwrap();
    let out = dir.path().join("x.etl");
    refuses(
        &["simulate", name, "-o", out.to_str().unwrap()],
        "never let time pass",
    );
}

/// Checks that the written PDBs resolve stacks to the functions of the scenario. A trace stores the frames of
/// stacks only as addresses.
#[test]
fn functions_resolve_with_the_written_symbols() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let trace = dir.path().join("usb.etl");
    let (store, trace) = (store.to_str().unwrap(), trace.to_str().unwrap());
    let simulate = [
        "simulate",
        "usb-wdf01000",
        "--duration",
        "200ms",
        "-o",
        trace,
    ];
    let report = program::json(&[&simulate[..], &["--symbols", store, "--json"]].concat());
    assert_eq!(report["symbols"].as_str(), Some(store));

    let truth = fs::read_to_string(dir.path().join("usb.truth.json")).unwrap();
    let truth: Value = serde_json::from_str(&truth).unwrap();
    let mut functions = HashSet::new();
    for module in truth["modules"].as_array().unwrap() {
        let path = module["path"].as_str().unwrap();
        let file = path.rsplit('\\').next().unwrap();
        for function in module["functions"].as_array().unwrap() {
            functions.insert(format!("{file}!{}", function["name"].as_str().unwrap()));
        }
    }
    let events = ["events", trace, "--json", "--stacks", "--symbols", store];
    let mut resolved = HashSet::new();
    for event in program::json_lines(&events) {
        for frame in event["stack_modules"].as_array().into_iter().flatten() {
            let frame = frame.as_str().expect("each address lies in a module");
            let (function, offset) = frame.rsplit_once("+0x").unwrap();
            // A frame is a return address. In all functions of the model, the return address has this offset.
            assert_eq!(offset, "4a", "{frame}");
            assert!(functions.contains(function), "{frame}");
            resolved.insert(function.to_owned());
        }
    }
    assert!(resolved.len() > 3, "{resolved:?}");
}

#[test]
fn missing_symbols_are_reported() {
    let (dir, ..) = simulate(SMALL, &[]);
    let trace = dir.path().join("small.etl");
    let nowhere = dir.path().join("nowhere");
    let path = format!("srv*{}*https://example.invalid", nowhere.display());
    let args = [
        "events",
        trace.to_str().unwrap(),
        "--stacks",
        "--symbols",
        &path,
    ];
    let output = program::laglab(&args);
    assert!(output.status.success());
    let error = String::from_utf8_lossy(&output.stderr);
    let (text, _) = error.split_once("; ").expect(&error);
    let expected = format!("{}: not found", nowhere.display());
    assert!(
        text.starts_with("laglab: no symbols of ") && text.ends_with(&expected),
        "{error}"
    );
    assert!(
        error.contains("example.invalid: not used: network access is not allowed"),
        "{error}"
    );
    assert!(!nowhere.exists());
}
