//! The machine's network adapters and addresses, as its system tells them.
//!
//! Windows tells of them in three places that do not agree: GetAdaptersAddresses (since XP, IPv6 too),
//! GetAdaptersInfo and GetIpAddrTable (since 2000, IPv4 only). All three are asked, what they say is
//! [recorded](Recorded) as it is, and [`interpret`] makes adapters of it: prefix lengths by the rules of
//! [`prefix_length`], and anomalies where something is odd. Elsewhere getifaddrs says it all.

mod anomaly;
mod interpret;
mod prefix;
mod scope;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::net::{IpAddr, Ipv4Addr};

use serde::Serialize;

pub use anomaly::Anomaly;
pub use interpret::interpret;
pub use prefix::{Prefix, PrefixSource, Question, prefix_length, prefix_of_mask};
pub use scope::Scope;
#[cfg(unix)]
pub use unix::adapters;
#[cfg(windows)]
pub use windows::{adapters, record};

/// The system would not tell.
#[derive(Debug, thiserror::Error)]
#[error("{call}: {error}")]
pub struct AdaptersError {
    call: &'static str,
    error: std::io::Error,
}

/// What an adapter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Ethernet, or what behaves like it.
    Ethernet,
    /// Wireless LAN.
    Wireless,
    /// Of the machine itself.
    Loopback,
    /// A link to one other machine.
    PointToPoint,
    /// IPv6 in IPv4 by Teredo.
    Teredo,
    /// Another tunnel.
    Tunnel,
    /// Something else; on Windows with the type's number at IANA.
    Other(Option<u32>),
}

/// Whether an adapter works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It does.
    Up,
    /// It is switched on, and nothing is at the other end.
    NoCarrier,
    /// It is not switched on, or does not work.
    Down,
    /// The system does not know.
    Unknown,
}

/// An adapter with its addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Adapter {
    /// What the system calls it for people.
    pub name: String,
    /// What the device is called, if that is told.
    pub description: Option<String>,
    /// Its number, if it has one.
    pub index: Option<u32>,
    /// What it is.
    pub kind: Kind,
    /// Whether it works.
    pub status: Status,
    /// Whether it can send to all on its link at once.
    pub broadcast: bool,
    /// Whether it can send to groups.
    pub multicast: bool,
    /// Its addresses, in the system's order.
    pub addresses: Vec<Address>,
    /// What is odd about it.
    pub anomalies: Vec<Anomaly>,
}

/// An address of an adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Address {
    /// The address.
    pub address: IpAddr,
    /// How many bits are the network's, and who says so.
    pub prefix: Prefix,
    /// How far it reaches.
    pub scope: Scope,
    /// The number that tells equal link-local addresses of several links apart.
    pub scope_id: Option<u32>,
    /// The address of all on its link, if there is one.
    pub broadcast: Option<Ipv4Addr>,
    /// The address at the other end of a link to one machine.
    pub peer: Option<IpAddr>,
    /// What each interface of Windows said of it; empty elsewhere.
    pub told: Vec<Told>,
    /// What is odd about it.
    pub anomalies: Vec<Anomaly>,
}

/// An interface of Windows that tells of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// `GetAdaptersAddresses`.
    AdaptersAddresses,
    /// `GetAdaptersInfo`.
    AdaptersInfo,
    /// `GetIpAddrTable`.
    IpAddrTable,
}

/// What one of them said of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    /// Who.
    pub api: Api,
    /// The prefix length that it gives or that its mask stands for; none if it is neither.
    pub length: Option<u8>,
}

/// What Windows' interfaces said, as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// By GetAdaptersAddresses.
    pub adapters: Vec<RecordedAdapter>,
    /// By GetAdaptersInfo: the adapter's number, an address and its mask; 0.0.0.0 for none.
    pub infos: Vec<(u32, Ipv4Addr, Ipv4Addr)>,
    /// By GetIpAddrTable, the same.
    pub table: Vec<(u32, Ipv4Addr, Ipv4Addr)>,
}

/// An adapter as GetAdaptersAddresses describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedAdapter {
    /// FriendlyName.
    pub name: String,
    /// Description.
    pub description: String,
    /// IfIndex, or Ipv6IfIndex where that is 0.
    pub index: u32,
    /// IfType.
    pub if_type: u32,
    /// TunnelType.
    pub tunnel_type: i32,
    /// OperStatus.
    pub oper_status: i32,
    /// Flags.
    pub flags: u32,
    /// The unicast addresses with their scope ids, and OnLinkPrefixLength since Vista.
    pub unicast: Vec<(IpAddr, u32, Option<u8>)>,
    /// The list of prefixes, in no order that means anything.
    pub prefixes: Vec<(IpAddr, u32)>,
}
