//! OpenPGM, which repairs losses, with one call per message.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::in_flight::InFlight;
use super::{BURST, Receive, ReceivedCount, Send, WAIT};
use crate::net::peers::openpgm::{Does, Message, OpenPgmSocket, Reception, at};
use crate::net::{Buffers, Family, NetError, Side, Testbed};

/// One end of a session.
pub(super) struct End {
    socket: OpenPgmSocket,
    in_flight: Arc<InFlight>,
}

/// Returns the two ends of a session and their buffer sizes.
pub(super) fn ends(
    testbed: &Testbed,
    group: SocketAddr,
    buffer_bytes: Option<usize>,
) -> Result<[(End, Buffers); 2], NetError> {
    let in_flight = Arc::new(InFlight::default());
    let open = |side, does| {
        let interface = testbed.interface(side, Family::of_address(group))?;
        let (socket, buffers) = testbed.on(side, || {
            OpenPgmSocket::open(&interface, at(group)?, does, buffer_bytes)
        })??;
        let in_flight = Arc::clone(&in_flight);
        Ok::<_, NetError>((End { socket, in_flight }, buffers))
    };
    Ok([
        open(Side::Near, Does::Send)?,
        open(Side::Far, Does::Receive)?,
    ])
}

struct Sender {
    end: End,
    message: Box<Message>,
    size: usize,
    buffer: Vec<u8>,
}

struct Receiver {
    end: End,
    size: usize,
    buffer: Vec<u8>,
}

pub(super) fn sender(end: End, size: usize) -> Box<dyn Send> {
    Box::new(Sender {
        end,
        message: Message::new(),
        size,
        buffer: vec![0; usize::from(u16::MAX)],
    })
}

pub(super) fn receiver(end: End, size: usize) -> Box<dyn Receive> {
    Box::new(Receiver {
        end,
        size,
        buffer: vec![0; usize::from(u16::MAX)],
    })
}

impl Sender {
    /// Serves pending repair requests. Each call of `recv` serves one request. Waits at most `time` for the
    /// first request.
    fn serve(&mut self, mut time: Duration) -> io::Result<()> {
        self.end.socket.recv(&mut self.buffer)?;
        for _ in 0..BURST {
            if !self.end.socket.wait(time)? {
                break;
            }
            self.end.socket.recv(&mut self.buffer)?;
            time = Duration::ZERO;
        }
        Ok(())
    }
}

impl Send for Sender {
    fn burst(&mut self) -> io::Result<u64> {
        let mut sent = 0;
        while sent < BURST
            && self.end.in_flight.has_room(self.size)
            && self.end.socket.send(&self.message, self.size)?
        {
            self.end.in_flight.sent(self.size as u64);
            sent += 1;
        }
        self.serve(match sent {
            0 => Duration::from_micros(100),
            _ => Duration::ZERO,
        })?;
        Ok(sent as u64)
    }

    fn finish(&mut self) -> io::Result<()> {
        let started = Instant::now();
        while self.end.in_flight.bytes() > 0 && started.elapsed() < 10 * WAIT {
            self.serve(Duration::from_millis(1))?;
        }
        Ok(())
    }
}

impl Receive for Receiver {
    fn take(&mut self) -> io::Result<ReceivedCount> {
        let mut count = ReceivedCount::default();
        let started = Instant::now();
        while count.packets < BURST as u64 {
            match self.end.socket.recv(&mut self.buffer)? {
                Reception::Message(len) => count.add(len, self.size),
                Reception::Lost => {}
                Reception::Nothing(wait) => {
                    let rest = WAIT.saturating_sub(started.elapsed());
                    if count.packets > 0 || rest.is_zero() {
                        break;
                    }
                    self.end.socket.wait(wait.min(rest))?;
                }
            }
        }
        match count.packets {
            0 => self.end.in_flight.give_up(),
            _ => self.end.in_flight.received(count.bytes),
        }
        Ok(count)
    }
}
