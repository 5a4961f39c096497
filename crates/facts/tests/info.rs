//! Comparison of facts about real traces with their independent ground truth.

use std::path::Path;

use facts::Info;
use serde_json::Value;
use tables::{Cache, Options};

/// Returns the facts about a trace as JSON.
fn read(path: &Path) -> Value {
    let trace = imports::open(&[path.to_owned()]).expect("the trace is readable");
    let info = Info::from_events(&*trace, Options::default()).expect("nothing cancels it");
    serde_json::to_value(info).expect("facts are plain data")
}

#[test]
fn what_headers_say_is_said() {
    for (path, truth) in testdata::traces() {
        let name = path.trim_start_matches("etl/");
        let info = read(&testdata::path(&path));
        let header = &truth["header"];
        assert_eq!(info["system"]["os_version"], header["os_version"], "{name}");
        assert_eq!(info["system"]["build"], header["os_build"], "{name}");
        let session = &info["sessions"][0];
        assert_eq!(session["name"], header["session"], "{name}");
        assert_eq!(session["log_file"], header["logfile"], "{name}");
        assert_eq!(session["clock"], header["clock_name"], "{name}");
        assert_eq!(session["clock_frequency"], header["perf_freq"], "{name}");
        assert_eq!(session["buffer_size"], header["buffer_size"], "{name}");
        // Times in the ground truth have microseconds, and were rounded because they were stored as
        // floating-point numbers.
        let parts = |time: &Value| {
            let time = time.as_str().unwrap().trim_end_matches('Z').to_owned();
            let (seconds, fraction) = time.split_once('.').unwrap_or((&time, "0"));
            let fraction: f64 = format!("0.{fraction}").parse().unwrap();
            (seconds.to_owned(), fraction)
        };
        let (said, known) = (parts(&session["start"]), parts(&header["start"]));
        assert_eq!(said.0, known.0, "{name}");
        assert!(
            (said.1 - known.1).abs() < 2e-6,
            "{name}: {said:?} {known:?}"
        );
        let seconds = header["duration_s"].as_f64().unwrap();
        if let Some(ns) = session["duration_ns"].as_i64() {
            assert!((ns as f64 / 1e9 - seconds).abs() < 1e-5, "{name}");
        }
        assert_eq!(info["trace"]["events"], truth["total_events"], "{name}");
        assert_eq!(info["trace"]["buffers"], truth["buffers"], "{name}");
        assert_eq!(info["trace"]["size_bytes"], truth["file_size"], "{name}");
        assert_eq!(
            info["damage"]["events_lost"], header["events_lost"],
            "{name}"
        );
        let compressed = session.get("compression").is_some();
        assert_eq!(
            compressed,
            truth.get("compression_format").is_some(),
            "{name}"
        );
        if info["cpus"]["known"] == true {
            assert_eq!(info["cpus"]["stated"], header["processors"], "{name}");
            let seen = info["cpus"]["seen"].as_array().unwrap().iter();
            let events: u64 = seen.map(|c| c["events"].as_u64().unwrap()).sum();
            assert_eq!(truth["total_events"], events, "{name}");
        }
    }
}

fn content(info: &Value, data: &str) -> u64 {
    let contents = info["contents"].as_array().unwrap();
    let found = contents.iter().find(|c| c["data"] == data);
    found.map_or(0, |c| c["count"].as_u64().unwrap())
}

/// Returns the sum of the counts in the ground truth for the given class and opcodes.
fn known(truth: &Value, class: &str, opcodes: &[u64]) -> u64 {
    let events = truth["kernel_events"].as_array().unwrap().iter();
    events
        .filter(|e| e["cls"] == class && opcodes.contains(&e["opcode"].as_u64().unwrap()))
        .map(|e| e["count"].as_u64().unwrap())
        .sum()
}

