//! TCP and UDP traffic, and packets.

use std::io::{Seek, Write};
use std::net::{IpAddr, SocketAddr};

use super::payload::{Payload, Small};
use super::{EventKind, Log};
use crate::time::Time;

/// Where data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Out.
    Send,
    /// In.
    Receive,
}

/// Data sent or received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    /// TCP; else UDP.
    pub(crate) tcp: bool,
    /// Which way.
    pub(crate) direction: Direction,
    /// Whose traffic it is.
    pub(crate) process: u32,
    /// Bytes of data.
    pub(crate) bytes: u32,
    /// This machine's end.
    pub(crate) local: SocketAddr,
    /// The other end.
    pub(crate) remote: SocketAddr,
    /// Sequence number.
    pub(crate) sequence: u32,
    /// Tells connections apart.
    pub(crate) connection: u64,
}

impl<W: Write + Seek> Log<W> {
    /// Logs traffic.
    pub(crate) fn traffic(&mut self, cpu: u16, time: Time, traffic: &Traffic) {
        use Direction::{Receive, Send};
        let is_v6 = traffic.local.is_ipv6() || traffic.remote.is_ipv6();
        let kind = match (traffic.tcp, traffic.direction, is_v6) {
            (true, Send, false) => EventKind::TcpSend4,
            (true, Receive, false) => EventKind::TcpReceive4,
            (true, Send, true) => EventKind::TcpSend6,
            (true, Receive, true) => EventKind::TcpReceive6,
            (false, Send, false) => EventKind::UdpSend4,
            (false, Receive, false) => EventKind::UdpReceive4,
            (false, Send, true) => EventKind::UdpSend6,
            (false, Receive, true) => EventKind::UdpReceive6,
        };
        // TCP calls the other end the destination even of what is received, as real traces show.
        let (destination, source) = match (traffic.tcp, traffic.direction) {
            (false, Receive) => (traffic.local, traffic.remote),
            _ => (traffic.remote, traffic.local),
        };
        let address = |end: SocketAddr| match end.ip() {
            IpAddr::V4(v4) if is_v6 => v4.to_ipv6_mapped().into(),
            ip => ip,
        };
        let mut payload = Small::new();
        payload
            .u32(traffic.process)
            .u32(traffic.bytes)
            .ip(address(destination))
            .ip(address(source))
            .port(destination.port())
            .port(source.port());
        if traffic.tcp && traffic.direction == Send {
            // When the send began and ended, in a unit that is not known.
            payload.u32(0).u32(0);
        }
        payload.u32(traffic.sequence).u64(traffic.connection);
        self.kernel(kind, cpu, time, None, payload.as_slice(), None);
    }
}
