//! PGM, which repairs losses, with one call per message or one call for many messages.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pgm::wire::Tsi;
use pgm::{Event, Received, ReceiverConfig, Socket, SocketConfig, SocketError, SourceConfig};
use socket2::SockRef;

use super::in_flight::InFlight;
use super::{BURST, Receive, ReceivedCount, Send, WAIT};
use crate::net::buffers::grant;
use crate::net::pgm::config;
use crate::net::{Buffers, NetError, Side, Testbed};

/// Number of messages per call. This number is the limit of Linux since version 6.9.
const MANY: usize = 128;

/// Number of messages per call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Batch {
    /// One message per call, at both ends.
    One,
    /// Many messages per call at the source. The receiver gets them one by one.
    Sent,
    /// Many messages per call, at both ends.
    Both,
}

/// One end of a session.
pub(super) struct End {
    socket: Socket,
    batch: Batch,
    in_flight: Arc<InFlight>,
}

/// Returns the two ends of a session and their buffer sizes.
pub(super) fn ends(
    testbed: &Testbed,
    group: SocketAddr,
    batch: Batch,
    buffer_bytes: Option<usize>,
) -> Result<[(End, Buffers); 2], NetError> {
    let in_flight = Arc::new(InFlight::default());
    let open = |side, is_source: bool| {
        testbed.on(side, || {
            let mut config = config(group, testbed.member(side, group)?)?;
            if let Some(bytes) = buffer_bytes {
                config.buffer = bytes;
            }
            config.joined = batch == Batch::Both;
            let (source, receiver) = if is_source {
                (Some(source(&config)?), None)
            } else {
                (
                    None,
                    Some(ReceiverConfig::new(config.address()?, config.group)),
                )
            };
            let socket = Socket::open(&config, source, receiver)?;
            let buffers = if is_source {
                socket.sockets().last()
            } else {
                socket.sockets().next()
            };
            let buffers = buffers.map(|socket| grant(&SockRef::from(socket), buffer_bytes));
            let buffers =
                (buffers.transpose()).map_err(NetError::context("querying buffer sizes"))?;
            let end = End {
                socket,
                batch,
                in_flight: Arc::clone(&in_flight),
            };
            Ok::<_, NetError>((end, buffers.unwrap_or_default()))
        })?
    };
    Ok([open(Side::Near, true)?, open(Side::Far, false)?])
}

fn source(config: &SocketConfig) -> Result<SourceConfig, SocketError> {
    Ok(SourceConfig {
        linger: WAIT,
        ..SourceConfig::new(Tsi::random(), config.address()?, config.group)
    })
}

struct Sender {
    end: End,
    message: Vec<u8>,
}

struct Receiver {
    end: End,
    size: usize,
}

pub(super) fn sender(end: End, size: usize) -> Box<dyn Send> {
    Box::new(Sender {
        end,
        message: vec![0; size],
    })
}

pub(super) fn receiver(end: End, size: usize) -> Box<dyn Receive> {
    Box::new(Receiver { end, size })
}

impl Sender {
    /// Sends the messages that can be sent now, but at most one batch. Returns the number of sent messages.
    fn send(&mut self) -> Result<u64, SocketError> {
        if !self.end.in_flight.has_room(self.message.len()) {
            return Ok(0);
        }
        let socket = &mut self.end.socket;
        if self.end.batch != Batch::One {
            let messages = (0..MANY).map(|_| &self.message[..]);
            return Ok(socket.send_many(messages)? as u64);
        }
        for sent in 0..BURST {
            match socket.send(&self.message) {
                Ok(_) => {}
                Err(SocketError::WouldBlock { .. }) => return Ok(sent as u64),
                Err(error) => return Err(error),
            }
        }
        Ok(BURST as u64)
    }
}

impl Send for Sender {
    fn burst(&mut self) -> io::Result<u64> {
        let sent = self.send().map_err(io::Error::other)?;
        self.end.in_flight.sent(sent * self.message.len() as u64);
        // This call serves repair requests.
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
    fn take(&mut self) -> io::Result<ReceivedCount> {
        let mut count = ReceivedCount::default();
        let started = Instant::now();
        while count.packets < BURST as u64 {
            let wait = match self.end.socket.recv().map_err(io::Error::other)? {
                Received::Event(Event::Message { payload, .. }) => {
                    count.add(payload.len(), self.size);
                    continue;
                }
                Received::Event(Event::Lost { packets, .. }) => {
                    self.end.in_flight.lost(packets.into(), self.size);
                    continue;
                }
                Received::Event(_) => continue,
                Received::TimerPending(wait) => wait,
                Received::WouldBlock | Received::End => WAIT,
            };
            let rest = WAIT.saturating_sub(started.elapsed());
            if count.packets > 0 || rest.is_zero() {
                break;
            }
            let wait = Some(wait.min(rest));
            self.end.socket.wait(wait).map_err(io::Error::other)?;
        }
        self.end.in_flight.received(count.bytes);
        Ok(count)
    }
}
