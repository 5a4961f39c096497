//! Runs the built program laglab.
#![allow(
    dead_code,
    reason = "each test program uses its own part of this module"
)]

use std::path::Path;
use std::process::{Command, Output};

/// Runs `laglab` with arguments. The working directory is the folder of the real traces.
pub(crate) fn laglab(args: &[&str]) -> Output {
    laglab_with(&[], args)
}

/// Runs `laglab` with arguments and environment variables.
pub(crate) fn laglab_with(variables: &[(&str, &str)], args: &[&str]) -> Output {
    run(&testdata::path("etl"), variables, args)
}

/// Runs `laglab` with arguments in a working directory.
pub(crate) fn laglab_in(folder: &Path, args: &[&str]) -> Output {
    run(folder, &[], args)
}

fn run(folder: &Path, variables: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_laglab"));
    command
        .args(args)
        .current_dir(folder)
        .env_remove("CLICOLOR_FORCE")
        .env_remove("LAGLAB_CACHE_LIMIT")
        .env(
            "LAGLAB_CACHE",
            concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"),
        )
        .envs(variables.iter().copied());
    // If several programs start at the same time, Wine sometimes fails to start one of them.
    let attempts = if cfg!(windows) { 5 } else { 1 };
    (1..attempts)
        .find_map(|_| command.output().ok())
        .unwrap_or_else(|| command.output().expect("the program starts"))
}

/// Runs `laglab` as a user without any rights. Skips the test and returns `None` if `setpriv` is not installed.
#[cfg(target_os = "linux")]
pub(crate) fn without_rights(args: &[&str]) -> Option<Output> {
    // This user may not read the folder of the program, so the program is copied.
    let folder = tempfile::tempdir_in("/tmp").expect("a temporary folder");
    let copy = folder.path().join("laglab");
    std::fs::copy(env!("CARGO_BIN_EXE_laglab"), &copy).expect("a copy of the program");
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), readable).expect("a readable folder");
    let output = Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all",
        ])
        .arg(&copy)
        .args(args)
        .current_dir("/tmp")
        .output();
    if output.is_err() {
        testdata::skip("setpriv is not installed");
    }
    output.ok()
}

/// Asserts that the program succeeds. Returns its standard output with Unix line ends.
pub(crate) fn text(args: &[&str]) -> String {
    let output = laglab(args);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {error}");
    assert_eq!(error, "", "{args:?}");
    String::from_utf8(output.stdout)
        .expect("output is UTF-8")
        .replace("\r\n", "\n")
}

/// Returns the standard output, parsed as JSON.
pub(crate) fn json(args: &[&str]) -> serde_json::Value {
    serde_json::from_str(&text(args)).expect("output is JSON")
}

/// Returns the standard output, parsed as one JSON value per line.
pub(crate) fn json_lines(args: &[&str]) -> Vec<serde_json::Value> {
    text(args)
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect()
}

/// Returns the rows of a report about a trace.
pub(crate) fn rows(report: &[&str], trace: &str) -> Vec<serde_json::Value> {
    json_lines(&[report, &[trace, "--json"]].concat())
}
