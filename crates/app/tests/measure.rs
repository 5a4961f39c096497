//! Tests of `laglab measure`: output, files and error messages.

use crate::program;

use std::fs;
use std::process::Output;

use serde_json::Value;

/// Measures a few short sleeps with one sleep method.
fn sleep(more: &[&str]) -> Output {
    let method = if cfg!(windows) { "Sleep" } else { "nanosleep" };
    let mut args = vec!["measure", "sleep", "--method", method];
    args.extend(["--request", "1ms", "--interval", "1500us", "--count", "20"]);
    args.extend(more);
    program::laglab(&args)
}

fn fine(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert_eq!(error, "");
    String::from_utf8(output.stdout.clone())
        .unwrap()
        .replace("\r\n", "\n")
}

#[test]
fn json_has_results_and_conditions() {
    let report: Value = serde_json::from_str(&fine(&sleep(&["--json"]))).unwrap();
    assert_eq!(report["probe"], "sleep");
    assert_eq!(report["end"], "rounds");
    assert!(report["machine"]["kernel"].is_string());
    assert!(report["clock"]["reading_ns"].as_f64().unwrap() > 0.0);
    assert!(report["sample_cost_ns"].as_f64().unwrap() > 0.0);
    let command = report["command"].as_str().unwrap();
    assert!(
        command.starts_with("laglab measure sleep --method "),
        "{command}"
    );
    let ended = report["ended_utc"].as_str().unwrap();
    assert!(ended.starts_with("20") && ended.ends_with('Z'), "{ended}");
    let results = report["results"].as_array().unwrap();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["latency"]["count"], 20);
    assert_eq!(results[0]["requested_ns"], 1_000_000);
    assert!(
        results[0]["latency"]["p99_ns"].is_null(),
        "20 samples have none"
    );
    let order = ["min_ns", "p50_ns", "p90_ns", "max_ns"];
    let order = order.map(|name| results[0]["latency"][name].as_i64().unwrap());
    assert!(order.is_sorted(), "{order:?}");
}

#[test]
fn refused_and_missing_settings_are_reported_and_stop_nothing() {
    let text = fine(&sleep(&["--cpu", "4000", "--method", "Sleep,nanosleep"]));
    assert!(text.contains("CPU 4000: refused: "), "{text}");
    let elsewhere = if cfg!(windows) { "nanosleep" } else { "Sleep" };
    assert!(
        text.contains(&format!("{elsewhere}: not available: ")),
        "{text}"
    );
    assert!(text.contains("median"), "{text}");
    if !cfg!(windows) {
        let text = fine(&sleep(&["--resolution", "0.5"]));
        assert!(
            text.contains("resolution 0.5 ms: refused: it exists on Windows only"),
            "{text}"
        );
    }
}

#[test]
fn every_policy_is_measured_whether_granted_or_refused() {
    for (policy, system) in [
        ("fifo:10", "Linux"),
        ("rr:10", "Linux"),
        ("deadline", "Linux"),
        ("time-critical", "Windows"),
        ("mmcss", "Windows"),
    ] {
        let text = fine(&sleep(&["--realtime", policy, "--json"]));
        let report: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["results"][0]["latency"]["count"], 20, "{policy}");
        let grants = report["settings"][0]["grants"].as_array().unwrap();
        assert_eq!(grants.len(), 1, "{policy}");
        let refused = grants[0]["refused"].as_str();
        if system != if cfg!(windows) { "Windows" } else { "Linux" } {
            let why = refused.expect("it exists on another system");
            assert!(why.contains(system), "{policy}: {why}");
        } else if let Some(why) = refused {
            assert!(why.len() > 10, "{policy}: {why}");
        }
    }
}