#[test]
fn contents_are_what_the_ground_truth_counts() {
    for (path, truth) in testdata::traces() {
        let name = path.trim_start_matches("etl/");
        if name.starts_with("sawbuck") {
            continue; // These traces have kernel events with classic headers. The ground truth counts them elsewhere.
        }
        let info = read(&testdata::path(&path));
        for (data, class, opcodes) in [
            ("context_switches", "Thread", &[36][..]),
            ("ready_threads", "Thread", &[50]),
            ("samples", "PerfInfo", &[46]),
            ("hard_faults", "PageFault", &[32]),
            ("disk_io", "DiskIo", &[10, 11, 12, 13, 14, 15]),
            ("file_names", "FileIo", &[0, 32, 35, 36]),
            ("processes", "Process", &[1, 2, 3, 4, 11, 39]),
        ] {
            assert_eq!(
                content(&info, data),
                known(&truth, class, opcodes),
                "{name}: {data}"
            );
            let missing = info["missing"].to_string();
            if data == "ready_threads" {
                assert!(
                    missing.contains("no events of ready threads")
                        || missing.contains("no kernel events"),
                    "{name}: no trace at hand has any"
                );
            }
        }
    }
}

#[test]
fn the_machine_is_described() {
    let info = read(&testdata::path("etl/perfview__net.4.5.2.x64.etl"));
    assert_eq!(info["system"]["release"], "Windows 8 or Server 2012");
    // PerfView enables these flags, and the trace has events of these flags.
    let flags: Vec<&str> = info["kernel_flags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f.as_str().unwrap())
        .collect();
    for flag in ["process", "thread", "image", "profile", "hard faults"] {
        assert!(flags.contains(&flag), "{flag}: {flags:?}");
    }
    assert!(!flags.contains(&"context switch"));
}

#[test]
fn damage_is_told_with_its_place() {
    let mut bytes = testdata::bytes("etl/perfview__net.4.5.2.x64.etl");
    bytes.truncate(1_000_000);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.etl");
    std::fs::write(&path, &bytes).unwrap();
    let info = read(&path);
    let damage = &info["damage"];
    assert_eq!(damage["none"], false);
    assert_eq!(damage["fault_counts"]["truncated"], 1);
    let fault = &damage["faults"][0];
    let offset = fault["buffer_offset"].as_u64().unwrap();
    assert!(offset < 1_000_000 && offset > 900_000, "{fault}");
}

/// Reads a recording of Linux, after `change` changed its bytes.
fn read_linux(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Info {
    let mut bytes = testdata::bytes(&format!("linux/{name}.data"));
    change(&mut bytes);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.data");
    std::fs::write(&path, bytes).unwrap();
    let store = imports::open_store(&[path], Cache::Off).unwrap();
    Info::read(&store, Options::default()).unwrap()
}

#[test]
fn lost_events_of_linux_are_counted_by_its_kernel() {
    let info = read_linux("s08_57_records_lost", |_| {});
    assert_eq!(info.damage.events_lost, 57);
    assert_eq!(info.damage.throttled, Some(0));
    let expected = "57 events lost, because a ring buffer of the kernel was full";
    assert_eq!(info.damage.sentences(), [expected]);
}

#[test]
fn a_killed_perf_is_told_first_and_the_system_is_linux() {
    let info = read_linux("s02_open_at_the_ends", |bytes| {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let end = number(40) + number(48);
        bytes.truncate(end as usize);
        bytes[48..56].fill(0);
    });
    let sentences = info.damage.sentences();
    assert!(
        sentences[0].starts_with("perf was killed: the descriptions of events and the machine"),
        "{sentences:?}"
    );
    assert!(!sentences[1..].concat().contains("killed"), "{sentences:?}");
    // The release of the kernel and the number of its CPUs are in the missing descriptions.
    assert_eq!(
        (info.system.name(), info.cpus.stated),
        ("Linux".to_owned(), None)
    );
    assert!(info.sessions.is_empty());
    assert_eq!((info.trace.buffers, &info.trace.start), (0, &None));
    assert!(
        (info.missing.iter()).any(|it| it.advice.contains("perf record -a -e sched:sched_switch")),
        "{:?}",
        info.missing
    );
    assert!(info.missing.iter().all(|it| !it.advice.contains("wpr")));
}
