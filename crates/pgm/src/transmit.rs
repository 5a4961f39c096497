//! Outgoing packets.

use std::net::IpAddr;

/// Packet that was appended to the caller's buffer and that the caller must send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Destination of the packet.
    pub to: Destination,
    /// Size of the packet in bytes.
    pub size: usize,
    /// True if network elements such as routers must inspect the packet. Over raw IP, such a packet carries the Router
    /// Alert option.
    pub router_alert: bool,
}

/// Destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The session's multicast group.
    Group,
    /// The session's multicast group with a hop limit of 1. The packet stays in the local network.
    GroupOneHop,
    /// A single address. Over UDP, the packet goes to the unicast port of this address.
    Unicast(IpAddr),
}