#[test]
fn a_resolution_is_held_or_refused_with_the_reason() {
    let hold = |resolutions: &str| {
        let args = ["measure", "sleep", "--hold", "--for", "100ms", "--json"];
        program::laglab(&[&args[..], &["--resolution", resolutions]].concat())
    };
    for (resolution, ns) in [("0.5", 500_000), ("1", 1_000_000), ("begin:1", 1_000_000)] {
        let output = hold(resolution);
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        let refused = said["grants"][0]["refused"].as_str();
        let code = if refused.is_some() { 2 } else { 0 };
        assert_eq!(output.status.code(), Some(code), "{resolution}: {said}");
        let now_ns = said["resolution_ns"].as_i64();
        match refused {
            None => assert!(now_ns.unwrap() <= ns + ns / 50, "{resolution}: {said}"),
            Some(why) if cfg!(windows) => {
                let keeps_to = format!(
                    "the system keeps a resolution of {} ms",
                    now_ns.unwrap() as f64 / 1e6
                );
                assert!(why.contains(&keeps_to), "{resolution}: {said}");
            }
            Some(why) => assert!(why.contains("it exists on Windows only"), "{why}"),
        }
        if refused.is_some() {
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(error.contains("cannot hold the resolution"), "{error}");
        }
    }
    let several = hold("1,2");
    let error = String::from_utf8_lossy(&several.stderr);
    assert_eq!(several.status.code(), Some(2), "{error}");
    assert!(error.contains("give one"), "{error}");
}

#[test]
fn a_second_setting_is_compared_and_no_difference_is_claimed_without_one() {
    let text = fine(&sleep(&["--vs", "nice:0", "--json"]));
    let report: Value = serde_json::from_str(&text).unwrap();
    let compared = &report["results"][1]["compared"];
    assert_eq!(compared["pairs"], 10);
    assert_eq!(compared["with"]["method"], report["results"][1]["method"]);
    let ratio = &compared["ratio"];
    let holds_one = ratio["low"].as_f64().unwrap() <= 1.0 && ratio["high"].as_f64().unwrap() >= 1.0;
    let is_open = ["unknown", "same"].contains(&compared["verdict"].as_str().unwrap());
    assert!(is_open || !holds_one, "{compared}");
    assert_eq!(compared["margin"], 0.02);
}

/// Measures until the answer is certain: first two settings whose results differ by at least half, then two
/// settings with equal results.
#[cfg(target_os = "linux")]
#[test]
fn measuring_ends_when_the_answer_is_sure() {
    let run = |vs: &str| -> Value {
        let output = program::laglab(&[
            "measure",
            "sleep",
            "--method",
            "nanosleep",
            "--vs",
            vs,
            "--until-sure=10",
            "--json",
        ]);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    // Most of the lateness comes from the default timer slack of 50 µs. The setting `slack:1ns` removes it.
    let report = run("slack:1ns");
    let compared = &report["results"][1]["compared"];
    assert_eq!(
        (&report["end"], &compared["verdict"]),
        (&"sure".into(), &"lower".into()),
        "{compared}"
    );
    assert_eq!(compared["margin"], 0.1);
    assert!(compared["pairs"].as_u64() <= report["results"][1]["runs"].as_u64());
    assert!(compared["ratio"]["high"].as_f64().unwrap() < 1.0 / 1.1);
    let report = run("nice:0");
    let compared = &report["results"][1]["compared"];
    // On a busy machine, all 64 rounds may be too few to show that the settings are equal.
    let is_sure = report["end"] == "sure";
    assert_eq!(compared["verdict"] == "same", is_sure, "{compared}");
}

#[test]
fn samples_maps_and_pages_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let path = dir.path().join(name);
        fine(&sleep(&["-o", path.to_str().unwrap()]));
        fs::read(path).unwrap()
    };
    let csv = String::from_utf8(file("a.csv")).unwrap();
    let mut lines = csv.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    let declared = tables::LatencySamples::schema();
    let declared: Vec<&str> = declared.columns.iter().map(|column| column.name).collect();
    assert_eq!(columns, declared);
    assert_eq!(lines.count(), 20);

    let json = String::from_utf8(file("a.json")).unwrap();
    for line in json.lines() {
        let sample: Value = serde_json::from_str(line).unwrap();
        assert_eq!(sample["outcome"], "done");
        assert!(sample["start_ns"].as_i64().unwrap() >= 0);
    }
    assert_eq!(json.lines().count(), 20);

    let path = dir.path().join("a.parquet");
    file("a.parquet");
    let reader = parquet::file::reader::SerializedFileReader::new(fs::File::open(path).unwrap());
    let reader = reader.unwrap();
    let about = parquet::file::reader::FileReader::metadata(&reader).file_metadata();
    assert_eq!(about.num_rows(), 20);

    assert!(file("a.png").starts_with(b"\x89PNG\r\n\x1a\n"));
    assert!(file("a.svg").starts_with(b"<svg "));
    let page = String::from_utf8(file("a.html")).unwrap();
    assert!(page.contains("<svg ") && !page.contains("<script"));
    assert!(page.contains("default-src 'none'"));
    assert!(
        page.contains("<code>laglab measure sleep --method "),
        "the command"
    );
    assert!(page.contains("Measured until 20") && page.contains(" UTC."));
}

