//! Tests of `laglab tune replica` with simulated writes and with disk counters.

use crate::program;

use std::fs;

use program::laglab;
use serde_json::Value;
use simulated::Simulated;

/// Runs the command. Returns its JSON output and exit code.
fn replica(args: &[&str]) -> (Value, i32) {
    let output = laglab(&[&["--json", "tune", "replica"], args].concat());
    let report = serde_json::from_slice(&output.stdout);
    let report = report.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (report, output.status.code().unwrap())
}

#[test]
fn writes_of_a_simulated_disk_match_the_truth() {
    let simulated = Simulated::new("smb-signing-off", &[]);
    let disk = simulated::list(&simulated.truth, "disks")
        .iter()
        .find(|disk| disk["writes"].as_u64() > Some(0))
        .unwrap();
    let number = disk["disk"].to_string();
    let args = [&simulated.trace, "--disk", &number, "--rtt", "2ms"];
    let (report, code) = replica(&args);
    assert_eq!(code, 0);
    assert_eq!(report["simulated"], true);
    assert_eq!(report["verdict"], "synchronous");
    assert_eq!(report["writes"], disk["writes"]);
    assert_eq!(report["bytes"], disk["written_bytes"]);
    assert_eq!(report["added_ns"]["p99"], 2_000_000);
    // All writes are to files on E:, whose paths are in the trace.
    let (of_volume, _) = replica(&[&simulated.trace, "--volume", "e:", "--rtt", "2ms"]);
    assert_eq!(of_volume["bytes"], disk["written_bytes"]);
    // The first link has too little bandwidth for the writes. The second link has too long a round trip time.
    let slow = [&args[..], &["--bandwidth", "1Mbit"]].concat();
    assert_eq!(replica(&slow).0["verdict"], "neither");
    let far = [&simulated.trace, "--disk", &number, "--rtt", "6ms"];
    let (report, code) = replica(&far);
    assert_eq!(
        (report["verdict"].as_str(), code),
        (Some("asynchronous"), 1)
    );
}

/// Checks results that were computed by hand: 1 MB is written within 1 s. Sending 1 MB over the link takes a
/// tenth of a second.
#[test]
fn counters_and_pings_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let counters = write(
        "counters.csv",
        "\"(PDH-CSV 4.0)\",\"\\\\SR1\\LogicalDisk(D:)\\Disk Write Bytes/sec\"\n\
         \"03/01/2026 10:00:00.000\",\" \"\n\"03/01/2026 10:00:01.000\",\"1000000\"\n",
    );
    let pings = write(
        "pings.txt",
        "Pinging 10.0.0.7 with 32 bytes of data:\nReply from 10.0.0.7: bytes=32 time=1ms TTL=64\n\
         Reply from 10.0.0.7: bytes=32 time=3ms TTL=64\n",
    );
    let args = [
        &counters,
        "--volume",
        "D:",
        "--rtt-file",
        &pings,
        "--bandwidth",
        "80Mbit",
        "--size",
        "9M",
    ];
    let (report, code) = replica(&args);
    assert_eq!(report["mean_round_trip_ns"], 2_000_000);
    assert_eq!(report["added_ns"]["max"], 103_000_000);
    let seconds = report["with_bandwidth"]["initial_sync_s"].as_f64().unwrap();
    assert!(
        (seconds - 9.0 * 1_048_576.0 / 9e6).abs() < 1e-9,
        "{seconds}"
    );
    assert_eq!(
        (report["verdict"].as_str(), code),
        (Some("asynchronous"), 1)
    );
}

#[test]
fn wrong_usage_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.csv");
    fs::write(&empty, "").unwrap();
    let empty = empty.to_str().unwrap();
    for (args, what) in [
        (
            vec![empty, "--volume", "D:", "--rtt", "2ms"],
            "LogicalDisk(D:)",
        ),
        (
            vec![empty, "--volume", "D:", "--rtt-file", empty],
            "no column",
        ),
        (vec![empty, "--disk", "0", "--rtt", "2ms"], "--volume"),
        (vec![empty, "--volume", "D", "--rtt", "2ms"], "drive letter"),
        (vec![empty, "--volume", "D:"], "--rtt"),
        (
            vec!["nowhere.etl", "--volume", "D:", "--rtt", "2ms"],
            "nowhere.etl",
        ),
    ] {
        let output = laglab(&[&["tune", "replica"][..], &args].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(what), "{args:?}: {error}");
    }
}
