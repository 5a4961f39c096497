//! Round trips measured by the program `sockperf` (BSD licence).

use std::net::IpAddr;
use std::time::Duration;

use super::{Peer, PeerError, PeerRoundTrips};
use crate::Stop;
use crate::net::{Family, Pace, Side, Testbed, Traffic};

/// Measures the same traffic over UDP with `sockperf`. If a group is given, the traffic uses the
/// group.
///
/// If the rate is constant, the mode is `under-load`. In this mode, the sender of `sockperf` polls to keep
/// its pace. Otherwise, the mode is `ping-pong`.
///
/// # Errors
/// Returns an error if the program is not installed, fails, or prints an unknown format.
pub fn round_trips(
    testbed: &Testbed,
    family: Family,
    group: Option<IpAddr>,
    traffic: &Traffic,
    stop: Stop<'_>,
) -> Result<PeerRoundTrips, PeerError> {
    let peer = Peer::new("sockperf", testbed, family)?;
    let port = peer.free_port()?;
    let place = |side| {
        let to = group.map_or_else(|| peer.far_address(), |group| group.to_string());
        let mut place = vec!["-i".to_owned(), to, "-p".to_owned(), port.to_string()];
        if group.is_some() {
            let own = testbed.address(side, family).to_string();
            for option in ["--mc-rx-if", "--mc-tx-if"] {
                place.extend([option.to_owned(), own.clone()]);
            }
        }
        place
    };
    let server = [vec!["server".to_owned()], place(Side::Far)].concat();
    let _server = peer.serve(port, &server)?;
    // The program accepts only integer seconds, so the time is rounded up. The time includes the program's
    // warm-up of 0.4 s.
    let seconds = (traffic.time.as_secs_f64() + 0.4).ceil().max(1.0);
    let mut client = vec![match traffic.pace {
        Pace::PingPong => "ping-pong".to_owned(),
        Pace::PerSecond(_) => "under-load".to_owned(),
    }];
    client.extend(place(Side::Near));
    client.extend(["-m", &traffic.size.to_string(), "-t", &seconds.to_string()].map(str::to_owned));
    client.push("--full-rtt".to_owned());
    if let Pace::PerSecond(rate) = traffic.pace {
        client.extend(["--mps", &rate.to_string(), "--reply-every", "1"].map(str::to_owned));
    }
    let printed = peer.ask(&client, Duration::from_secs_f64(seconds), stop)?;
    read(&printed).map_err(|what| peer.unreadable(what))
}

/// Parses the output of the client. The error names the missing value.
fn read(printed: &str) -> Result<PeerRoundTrips, &'static str> {
    let valid = (printed.lines())
        .find(|line| line.contains("[Valid Duration]"))
        .ok_or("valid duration")?;
    let counted = |name: &'static str| -> Option<u64> {
        let (_, rest) = valid.split_once(name)?;
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    let sent = counted("SentMessages=").ok_or("number of messages sent")?;
    let received = counted("ReceivedMessages=").ok_or("number of messages received")?;
    let observed = |name: &str| -> Option<i64> {
        let line = (printed.lines()).find(|line| line.contains("--->") && line.contains(name))?;
        let (_, microseconds) = line.split_once('=')?;
        let microseconds: f64 = microseconds.trim().parse().ok()?;
        Some((microseconds * 1_000.0).round() as i64)
    };
    Ok(PeerRoundTrips {
        sent,
        lost: sent.saturating_sub(received),
        p50_ns: observed("percentile 50.000").ok_or("median")?,
        p90_ns: observed("percentile 90.000").ok_or("90th percentile")?,
        p99_ns: observed("percentile 99.000").ok_or("99th percentile")?,
        p99_9_ns: observed("percentile 99.900").ok_or("99.9th percentile")?,
        max_ns: observed("<MAX>").ok_or("greatest value")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of version 3.7, with its colour codes.
    const PRINTED: &str = "\
sockperf: [Total Run] RunTime=2.005 sec; Warm up time=400 msec; SentMessages=39996; ReceivedMessages=39643
sockperf: ========= Printing statistics for Server No: 0
sockperf: [Valid Duration] RunTime=1.552 sec; SentMessages=30999; ReceivedMessages=30990
sockperf: \u{1b}[2;35m====> avg-rtt=4262.009 (std-dev=3539.636)\u{1b}[0m
sockperf: # dropped messages = 9; # duplicated messages = 0; # out-of-order messages = 0
sockperf: ---> <MAX> observation = 12643.352
sockperf: ---> percentile 99.999 = 12643.352
sockperf: ---> percentile 99.990 = 12636.620
sockperf: ---> percentile 99.900 = 12580.605
sockperf: ---> percentile 99.000 = 11388.646
sockperf: ---> percentile 90.000 = 8235.214
sockperf: ---> percentile 75.000 = 7550.018
sockperf: ---> percentile 50.000 =   25.355
sockperf: ---> percentile 25.000 =   14.266
sockperf: ---> <MIN> observation =   13.855
";

    #[test]
    fn the_output_is_parsed() {
        let expected = PeerRoundTrips {
            sent: 30_999,
            lost: 9,
            p50_ns: 25_355,
            p90_ns: 8_235_214,
            p99_ns: 11_388_646,
            p99_9_ns: 12_580_605,
            max_ns: 12_643_352,
        };
        assert_eq!(read(PRINTED), Ok(expected));
    }

    #[test]
    fn missing_values_are_named() {
        assert_eq!(read(""), Err("valid duration"));
        let without_median = PRINTED.replace("percentile 50.000", "percentile 51.000");
        assert_eq!(read(&without_median), Err("median"));
    }
}