/// Closes the output before the program prints, as `head` may do.
#[test]
fn a_closed_output_does_not_lose_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let method = if cfg!(windows) { "Sleep" } else { "nanosleep" };
    for name in ["a.csv", "a.html"] {
        let path = dir.path().join(name);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_laglab"))
            .args(["measure", "sleep", "--method", method, "--count", "20"])
            .arg("-o")
            .arg(&path)
            .stdout(writer)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {error}");
        assert!(fs::metadata(&path).unwrap().len() > 0, "{name}");
    }
}

#[test]
fn refused_settings_are_marked_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.csv");
    let text = fine(&sleep(&[
        "--cpu",
        "4000",
        "--vs",
        "usual",
        "-o",
        path.to_str().unwrap(),
    ]));
    let marked = "CPU 4000 (refused)";
    let heat = format!(": {marked}");
    assert!(text.contains(&heat), "{text}");
    assert!(
        text.contains(&format!("[{marked}] CPU 4000: refused: ")),
        "{text}"
    );
    let csv = fs::read_to_string(path).unwrap();
    let rows = |label: &str| csv.lines().filter(|row| row.contains(label)).count();
    assert_eq!((rows(marked), rows("default scheduling")), (20, 20));
}

#[test]
fn the_time_limit_holds_or_a_warning_comes_first() {
    let method = if cfg!(windows) { "Sleep" } else { "nanosleep" };
    let args = ["measure", "sleep", "--method", method, "--json"];
    // The interval between sleeps (200 ns) is too short for every system.
    let start = std::time::Instant::now();
    let times = [
        "--request",
        "100ns",
        "--interval",
        "200ns",
        "--for",
        "500ms",
    ];
    let text = fine(&program::laglab(&[&args[..], &times].concat()));
    assert!(start.elapsed().as_secs() < 120, "{:?}", start.elapsed());
    let report: Value = serde_json::from_str(&text).unwrap();
    assert!(report["results"][0]["runs"].as_u64() >= Some(1));
    let notes = report["notes"].to_string();
    assert!(notes.contains("cannot keep an interval"), "{notes}");
    // A single sleep of 400 ms takes longer than the total time of 100 ms.
    let output = program::laglab(&[&args[..], &["--request", "400ms", "--for", "100ms"]].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert!(
        error.contains("takes at least 400") && error.contains("--method"),
        "{error}"
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["results"][0]["latency"]["count"], 1);
}

#[test]
fn lines_are_those_of_sleep_benchmark() {
    let text = fine(&sleep(&["--format", "seed"]));
    assert_eq!(text.lines().count(), 20);
    for line in text.lines() {
        let rest = line.strip_prefix("Resolution: ").unwrap();
        let (_, rest) = rest.split_once("(1) slept ").unwrap();
        let (slept, rest) = rest.split_once("ms (delta: ").unwrap();
        let slept: f64 = slept.parse().unwrap();
        let delta: f64 = rest.strip_suffix(')').unwrap().parse().unwrap();
        assert!((slept - 1.0 - delta).abs() < 2e-6, "{line}");
    }
}

#[test]
fn wrong_usage_is_refused_before_anything_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = dir.path().join("none/a.csv");
    let nowhere = nowhere.to_str().unwrap();
    let not_here = if cfg!(windows) { "raw" } else { "qpc" };
    let method = if cfg!(windows) { "Sleep" } else { "nanosleep" };
    for (args, what) in [
        (vec!["-o", nowhere], "its folder does not exist"),
        (vec!["-o", "a.etl"], "unknown format; use"),
        (
            vec!["--interval", "1us"],
            "the interval must not be shorter",
        ),
        (vec!["--request", "0"], "a sleep must take 1 ns"),
        (
            vec!["--for", "1"],
            "the unit is missing; give a time such as",
        ),
        (vec!["--clock", not_here], "is not available: "),
        (vec!["--method", "usleep"], "unknown sleep method `usleep`"),
        (
            vec!["--realtime", "fifo:200"],
            "expected a priority from 1 to 99",
        ),
        (
            vec!["--vs", "quickly"],
            "unknown word `quickly`; use resolution:MS",
        ),
        (vec!["--vs", "usual"], "cannot compare the setting"),
        (vec!["--vs", "fifo:80,rr:10"], "sets the same"),
        (vec!["--precision", "0", "--for", "1s"], "percent"),
        (vec!["--until-sure=0"], "percent"),
        (vec!["--until-sure", "--count", "9"], "cannot be used with"),
        (
            vec!["--until-sure", "--method", method],
            "nothing to compare",
        ),
    ] {
        let mut line = vec!["measure", "sleep"];
        line.extend(&args);
        let output = program::laglab(&line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(output.stdout.is_empty(), "{args:?}");
        assert!(error.contains(what), "{args:?}: {error}");
    }
}

/// Limits the size of files so that writing fails halfway, as on a full disk.
#[cfg(unix)]
#[test]
fn results_are_printed_before_a_file_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.csv");
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" measure sleep --count 200 --request 10us \
                  --method nanosleep -o \"$1\"";
    let output = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_laglab")])
        .arg(&path)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("a.csv"), "{error}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("How late sleeps end") && text.contains("200"),
        "{text}"
    );
    let first = text.lines().next().unwrap_or_default();
    let answer = "  A sleep of 10.0 µs with nanosleep usually ends ";
    assert!(first.starts_with(answer), "{first}");
    assert!(first.contains(" late, at worst "), "{first}");
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Stops the program in its third run. The first run is the warm-up. The second run counts, so its results
/// must be kept.
#[cfg(target_os = "linux")]
#[test]
fn results_before_ctrl_c_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.csv");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_laglab"))
        .args(["measure", "sleep", "--method", "nanosleep", "--json"])
        .args(["--precision", "0.01", "--for", "60s", "-o"])
        .arg(&path)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut probes = std::collections::BTreeSet::new();
    while probes.len() < 3 && child.try_wait().unwrap().is_none() {
        probes.extend(threads_called("probe", child.id()));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-INT", &pid])
        .status();
    assert!(killed.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{error}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["end"], "stopped");
    let samples = report["results"][0]["latency"]["count"].as_u64().unwrap();
    assert!(samples > 0);
    let rows = fs::read_to_string(&path).unwrap().lines().count() - 1;
    assert_eq!(rows as u64, samples);
}

