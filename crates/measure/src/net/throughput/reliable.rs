//! PGM: a call a message, or a call for many, and repairs of what is lost meanwhile.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use pgm::wire::Tsi;
use pgm::{Event, Received, ReceiverConfig, Socket, SocketConfig, SocketError, SourceConfig};

use super::{BURST, Receive, Send, Taken, WAIT};
use crate::net::pgm::config;
use crate::net::{NetError, Side, Testbed};

/// How many messages go in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Batch {
    One,
    Many,
}

/// The two ends of a session.
pub(super) fn ends(
    testbed: &Testbed,
    group: SocketAddr,
    buffer_bytes: Option<usize>,
) -> Result<(Socket, Socket), NetError> {
    let open = |side, is_source: bool| {
        testbed.on(side, || {
            let mut config = config(group, testbed.member(side, group)?)?;
            if let Some(bytes) = buffer_bytes {
                config.buffer = bytes;
            }
            let (source, receiver) = match is_source {
                true => (Some(source(&config)?), None),
                false => (
                    None,
                    Some(ReceiverConfig::new(config.address()?, config.group)),
                ),
            };
            Ok::<_, NetError>(Socket::open(&config, source, receiver)?)
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
    socket: Socket,
    batch: Batch,
    message: Vec<u8>,
}

struct Receiver {
    socket: Socket,
    size: usize,
}

pub(super) fn sender(socket: Socket, batch: Batch, size: usize) -> Box<dyn Send> {
    Box::new(Sender {
        socket,
        batch,
        message: vec![0; size],
    })
}

pub(super) fn receiver(socket: Socket, size: usize) -> Box<dyn Receive> {
    Box::new(Receiver { socket, size })
}

impl Sender {
    /// Sends what can be sent now.
    fn send(&mut self) -> Result<u64, SocketError> {
        if self.batch == Batch::Many {
            let messages = (0..BURST).map(|_| &self.message[..]);
            return Ok(self.socket.send_many(messages)? as u64);
        }
        for sent in 0..BURST {
            match self.socket.send(&self.message) {
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
        // Serves what was asked for meanwhile.
        self.socket.recv().map_err(io::Error::other)?;
        if sent == 0 {
            let moment = Some(Duration::from_millis(1));
            self.socket.wait(moment).map_err(io::Error::other)?;
        }
        Ok(sent)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.socket.close();
        let started = Instant::now();
        while started.elapsed() < 10 * WAIT {
            match self.socket.recv().map_err(io::Error::other)? {
                Received::End => break,
                Received::TimerPending(wait) => {
                    let wait = Some(wait.min(WAIT));
                    self.socket.wait(wait).map_err(io::Error::other)?;
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
        let started = Instant::now();
        while taken.packets < BURST as u64 {
            let wait = match self.socket.recv().map_err(io::Error::other)? {
                Received::Event(Event::Message { payload, .. }) => {
                    taken.add(payload.len(), self.size);
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
            self.socket.wait(wait).map_err(io::Error::other)?;
        }
        Ok(taken)
    }
}
