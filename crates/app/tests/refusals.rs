//! Tests of wrong usage and unreadable input: one line on stderr, exit code 2, nothing on stdout.

use crate::program;

use std::fs;
use std::path::Path;

use simulated::Simulated;

fn refuses(args: &[&str], what: &str) {
    let output = program::laglab(args);
    let error = String::from_utf8(output.stderr).expect("errors are UTF-8");
    assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
    assert!(output.stdout.is_empty(), "{args:?}");
    assert_eq!(error.lines().count(), 1, "{args:?}: {error}");
    let error = if args.contains(&"--json") {
        let error: serde_json::Value = serde_json::from_str(&error).expect("an error in JSON");
        assert_eq!(error["exit_code"], 2, "{args:?}");
        error["error"].as_str().expect("a text").to_owned()
    } else {
        error
    };
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
fn files_that_are_no_traces_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    each_command_refuses(dir.path(), "is a directory");
    each_command_refuses(&dir.path().join("none.etl"), "no such file");

    let empty = dir.path().join("empty.etl");
    fs::write(&empty, b"").unwrap();
    each_command_refuses(&empty, "is empty");

    let text = dir.path().join("text.etl");
    fs::write(&text, "not a trace\n".repeat(500)).unwrap();
    each_command_refuses(&text, "is not an ETW trace");

    // This file ends within the header of the trace.
    let cut = dir.path().join("cut.etl");
    let whole = fs::read(testdata::path("etl/perfview__gcevents.etl")).unwrap();
    fs::write(&cut, &whole[..100]).unwrap();
    each_command_refuses(&cut, "copy it again");

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
fn a_copy_of_a_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let name = "perfview__primitive-types.etl";
    let copy = dir.path().join("copy.etl");
    fs::copy(testdata::path(&format!("etl/{name}")), &copy).unwrap();
    let copy = copy.to_str().unwrap();
    for command in ["stats", "explain"] {
        refuses(&[command, name, copy], "has the same content as");
    }
}

#[test]
fn simultaneous_sessions_must_be_of_one_machine() {
    let [one, other] =
        ["1", "2"].map(|seed| Simulated::new("healthy", &[&format!("seed={seed}"), "duration=1s"]));
    for command in ["explain", "info", "stats", "events"] {
        refuses(&[command, &one.trace, &other.trace], "one by one");
    }
    let of_one = [
        "explain",
        "--json",
        "perfview__diaghub__diaghub.kernel.1.etl",
        "perfview__diaghub__diaghub.user_injected.1.etl",
        "perfview__diaghub__diaghub.user_paged.1.etl",
    ];
    let together = program::json(&of_one);
    assert_eq!(together["info"]["sessions"].as_array().unwrap().len(), 3);
}

