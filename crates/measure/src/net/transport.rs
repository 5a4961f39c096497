//! Interface between the probes and the carriers of packets.

use std::io;
use std::net::SocketAddr;

/// A received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedPacket {
    /// Length in bytes. The packet is at the start of the buffer.
    pub len: usize,
    /// Sender, to which an answer is sent; `None` if answers are published to a group.
    pub from: Option<SocketAddr>,
    /// Traffic class; `None` if it was not requested or the system does not report it.
    pub class: Option<u8>,
}

/// Numbers of repairs of lost packets at one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Repairs {
    /// Number of repair requests that this end received.
    pub requests_heard: u64,
    /// Number of packets that this end sent again.
    pub sent: u64,
    /// Number of repair requests that this end sent.
    pub requests_sent: u64,
    /// Number of packets that this end received after a repair request.
    pub received: u64,
    /// Number of packets that did not arrive.
    pub lost: u64,
}

/// One end of a connection.
///
/// A source sends and receives on two threads, each with a handle of the same end. A reflector uses
/// one handle for both.
pub trait Transport: Send {
    /// Sends a packet to the other end, or as an answer to `to`. A transport with a group also
    /// publishes answers to the group.
    ///
    /// # Errors
    /// Returns the error of the system.
    fn send(&mut self, packet: &[u8], to: Option<SocketAddr>) -> io::Result<()>;

    /// Waits for a packet, for about 100 ms. Returns `None` if no packet arrived.
    ///
    /// # Errors
    /// Returns the error of the system. Examples are a refusal of an earlier packet by the other end
    /// ([`io::ErrorKind::ConnectionRefused`]), and a packet that did not fit into `buffer`.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<ReceivedPacket>>;

    /// Returns the numbers of repairs; `None` if the transport does not repair losses.
    fn repairs(&self) -> Option<Repairs> {
        None
    }

    /// Returns another handle of the same end.
    ///
    /// # Errors
    /// Returns the error of the system.
    fn clone_handle(&self) -> io::Result<Box<dyn Transport>>;
}
