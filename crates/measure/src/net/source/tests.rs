//! Tests of a source with a scripted reflector.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::ReceivedPacket;
use super::*;

/// Fate of a packet in a script.
#[derive(Clone, Copy)]
enum Fate {
    Back,
    Lost,
    Twice,
    /// Answer that arrives after the answer to the next packet.
    Late,
    NoRoom,
    /// Answer that arrives after a foreign packet.
    WithNoise,
}

#[derive(Clone)]
struct Scripted {
    script: fn(u64) -> Fate,
    late: Arc<Mutex<Vec<Vec<u8>>>>,
    to_source: Sender<Vec<u8>>,
    inbox: Arc<Mutex<Receiver<Vec<u8>>>>,
}

impl Scripted {
    fn new(script: fn(u64) -> Fate) -> Box<Scripted> {
        let (to_source, inbox) = channel();
        Box::new(Scripted {
            script,
            late: Arc::default(),
            to_source,
            inbox: Arc::new(Mutex::new(inbox)),
        })
    }

    fn give(&self, packet: &[u8]) {
        // If the receiver has ended, it needs no packets, so the error is ignored.
        let _ = self.to_source.send(packet.to_vec());
    }
}

impl Transport for Scripted {
    fn send(&mut self, packet: &[u8], _: Option<SocketAddr>) -> io::Result<()> {
        let header = Header::read(packet).expect("ours");
        let mut answer = packet.to_vec();
        Header {
            kind: header.kind.answer().expect("a question"),
            ..header
        }
        .write(&mut answer);
        let fate = match header.kind {
            Kind::Hello => Fate::Back,
            _ => (self.script)(header.sequence),
        };
        let mut late = self.late.lock().expect("no panic");
        match fate {
            Fate::Back => self.give(&answer),
            Fate::Lost => {}
            Fate::Twice => {
                self.give(&answer);
                self.give(&answer);
            }
            Fate::Late => {
                late.push(answer);
                return Ok(());
            }
            Fate::NoRoom => return Err(io::ErrorKind::WouldBlock.into()),
            Fate::WithNoise => {
                self.give(b"who is there?");
                self.give(&answer);
            }
        }
        late.drain(..).for_each(|answer| self.give(&answer));
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<ReceivedPacket>> {
        let inbox = self.inbox.lock().expect("no panic");
        let Ok(packet) = inbox.recv_timeout(Duration::from_millis(20)) else {
            return Ok(None);
        };
        buffer[..packet.len()].copy_from_slice(&packet);
        Ok(Some(ReceivedPacket {
            len: packet.len(),
            from: None,
            class: None,
        }))
    }

    fn clone_handle(&self) -> io::Result<Box<dyn Transport>> {
        Ok(Box::new(self.clone()))
    }
}

fn at(per_second: u32, milliseconds: u64) -> Traffic {
    Traffic {
        pace: Pace::PerSecond(NonZeroU32::new(per_second).expect("not 0")),
        size: 64,
        time: Duration::from_millis(milliseconds),
        warm_up: Duration::ZERO,
        patience: Duration::from_secs(1),
    }
}

fn run(script: fn(u64) -> Fate, traffic: &Traffic, stop: Stop<'_>) -> Result<RoundTrips, NetError> {
    let context = RunContext {
        clock: &Clock::best(),
        scheduling: &Scheduling::default(),
        stop,
    };
    measure(Scripted::new(script), "the script", traffic, context)
}

const NEVER: Stop<'static> = &|| false;

#[test]
fn every_fate_is_counted() {
    let script = |sequence| match sequence % 10 {
        3 => Fate::Lost,
        4 => Fate::Twice,
        5 => Fate::Late,
        7 => Fate::NoRoom,
        8 => Fate::WithNoise,
        _ => Fate::Back,
    };
    let result = run(script, &at(10_000, 100), NEVER).expect("measured");
    let expected = Tally {
        sent: 900,
        not_sent: 100,
        returned: 800,
        lost: 100,
        duplicates: 100,
        reordered: 100,
        strangers: 100,
    };
    assert_eq!(result.tally, expected);
    assert_eq!(result.ended, RunEnd::AsPlanned);
    for (sequence, trip) in result.trips.iter().enumerate() {
        assert_eq!(trip.sent_ns.is_some(), sequence % 10 != 7, "{sequence}");
        assert_eq!(
            trip.back_ns.is_some(),
            ![3, 7].contains(&(sequence % 10)),
            "{sequence}"
        );
        assert!(trip.round_trip_ns().is_none_or(|ns| ns >= 0));
        assert!(
            trip.sent_ns.is_none_or(|sent| sent >= trip.intended_ns),
            "{sequence}"
        );
    }
    let distances = result
        .trips
        .windows(2)
        .map(|w| w[1].intended_ns - w[0].intended_ns);
    assert!(distances.into_iter().all(|ns| ns == 100_000));
}

#[test]
fn results_before_a_dead_reflector_are_kept() {
    let script = |sequence| match sequence {
        ..50 => Fate::Back,
        _ => Fate::Lost,
    };
    for pace in [at(1_000, 0).pace, Pace::PingPong] {
        let traffic = Traffic {
            pace,
            time: Duration::from_secs(600),
            ..at(1_000, 0)
        };
        let result = run(script, &traffic, NEVER).expect("measured");
        assert_eq!(result.ended, RunEnd::Silent);
        assert_eq!(result.tally.returned, result.tally.sent.min(50));
        assert_eq!(result.tally.lost, result.tally.sent - result.tally.returned);
    }
}

#[test]
fn scattered_losses_are_not_silence() {
    // Half of the packets are lost. At most two consecutive packets are lost. This is less than the maximum
    // silence of four intervals.
    let script = |sequence| match sequence % 4 {
        0 | 1 => Fate::Lost,
        _ => Fate::Back,
    };
    let traffic = Traffic {
        patience: Duration::from_millis(1),
        ..at(4, 4_000)
    };
    // The maximum silence is one second. The reflector answers the hello at once, so that this is long enough.
    let result = run(script, &traffic, NEVER).expect("measured");
    assert_eq!((result.ended, result.tally.lost), (RunEnd::AsPlanned, 8));
}

#[test]
fn results_before_a_stop_are_kept() {
    let calls = AtomicU64::new(0);
    let stop = || calls.fetch_add(1, Ordering::Relaxed) >= 30;
    let result = run(|_| Fate::Back, &at(1_000, 600_000), &stop).expect("measured");
    assert_eq!(result.ended, RunEnd::Stopped);
    // The first 30 calls of `stop` return false. One of these calls is before the hello, so 29 packets are
    // sent.
    assert_eq!((result.tally.sent, result.tally.returned), (29, 29));
}

#[test]
fn the_warm_up_does_not_count() {
    let script = |sequence| match sequence {
        ..50 => Fate::Lost,
        _ => Fate::Twice,
    };
    let traffic = Traffic {
        warm_up: Duration::from_millis(50),
        ..at(1_000, 100)
    };
    let tally = run(script, &traffic, NEVER).expect("measured").tally;
    let seen = (
        tally.sent,
        tally.lost,
        tally.returned,
        tally.duplicates,
        tally.strangers,
    );
    assert_eq!(seen, (100, 0, 100, 100, 0));
}

#[test]
fn ping_pong_continues_after_a_loss() {
    let script = |sequence| match sequence {
        2 => Fate::Lost,
        _ => Fate::Back,
    };
    let traffic = Traffic {
        pace: Pace::PingPong,
        ..at(1, 400)
    };
    let result = run(script, &traffic, NEVER).expect("measured");
    assert_eq!((result.ended, result.tally.lost), (RunEnd::AsPlanned, 1));
    assert!(result.tally.sent > 3);
}

#[test]
fn invalid_traffic_is_refused() {
    let error = |traffic| {
        run(|_| Fate::Back, &traffic, NEVER)
            .expect_err("refused")
            .to_string()
    };
    let tiny = Traffic {
        size: 31,
        ..at(1, 1)
    };
    assert_eq!(
        error(tiny),
        "invalid packet size of 31 bytes; use 32 to 65507"
    );
    let huge = Traffic {
        size: 65_508,
        ..at(1, 1)
    };
    assert!(error(huge).starts_with("invalid packet size of 65508 bytes"));
    let long = at(u32::MAX, u64::MAX / 1_000_000);
    assert!(error(long).contains("a run stores at most 20000000"));
}

#[test]
fn a_missing_reflector_is_an_error() {
    struct Deaf;
    impl Transport for Deaf {
        fn send(&mut self, _: &[u8], _: Option<SocketAddr>) -> io::Result<()> {
            Ok(())
        }
        fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<ReceivedPacket>> {
            // Foreign packets arrive all the time.
            buffer[0] = b'?';
            let len = 1;
            Ok(Some(ReceivedPacket {
                len,
                from: None,
                class: None,
            }))
        }
        fn clone_handle(&self) -> io::Result<Box<dyn Transport>> {
            Ok(Box::new(Deaf))
        }
    }
    let context = RunContext {
        clock: &Clock::best(),
        scheduling: &Scheduling::default(),
        stop: NEVER,
    };
    let traffic = Traffic {
        patience: Duration::from_millis(20),
        ..at(1_000, 1)
    };
    let error = measure(Box::new(Deaf), "10.0.0.9:7", &traffic, context).expect_err("no answer");
    let said = error.to_string();
    assert!(
        said.starts_with("no reflector answers at 10.0.0.9:7 after 0.02 s: start"),
        "{said}"
    );
}
