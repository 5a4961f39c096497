//! Tests of `laglab events`: the selected events and the formats.

use crate::program;

use serde_json::Value;

#[test]
fn processes_are_found_by_name() {
    // Process 48348 is conhost.exe. The trace contains its Process/Start event, and its thread 41888 runs in
    // the trace.
    let name = "filtrace__etw.etl";
    let lines = program::json_lines(&["events", "--json", name, "--process", "CONHOST"]);
    assert!(!lines.is_empty());
    let by_pid = program::json_lines(&["events", "--json", name, "--pid", "48348"]);
    assert_eq!(lines, by_pid);
    assert!(lines.iter().any(|e| e["event"] == "Thread/CSwitch"));
    assert!(
        lines
            .iter()
            .any(|e| e["event"] == "Process/End" && e["pid"] == 48348)
    );
}

#[test]
fn tracelogging_events_have_the_known_contents() {
    let expected = testdata::json("etl/expected-tracelogging.json");
    let name = expected["file"].as_str().unwrap();
    let provider = expected["provider"].as_str().unwrap();
    let lines = program::json_lines(&["events", "--json", name, "--provider", provider]);
    assert_eq!(expected["events"], lines.len());
    let mut kinds: Vec<&Value> = Vec::new();
    for event in &lines {
        let names = |e: &Value| -> Vec<String> { e.as_object().unwrap().keys().cloned().collect() };
        if !kinds.iter().any(|k| names(k) == names(&event["fields"])) {
            kinds.push(&event["fields"]);
        }
    }
    assert_eq!(expected["kinds"], kinds.len());
    let known = expected["first_of_each_kind"].as_array().unwrap().iter();
    assert_eq!(kinds, known.collect::<Vec<_>>());
}

#[test]
fn csv_has_a_column_per_field() {
    let output = program::laglab(&[
        "events",
        "perfview__net.4.5.2.x64.etl",
        "--event",
        "DiskIo/Read",
        "--fields",
        "transfersize,Nothing",
        "--format",
        "csv",
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let headings = rows.headers().unwrap().clone();
    assert_eq!(&headings[13], "transfersize");
    let rows: Vec<_> = rows.records().map(|row| row.unwrap()).collect();
    let json = program::json_lines(&[
        "events",
        "--json",
        "perfview__net.4.5.2.x64.etl",
        "--event",
        "DiskIo/Read",
    ]);
    assert_eq!(rows.len(), json.len());
    for (row, event) in rows.iter().zip(&json) {
        let size = event["fields"].get("TransferSize");
        assert_eq!(row[13], size.map(Value::to_string).unwrap_or_default());
        assert_eq!(&row[14], "");
        assert_eq!(row[0], event["time_ns"].to_string());
    }
}

/// Checks that the note is on standard error only, because scripts read the standard output and the exit code.
#[test]
fn a_selection_without_events_is_noted() {
    let args = ["events", "filtrace__etw.etl", "--event", "nosuch"];
    let output = program::laglab(&[&args[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.is_empty());
    let note = String::from_utf8_lossy(&output.stderr);
    assert!(note.contains("no event matches"), "{note}");
}

#[test]
fn near_names_of_events_and_providers_are_noted() {
    let note = |option: &str, name: &str| {
        let output = program::laglab(&["events", "filtrace__etw.etl", option, name]);
        String::from_utf8(output.stderr).unwrap()
    };
    let event = note("--event", "CSwich");
    assert!(event.contains("the closest names are CSwitch"), "{event}");
    let provider = note("--provider", "Kernal");
    assert!(provider.contains("the closest names are "), "{provider}");
    let number = note("--event", "12345");
    assert!(number.contains("`laglab info` prints"), "{number}");
}

#[test]
fn a_condition_that_the_trace_lacks_is_named_with_alternatives() {
    for (option, value, said) in [
        (
            "--process",
            "conhots",
            "the trace contains no process conhots; ",
        ),
        ("--process", "48348", "give --pid 48348"),
        (
            "--pid",
            "9999",
            "the trace contains no process 9999; it has ",
        ),
        (
            "--tid",
            "9999",
            "the trace contains no thread 9999; it has ",
        ),
        (
            "--cpu",
            "999",
            "the trace has no CPU 999; it has CPUs 0 to ",
        ),
        ("--from", "1000", "which lasts from 0 s to "),
        ("--to", "-1", "which lasts from 0 s to "),
    ] {
        let output = program::laglab(&["events", "filtrace__etw.etl", "--json", option, value]);
        assert_eq!(output.status.code(), Some(0), "{option}");
        assert!(output.stdout.is_empty(), "{option}");
        let note = String::from_utf8(output.stderr).unwrap();
        let start = format!("laglab: no event matches: {option}: ");
        assert!(note.starts_with(&start) && note.contains(said), "{note}");
        assert_eq!(note.contains("conhost.exe"), value == "conhots", "{note}");
    }
    // The trace has this process, so the note is about the event.
    let both = ["--process", "conhost", "--event", "CSwich"];
    let output = program::laglab(&[&["events", "filtrace__etw.etl"], &both[..]].concat());
    let note = String::from_utf8(output.stderr).unwrap();
    assert!(note.contains("the closest names are CSwitch"), "{note}");
}

#[test]
fn absent_fields_are_noted_with_near_names() {
    let args = ["events", "filtrace__etw.etl", "--event", "Process"];
    let note = |fields: &str| {
        let output = program::laglab(&[&args[..], &["--fields", fields]].concat());
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    };
    let absent = note("ProcessId,ImageFile");
    assert!(absent.contains("has a field ImageFile;"), "{absent}");
    assert!(absent.contains("are ImageFileName"), "{absent}");
    assert_eq!(note("processid,ImageFileName"), "");
}

#[test]
fn formats_match_snapshots() {
    let first = |args: &[&str]| program::text(&[&["events"][..], args].concat());
    insta::assert_snapshot!(
        "text",
        first(&["filtrace__etw.etl", "--event", "Process", "--limit", "4"])
    );
    insta::assert_snapshot!(
        "json",
        first(&[
            "filtrace__etw.etl",
            "--event",
            "CSwitch",
            "--limit",
            "2",
            "--json"
        ])
    );
    insta::assert_snapshot!(
        "csv",
        first(&["perfview__primitive-types.etl", "--format", "csv"])
    );
}
