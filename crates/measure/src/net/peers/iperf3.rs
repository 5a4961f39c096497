//! Throughput measured by the program `iperf3` (BSD licence).

use std::time::Duration;

use serde_json::Value;

use super::{Peer, PeerError, PeerThroughput};
use crate::Stop;
use crate::net::{Family, Testbed};

/// Runs `iperf3`, which sends UDP packets at the maximum rate.
///
/// # Errors
/// Returns an error if the program is not installed, fails, or prints an unknown format.
pub fn throughput(
    testbed: &Testbed,
    family: Family,
    size: usize,
    time: Duration,
    stop: Stop<'_>,
) -> Result<PeerThroughput, PeerError> {
    let peer = Peer::new("iperf3", testbed, family)?;
    let port = peer.free_port()?.to_string();
    let address = peer.far_address();
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|&word| word.to_owned())
            .collect::<Vec<_>>()
    };
    let server = words(&["-s", "-1", "-B", &address, "-p", &port]);
    let _server = peer.serve(port.parse().unwrap_or(0), &server)?;
    // The program accepts only integer seconds, so the time is rounded up.
    let seconds = time.as_secs_f64().ceil().max(1.0);
    let (size, time) = (size.to_string(), seconds.to_string());
    let client = words(&[
        "-c", &address, "-p", &port, "-u", "-b", "0", "-l", &size, "-t", &time, "-J",
    ]);
    let printed = peer.ask(&client, Duration::from_secs_f64(seconds), stop)?;
    read(&printed).map_err(|what| peer.unreadable(what))
}

/// Parses the output of the client. The error names the missing value.
fn read(printed: &str) -> Result<PeerThroughput, &'static str> {
    let report: Value = serde_json::from_str(printed).map_err(|_| "JSON")?;
    let end = &report["end"];
    let sum = &end["sum"];
    let sent = sum["packets"].as_u64().ok_or("number of packets")?;
    let lost = sum["lost_packets"]
        .as_u64()
        .ok_or("number of lost packets")?;
    let seconds = sum["seconds"].as_f64().filter(|s| *s > 0.0).ok_or("time")?;
    let bytes = sum["bytes"].as_f64().ok_or("number of bytes")?;
    // The value `bytes` counts the bytes of sent packets. The code therefore multiplies this value by the
    // share of received packets.
    let share = match sent {
        0 => 0.0,
        sent => sent.saturating_sub(lost) as f64 / sent as f64,
    };
    Ok(PeerThroughput {
        sent,
        lost,
        packets_per_second: sent as f64 * share / seconds,
        bytes_per_second: bytes * share / seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_is_parsed() {
        // Shortened output of version 3.12.
        let printed = r#"{"start": {}, "end": {"sum": {"start": 0, "end": 2, "seconds": 2.0,
            "bytes": 1000000, "bits_per_second": 4000000, "jitter_ms": 0.5, "lost_packets": 2500,
            "packets": 10000, "lost_percent": 25, "sender": true}}}"#;
        let expected = PeerThroughput {
            sent: 10_000,
            lost: 2_500,
            packets_per_second: 3_750.0,
            bytes_per_second: 375_000.0,
        };
        assert_eq!(read(printed), Ok(expected));
    }

    #[test]
    fn missing_values_are_named() {
        assert_eq!(read("iperf3: error"), Err("JSON"));
        assert_eq!(read("{}"), Err("number of packets"));
        let none =
            r#"{"end": {"sum": {"packets": 0, "lost_packets": 0, "seconds": 0, "bytes": 0}}}"#;
        assert_eq!(read(none), Err("time"));
    }
}