#[test]
fn unknown_threads_and_processes_are_refused_with_alternatives() {
    let healthy = Simulated::new("healthy", &["duration=1s"]);
    let trace = healthy.trace.as_str();
    for (question, what) in [
        (&["--thread", "99999"][..], "the nearest "),
        (&["--process", "exploder"], "explorer.exe"),
        (&["--process", ""], "is empty"),
        (&["--at", "999"], "from 0 s to 1.000 s"),
        (&["--at", "-5"], "from 0 s to 1.000 s"),
        (&["--from", "70", "--to", "80"], "from 0 s to 1.000 s"),
        (&["--symbols", "no-such-folder"], "no such folder"),
        (&["--symbols", ""], "the path is empty"),
    ] {
        refuses(&[&["explain", trace][..], question].concat(), what);
    }
    for id in ["-1", "abc"] {
        let output = program::laglab(&["explain", trace, "--thread", id]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(error.contains("expected a thread id"), "{error}");
    }
    // A process without findings is no error if the process exists.
    let idle = program::text(&["explain", trace, "--at", "0.5", "--process", "Idle"]);
    assert!(idle.contains("Nothing found in scope"), "{idle}");
}

/// Checks that `info` rejects a packet capture, and that `explain` reads it but gives no cause of a lag.
#[test]
fn a_capture_of_packets_is_explained_and_has_no_events() {
    let dir = tempfile::tempdir().unwrap();
    let pcap = dir.path().join("one.pcap");
    // The header of the file has: magic number, version 2.4, time zone, accuracy, maximum packet size, type
    // Ethernet. The packet has: seconds, microseconds, number of captured bytes, number of original bytes,
    // data.
    let words = [0xA1B2_C3D4, 0x0004_0002, 0, 0, 65_535, 1];
    let packet = [1_700_000_000, 0, 60, 60];
    let mut bytes: Vec<u8> = words
        .iter()
        .chain(&packet)
        .flat_map(|word: &u32| word.to_le_bytes())
        .collect();
    bytes.extend([0; 60]);
    fs::write(&pcap, bytes).unwrap();
    let pcap = pcap.to_str().unwrap();
    refuses(&["info", pcap], "is a packet capture");
    let text = program::text(&["explain", pcap]);
    assert!(
        text.starts_with("one.pcap   1 captured packet over "),
        "{text}"
    );
    assert!(
        text.contains("does not show why the machine lagged"),
        "{text}"
    );
}

#[test]
fn files_of_several_systems_are_recognised() {
    let one = program::json(&["info", "--json", "perfview__diaghub__diaghub.etl"]);
    assert_eq!(one["one_system"], true);
    let files = ["perfview__gcevents.etl", "perfview__net.4.5.2.x64.etl"];
    let two = program::json(&["info", "--json", files[0], files[1]]);
    assert_eq!(two["one_system"], false);
    let text = program::text(&["explain", files[0], files[1]]);
    assert!(text.contains("recorded by different systems"), "{text}");
    let claimed = program::json(&["explain", "--json", files[0], files[1]]);
    assert_eq!(claimed["explanation"]["findings"], serde_json::json!([]));
    let theories = claimed["explanation"]["theories"].as_array().unwrap();
    assert!(
        theories
            .iter()
            .all(|theory| theory["judgement"] == "not_recorded")
    );
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

/// Gives a pipe without a writer, and a device without an end, to commands that read other files than traces.
#[cfg(unix)]
#[test]
fn inputs_without_an_end_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo.csv");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    for (input, what) in [
        (fifo.to_str().unwrap(), "is a pipe"),
        ("/dev/zero", "is a device"),
    ] {
        let plan = dir.path().join(what);
        fs::create_dir(&plan).unwrap();
        std::os::unix::fs::symlink(input, plan.join("measure.toml")).unwrap();
        let commands: [&[&str]; 10] = [
            &["prove", "verdict", plan.to_str().unwrap()],
            &["prove", "compare", input, "--value", "x"],
            &["prove", "history", input, "--value", "x"],
            &["prove", "plan", input],
            &[
                "tune",
                "supports",
                "DisablePagingExecutive",
                "--kernel",
                input,
            ],
            &["tune", "audit", input],
            &["tune", "bisect", "--measure", "true", input],
            &["tune", "dfsn", "rewrite", input],
            &["record", "check", input],
            &["simulate", input],
        ];
        for args in commands {
            let output = program::laglab(args);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
            assert!(said.contains(what), "{args:?}: {said}");
        }
    }
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
        return; // The superuser can read all files.
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
fn missing_files_are_refused_with_cause_and_advice() {
    let dir = tempfile::tempdir().unwrap();
    let none = dir.path().join("none.txt");
    let none = none.to_str().unwrap();
    let cause = format!("cannot read {none}: no such file or folder; check the path");
    for args in [
        &["record", "check", none][..],
        &["tune", "audit", none],
        &["tune", "bisect", none, "--manual"],
        &["tune", "dfsn", "rewrite", none],
        &["simulate", none],
    ] {
        refuses(args, &cause);
    }
    let folder = dir.path().to_str().unwrap();
    refuses(
        &["simulate", &format!("{folder}/none.toml")],
        "check the path",
    );
}

#[test]
fn similar_names_of_scenarios_are_suggested() {
    refuses(&["simulate", "rank-stal"], "did you mean `rank-stall`?");
    for command in ["info", "explain"] {
        refuses(&[command, "rank-stal"], "`laglab simulate rank-stall`");
        refuses(&[command, "rank-stall"], "give rank-stall.etl");
        refuses(&[command, "qqq"], "no such file; check the path");
    }
}

#[test]
fn numbers_outside_their_limits_are_refused_with_the_limits() {
    for (args, limits) in [
        (&["record", "--for", "cpu", "--nodes", "0"][..], "1 to 64"),
        (
            &["tune", "explain", "sleep", "--sleep", "100001"],
            "0 to 100000",
        ),
    ] {
        let output = program::laglab(args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let expected = format!("give an integer from {limits}");
        assert!(error.contains(&expected), "{args:?}: {error}");
    }
}

#[test]
fn comparisons_need_a_trace_on_each_side() {
    let (one, other) = ("perfview__primitive-types.etl", "perfview__gcevents.etl");
    let dir = tempfile::tempdir().unwrap();
    let page = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    #[cfg(feature = "open")]
    {
        fn open<'a>(args: &[&'a str]) -> Vec<&'a str> {
            [&["open", "--no-browser"], args].concat()
        }
        refuses(
            &open(&[one, other, "--against", other]),
            "cannot compare 2 traces",
        );
        refuses(&open(&[one, "--against", "none.etl"]), "no such file");
        let pcap = page("empty.pcap");
        let words = [0xA1B2_C3D4_u32, 0x0004_0002, 0, 0, 65_535, 1];
        fs::write(&pcap, words.map(u32::to_le_bytes).concat()).unwrap();
        refuses(
            &open(&[one, "--against", &pcap]),
            "has no events to compare",
        );
        for incomplete in [&[one, "--against"][..], &["--against", other]] {
            let output = program::laglab(&open(incomplete));
            assert_eq!(output.status.code(), Some(2), "{incomplete:?}");
        }
    }
    let text = page("page.txt");
    refuses(
        &["prove", "diff", "-o", &text, one, "--", other],
        "unknown format; use .html",
    );
    assert!(!Path::new(&text).exists());
    let copy = page("copy.html");
    fs::copy(testdata::path(&format!("etl/{one}")), &copy).unwrap();
    refuses(
        &["prove", "diff", "-o", &copy, &copy, "--", other],
        "is an input file",
    );
    assert!(fs::metadata(&copy).unwrap().len() > 1_000);
}

