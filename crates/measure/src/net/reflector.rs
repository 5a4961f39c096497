//! The reflector, which returns all probes to their source.

use std::io;
use std::time::{Duration, Instant};

use super::wire::{Header, Kind, RunId};
use super::{NetError, Transport};
use crate::Stop;

/// Maximum number of runs that the reflector answers at the same time. A further run replaces the run that has been
/// silent for the longest time.
const MAX_RUNS: usize = 16;

/// Time limits of a reflector or of a counter of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience {
    /// Maximum total time.
    pub in_all: Option<Duration>,
    /// Maximum time during which a reflector returns no probe, or a counter gets no connection.
    pub idle: Option<Duration>,
}

/// Counts of a reflector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ReflectorCounts {
    /// Number of runs that sent a hello packet.
    pub runs: u64,
    /// Number of returned probes.
    pub echoes: u64,
    /// Number of packets that are neither a hello nor a probe of a run that has sent a hello. The reflector does not
    /// answer these packets.
    pub strangers: u64,
    /// Number of answers that the system refused to send.
    pub not_sent: u64,
}

/// Answers hello packets and probes until `stop` returns true or a limit is reached.
///
/// A run that has sent no hello gets no answer. An answer is never longer than the received packet.
///
/// # Errors
/// Returns an error if the system refuses to receive.
pub fn reflect(
    transport: &mut dyn Transport,
    patience: Patience,
    stop: Stop<'_>,
) -> Result<ReflectorCounts, NetError> {
    let mut buffer = vec![0; usize::from(u16::MAX)];
    let mut seen = ReflectorCounts::default();
    // The run with the latest packet comes first.
    let mut runs: Vec<RunId> = Vec::with_capacity(MAX_RUNS);
    let started = Instant::now();
    let mut last = started;
    let mut echoes_at_last = 0;
    while !stop() {
        // The limits are checked before each packet, because under constant load the wait never ends without a packet.
        let now = Instant::now();
        if seen.echoes != echoes_at_last {
            (last, echoes_at_last) = (now, seen.echoes);
        }
        let is_over = |limit: Option<Duration>, since| limit.is_some_and(|l| now - since >= l);
        if is_over(patience.in_all, started) || is_over(patience.idle, last) {
            break;
        }
        let received = match transport.receive(&mut buffer) {
            Ok(received) => received,
            // The destination of an earlier answer no longer exists. This error does not affect other
            // packets.
            Err(error) if is_about_another_packet(&error) => continue,
            Err(error) => return Err(NetError::context("receiving")(error)),
        };
        let Some(received) = received else { continue };
        let packet = &mut buffer[..received.len];
        let Some((mut header, answer)) =
            Header::read(packet).and_then(|header| Some((header, header.kind.answer()?)))
        else {
            seen.strangers += 1;
            continue;
        };
        let known = runs.iter().position(|run| *run == header.run);
        match (known, header.kind) {
            (Some(0), _) => {}
            (Some(place), _) => runs[..=place].rotate_right(1),
            (None, Kind::Hello) => {
                runs.truncate(MAX_RUNS - 1);
                runs.insert(0, header.run);
                seen.runs += 1;
            }
            (None, _) => {
                seen.strangers += 1;
                continue;
            }
        }
        header.kind = answer;
        header.seen_class = received.class;
        header.write(packet);
        match transport.send(packet, received.from) {
            Ok(()) => seen.echoes += u64::from(answer == Kind::Echo),
            Err(_) => seen.not_sent += 1,
        }
    }
    Ok(seen)
}

/// Returns true if an error of a receive call concerns an earlier sent packet instead of the socket.
pub(super) fn is_about_another_packet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    )
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::super::ReceivedPacket;
    use super::super::wire::HEADER_LEN;
    use super::*;

    /// Network that always has a packet to receive: first a hello and a probe of one run, and then only probes of
    /// another run that has sent no hello.
    struct Flood {
        packets: u64,
    }

    impl Transport for Flood {
        fn send(&mut self, _: &[u8], _: Option<SocketAddr>) -> io::Result<()> {
            Ok(())
        }

        fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<ReceivedPacket>> {
            let (kind, run) = match self.packets {
                0 => (Kind::Hello, RunId([1; 16])),
                1 => (Kind::Probe, RunId([1; 16])),
                _ => (Kind::Probe, RunId([2; 16])),
            };
            let header = Header {
                kind,
                run,
                sequence: self.packets,
                seen_class: None,
            };
            header.write(buffer);
            self.packets += 1;
            Ok(Some(ReceivedPacket {
                len: HEADER_LEN,
                from: None,
                class: None,
            }))
        }

        fn clone_handle(&self) -> io::Result<Box<dyn Transport>> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    #[test]
    fn foreign_packets_do_not_extend_the_limits() {
        let limit = Some(Duration::from_millis(20));
        for (in_all, idle) in [(limit, None), (None, limit)] {
            let started = Instant::now();
            let gives_up = || started.elapsed() > Duration::from_secs(20);
            let patience = Patience { in_all, idle };
            let seen = reflect(&mut Flood { packets: 0 }, patience, &gives_up).expect("ended");
            assert!(!gives_up(), "{patience:?}: {seen:?}");
            assert_eq!((seen.runs, seen.echoes), (1, 1));
            assert!(seen.strangers > 0, "{seen:?}");
        }
    }
}
