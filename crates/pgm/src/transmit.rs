//! Where a packet goes.

use std::net::IpAddr;

/// A packet that was appended to the caller's buffer and is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub to: Destination,
    /// How many bytes.
    pub size: usize,
    /// Whether network elements are to look at it: over raw IP, it carries the Router Alert option.
    pub router_alert: bool,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To the session's group.
    Group,
    /// To the group, but no further than the own network: with a hop limit of 1.
    GroupOneHop,
    /// To one address; encapsulated in UDP, to its port for unicast.
    Unicast(IpAddr),
}
