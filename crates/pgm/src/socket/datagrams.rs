//! Datagram sockets with segmentation offload. If the system supports it, one call sends or
//! receives several datagrams of the same length.

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    time::Duration,
};

#[cfg(target_os = "linux")]
#[path = "datagrams/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "datagrams/other.rs"]
mod system;

/// A datagram socket.
#[derive(Debug)]
pub(super) struct Datagrams {
    socket: UdpSocket,
    /// Destination of datagrams that are sent without an address. `None` if the socket is connected to its
    /// destination. A connected socket saves the system work.
    peer: Option<SocketAddr>,
    calls: system::Calls,
}

/// Received datagrams in a buffer. All datagrams have the same length, but the last datagram may be shorter.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceivedBatch {
    pub(super) from: IpAddr,
    /// Offset of the first datagram in the buffer, in bytes.
    pub(super) at: usize,
    /// Total size of the datagrams in bytes.
    pub(super) length: usize,
    /// Length in bytes of each datagram except the last.
    pub(super) each: usize,
}

impl Datagrams {
    /// Timeout of [`Datagrams::receive_waiting`]; `None` if the system does not support it. The
    /// system rounds this time to its clock ticks, so shorter waits use `poll`.
    pub(super) const WAIT: Option<Duration> = system::Calls::WAIT;

    /// Buffer space in bytes that one datagram, or one batch of coalesced datagrams, may need.
    pub(super) const ROOM: usize = 1 << 16;

    /// Wraps a socket. If `joined` is true, the system may deliver several datagrams of the same
    /// length in one call.
    pub(super) fn new(socket: UdpSocket, joined: bool) -> io::Result<Datagrams> {
        let calls = system::Calls::new(&socket, joined)?;
        Ok(Datagrams {
            socket,
            peer: None,
            calls,
        })
    }

    /// Wraps a socket that only sends to the address `peer`.
    pub(super) fn towards(socket: UdpSocket, peer: SocketAddr) -> io::Result<Datagrams> {
        // A failed connect is not an error: if there is no route now, there may be one later.
        let is_connected = system::Calls::CAN_CONNECT && socket.connect(peer).is_ok();
        Ok(Datagrams {
            peer: (!is_connected).then_some(peer),
            ..Datagrams::new(socket, true)?
        })
    }

    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Returns the maximum number of datagrams that one call can send.
    pub(super) fn max_segments(&self) -> usize {
        self.calls.max_segments()
    }

    /// Sends `bytes` as datagrams of `each` bytes. The last datagram may be shorter. If `to` is `None`, the
    /// datagrams go to the default destination.
    pub(super) fn send(
        &mut self,
        bytes: &[u8],
        each: usize,
        to: Option<SocketAddr>,
    ) -> io::Result<()> {
        self.calls.send(&self.socket, bytes, each, to.or(self.peer))
    }

    /// Receives into `room` the datagrams that one system call returns, and adds their batches to `came`.
    /// Each batch needs at least [`Datagrams::ROOM`] bytes of the buffer.
    pub(super) fn receive(
        &mut self,
        room: &mut [u8],
        came: &mut Vec<ReceivedBatch>,
    ) -> io::Result<()> {
        self.calls.receive(&self.socket, room, came, false)
    }

    /// Receives datagrams like [`Datagrams::receive`], but waits up to [`Datagrams::WAIT`] for the datagrams.
    /// This saves a call of `poll`.
    pub(super) fn receive_waiting(
        &mut self,
        room: &mut [u8],
        came: &mut Vec<ReceivedBatch>,
    ) -> io::Result<()> {
        self.calls.receive(&self.socket, room, came, true)
    }
}
