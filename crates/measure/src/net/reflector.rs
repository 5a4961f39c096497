//! The end that sends everything back.

use std::io;
use std::time::{Duration, Instant};

use super::wire::{Header, Kind, RunId};
use super::{NetError, Transport};
use crate::Stop;

/// How many runs are known at a time; a new one then replaces the one heard of least lately.
const MOST_RUNS: usize = 16;

/// How long a reflector works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience {
    /// At most so long in all.
    pub in_all: Option<Duration>,
    /// And until nothing came for so long.
    pub idle: Option<Duration>,
}

/// What a reflector saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Reflected {
    /// Runs that introduced themselves.
    pub runs: u64,
    /// Probes sent back.
    pub echoes: u64,
    /// Packets that are no probe of a known run: noise, and strangers. They are answered with nothing.
    pub strangers: u64,
    /// Answers that the system refused to send.
    pub not_sent: u64,
}

/// Answers introductions and probes until told to stop or the patience ends.
///
/// Only who introduced its run is answered, and never with more bytes than came.
///
/// # Errors
/// When the system refuses to receive.
pub fn reflect(
    transport: &mut dyn Transport,
    patience: Patience,
    stop: Stop<'_>,
) -> Result<Reflected, NetError> {
    let mut buffer = vec![0; usize::from(u16::MAX)];
    let mut seen = Reflected::default();
    // The one heard of last stands first.
    let mut runs: Vec<RunId> = Vec::with_capacity(MOST_RUNS);
    let started = Instant::now();
    let mut last = started;
    let mut echoes_at_last = 0;
    while !stop() {
        let received = match transport.receive(&mut buffer) {
            Ok(received) => received,
            // Somebody whom we answered is gone.
            Err(error) if is_about_another_packet(&error) => continue,
            Err(error) => return Err(NetError::while_doing("receiving")(error)),
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
        // Who is never left waiting still ends in time.
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
                runs.truncate(MOST_RUNS - 1);
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

/// Whether an error of receiving tells of a packet sent earlier, and not of the socket.
pub(super) fn is_about_another_packet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    )
}
