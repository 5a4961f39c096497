//! Tests of `laglab measure files`.

use crate::program;

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Returns the arguments of a short measurement with one read method.
fn args<'a>(folder: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let folder = folder.to_str().expect("UTF-8");
    let first = if cfg!(windows) { "ReadFile" } else { "pread" };
    let mut args = vec!["measure", "files", folder, "--cache", "warm"];
    if !more.contains(&"--method") {
        args.extend(["--method", first]);
    }
    args.extend(more);
    args
}

fn refusal(args: &[&str]) -> String {
    let output = program::laglab(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_set_is_made_measured_by_phases_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let set = folder.path().join("set");
    let samples = folder.path().join("samples.csv");
    let methods = if cfg!(windows) {
        "ReadFile,ReadFile-2,IOCP"
    } else {
        "pread,pread-2,mmap"
    };
    let report: Value = program::json(&args(
        &set,
        &[
            "--json",
            "--make=mixed",
            "--count",
            "30",
            "--remove",
            "--rounds",
            "6",
            "--method",
            methods,
            "-o",
            samples.to_str().expect("UTF-8"),
        ],
    ));
    assert_eq!(report["probe"], "files");
    assert!(report["clock"]["ticks_per_second"].as_u64() > Some(1_000_000));
    let results = report["results"].as_array().expect("results");
    assert_eq!(
        results.len(),
        3 * 6,
        "three methods of five parts and each read"
    );
    let total: Vec<&Value> = results
        .iter()
        .filter(|result| result["phase"] == "total")
        .collect();
    assert_eq!(total[1]["compared"]["pairs"], 6);
    assert_eq!(total[1]["runs"], 6);
    let bytes = total[0]["size_bytes"].as_u64().expect("known");
    assert!((30 * 1024..30 << 20).contains(&bytes), "{bytes}");
    assert!(!set.exists(), "it was to be removed");

    // The output has a row for each phase of each run, and at least one row for each file that was read.
    let rows = fs::read_to_string(samples)
        .expect("written")
        .lines()
        .count();
    assert!(rows > 3 * 6 * (5 + 30), "{rows}");
}

#[test]
fn text_has_a_row_for_each_method_with_all_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a"), "abc").expect("written");
    let text = program::text(&args(folder.path(), &["--rounds", "1"]));
    for part in ["open", "set up", "read", "sum", "total", "Mticks"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let first = if cfg!(windows) { "ReadFile" } else { "pread" };
    assert!(
        text.lines()
            .any(|line| line.trim_start().starts_with(first)),
        "{text}"
    );
}

#[test]
fn every_method_is_measured_or_reported_as_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let set = folder.path().join("set");
    let set = set.to_str().expect("UTF-8");
    let args = ["measure", "files", set, "--method", "telepathy"];
    let said = refusal(&args);
    let (_, names) = said.split_once("use one of ").expect("they are named");
    let names = names.lines().next().expect("a line").trim_end_matches('.');
    let mut known: Vec<&str> = names.split(", ").map(str::trim).collect();
    known.sort_unstable();

    let args = ["measure", "files", set, "--make", "--count", "40"];
    let more = ["--cache", "warm,direct", "--rounds", "1", "--json"];
    let report: Value = program::json(&[&args[..], &more].concat());
    let named = |part: &str, warm_only: bool| -> Vec<String> {
        let of = report[part].as_array().expect(part).iter();
        of.filter(|series| !warm_only || series["setting"] == "warm" && series["phase"] == "total")
            .map(|series| series["method"].as_str().expect("a name").to_owned())
            .collect()
    };
    let mut found = named("results", true);
    for missing in report["unavailable"].as_array().expect("a list") {
        let why = missing["why"].as_str().expect("a reason");
        assert!(why.len() > 10, "{missing}");
    }
    found.extend(named("unavailable", false));
    found.sort_unstable();
    found.dedup();
    found.retain(|name| name != "direct");
    assert_eq!(found, known);
}

#[test]
fn impossible_measurements_are_refused_with_advice() {
    let folder = tempfile::tempdir().expect("a folder");
    let empty = refusal(&args(folder.path(), &[]));
    assert!(empty.contains("--make"), "{empty}");
    let missing = refusal(&args(&folder.path().join("missing"), &[]));
    assert!(
        missing.contains("cannot list ") && missing.contains("; name an existing folder"),
        "{missing}"
    );
    assert!(!missing.contains("os error"), "{missing}");
    fs::write(folder.path().join("mine"), "precious").expect("written");
    if !cfg!(target_os = "linux") {
        let here = folder.path().to_str().expect("UTF-8");
        let not_here = refusal(&["measure", "files", here, "--cache", "dropped"]);
        assert!(not_here.contains("dropped (only Linux"), "{not_here}");
    }
    let time = refusal(&args(folder.path(), &["--for", "1"]));
    assert!(time.contains("the unit is missing"), "{time}");
    let full = refusal(&args(folder.path(), &["--make"]));
    assert!(full.contains("is not empty"), "{full}");
    assert_eq!(
        fs::read(folder.path().join("mine")).expect("there"),
        b"precious"
    );
}

