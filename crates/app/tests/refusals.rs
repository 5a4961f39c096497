//! Wrong usage and unreadable input: one line on stderr, exit code 2, nothing on stdout.

mod program;

use std::fs;
use std::path::Path;

fn refuses(args: &[&str], what: &str) {
    let output = program::laglab(args);
    let error = String::from_utf8(output.stderr).expect("errors are UTF-8");
    assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert_eq!(error.lines().count(), 1, "{args:?}: {error}");
    assert!(error.contains(what), "{args:?}: {error}");
}

fn each_command_refuses(path: &Path, what: &str) {
    let path = path.to_str().expect("a path in UTF-8");
    for command in ["info", "stats", "events", "explain"] {
        refuses(&[command, path], what);
        refuses(&[command, "--json", path], what);
    }
}

#[test]
fn what_is_no_trace_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    each_command_refuses(dir.path(), "is a directory");
    each_command_refuses(&dir.path().join("none.etl"), "no such file");

    let empty = dir.path().join("empty.etl");
    fs::write(&empty, b"").unwrap();
    each_command_refuses(&empty, "is empty");

    let text = dir.path().join("text.etl");
    fs::write(&text, "not a trace\n".repeat(500)).unwrap();
    each_command_refuses(&text, "is not an .etl trace");

    let zip = dir.path().join("broken.etl.zip");
    fs::write(&zip, b"PK\x03\x04 and no more").unwrap();
    each_command_refuses(&zip, "broken.etl.zip");
}

#[test]
fn one_bad_file_among_good_ones_is_refused() {
    refuses(
        &["info", "perfview__primitive-types.etl", "none.etl"],
        "none.etl",
    );
}

#[test]
fn a_file_given_twice_is_refused() {
    let name = "perfview__primitive-types.etl";
    refuses(&["stats", name, &format!("../etl/{name}")], "twice");
}

#[test]
fn files_of_several_systems_are_told_apart() {
    let one = program::json(&["info", "--json", "perfview__diaghub__diaghub.etl"]);
    assert_eq!(one["one_system"], true);
    let files = ["perfview__gcevents.etl", "perfview__net.4.5.2.x64.etl"];
    let two = program::json(&["info", "--json", files[0], files[1]]);
    assert_eq!(two["one_system"], false);
    let text = program::text(&["explain", files[0], files[1]]);
    assert!(text.contains("recorded by different systems"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_without_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo.etl");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    each_command_refuses(&fifo, "is a pipe");
    each_command_refuses(Path::new("/dev/null"), "is a device");
}

#[cfg(unix)]
#[test]
fn a_file_without_permission_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("secret.etl");
    fs::write(&path, b"secret").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        return; // The superuser may read anything.
    }
    each_command_refuses(&path, "permission denied");
}

#[test]
fn descriptions_that_cannot_be_read_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let man = dir.path().join("broken.man");
    fs::write(&man, "<instrumentationManifest>").unwrap();
    let man = man.to_str().unwrap();
    let trace = "perfview__primitive-types.etl";
    refuses(&["events", trace, "--manifest", man], "broken.man");
    refuses(&["events", trace, "--tmf", "none.tmf"], "none.tmf");
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    refuses(
        &["stats", trace, "--tmf", empty.to_str().unwrap()],
        "no .tmf",
    );
}

#[test]
fn wrong_usage_is_refused() {
    for args in [
        &["events"][..],
        &["guess", "trace.etl"],
        &["events", "trace.etl", "--from", "yesterday"],
        &["events", "trace.etl", "--pid", "notepad"],
        &[
            "events",
            "perfview__gcevents.etl",
            "--from",
            "5",
            "--to",
            "1",
        ],
    ] {
        let output = program::laglab(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn whoever_stops_reading_is_not_told_off() {
    use std::io::Read;
    use std::process::{Command, Stdio};
    for format in ["text", "json", "csv"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_laglab"))
            .args(["events", "--format", format])
            .arg(testdata::path("etl/filtrace__etw.etl"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 64];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{format}");
        assert!(output.status.success(), "{format}");
    }
}

#[test]
fn every_command_has_help_with_examples_and_every_shell_completions() {
    for command in ["info", "stats", "events", "trim", "completions"] {
        assert!(program::text(&[command, "--help"]).contains("Examples:"));
    }
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(program::text(&["completions", shell]).contains("laglab"));
    }
}
