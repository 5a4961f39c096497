//! Recordings of Linux that `perf` makes for tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skip;

/// Runs perf in a folder. Returns its output.
///
/// # Panics
/// Panics if perf fails.
pub fn run(arguments: &[&str], folder: &Path) -> String {
    String::from_utf8_lossy(&try_run(arguments, folder).expect("perf")).into_owned()
}

fn try_run(arguments: &[&str], folder: &Path) -> Result<Vec<u8>, String> {
    let output = (Command::new("perf").args(arguments))
        .current_dir(folder)
        .output();
    let output = output.map_err(|error| format!("cannot start perf: {error}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!(
            "perf {arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        ))
    }
}

/// Records events of the whole machine while a shell runs a script. Returns the path of the recording `perf.data` in
/// the folder. If this machine cannot record, skips the test and returns `None`.
///
/// # Panics
/// Panics if the recording fails although this machine can record. If the environment variable `CI` or
/// `LAGLAB_MUST_RUN` is set, also panics if this machine cannot record.
pub fn record(folder: &Path, events: &str, options: &[&str], script: &str) -> Option<PathBuf> {
    let options = [&["-a"], options].concat();
    record_program(folder, events, &options, script)
}

/// Records events of a shell that runs a script, and of the programs that it starts. See [`record`].
///
/// # Panics
/// See [`record`].
pub fn record_program(
    folder: &Path,
    events: &str,
    options: &[&str],
    script: &str,
) -> Option<PathBuf> {
    let probe = [
        "record",
        "-q",
        "-a",
        "-e",
        "sched:sched_switch",
        "-o",
        "probe.data",
        "true",
    ];
    if let Err(error) = try_run(&probe, folder) {
        skip(&format!("this machine cannot record: {error}"));
        return None;
    }
    let fixed = [
        "record",
        "-q",
        "-k",
        "CLOCK_MONOTONIC",
        "-m",
        "4M",
        "-e",
        events,
    ];
    let work = ["-o", "perf.data", "--", "sh", "-c", script];
    run(&[&fixed, options, &work].concat(), folder);
    Some(folder.join("perf.data"))
}
