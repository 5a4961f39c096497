//! PGM: a call a message, or a call for many, and repairs of what is lost meanwhile.
//!
//! A source sends at the rate that it is told, and what is the highest that a receiver bears is what is
//! measured here. So the receiver tells the source how far it is, past the network: beyond what the
//! source could repair, more would only be lost.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pgm::wire::Tsi;
use pgm::{Event, Received, ReceiverConfig, Socket, SocketConfig, SocketError, SourceConfig};

use super::{BURST, Receive, Send, Taken, WAIT};
use crate::net::pgm::config;
use crate::net::{NetError, Side, Testbed};

/// How many messages go in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Batch {
    /// One, at either end.
    One,
    /// Many at the source; the receiver gets them one by one.
    Sent,
    /// Many, at both ends.
    Both,
}

/// An end of a session.
pub(super) struct End {
    pub(super) socket: Socket,
    /// How many bytes the receiver has dealt with, of both ends.
    dealt_with: Arc<AtomicU64>,
}

/// How many packets may be on their way: half of what the source can repair.
const MOST_ON_THE_WAY: usize = 8_192;

/// How much of a message a packet carries, about.
fn of_a_packet(size: usize) -> usize {
    size.min(1_400)
}

/// The two ends of a session.
pub(super) fn ends(
    testbed: &Testbed,
    group: SocketAddr,
    batch: Batch,
    buffer_bytes: Option<usize>,
) -> Result<(End, End), NetError> {
    let dealt_with = Arc::new(AtomicU64::new(0));
    let open = |side, is_source: bool| {
        testbed.on(side, || {
            let mut config = config(group, testbed.member(side, group)?)?;
            if let Some(bytes) = buffer_bytes {
                config.buffer = bytes;
            }
            config.joined = batch == Batch::Both;
            let (source, receiver) = match is_source {
                true => (Some(source(&config)?), None),
                false => (
                    None,
                    Some(ReceiverConfig::new(config.address()?, config.group)),
                ),
            };
            Ok::<_, NetError>(End {
                socket: Socket::open(&config, source, receiver)?,
                dealt_with: Arc::clone(&dealt_with),
            })
        })?
    };
    Ok((open(Side::Near, true)?, open(Side::Far, false)?))
}

fn source(config: &SocketConfig) -> Result<SourceConfig, SocketError> {
    Ok(SourceConfig {
        linger: WAIT,
        ..SourceConfig::new(Tsi::random(), config.address()?, config.group)
    })
}

struct Sender {
    end: End,
    batch: Batch,
    message: Vec<u8>,
    /// In bytes.
    sent: u64,
}

struct Receiver {
    end: End,
    size: usize,
}

pub(super) fn sender(end: End, batch: Batch, size: usize) -> Box<dyn Send> {
    Box::new(Sender {
        end,
        batch,
        message: vec![0; size],
        sent: 0,
    })
}

pub(super) fn receiver(end: End, size: usize) -> Box<dyn Receive> {
    Box::new(Receiver { end, size })
}

impl Sender {
    /// Sends what can be sent now.
    fn send(&mut self) -> Result<u64, SocketError> {
        let dealt_with = self.end.dealt_with.load(Ordering::Relaxed);
        let most = MOST_ON_THE_WAY * of_a_packet(self.message.len());
        if self.sent.saturating_sub(dealt_with) > most as u64 {
            return Ok(0);
        }
        let socket = &mut self.end.socket;
        if self.batch != Batch::One {
            let messages = (0..BURST).map(|_| &self.message[..]);
            return Ok(socket.send_many(messages)? as u64);
        }
        for sent in 0..BURST {
            match socket.send(&self.message) {
                Ok(_) => {}
                Err(SocketError::NotYet { .. }) => return Ok(sent as u64),
                Err(error) => return Err(error),
            }
        }
        Ok(BURST as u64)
    }
}

impl Send for Sender {
    fn burst(&mut self) -> io::Result<u64> {
        let sent = self.send().map_err(io::Error::other)?;
        self.sent += sent * self.message.len() as u64;
        // Serves what was asked for meanwhile.
        self.end.socket.recv().map_err(io::Error::other)?;
        if sent == 0 {
            let moment = Some(Duration::from_micros(100));
            self.end.socket.wait(moment).map_err(io::Error::other)?;
        }
        Ok(sent)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.end.socket.close();
        let started = Instant::now();
        while started.elapsed() < 10 * WAIT {
            match self.end.socket.recv().map_err(io::Error::other)? {
                Received::End => break,
                Received::TimerPending(wait) => {
                    let wait = Some(wait.min(WAIT));
                    self.end.socket.wait(wait).map_err(io::Error::other)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Receive for Receiver {
    fn take(&mut self) -> io::Result<Taken> {
        let mut taken = Taken::default();
        let mut lost = 0;
        let started = Instant::now();
        while taken.packets < BURST as u64 {
            let wait = match self.end.socket.recv().map_err(io::Error::other)? {
                Received::Event(Event::Message { payload, .. }) => {
                    taken.add(payload.len(), self.size);
                    continue;
                }
                Received::Event(Event::Lost { packets, .. }) => {
                    lost += u64::from(packets) * of_a_packet(self.size) as u64;
                    continue;
                }
                Received::Event(_) => continue,
                Received::TimerPending(wait) => wait,
                Received::WouldBlock | Received::End => WAIT,
            };
            let rest = WAIT.saturating_sub(started.elapsed());
            if taken.packets > 0 || rest.is_zero() {
                break;
            }
            let wait = Some(wait.min(rest));
            self.end.socket.wait(wait).map_err(io::Error::other)?;
        }
        let dealt_with = taken.bytes + lost;
        self.end.dealt_with.fetch_add(dealt_with, Ordering::Relaxed);
        Ok(taken)
    }
}
