//! Tests of `laglab measure net`, with source and reflector on the loopback of this machine.

use crate::program;

use program::laglab;
use serde_json::Value;

const SHORT: [&str; 7] = [
    "measure",
    "net",
    "--loopback",
    "--run-for",
    "50ms",
    "--runs",
    "2",
];

fn json(more: &[&str]) -> Value {
    program::json(&[&SHORT, more, &["--json"]].concat())
}

/// Asserts that the exit code is 2 (wrong usage). Returns the message on stderr.
fn refusal(args: &[&str]) -> String {
    let output = laglab(&[&["measure", "net"], args].concat());
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert!(output.stdout.is_empty(), "{args:?}");
    String::from_utf8(output.stderr).expect("UTF-8")
}

#[test]
fn every_rate_and_setting_has_its_results() {
    let report = json(&["--rate", "1k,ping-pong", "--vs", "nice:1"]);
    assert_eq!(
        (&report["probe"], &report["end"]),
        (&"net".into(), &"rounds".into())
    );
    let results = report["results"].as_array().expect("results");
    let methods: Vec<&str> = results
        .iter()
        .filter_map(|series| series["method"].as_str())
        .collect();
    // Results that are compared are next to each other.
    assert_eq!(
        methods,
        ["udp 1000/s", "udp 1000/s", "udp ping-pong", "udp ping-pong"]
    );
    assert!(results[0]["compared"].is_null() && results[2]["compared"].is_null());
    for at in [1, 3] {
        let with = &results[at]["compared"]["with"];
        assert_eq!(with["method"], results[at]["method"]);
        assert_eq!(with["setting"], results[at - 1]["setting"]);
    }
    for result in results {
        assert_eq!(
            (&result["size_bytes"], &result["runs"]),
            (&100.into(), &2.into())
        );
        let latency = &result["latency"];
        let samples = |name: &str| latency[name].as_u64().expect("a count");
        assert!(samples("count") > 0);
        if result["method"] == "udp 1000/s" {
            assert_eq!(samples("count") + samples("unknown"), 100);
        }
    }
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("Both ends are on this machine: loopback"),
        "{notes}"
    );
    assert!(notes.contains("100 packets sent"), "{notes}");
    let fates = report["fates"].as_array().expect("fates");
    assert_eq!(fates.len(), 8, "four methods and settings, two runs");
    for fates in fates.iter().filter(|fate| fate["method"] == "udp 1000/s") {
        let count = |name: &str| fates["tally"][name].as_u64().expect("a count");
        assert_eq!(count("sent") + count("not_sent"), 50);
        assert_eq!(count("returned") + count("lost"), count("sent"));
    }
}

#[test]
fn reliable_multicast_is_compared_with_udp() {
    // The port depends on the process id, so that concurrent test runs on this machine use different ports.
    let port = (20_000 + std::process::id() % 4_000 * 3).to_string();
    let args = ["--transport", "udp,pgm", "--rate", "500", "--port", &port];
    let args = [&SHORT, &args[..], &["--patience", "30s", "--json"]].concat();
    let output = laglab(&args);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let methods: Vec<&str> = (report["results"].as_array().expect("results").iter())
        .filter_map(|series| series["method"].as_str())
        .collect();
    assert_eq!(methods, ["udp 500/s", "pgm 500/s"]);
    for fates in report["fates"].as_array().expect("fates") {
        let repairs = &fates["repairs"]["sent"];
        assert_eq!(repairs.is_u64(), fates["method"] == "pgm 500/s", "{fates}");
    }
}

#[test]
fn samples_are_written_as_a_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("samples.csv");
    let path = file.to_str().expect("UTF-8");
    let output = laglab(&[&SHORT, &["--rate", "1k", "-o", path][..]].concat());
    assert!(output.status.success());
    let csv = std::fs::read_to_string(&file).expect("written");
    assert_eq!(csv.lines().count(), 1 + 100);
    assert!(
        csv.lines()
            .skip(1)
            .all(|line| line.contains(",net,udp 1000/s,"))
    );
}

#[test]
fn send_methods_are_compared() {
    let report = json(&["--throughput", "--method", "blocking,poll"]);
    four_runs_got_through(&report);
}

