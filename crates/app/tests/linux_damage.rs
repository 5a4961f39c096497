//! Tests of what commands say about damaged and incomplete recordings of Linux.

use std::path::Path;

use crate::program::laglab;

fn recording(name: &str) -> String {
    let path = testdata::path(&format!("linux/{name}.data"));
    path.to_str().unwrap().to_owned()
}

/// Writes a recording like one of a killed perf: its header states no records, and the descriptions after the records are
/// missing. Returns its path.
fn killed(folder: &Path) -> String {
    let mut bytes = std::fs::read(recording("s02_open_at_the_ends")).unwrap();
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let end = number(40) + number(48);
    bytes.truncate(end as usize);
    bytes[48..56].fill(0);
    let path = folder.join("killed.data");
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Runs a command. Returns its exit code, and its standard output and standard error together.
fn output(args: &[&str]) -> (Option<i32>, String) {
    let output = laglab(args);
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    // Terminals break lines anywhere between words.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (output.status.code(), text)
}

/// Writes the first half of a recording. Returns its path.
fn half(folder: &Path) -> String {
    let mut bytes = std::fs::read(recording("s02_open_at_the_ends")).unwrap();
    bytes.truncate(bytes.len() / 2);
    let path = folder.join("half.data");
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn each_command_says_why_the_descriptions_of_events_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    let tables = folder.path().join("tables");
    let tables = tables.to_str().unwrap();
    for (file, expected, short) in [
        (
            killed(folder.path()),
            "perf was killed: the descriptions of events and the machine are missing; stop perf with Ctrl-C",
            "killed",
        ),
        (
            half(folder.path()),
            "the end of the file is missing, with the descriptions of events and the machine; copy the whole file",
            "end is missing",
        ),
    ] {
        for args in [
            &["info", &file][..],
            &["stats", &file],
            &["events", &file],
            &["cswitch", &file],
            &["readythread", &file],
            &["profile", &file],
            &["process", &file],
            &["trim", &file, "-o", "part.data", "--to", "1"],
            #[cfg(feature = "export")]
            &["export", &file, "-o", tables],
            #[cfg(feature = "sql")]
            &["sql", &file, "SELECT count(*) FROM context_switches"],
        ] {
            let (_, text) = output(args);
            assert!(text.contains(expected), "{args:?}: {text}");
        }
        let (code, text) = output(&["explain", &file]);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains(short), "{text}");
    }
    let _ = tables;
}

#[test]
fn advice_for_a_recording_without_events_is_for_linux() {
    let folder = tempfile::tempdir().unwrap();
    let (code, text) = output(&["info", &killed(folder.path())]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("(perf record -a -e sched:sched_switch,sched:sched_waking"),
        "{text}"
    );
    for word in ["wpr", "xperf", "Windows", "Session", "1601", "header"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
}

#[test]
fn lost_events_are_told_with_their_reason() {
    let file = recording("s08_57_records_lost");
    let expected = "57 events lost, because a ring buffer of the kernel was full";
    for command in ["info", "cswitch", "process"] {
        let (code, text) = output(&[command, &file]);
        assert_eq!(code, Some(0), "{command}: {text}");
        assert!(text.contains(expected), "{command}: {text}");
    }
}

#[test]
fn advice_about_missing_wakes_and_call_chains_names_perf() {
    let file = recording("s06_switches_without_waking");
    for (args, expected) in [
        (
            &["readythread", &file][..],
            "perf record -a -e sched:sched_switch,sched:sched_waking",
        ),
        (
            &["stack", &file, "--event", "cswitch"],
            "perf record -a -g -e sched:sched_switch,",
        ),
        (&["stack", &file], "perf record -a -g -F 999 -e cpu-clock"),
    ] {
        let (code, text) = output(args);
        assert_eq!(code, Some(1), "{args:?}: {text}");
        assert!(text.contains(expected), "{args:?}: {text}");
        assert!(
            !text.contains("wpr") && !text.contains("xperf"),
            "{args:?}: {text}"
        );
    }
}
