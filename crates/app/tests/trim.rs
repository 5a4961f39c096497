//! Tests of `laglab trim`: options and messages. The crate `trim` tests which events are selected.

use crate::program;

use std::path::Path;

use tempfile::TempDir;

/// Time, CPU and bytes of an event.
type Read = (i64, u16, Vec<u8>);

/// Returns all events of a trace except the headers of logs.
fn events(paths: &[&Path]) -> Vec<Read> {
    let paths: Vec<_> = paths.iter().map(|path| path.to_path_buf()).collect();
    let trace = etl::open(&paths).unwrap();
    let mut walk = trace.events();
    let mut events = Vec::new();
    while let Some(event) = walk.next() {
        if event.hook() != Some(0) {
            events.push((event.time_ns(), event.cpu(), event.record().to_vec()));
        }
    }
    assert!(walk.damage().is_empty());
    events
}

fn trim(inputs: &[&str], folder: &TempDir, more: &[&str]) -> std::path::PathBuf {
    let out = folder.path().join("out.etl");
    let out_text = out.to_str().unwrap();
    let args = [&["trim"], inputs, &["-o", out_text, "--json"], more].concat();
    let report = program::json(&args);
    let size = std::fs::metadata(&out).unwrap().len();
    assert_eq!(report["bytes"], size, "{args:?}");
    assert_eq!(report["out_of_order"], 0, "{args:?}");
    out
}

#[test]
fn parts_keep_session_losses_and_names() {
    let folder = tempfile::tempdir().unwrap();
    let name = "perfview__net.4.5.2.x64.etl";
    let out = trim(&[name], &folder, &["--from", "1s", "--to", "1.5s"]);
    let original = etl::open(&[testdata::path("etl").join(name)]).unwrap();
    let part = etl::open(std::slice::from_ref(&out)).unwrap();
    let (was, is) = (original.header().unwrap(), part.header().unwrap());
    assert_eq!((is.start, is.raw_start), (was.start, was.raw_start));
    assert_eq!((is.boot, is.os_build), (was.boot, was.os_build));
    assert_eq!(is.perf_frequency, was.perf_frequency);
    assert_eq!(
        (is.processors, is.events_lost),
        (was.processors, was.events_lost)
    );
    assert_eq!(is.end, Some(was.start + 15_000_000));
    assert_eq!(is.log_file_mode & 0x1_0000, 0x1_0000);
    // The comparison is limited to the time range of the trim, in which the decoded events must be equal.
    // Outside of the range, the part also has process starts, descriptions of events and rundown events.
    let range = ["--from", "1s", "--to", "1.5s"];
    let all = |path: &str| program::json_lines(&[&["events", "--json", path], &range[..]].concat());
    assert!(all(name) == all(out.to_str().unwrap()));
}

#[test]
fn impossible_trims_are_refused_and_leave_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let own = path("own.etl");
    let source = testdata::path("etl/perfview__primitive-types.etl");
    std::fs::copy(source, &own).unwrap();
    let before = std::fs::read(&own).unwrap();
    let broken = path("broken.etl");
    std::fs::write(&broken, "not a trace\n".repeat(500)).unwrap();
    let headless = path("headless.etl");
    let mut bytes = before.clone();
    bytes[0x48..0x4C].copy_from_slice(&[0; 4]);
    std::fs::write(&headless, bytes).unwrap();
    let out = path("out.etl");
    let none = path("none/out.etl");
    let here = folder.path().to_str().unwrap();
    for (args, what) in [
        (&[&own, "-o", &own][..], "is an input file"),
        (&[&own, "-o", here], "is a directory"),
        (&[&own, "-o", &none], "its folder does not exist"),
        (&[&broken, "-o", &out], "is not an ETW trace"),
        (&[&headless, "-o", &out], "no readable header"),
        (
            &[&own, "-o", &out, "--from", "2", "--to", "1"],
            "--from and --to: the start is not before the end",
        ),
        (
            &[&own, "-o", &out, "--from", "1000000"],
            "nothing was written: --from: the time is outside the trace, which lasts from 0 s to ",
        ),
        (
            &[&own, "-o", &out, "--process", "no-such.exe"],
            "nothing was written: --process: the trace contains no process no-such.exe; ",
        ),
        (
            &["filtrace__etw.etl", "-o", &out, "--pid", "9999"],
            "nothing was written: --pid: the trace contains no process 9999; it has ",
        ),
        (
            &[&own, "-o", &out, "--event", "no-such-event"],
            "no event meets these conditions",
        ),
        (
            &[
                "perfview__gcevents.etl",
                "perfview__net.4.5.2.x64.etl",
                "-o",
                &out,
            ],
            "recorded by different systems",
        ),
    ] {
        let output = program::laglab(&[&["trim"], args].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(what), "{args:?}: {error}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    assert!(std::fs::read(&own).unwrap() == before);
    let mut left: Vec<_> = std::fs::read_dir(here)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["broken.etl", "headless.etl", "own.etl"]);
}

#[test]
fn damage_is_reported_and_the_rest_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("damaged.etl");
    let mut bytes = testdata::bytes("etl/gpuvis__wintracecmd.etl");
    // Overwrites the start of the first record in the third buffer.
    let size = u32::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    bytes[2 * size + 0x48..][..4].copy_from_slice(&[0xEE; 4]);
    std::fs::write(&damaged, bytes).unwrap();
    let out = folder.path().join("out.etl");
    let args = [
        "trim",
        damaged.to_str().unwrap(),
        "-o",
        out.to_str().unwrap(),
    ];
    let output = program::laglab(&args);
    assert!(output.status.success());
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        error,
        "laglab: skipped 1 broken place; `laglab info` lists them\n"
    );
    let whole = events(&[&testdata::path("etl/gpuvis__wintracecmd.etl")]).len();
    let kept = events(&[&out]).len();
    assert!(kept > whole * 9 / 10 && kept < whole, "{kept} of {whole}");
}

#[test]
fn the_summary_matches_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a.etl");
    let out = out.to_str().unwrap();
    let said = program::text(&[
        "trim",
        "filtrace__etw.etl",
        "-o",
        out,
        "--process",
        "conhost",
    ]);
    let said = said
        .replace(folder.path().to_str().unwrap(), "FOLDER")
        .replace('\\', "/");
    insta::assert_snapshot!(said);
}

#[test]
fn redaction_changes_only_names() {
    let folder = tempfile::tempdir().unwrap();
    let name = "filtrace__etw.etl";
    let out = trim(&[name], &folder, &["--redact"]);
    let switches = |path: &str| {
        let fields = "NewThreadId,OldThreadId,OldThreadWaitReason,NewThreadPriority";
        let args = ["events", path, "--event", "CSwitch", "--fields", fields];
        program::json_lines(&[&args[..], &["--json"]].concat())
            .into_iter()
            .map(|mut event| (event["time_ns"].take(), event["fields"].take()))
            .collect::<Vec<_>>()
    };
    let expected = switches(name);
    assert!(expected.len() > 1_000 && expected == switches(out.to_str().unwrap()));
}

#[test]
fn a_secret_needs_redaction() {
    let output = program::laglab(&["trim", "x.etl", "-o", "y.etl", "--redact-key", "s3cret"]);
    assert_eq!(output.status.code(), Some(2));
}
