//! Waiting for packets.

use std::{net::UdpSocket, time::Duration};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{SocketError, error::Context};

/// Maximum number of sockets on which a member waits.
pub(super) const MAX_SOCKETS: usize = 2;

/// Object that waits for the packets of a [`Socket`](crate::Socket) on another thread.
#[derive(Debug)]
pub struct Waiter(pub(super) Vec<UdpSocket>);

impl Waiter {
    /// Waits until a packet can be received or the timeout is over. Returns true if a packet can be
    /// received.
    ///
    /// # Errors
    /// Returns an error if the system refuses to wait.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool, SocketError> {
        let readable = wait(self.0.iter(), None, timeout)?;
        Ok(readable.contains(&true))
    }
}

/// Waits until a socket is readable, `sends` is writable, or the timeout is over. Returns a flag for each
/// socket. A flag is true if the socket is readable.
pub(super) fn wait<'a>(
    sockets: impl Iterator<Item = &'a UdpSocket>,
    sends: Option<&'a UdpSocket>,
    timeout: Option<Duration>,
) -> Result<[bool; MAX_SOCKETS], SocketError> {
    let reading = sockets.map(|socket| PollFd::new(socket, PollFlags::IN));
    let sending = sends.map(|socket| PollFd::new(socket, PollFlags::OUT));
    let mut watched: Vec<PollFd<'_>> = reading.chain(sending).collect();
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: timeout.as_secs().min(86_400) as _,
        tv_nsec: timeout.subsec_nanos() as _,
    });
    match poll(&mut watched, timeout.as_ref()) {
        Err(error) if error != rustix::io::Errno::INTR => {
            return Err(std::io::Error::from(error)).context(|| "wait for packets".to_owned());
        }
        _ => {}
    }
    watched.truncate(watched.len() - usize::from(sends.is_some()));
    let mut readable = [false; MAX_SOCKETS];
    for (readable, socket) in readable.iter_mut().zip(&watched) {
        // A socket with an error counts as readable, because the next receive call returns the
        // error.
        *readable = !socket.revents().is_empty();
    }
    Ok(readable)
}
