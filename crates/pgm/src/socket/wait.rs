//! Waiting until packets can be received.

use std::{net::UdpSocket, time::Duration};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{SocketError, error::Doing};

/// The most sockets of a member.
pub(super) const MOST: usize = 2;

/// Waits for the packets of a [`Socket`](crate::Socket) on another thread than the one that has it.
#[derive(Debug)]
pub struct Waiter(pub(super) Vec<UdpSocket>);

impl Waiter {
    /// Waits until a packet can be received, or at most so long, and says whether one can.
    ///
    /// # Errors
    /// When the system refuses to wait.
    pub fn wait(&self, most: Option<Duration>) -> Result<bool, SocketError> {
        let readable = wait(self.0.iter(), None, most)?;
        Ok(readable.contains(&true))
    }
}

/// Waits until one of the sockets can be read, or the one that is to send can do that, or at most so
/// long; says which can be read.
pub(super) fn wait<'a>(
    sockets: impl Iterator<Item = &'a UdpSocket>,
    sends: Option<&'a UdpSocket>,
    most: Option<Duration>,
) -> Result<[bool; MOST], SocketError> {
    let reading = sockets.map(|socket| PollFd::new(socket, PollFlags::IN));
    let sending = sends.map(|socket| PollFd::new(socket, PollFlags::OUT));
    let mut watched: Vec<PollFd<'_>> = reading.chain(sending).collect();
    let most = most.map(|most| Timespec {
        tv_sec: most.as_secs().min(86_400) as _,
        tv_nsec: most.subsec_nanos() as _,
    });
    match poll(&mut watched, most.as_ref()) {
        Err(error) if error != rustix::io::Errno::INTR => {
            return Err(std::io::Error::from(error)).doing(|| "wait for packets".to_owned());
        }
        _ => {}
    }
    watched.truncate(watched.len() - usize::from(sends.is_some()));
    let mut readable = [false; MOST];
    for (readable, socket) in readable.iter_mut().zip(&watched) {
        // Errors are read like packets.
        *readable = !socket.revents().is_empty();
    }
    Ok(readable)
}