/// Asserts that there are four complete runs with packets of 100 bytes.
fn four_runs_got_through(report: &Value) {
    let runs = report["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 4);
    for run in runs {
        let count = |name: &str| run[name].as_u64().expect("a count");
        assert!(count("received") > 0 && count("received") <= count("sent"));
        assert_eq!(count("bytes"), count("received") * 100);
        assert!(run["receiver_buffers"]["receive"].as_u64() > Some(0));
    }
}

#[test]
fn missing_methods_and_refused_scheduling_are_reported() {
    let own = if cfg!(windows) {
        ["iocp", "rio", "uso", "uso_uro"]
    } else {
        ["mmsg", "io_uring", "gso", "gso_gro"]
    };
    // A scheduling policy that only another system has is always refused, even with all privileges.
    let policy = if cfg!(windows) { "fifo:50" } else { "mmcss" };
    let ways = ["blocking", &own.join(",")].join(",");
    let ways = if cfg!(target_os = "macos") {
        "blocking,poll"
    } else {
        &ways
    };
    let report = json(&["--throughput", "--method", ways, "--realtime", policy]);
    let names = |part: &str| -> Vec<&str> {
        let of = report[part].as_array().expect(part).iter();
        of.map(|series| series["method"].as_str().expect("a name"))
            .collect()
    };
    let (measured, missing) = (names("runs"), names("unavailable"));
    for way in ways.split(',') {
        let runs = measured.iter().filter(|name| **name == way).count();
        let is_missing = missing.contains(&way);
        assert_eq!(runs, if is_missing { 0 } else { 2 }, "{way}: {report}");
    }
    assert!(!missing.contains(&"blocking"));
    for one in report["unavailable"].as_array().expect("a list") {
        let why = one["why"].as_str().expect("a reason");
        assert!(why.contains(" by ") && why.contains(": "), "{one}");
    }
    let grants = report["grants"].as_array().expect("grants");
    assert_eq!(grants.len(), 1);
    assert!(grants[0]["refused"].is_string(), "{grants:?}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn errors_give_advice() {
    for (args, words) in [
        (&["--role", "source"][..], "--to HOST or --group ADDRESS"),
        (
            &["--loopback", "--size", "8"],
            "invalid packet size of 8 bytes; use 32 to 65507",
        ),
        (
            &["--loopback", "--group", "10.0.0.1"],
            "10.0.0.1 is not a multicast group",
        ),
        (
            &[
                "--role",
                "source",
                "--group",
                "239.1.2.3",
                "--interface",
                "nosuch",
            ],
            "no interface `nosuch`; existing interfaces: ",
        ),
        (
            &[
                "--role",
                "source",
                "--to",
                "127.0.0.1:9",
                "--patience",
                "100ms",
            ],
            "no reflector answers at 127.0.0.1:9 over udp after 0.1 s",
        ),
        (
            &["--role", "reflector", "--bind", "192.0.2.9"],
            "is not an address of this machine",
        ),
        (
            &["--group", "239.1.2.3", "--interface", "nosuch"],
            "the test bed has its own",
        ),
        (
            &["--role", "reflector", "--interface", "nosuch"],
            "--interface needs a group",
        ),
        (
            &["--role", "reflector", "--transport", "udp,pgm"],
            "a reflector supports one transport",
        ),
        (
            &[
                "--role",
                "source",
                "--to",
                "127.0.0.1",
                "--transport",
                "pgm",
            ],
            "PGM needs a group",
        ),
        (
            &["--throughput", "--role", "source", "--to", "127.0.0.1:9"],
            "no counter answers at 127.0.0.1:9",
        ),
        (
            &["--throughput", "--role", "reflector", "--transport", "pgm"],
            "to run both ends here",
        ),
        (
            &["--loopback", "--group", "239.1.2.3", "--interface", "lo"],
            "the test bed has its own",
        ),
        (
            &["--rate", "5k", "--method", "blocking"],
            "--method needs --throughput",
        ),
        (
            &["--throughput", "--output", "refused.csv"],
            "use --json for its results",
        ),
        (
            &["--rate", "5k", "--bind", "127.0.0.1"],
            "--bind needs --role reflector",
        ),
        (
            &["--role", "reflector", "--rate", "5k"],
            "give them to its source",
        ),
        (
            &["--role", "reflector", "--port", "0"],
            "give one with --port",
        ),
        (
            &["--loopback", "--rate", "1", "--run-for", "0.2s"],
            "no packet is due in 0.2 s at 1/s",
        ),
        (&["--rate", "fast"], "expected packets per second"),
        (&["--for", "1"], "the unit is missing"),
        (&["--run-for", "1"], "the unit is missing"),
        (&["--dscp", "64"], "expected 0 to 63, EF"),
        (&["--spin", "2ms"], "expected at most 1ms"),
        (
            &["--loopback", "--vs", "usual"],
            "cannot compare the setting",
        ),
    ] {
        let said = refusal(args);
        assert!(said.contains(words), "{args:?}: {said}");
    }
}

#[test]
fn one_process_counts_what_another_sends() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let at = free.local_addr().expect("an address").to_string();
    drop(free);
    let port = at.rsplit(':').next().expect("a port");
    let mut counter = Command::new(env!("CARGO_BIN_EXE_laglab"));
    counter
        .args(["measure", "net", "--throughput", "--role", "reflector"])
        .args(["--bind", "127.0.0.1", "--port", port, "--for", "60s"])
        .stderr(Stdio::piped());
    let mut counter = counter.spawn().expect("the program starts");
    let mut said = String::new();
    let mut words = BufReader::new(counter.stderr.take().expect("a pipe"));
    words.read_line(&mut said).expect("read");
    assert!(said.contains(&format!("counting at {at}")), "{said}");
    let arguments = ["--throughput", "--role", "source", "--to", &at];
    let short = [
        "--run-for",
        "50ms",
        "--runs",
        "2",
        "--method",
        "blocking,poll",
    ];
    let report =
        program::json(&[&["measure", "net"], &arguments[..], &short[..], &["--json"]].concat());
    counter.kill().expect("killed");
    counter.wait().expect("ended");
    four_runs_got_through(&report);
    let notes = report["notes"].to_string();
    assert!(
        notes.contains(&format!("The counter was at {at}.")),
        "{notes}"
    );
}

#[test]
fn a_reflector_reports_that_its_port_is_in_use() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("bound");
    let port = socket.local_addr().expect("an address").port().to_string();
    let said = refusal(&[
        "--role",
        "reflector",
        "--bind",
        "127.0.0.1",
        "--port",
        &port,
    ]);
    assert!(
        said.contains(&format!(
            "cannot listen on 127.0.0.1:{port}: the port is in use"
        )),
        "{said}"
    );
}
