//! Source of a run whose counter is on another machine.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::control::{Answer, Control, Request, SentAll, VERSION, Version, read};
use super::ends::UdpEnd;
use super::{LEFT_OVER, Method, Throughput, check, send};
use crate::net::{NetError, RunContext};

/// Run with a counter on another machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remote {
    /// Address of the counter.
    pub(super) to: SocketAddr,
    /// Payload size in bytes.
    pub(super) size: usize,
    /// Duration of sending.
    pub(super) time: Duration,
    /// Requested size of the buffers at both ends, in bytes.
    pub(super) buffer_bytes: Option<usize>,
    /// Maximum time that the counter may take to answer.
    pub(super) patience: Duration,
}

impl Remote {
    /// Sends at the maximum rate and gets the count from the counter. The reported time is the time from the
    /// first to the last received packet, measured with the counter's clock.
    ///
    /// # Errors
    /// Returns an error if no counter answers, if the counter refuses or falls silent, or if this
    /// system lacks the method or refuses to send.
    pub(super) fn measure(
        self,
        method: Method,
        context: RunContext<'_>,
    ) -> Result<Throughput, NetError> {
        check(self.size)?;
        let here = || NetError::context("opening a socket");
        let stream = TcpStream::connect_timeout(&self.to, self.patience);
        let stream = stream.map_err(|error| NetError::NoCounter {
            to: self.to,
            said: error.to_string(),
        })?;
        let mut own = stream.local_addr().map_err(here())?;
        own.set_port(0);
        let end = UdpEnd::open(own, method.socket(), self.buffer_bytes)?;
        let (port, sender_buffers) = (end.at.port(), end.buffers);
        let sender = end.sender(method, self.to, self.size)?;
        let mut control = Control::new(stream).map_err(here())?;
        let request = Request {
            version: Version {
                laglab_throughput: VERSION,
            },
            method: method.name.to_owned(),
            size: self.size,
            time_ms: u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX),
            buffer_bytes: self.buffer_bytes,
            port,
        };
        control.say(&request).map_err(self.silence())?;
        let receiver_buffers = match self.answer(&mut control, self.patience)? {
            Answer::Ready { buffers } => buffers,
            _ => return Err(self.silence()(out_of_turn())),
        };
        let sending = || send(&mut *sender()?, self.time, context.clock, context.stop);
        let sent = (context.scheduling)
            .run(|_| sending())
            .and_then(|(sent, _)| sent)
            .map_err(|error| match error.kind() {
                io::ErrorKind::ConnectionRefused => self.silence()(error),
                _ => method.failed("sending")(error),
            })?;
        let sent_all = SentAll { sent: sent.packets };
        control.say(&sent_all).map_err(self.silence())?;
        let patience = self.patience + 2 * LEFT_OVER;
        match self.answer(&mut control, patience)? {
            Answer::Counted {
                packets,
                bytes,
                took_ns,
            } => Ok(Throughput {
                size: self.size,
                sent: sent.packets,
                received: packets,
                bytes,
                took_ns,
                sender_buffers,
                receiver_buffers,
            }),
            _ => Err(self.silence()(out_of_turn())),
        }
    }

    /// Returns the next answer of the counter. If the answer is a refusal, returns an error. This function
    /// waits for the answer even after a stop. The wait is short, and the packets that were sent before the
    /// stop should still be counted.
    fn answer(self, control: &mut Control, patience: Duration) -> Result<Answer, NetError> {
        let said = control.read_line(patience, &|| false);
        let said = said.and_then(|line| read(&line));
        match said.map_err(self.silence())? {
            Answer::Refused(why) => Err(NetError::CounterRefuses { to: self.to, why }),
            answer => Ok(answer),
        }
    }

    fn silence(self) -> impl FnOnce(io::Error) -> NetError {
        move |error| NetError::CounterStopped {
            to: self.to,
            said: error.to_string(),
        }
    }
}

fn out_of_turn() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the answer is out of order")
}
