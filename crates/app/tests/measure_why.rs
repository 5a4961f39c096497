//! Tests of `laglab measure … --why` on this Linux machine: the causes of late samples.
#![cfg(target_os = "linux")]

use crate::program;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// Program that uses its CPU for 20 ms, ten times per second. The name of the process is the name of its file.
const HOG: &str = "#!/usr/bin/python3
import time
while True:
    time.sleep(0.08)
    end = time.monotonic() + 0.02
    while time.monotonic() < end: pass
";

/// Returns a guard. While a test holds the guard, the other tests of this file wait, because a program of one test must
/// not delay the probe of another test.
fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Child process that is killed on drop.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the program `hog` with real-time priority 50 on CPU 0. Returns `None` if this machine does not allow the
/// priority.
fn start_hog(folder: &Path) -> Option<KillOnDrop> {
    let path = folder.join("hog");
    fs::write(&path, HOG).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new("taskset");
    command.args(["-c", "0", "chrt", "-f", "50"]).arg(&path);
    let hog = KillOnDrop(command.spawn().ok()?);
    std::thread::sleep(std::time::Duration::from_millis(500));
    let policy = Command::new("chrt")
        .args(["-p", &hog.0.id().to_string()])
        .output()
        .ok()?;
    String::from_utf8_lossy(&policy.stdout)
        .contains("SCHED_FIFO")
        .then_some(hog)
}

/// Command that measures sleeps on CPU 0, where the hog runs. The interval is longer than a delay by `hog`, so a late
/// sample does not delay the next sample. The hog's period is far from a multiple of the interval, so late samples are
/// spread over the whole measurement.
const PROBE: [&str; 10] = [
    "measure",
    "sleep",
    "--method",
    "clock_nanosleep",
    "--interval",
    "37ms",
    "--count",
    "150",
    "--cpu",
    "0",
];