#[test]
fn unknown_methods_and_states_are_refused_with_a_list() {
    for (option, expected) in [("--method", "mmap, "), ("--cache", "direct")] {
        if cfg!(windows) && option == "--method" {
            continue;
        }
        let output = program::laglab(&["measure", "files", ".", option, "telepathy"]);
        assert_eq!(output.status.code(), Some(2));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn methods_of_other_systems_are_reported_as_such() {
    let (other, system) = if cfg!(windows) {
        ("mmap", "Linux and macOS")
    } else {
        ("ReadFile", "Windows")
    };
    let error = refusal(&["measure", "files", ".", "--method", other]);
    let expected = format!("`{other}` exists on {system} only");
    assert!(error.contains(&expected), "{error}");
}

/// Tests files that laglab did not create, so that another program may truncate them during the measurement.
#[cfg(unix)]
#[test]
fn methods_unsafe_for_foreign_files_are_listed_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a"), "abc").expect("written");
    let here = folder.path().to_str().expect("UTF-8");
    let all = ["measure", "files", here, "--cache", "warm", "--rounds", "1"];
    let report: Value = program::json(&[&all[..], &["--json"]].concat());
    let unavailable = report["unavailable"].as_array().expect("a list");
    let why = |name: &str| {
        let method = unavailable.iter().find(|entry| entry["method"] == name);
        method.map(|of| of["why"].as_str().expect("a reason").to_owned())
    };
    let mapped = why("mmap").expect("it is listed");
    assert!(mapped.contains("--method mmap"), "{mapped}");
    let report: Value = program::json(&args(folder.path(), &["--rounds", "1", "--json"]));
    assert_eq!(report["unavailable"], Value::Array(vec![]));
}

#[test]
fn the_page_has_the_table_of_the_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a"), "abc").expect("written");
    let page = folder.path().join("a.html");
    let page = page.to_str().expect("UTF-8");
    let text = program::text(&args(folder.path(), &["--rounds", "2", "-o", page]));
    let page = fs::read_to_string(page).expect("written");
    assert!(text.contains("warm, 2 rounds"), "{text}");
    assert!(page.contains("warm, 2 rounds"), "{page}");
    for heading in ["set up", "Mticks", "one read: median", "read vs first"] {
        assert!(
            text.contains(heading) && page.contains(heading),
            "{heading}"
        );
    }
    // Two single reads are too few for a 99th percentile, so the table shows a dash.
    let first = if cfg!(windows) { "ReadFile" } else { "pread" };
    let row = text
        .lines()
        .find(|line| line.trim_start().starts_with(first));
    let row = row.expect("a row");
    assert!(row.split_whitespace().any(|cell| cell == "-"), "{row}");
}

/// Runs laglab as a user who may not drop the system's cache. Returns `None` if this is not possible on this
/// machine.
#[cfg(target_os = "linux")]
fn without_rights(args: &[&str]) -> Option<std::process::Output> {
    use std::process::Command;

    let program = env!("CARGO_BIN_EXE_laglab");
    let unprivileged = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let is_root = fs::metadata("/proc/self").is_ok_and(|metadata| {
        use std::os::unix::fs::MetadataExt;
        metadata.uid() == 0
    });
    let mut command = if is_root {
        let mut command = Command::new("setpriv");
        command.args(unprivileged).arg(program);
        command
    } else {
        Command::new(program)
    };
    let output = command.args(args).output().ok()?;
    // setpriv ends with code 126 or 127 if it cannot start the program.
    (!matches!(output.status.code(), Some(126 | 127))).then_some(output)
}

#[cfg(target_os = "linux")]
#[test]
fn a_cache_that_may_not_be_dropped_leaves_the_other_states() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().expect("a folder");
    let anybody = fs::Permissions::from_mode(0o777);
    fs::set_permissions(folder.path(), anybody).expect("changed");
    let set = folder.path().join("set");
    let measure = |caches: &str| {
        let set = set.to_str().expect("UTF-8");
        let make = [
            "measure", "files", set, "--make", "--count", "5", "--remove",
        ];
        let how = ["--method", "pread", "--rounds", "1", "--json"];
        without_rights(&[&make[..], &how, &["--cache", caches]].concat())
    };
    let Some(output) = measure("dropped,warm") else {
        testdata::skip("setpriv cannot start a program without root's rights");
        return;
    };
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["unavailable"][0]["method"], "dropped");
    let why = report["unavailable"][0]["why"].as_str().expect("a reason");
    assert!(why.contains("cannot drop") && why.contains("root"), "{why}");
    let results = report["results"].as_array().expect("results");
    assert!(!results.is_empty() && results.iter().all(|result| result["setting"] == "warm"));
    assert!(!set.exists(), "it was to be removed");

    let output = measure("dropped").expect("as before");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains("dropped (cannot drop the system's file cache"),
        "{error}"
    );
    assert!(!set.exists(), "it was to be removed");
}
