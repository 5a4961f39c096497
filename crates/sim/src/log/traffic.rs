//! Events about TCP and UDP traffic.

use std::io::{Seek, Write};
use std::net::{IpAddr, SocketAddr};

use super::payload::{Payload, Small};
use super::{EventKind, Log};
use crate::time::Time;

/// Direction of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Outgoing.
    Send,
    /// Incoming.
    Receive,
}

/// Data sent or received in one operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    /// True for TCP, false for UDP.
    pub(crate) tcp: bool,
    /// Direction of the data.
    pub(crate) direction: Direction,
    /// Process that owns the connection.
    pub(crate) process: u32,
    /// Number of bytes of data.
    pub(crate) bytes: u32,
    /// Local address.
    pub(crate) local: SocketAddr,
    /// Remote address.
    pub(crate) remote: SocketAddr,
    /// TCP sequence number.
    pub(crate) sequence: u32,
    /// Identifier of the connection.
    pub(crate) connection: u64,
}

impl<W: Write + Seek> Log<W> {
    /// Logs data that a process sends or receives.
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
        // For TCP, the destination is the remote address even if data is received, as in real
        // traces.
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
            // Start time and end time of the send. The unit of these fields is unknown.
            payload.u32(0).u32(0);
        }
        payload.u32(traffic.sequence).u64(traffic.connection);
        self.kernel(kind, cpu, time, None, payload.as_slice(), None);
    }
}
