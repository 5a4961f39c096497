//! Tests that read complete real traces. The results are compared with the counts of another reader.

use crate::program;

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde_json::Value;

use simulated::number;

#[test]
fn every_event_is_printed_once_and_in_order() {
    testdata::for_each_in_parallel(testdata::traces(), |(path, truth)| {
        let name = path.trim_start_matches("etl/");
        let total = truth["total_events"].as_u64().unwrap() as usize;
        let text = program::text(&["events", name]);
        assert_eq!(
            text.lines().count(),
            total + 1,
            "{name}: a heading and all events"
        );
        let heads = heads(&["events", "--json", name]);
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
    });
}

/// Fields that all printed events have, and the optional stack.
#[derive(Debug, serde::Deserialize)]
struct Head {
    time_ns: i64,
    pid: Option<u32>,
    tid: Option<u32>,
    header: String,
    stack: Option<IgnoredAny>,
}

impl Head {
    /// Returns true if the header has a GUID. Headers of kernel events only have a class.
    fn has_guid(&self) -> bool {
        self.header.starts_with("FULL") || self.header.starts_with("EVENT_HEADER")
    }
}

/// Returns the printed events. Only their common fields are parsed, because there are millions of events.
fn heads(args: &[&str]) -> Vec<Head> {
    let text = program::text(args);
    let heads = text.lines().map(serde_json::from_str);
    heads.collect::<Result<_, _>>().expect("each line is JSON")
}

#[test]
fn filters_match_the_ground_truth() {
    for (path, truth) in testdata::traces() {
        let name = path.trim_start_matches("etl/");
        for provider in truth["providers"].as_array().unwrap() {
            let guid = provider["guid"].as_str().unwrap();
            let heads = heads(&["events", "--json", name, "--provider", guid]);
            let count = heads.iter().filter(|head| head.has_guid()).count();
            assert_eq!(provider["count"], count, "{name}: {guid}");
        }
    }
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
    // The independent reader counted 79,528 samples in this trace.
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
    // The header of the trace says that the session started at 2020-07-29T00:07:00.6236167Z.
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
fn stacks_are_shown_when_asked_for() {
    let name = "perfview__net.4.5.2.x64.etl";
    let count = |args: &[&str]| {
        let heads = heads(&[&["events", "--json", name][..], args].concat());
        let carried = |head: &&Head| head.has_guid() && head.stack.is_some();
        heads.iter().filter(carried).count()
    };
    // The independent reader counted 655 items of the type STACK_TRACE64 in this trace.
    assert_eq!(count(&["--stacks"]), 655);
    assert_eq!(count(&["--limit", "1000"]), 0);
    // The event Image/DCStart in this trace says that ntoskrnl.exe is at 0xfffff80085c00000 and has 0x1450000
    // bytes.
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
fn row_counts_match_another_reader() {
    let mut answered = BTreeMap::new();
    for (path, truth) in testdata::traces() {
        let name = path.trim_start_matches("etl/");
        let count = |class: &str, opcodes: &[u64]| -> i64 {
            let events = truth["kernel_events"].as_array().unwrap().iter();
            events
                .filter(|e| e["cls"] == class)
                .filter(|e| opcodes.contains(&e["opcode"].as_u64().unwrap()))
                .map(|e| number(e, "count"))
                .sum()
        };
        for (report, column, expected) in [
            (&["diskio"][..], "count", count("DiskIo", &[10, 11, 14])),
            (
                &["diskio", "--summary"],
                "count",
                count("DiskIo", &[10, 11, 14]),
            ),
            (&["hardfault"], "count", count("PageFault", &[32])),
            (
                &["profile", "--detail"],
                "samples",
                count("PerfInfo", &[46]),
            ),
        ] {
            let args: Vec<&str> = report.iter().copied().chain([name, "--json"]).collect();
            let output = program::laglab(&args);
            if expected == 0 {
                let error = String::from_utf8_lossy(&output.stderr).into_owned();
                assert_eq!(output.status.code(), Some(1), "{args:?}");
                assert!(
                    error.contains("xperf -on") && output.stdout.is_empty(),
                    "{error}"
                );
                continue;
            }
            let text = String::from_utf8(output.stdout).unwrap();
            let lines = text
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap());
            let sum: i64 = lines.map(|row| number(&row, column)).sum();
            assert_eq!(sum, expected, "{args:?}");
            *answered.entry(report[0]).or_insert(0) += 1;
        }
    }
    assert!(
        answered.len() == 3,
        "the data shows too little: {answered:?}"
    );
}
