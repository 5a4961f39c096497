//! `laglab events` against what is independently known of real traces.

mod program;

use std::collections::BTreeMap;

use serde_json::Value;

#[test]
fn every_event_is_printed_once_and_in_order() {
    for (path, truth) in testdata::traces() {
        let name = path.trim_start_matches("etl/");
        let total = truth["total_events"].as_u64().unwrap() as usize;
        let text = program::text(&["events", name]);
        assert_eq!(
            text.lines().count(),
            total + 1,
            "{name}: a heading and all events"
        );
        let lines = program::text(&["events", "--json", name]);
        let heads: Vec<Head> = lines
            .lines()
            .map(|line| serde_json::from_str(line).expect("each line is JSON"))
            .collect();
        assert_eq!(heads.len(), total, "{name}");
        assert!(heads.is_sorted_by_key(|e| e.time_ns), "{name}");
        let mut kinds = BTreeMap::<&str, u64>::new();
        for event in &heads {
            *kinds.entry(&event.header).or_default() += 1;
            assert!(event.pid != Some(u32::MAX) && event.tid != Some(u32::MAX));
            let has_ids = !event.header.starts_with("PERFINFO");
            assert!(has_ids || event.tid.is_none(), "{name}: {event:?}");
        }
        assert_eq!(truth["header_types"], serde_json::json!(kinds), "{name}");
    }
}

/// What every event is printed with.
#[derive(Debug, serde::Deserialize)]
struct Head {
    time_ns: i64,
    pid: Option<u32>,
    tid: Option<u32>,
    header: String,
}

#[test]
fn a_filter_lets_through_what_the_ground_truth_counts() {
    for (path, truth) in testdata::traces() {
        let name = path.trim_start_matches("etl/");
        for provider in truth["providers"].as_array().unwrap() {
            let guid = provider["guid"].as_str().unwrap();
            let lines = program::json_lines(&["events", "--json", name, "--provider", guid]);
            let other = |e: &&Value| e["header"] == "MESSAGE(WPP)" || !has_guid_header(e);
            let count = lines.len() - lines.iter().filter(other).count();
            assert_eq!(provider["count"], count, "{name}: {guid}");
        }
    }
}

/// Whether the header, not only the class of a kernel event, holds a GUID.
fn has_guid_header(event: &Value) -> bool {
    let header = event["header"].as_str().unwrap();
    header.starts_with("FULL") || header.starts_with("EVENT_HEADER")
}

#[test]
fn samples_of_one_kind_and_range_are_chosen_exactly() {
    let name = "perfview__net.4.5.2.x64.etl";
    let all = program::json_lines(&[
        "events",
        "--json",
        name,
        "--event",
        "PerfInfo/SampledProfile",
    ]);
    let samples = |e: &&Value| e["opcode"] == 46;
    // 79,528 samples, by the ground truth.
    assert_eq!(all.iter().filter(samples).count(), 79_528);

    let within = |from: i64, to: i64| {
        all.iter()
            .filter(|e| (from..=to).contains(&e["time_ns"].as_i64().unwrap()))
            .count()
    };
    let chosen = |from: &str, to: &str| {
        let args = [
            "events",
            "--json",
            name,
            "--event",
            "PerfInfo/SampledProfile",
        ];
        program::json_lines(&[&args[..], &["--from", from, "--to", to]].concat()).len()
    };
    assert_eq!(
        chosen("1.5", "1600ms"),
        within(1_500_000_000, 1_600_000_000)
    );
    // The session started at 2020-07-29T00:07:00.6236167Z, by its header.
    assert_eq!(
        chosen(
            "2020-07-29T00:07:02.6236167Z",
            "2020-07-29T00:07:03.6236167"
        ),
        within(2_000_000_000, 3_000_000_000)
    );
    let cpu = program::json_lines(&["events", "--json", name, "--event", "46", "--cpu", "3"]);
    let on_cpu = all.iter().filter(samples).filter(|e| e["cpu"] == 3).count();
    assert_eq!(
        cpu.iter()
            .filter(|e| e["event"] == "PerfInfo/SampledProfile")
            .count(),
        on_cpu
    );
    let args = ["events", "--json", name, "--limit", "5"];
    assert_eq!(program::json_lines(&args).len(), 5);
}

#[test]
fn processes_are_found_by_name() {
    // The process of this trace's Process/Start event, whose thread 41888 runs in it.
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
fn tracelogging_events_say_what_they_are_known_to_say() {
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
    let text = program::text(&[
        "events",
        "perfview__net.4.5.2.x64.etl",
        "--event",
        "DiskIo/Read",
        "--fields",
        "transfersize,Nothing",
        "--format",
        "csv",
    ]);
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

#[test]
fn stacks_are_shown_when_asked_for() {
    let name = "perfview__net.4.5.2.x64.etl";
    let count = |args: &[&str]| {
        let lines = program::json_lines(&[&["events", "--json", name][..], args].concat());
        let carried = |e: &&Value| has_guid_header(e) && e.get("stack").is_some();
        lines.iter().filter(carried).count()
    };
    // 655 STACK_TRACE64 items, by the ground truth.
    assert_eq!(count(&["--stacks"]), 655);
    assert_eq!(count(&["--limit", "1000"]), 0);
    // Image/DCStart of this trace maps ntoskrnl.exe, 0x1450000 bytes, at 0xfffff80085c00000.
    let (base, size) = (0xffff_f800_85c0_0000_u64, 0x145_0000);
    let args = [
        "events",
        "--json",
        "filtrace__etw.etl",
        "--event",
        "StackWalk/Stack",
        "--stacks",
    ];
    let mut in_kernel = 0;
    for event in program::json_lines(&args) {
        let addresses = event["stack"].as_array().unwrap();
        for (i, address) in addresses.iter().enumerate() {
            let hex = address.as_str().unwrap().trim_start_matches("0x");
            let address = u64::from_str_radix(hex, 16).unwrap();
            if (base..base + size).contains(&address) {
                let frame = format!("ntoskrnl.exe+{:#x}", address - base);
                assert_eq!(event["stack_modules"][i], frame);
                in_kernel += 1;
            }
        }
    }
    assert!(in_kernel > 0);
}

#[test]
fn lines_are_as_they_are_meant_to_be_read() {
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
