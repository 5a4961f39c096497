//! The seam between what is measured and what carries it.

use std::io;
use std::net::SocketAddr;

/// A packet that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its length, in bytes: the start of the buffer holds it.
    pub len: usize,
    /// Who sent it, for a transport that answers senders; none where answers are published.
    pub from: Option<SocketAddr>,
    /// The traffic class with which it came; none if it was not asked for or the system does not say.
    pub class: Option<u8>,
}

/// What an end has sent and received again, because it was lost on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Repairs {
    /// Requests that came.
    pub requests_heard: u64,
    /// Packets sent again.
    pub sent: u64,
    /// Requests made.
    pub requests_sent: u64,
    /// Packets that came because they were asked for.
    pub received: u64,
    /// Packets that never came.
    pub lost: u64,
}

/// One end of a way for packets.
///
/// A source sends with one handle and receives with another, on two threads; a reflector does both
/// with one.
pub trait Transport: Send {
    /// Sends a packet: to its partner, or as an answer to `to`. A transport that publishes to a
    /// group publishes answers too.
    ///
    /// # Errors
    /// What the system says.
    fn send(&mut self, packet: &[u8], to: Option<SocketAddr>) -> io::Result<()>;

    /// Waits for a packet, for a bounded time: a tenth of a second or so. None if none came.
    ///
    /// # Errors
    /// What the system says; that an earlier packet was refused by the other end
    /// ([`io::ErrorKind::ConnectionRefused`]) or that a packet did not fit is one of these.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>>;

    /// What was sent again; none of a transport that repairs nothing.
    fn repairs(&self) -> Option<Repairs> {
        None
    }

    /// Another handle on the same end.
    ///
    /// # Errors
    /// What the system says.
    fn another(&self) -> io::Result<Box<dyn Transport>>;
}