/// Measures sleeps of a real-time thread on CPU 0. Only the program `hog` and interrupts can delay this thread. Returns
/// `None` if this machine cannot record.
fn measure(folder: &Path, over: &str) -> Option<Value> {
    let why_folder = folder.join("why").display().to_string();
    let options = [
        "--request",
        "1ms",
        "--realtime",
        "fifo:10",
        "--why",
        "--why-over",
        over,
        "--why-folder",
        &why_folder,
        "--json",
    ];
    let output = program::laglab(&[&PROBE[..], &options].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    if report["why"]["recorder"].is_null() {
        testdata::skip(&report["why"]["left_out"].to_string());
        return None;
    }
    Some(report)
}

/// Returns the number of context switches to the program `hog` that perf prints for a recording. Some kernels record no
/// events in the context of some threads. If the recording lacks switches to the hog, laglab cannot name the hog, so
/// the test makes another recording.
fn switches_to_hog(recording: &Path) -> usize {
    let folder = recording.parent().unwrap();
    let file = recording.file_name().unwrap().to_string_lossy();
    let text = testdata::perf::run(&["script", "-i", &file, "-F", "event,trace"], folder);
    text.lines()
        .filter(|line| line.contains("next_comm=hog"))
        .count()
}

/// Starts a busy program on each CPU. Some kernels record no events in the context of an idle thread, so no CPU should
/// be idle. The program on the last CPU has normal priority. The probe may not use this CPU, so the program must not be
/// reported as a cause. The other programs run only while no other thread wants their CPU.
fn start_spinners() -> Vec<KillOnDrop> {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    let start = |cpu: usize| {
        let policy = if cpu + 1 == cpus { "-o" } else { "-i" };
        let place = cpu.to_string();
        let line = [
            "-c",
            &place,
            "chrt",
            policy,
            "0",
            "sh",
            "-c",
            "while :; do :; done",
        ];
        KillOnDrop(Command::new("taskset").args(line).spawn().unwrap())
    };
    (0..cpus).map(start).collect()
}

#[test]
fn the_hog_is_named_in_nearly_all_late_samples() {
    let _machine = alone();
    let mut lacking = Vec::new();
    for _ in 0..5 {
        let _spinners = start_spinners();
        let folder = tempfile::tempdir().unwrap();
        let Some(hog) = start_hog(folder.path()) else {
            return testdata::skip("a program cannot get a real-time priority here");
        };
        let Some(report) = measure(folder.path(), "5ms") else {
            return;
        };
        drop(hog);
        let why = &report["why"];
        let samples = why["samples"].as_array().unwrap();
        assert!(samples.len() >= 5, "{why:#}");
        // A sample that began late has the cause of the sample before it, so its own recording needs no switch to the
        // hog. Only the other samples are counted.
        let own: Vec<&Value> = samples
            .iter()
            .filter(|it| it["began_late_ns"].as_i64() < it["latency_ns"].as_i64().map(|ns| ns / 2))
            .collect();
        let recordings: BTreeSet<&Path> = own
            .iter()
            .map(|it| Path::new(it["recording"].as_str().unwrap()))
            .collect();
        let switches: usize = recordings.into_iter().map(switches_to_hog).sum();
        if switches < own.len() {
            lacking.push((switches, own.len()));
            continue;
        }
        let of_hog = samples.iter().filter(|it| it["process"] == "hog").count();
        assert!(
            of_hog * 20 >= samples.len() * 19,
            "{of_hog} of {}: {why:#}",
            samples.len()
        );
        for sample in own.iter().filter(|it| it["process"] == "hog") {
            let number = |name: &str| sample["parts"][name].as_i64().unwrap();
            let latency =
                sample["latency_ns"].as_i64().unwrap() - sample["began_late_ns"].as_i64().unwrap();
            let sum =
                number("waited_ns") + number("ready_ns") + number("ran_ns") + number("unknown_ns");
            assert!((sum - latency).abs() < 100_000, "{sample:#}");
            assert!(number("ready_ns") * 10 > latency * 9, "{sample:#}");
            assert_eq!(sample["parts"]["wait"]["cpu"], 0);
            assert_eq!(sample["parts"]["wait"]["cause"], "higher priority");
        }
        let first = &why["causes"][0];
        assert_eq!(first["process"], "hog");
        assert!(Path::new(first["recording"].as_str().unwrap()).is_file());
        assert!(why["recorder"]["records"].as_u64().unwrap() > 0);
        assert!(why["medians"][0]["without_ns"].is_number());
        return;
    }
    panic!("five recordings lack switches to the hog: {lacking:?} (recorded, late samples)");
}

#[test]
fn without_late_samples_no_file_is_written() {
    let _machine = alone();
    let folder = tempfile::tempdir().unwrap();
    // No sleep on a working machine is a minute late.
    let Some(report) = measure(folder.path(), "60s") else {
        return;
    };
    assert_eq!(report["why"]["late"], 0);
    assert_eq!(report["why"]["causes"].as_array().unwrap().len(), 0);
    assert!(!folder.path().join("why").exists());
}

#[test]
fn causes_are_in_the_text() {
    let _machine = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("why").display().to_string();
    let output = program::laglab(&[
        "measure",
        "sleep",
        "--method",
        "nanosleep",
        "--count",
        "300",
        "--why",
        "--why-over",
        "1ns",
        "--why-folder",
        &path,
    ]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let text = String::from_utf8_lossy(&output.stdout);
    if text.contains("cannot record events of the kernel") {
        return testdata::skip(&text);
    }
    for expected in [
        "Why samples were late",
        "300 samples were later than 1 ns",
        "until the timer woke it",
        "of a CPU for the recorder",
        "median ",
        "laglab explain ",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

/// Checks that a user without rights learns how long a thread waited for a CPU, because the kernel counts this time for
/// each thread.
#[test]
fn without_rights_the_time_without_a_cpu_is_known() {
    let _machine = alone();
    let folder = tempfile::tempdir().unwrap();
    let Some(hog) = start_hog(folder.path()) else {
        return testdata::skip("a program cannot get a real-time priority here");
    };
    let options = ["--why", "--why-over", "5ms", "--json"];
    let output = program::without_rights(&[&PROBE[..], &options].concat());
    drop(hog);
    let Some(output) = output else { return };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let why = &report["why"];
    assert!(why["recorder"].is_null());
    assert!(
        why["left_out"]
            .to_string()
            .contains("cannot record events of the kernel")
    );
    let samples = why["samples"].as_array().unwrap();
    let own = samples.iter().filter(|it| it["began_late_ns"] == 0);
    let waited = own
        .clone()
        .filter(|it| it["cause"] == "waited for a CPU")
        .count();
    // The program `hog` keeps the CPU for 20 ms. The thread of the probe is ready without a CPU during the whole time.
    assert!(waited >= 3 && waited * 10 >= own.count() * 9, "{why:#}");
}

#[test]
fn options_of_causes_need_why() {
    let output = program::laglab(&["measure", "sleep", "--why-over", "1ms"]);
    assert_eq!(output.status.code(), Some(2));
    let output = program::laglab(&["measure", "net", "--throughput", "--why"]);
    assert_eq!(output.status.code(), Some(2));
}
