//! Tests of `laglab record now`: recordings of this Linux machine.
#![cfg(target_os = "linux")]

use crate::program;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Returns true if this machine can record. Otherwise, skips the test.
fn can_record(folder: &Path) -> bool {
    let file = folder.join("trial.data").display().to_string();
    let trial = program::laglab(&["record", "now", "dpc", "--for", "100ms", "-o", &file]);
    let error = String::from_utf8_lossy(&trial.stderr).into_owned();
    if !trial.status.success() {
        testdata::skip(&error);
    }
    trial.status.success()
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn a_recording_is_explained_and_names_its_cost() {
    let folder = tempfile::tempdir().unwrap();
    if !can_record(folder.path()) {
        return;
    }
    let file = path(folder.path(), "x.data");
    let report = program::json(&["record", "now", "--for", "500ms", "-o", &file, "--json"]);
    assert_eq!(report["investigation"], "long-wait");
    assert_eq!(report["files"][0]["path"], file);
    assert_eq!(report["cost"]["lost"], 0);
    assert!(report["cost"]["records"].as_u64().unwrap() > 100);
    assert!(report["cost"]["cpu_ns"].as_u64().unwrap() > 0);
    let explained = program::json(&["explain", &file, "--no-cache", "--json"]);
    let theories = explained["explanation"]["theories"].as_array().unwrap();
    let judged = |id: &str| {
        let of = theories.iter().find(|it| it["theory"] == id).unwrap();
        of["judgement"] != "not_recorded"
    };
    for theory in ["long-waits", "saturation", "cpu-use", "stopped"] {
        assert!(judged(theory), "{theory}");
    }
    // The existing file is not replaced. The new file gets a number.
    let before = std::fs::read(&file).unwrap();
    let text = program::text(&["record", "now", "dpc", "--for", "100ms", "-o", &file]);
    assert!(
        text.contains("x-2.data") && text.contains("Cost: "),
        "{text}"
    );
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

/// Starts a recorder that keeps the last 10 s, and waits until it has recorded events.
fn recorder(file: &str) -> Child {
    let recorder = Command::new(env!("CARGO_BIN_EXE_laglab"))
        .args(["record", "now", "--last", "10s", "-o", file, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = recorder.id();
    // The recorder installs its handlers of signals before it opens the perf events. So if a perf event is open, the
    // signals cannot end the program. The test then waits until the recorder has read events a few times.
    let is_open = || {
        let names = std::fs::read_dir(format!("/proc/{id}/fd"))
            .into_iter()
            .flatten()
            .flatten();
        let mut targets = names.filter_map(|it| std::fs::read_link(it.path()).ok());
        targets.any(|target| target.to_string_lossy().contains("perf_event"))
    };
    wait_until(is_open);
    std::thread::sleep(Duration::from_millis(300));
    recorder
}

fn send(name: &str, recorder: &Child) {
    let id = recorder.id().to_string();
    let status = Command::new("kill").args([name, &id]).status().unwrap();
    assert!(status.success());
}

/// Waits until the recorder has ended successfully. Returns its report.
fn ended(recorder: Child) -> Value {
    let output = recorder.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn signals_save_the_ring() {
    let folder = tempfile::tempdir().unwrap();
    if !can_record(folder.path()) {
        return;
    }
    let file = path(folder.path(), "ring.data");
    let recorder = recorder(&file);
    send("-USR2", &recorder);
    wait_until(|| Path::new(&file).exists());
    std::thread::sleep(Duration::from_millis(200));
    send("-INT", &recorder);
    let report = ended(recorder);
    let files = report["files"].as_array().unwrap();
    assert_eq!(files.len(), 2);
    assert_eq!(files[1]["path"], path(folder.path(), "ring-2.data"));
    for saved in files {
        let info = program::json(&["info", saved["path"].as_str().unwrap(), "--json"]);
        assert!(info.is_object());
    }
    assert!(files[1]["covers_ns"].as_u64() > files[0]["covers_ns"].as_u64());
}

/// Sends the signal twice, as `timeout` does.
#[test]
fn sigterm_saves_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    if !can_record(folder.path()) {
        return;
    }
    let file = path(folder.path(), "term.data");
    let recorder = recorder(&file);
    send("-TERM", &recorder);
    send("-TERM", &recorder);
    let report = ended(recorder);
    assert_eq!(report["files"][0]["path"], file);
    assert!(report["files"][0]["covers_ns"].as_u64() > Some(0));
    assert!(program::json(&["info", &file, "--json"]).is_object());
}

fn wait_until(is_true: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "nothing happened"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn questions_about_windows_are_refused() {
    let output = program::laglab(&["record", "now", "rank", "--for", "1s"]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("about Windows; on Linux, use long-wait"),
        "{error}"
    );
}

#[test]
fn times_without_a_unit_are_refused() {
    for option in ["--for", "--last"] {
        let output = program::laglab(&["record", "now", option, "1"]);
        assert_eq!(output.status.code(), Some(2));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("the unit is missing"), "{error}");
    }
}

/// Checks that the message to a user without rights names the needed rights.
#[test]
fn missing_rights_are_named() {
    let folder = tempfile::tempdir().unwrap();
    if !can_record(folder.path()) {
        return;
    }
    let Some(output) = program::without_rights(&["record", "now", "--for", "1s"]) else {
        return;
    };
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        error.contains("cannot record events of the kernel") && error.contains("root"),
        "{error}"
    );
}
