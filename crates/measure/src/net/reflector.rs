//! The reflector, which returns all probes to their source.

use std::io;
use std::time::{Duration, Instant};

use super::wire::{Header, Kind, RunId};
use super::{NetError, Transport};
use crate::Stop;

/// Maximum number of known runs. If there are more runs, a new run replaces the run that has been silent for
/// the longest time.
const MAX_RUNS: usize = 16;

/// Time limits of a reflector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience {
    /// Maximum total time.
    pub in_all: Option<Duration>,
    /// Maximum time without packets.
    pub idle: Option<Duration>,
}

/// Counts of a reflector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Reflected {
    /// Number of runs that introduced themselves.
    pub runs: u64,
    /// Number of returned probes.
    pub echoes: u64,
    /// Number of packets that are not probes of a known run. The reflector does not answer these packets.
    pub strangers: u64,
    /// Number of answers that the system refused to send.
    pub not_sent: u64,
}

/// Answers introductions and probes until `stop` returns true or the limits are reached.
///
/// A run that did not introduce itself gets no answer. An answer is never longer than the received packet.
///
/// # Errors
/// Returns an error if the system refuses to receive.
pub fn reflect(
    transport: &mut dyn Transport,
    patience: Patience,
    stop: Stop<'_>,
) -> Result<Reflected, NetError> {
    let mut buffer = vec![0; usize::from(u16::MAX)];
    let mut seen = Reflected::default();
    // The run with the latest packet comes first.
    let mut runs: Vec<RunId> = Vec::with_capacity(MAX_RUNS);
    let started = Instant::now();
    let mut last = started;
    let mut echoes_at_last = 0;
    while !stop() {
        let received = match transport.receive(&mut buffer) {
            Ok(received) => received,
            // The destination of an earlier answer no longer exists. This error does not affect other
            // packets.
            Err(error) if is_about_another_packet(&error) => continue,
            Err(error) => return Err(NetError::context("receiving")(error)),
        };
        let Some(received) = received else {
            let now = Instant::now();
            if seen.echoes != echoes_at_last {
                (last, echoes_at_last) = (now, seen.echoes);
            }
            let is_over = |limit: Option<Duration>, since| limit.is_some_and(|l| now - since >= l);
            if is_over(patience.in_all, started) || is_over(patience.idle, last) {
                break;
            }
            continue;
        };
        // The total time limit is also checked here, because under constant load the wait never ends without
        // a packet.
        if seen.echoes.is_multiple_of(1024)
            && patience
                .in_all
                .is_some_and(|limit| started.elapsed() >= limit)
        {
            break;
        }
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