/// Starts a measurement of sleeps of 10 s, and waits until its first sleep begins.
#[cfg(target_os = "linux")]
fn long_sleeps() -> std::process::Child {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_laglab"))
        .args(["measure", "sleep", "--method", "nanosleep"])
        .args(["--request", "10s", "--count", "100"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while threads_called("probe", child.id()).is_empty() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child
}

/// Sends a signal to a process.
#[cfg(target_os = "linux")]
fn send(signal: &str, pid: u32) {
    let killed = std::process::Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(killed.unwrap().success());
}

/// Checks the message after Ctrl-C. A sleep cannot be cancelled, so the program needs some time to stop.
#[cfg(target_os = "linux")]
#[test]
fn the_first_ctrl_c_explains_the_wait_and_the_second_ends_it() {
    use std::io::{BufRead, BufReader};

    let mut child = long_sleeps();
    let pid = child.id();
    send("-INT", pid);
    let mut said = String::new();
    let stderr = child.stderr.take().unwrap();
    BufReader::new(stderr).read_line(&mut said).unwrap();
    assert!(said.contains("stopping after"), "{said}");
    assert!(
        said.contains("Ctrl-C again") && said.contains("lose"),
        "{said}"
    );
    send("-INT", pid);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    // After the end of the sleep, the program would have printed its results.
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.is_empty(), "{printed}");
}

#[cfg(target_os = "linux")]
#[test]
fn sigterm_ends_a_measurement_at_once() {
    use std::os::unix::process::ExitStatusExt;

    let mut child = long_sleeps();
    send("-TERM", child.id());
    let status = child.wait().unwrap();
    assert_eq!((status.code(), status.signal()), (None, Some(15)));
}

/// Returns the ids of the threads of a process that have this name.
#[cfg(target_os = "linux")]
fn threads_called(name: &str, process: u32) -> Vec<u32> {
    let folder = format!("/proc/{process}/task");
    let threads = fs::read_dir(folder).into_iter().flatten().flatten();
    threads
        .filter(|thread| {
            let comm = fs::read_to_string(thread.path().join("comm"));
            comm.is_ok_and(|comm| comm.trim() == name)
        })
        .filter_map(|thread| thread.file_name().to_str()?.parse().ok())
        .collect()
}