#[cfg(target_os = "linux")]
#[test]
fn folders_of_the_system_are_refused() {
    let trace = testdata::path("etl/filtrace__etw.etl");
    let report = ["report", trace.to_str().unwrap(), "-o", "/proc/x.html"];
    refuses(
        &report,
        "its folder takes no new files; give another folder",
    );
}

/// A report that shows nothing because of a misspelt name looks like an answer.
#[test]
fn filters_of_reports_that_match_nothing_are_refused() {
    let healthy = Simulated::new("healthy", &["duration=1s"]);
    let trace = healthy.trace.as_str();
    for command in [
        "cswitch",
        "readythread",
        "cpudisk",
        "profile",
        "diskio",
        "process",
    ] {
        refuses(&[command, trace, "--process", "exploder"], "explorer.exe");
        refuses(
            &[command, trace, "--from", "100s", "--to", "200s"],
            "from 0 s to 1.000 s",
        );
    }
    for command in ["cswitch", "readythread"] {
        refuses(&[command, trace, "--thread", "99999"], "the nearest ");
    }
    for command in ["cswitch", "dpcisr"] {
        refuses(&[command, trace, "--cpu", "99"], "CPUs 0 to 7");
    }
    let known = program::laglab(&["cswitch", trace, "--process", "explorer", "--cpu", "7"]);
    assert_eq!(known.status.code(), Some(0));
}

#[test]
fn numbers_that_are_none_are_refused_in_words() {
    for (number, why) in [
        ("many", "many is no whole number"),
        (
            "99999999999999999999",
            "99999999999999999999 is out of range",
        ),
    ] {
        refuses(&["events", "a.etl", "--limit", number], why);
    }
}

/// Names of files need not be UTF-8.
#[cfg(unix)]
#[test]
fn wrong_usage_beside_an_argument_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_laglab"))
        .arg("explain")
        .arg(std::ffi::OsStr::from_bytes(b"\xff"))
        .arg("--nope")
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.starts_with("laglab: unexpected argument '--nope'"),
        "{error}"
    );
}

/// Builds that are made quickly lack some commands, which the documentation describes.
#[cfg(not(feature = "sql"))]
#[test]
fn a_command_that_the_build_lacks_is_no_unknown_command() {
    refuses(&["sql", "a.etl", "SELECT 1"], "this build has no `sql`");
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
        refuses(&[args, &["--json"]].concat(), "");
    }
}

#[test]
fn the_right_command_is_named() {
    for (args, advice) in [
        (
            &["perfview__gcevents.etl"][..],
            "laglab explain perfview__gcevents.etl",
        ),
        (
            &["compare", "a.csv"],
            "the command is `laglab prove compare`",
        ),
        (
            &["prove", "diff", "a.etl", "b.etl", "c.etl"],
            "put `--` between the sides",
        ),
        (&["prove", "diff", "a.etl"], "give them, too"),
    ] {
        refuses(args, advice);
    }
}

#[test]
fn closed_pipes_are_no_error() {
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
