//! Datagrams, of which some systems take and give several of one length in one call.

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    time::Duration,
};

#[cfg(target_os = "linux")]
#[path = "datagrams/linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "datagrams/elsewhere.rs"]
mod system;

/// A socket for datagrams.
#[derive(Debug)]
pub(super) struct Datagrams {
    socket: UdpSocket,
    /// Where goes what has no address; none if the socket is connected, which saves the system work.
    peer: Option<SocketAddr>,
    calls: system::Calls,
}

/// What came, in the room for it: datagrams of one length, the last of which may be shorter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    pub(super) from: IpAddr,
    /// Where in the room.
    pub(super) at: usize,
    /// Bytes in all.
    pub(super) length: usize,
    /// Bytes of each.
    pub(super) each: usize,
}

impl Datagrams {
    /// How long [`Datagrams::receive_waiting`] waits, where it does. Shorter waits are left to `poll`,
    /// which is precise; this one is rounded to the system's ticks.
    pub(super) const WAIT: Option<Duration> = system::Calls::WAIT;

    /// How much room [`Datagrams::receive`] needs for the longest datagram, or as many shorter ones as
    /// come as one.
    pub(super) const ROOM: usize = 1 << 16;

    /// With `joined` datagrams of one length may come as one.
    pub(super) fn new(socket: UdpSocket, joined: bool) -> io::Result<Datagrams> {
        let calls = system::Calls::of(&socket, joined)?;
        Ok(Datagrams {
            socket,
            peer: None,
            calls,
        })
    }

    /// A socket that only sends, and to one address.
    pub(super) fn towards(socket: UdpSocket, peer: SocketAddr) -> io::Result<Datagrams> {
        // If there is no way there now, there may be one later.
        let is_connected = system::Calls::CAN_CONNECT && socket.connect(peer).is_ok();
        Ok(Datagrams {
            peer: (!is_connected).then_some(peer),
            ..Datagrams::new(socket, true)?
        })
    }

    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// How many datagrams can go in one call.
    pub(super) fn most(&self) -> usize {
        self.calls.most()
    }

    /// Sends datagrams of `each` bytes, the last of which may be shorter; to the address that the
    /// socket sends to, if none is given.
    pub(super) fn send(
        &mut self,
        bytes: &[u8],
        each: usize,
        to: Option<SocketAddr>,
    ) -> io::Result<()> {
        self.calls.send(&self.socket, bytes, each, to.or(self.peer))
    }

    /// Receives what has come, as the system gives it in one call: as much as there is room for of
    /// [`Datagrams::ROOM`] each.
    pub(super) fn receive(&mut self, room: &mut [u8], came: &mut Vec<Came>) -> io::Result<()> {
        self.calls.receive(&self.socket, room, came, false)
    }

    /// The same, but waits for it, at most [`Datagrams::WAIT`]: one call less than to poll before.
    pub(super) fn receive_waiting(
        &mut self,
        room: &mut [u8],
        came: &mut Vec<Came>,
    ) -> io::Result<()> {
        self.calls.receive(&self.socket, room, came, true)
    }
}
