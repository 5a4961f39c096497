//! Network adapters and addresses of this machine.
//!
//! Windows has three functions that list addresses, and their results can differ: GetAdaptersAddresses
//! (since XP, also IPv6), GetAdaptersInfo and GetIpAddrTable (since 2000, IPv4 only). [`adapters`] calls
//! all three and returns their [results](RawResults). [`interpret`] then combines the results: it derives
//! prefix lengths by the rules of [`prefix_length`] and finds anomalies. Other systems have a single
//! function, getifaddrs.

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
pub use prefix::{Prefix, PrefixInput, PrefixSource, prefix_length, prefix_of_mask};
pub use scope::Scope;
#[cfg(unix)]
pub use unix::adapters;
#[cfg(windows)]
pub use windows::{adapters, record};

/// Error of a system call.
#[derive(Debug, thiserror::Error)]
#[error("cannot list network adapters: {call} failed")]
pub struct AdaptersError {
    call: &'static str,
    source: std::io::Error,
}

/// Kind of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Ethernet or similar.
    Ethernet,
    /// Wireless LAN.
    Wireless,
    /// Loopback.
    Loopback,
    /// Link to one other machine.
    PointToPoint,
    /// Teredo tunnel (IPv6 in IPv4).
    Teredo,
    /// Other tunnel.
    Tunnel,
    /// Other kind of adapter. On Windows, the value contains the IANA interface type number.
    Other(Option<u32>),
}

/// Operational status of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The adapter is up.
    Up,
    /// The adapter is enabled, but has no link.
    NoCarrier,
    /// The adapter is disabled or does not work.
    Down,
    /// The system does not know the status.
    Unknown,
}

/// Network adapter with its addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Adapter {
    /// Display name of the adapter.
    pub name: String,
    /// Name of the device, if known.
    pub description: Option<String>,
    /// Interface index, if the adapter has one.
    pub index: Option<u32>,
    /// Kind of the adapter.
    pub kind: Kind,
    /// Operational status.
    pub status: Status,
    /// True if the adapter can send broadcasts.
    pub broadcast: bool,
    /// True if the adapter can send multicasts.
    pub multicast: bool,
    /// Addresses of the adapter, in the order in which the system lists them.
    pub addresses: Vec<Address>,
    /// Anomalies of the adapter itself, without the anomalies of its addresses.
    pub anomalies: Vec<Anomaly>,
}

/// Address of an adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Address {
    /// IP address.
    pub address: IpAddr,
    /// Prefix length and its source.
    pub prefix: Prefix,
    /// Scope of the address.
    pub scope: Scope,
    /// Scope id. The scope id distinguishes equal link-local addresses on different links.
    pub scope_id: Option<u32>,
    /// Broadcast address of the link, if the link has one.
    pub broadcast: Option<Ipv4Addr>,
    /// Address of the other machine on a point-to-point link.
    pub peer: Option<IpAddr>,
    /// Results of each Windows function for this address. The list is empty on other systems.
    #[serde(rename = "told")]
    pub reports: Vec<ApiReport>,
    /// Anomalies of this address.
    pub anomalies: Vec<Anomaly>,
}

/// Windows function that lists addresses.
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

/// Result of one Windows function for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ApiReport {
    /// Windows function that returned the result.
    pub api: Api,
    /// Prefix length in bits that the function returned. If the function returned a mask, this field is the
    /// length of the mask. `None` if the length or the mask is not valid.
    pub length: Option<u8>,
}

/// Unchanged results of the three Windows functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawResults {
    /// Results of GetAdaptersAddresses.
    pub adapters: Vec<RecordedAdapter>,
    /// Results of GetAdaptersInfo: interface index, address and mask. An address of 0.0.0.0 means that the
    /// adapter has no address.
    pub infos: Vec<(u32, Ipv4Addr, Ipv4Addr)>,
    /// Results of GetIpAddrTable: interface index, address and mask. An address of 0.0.0.0 means that the
    /// adapter has no address.
    pub table: Vec<(u32, Ipv4Addr, Ipv4Addr)>,
}

/// Adapter as GetAdaptersAddresses returns it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedAdapter {
    /// Field `FriendlyName`.
    pub name: String,
    /// Field `Description`.
    pub description: String,
    /// Field `IfIndex`, or `Ipv6IfIndex` if `IfIndex` is 0.
    pub index: u32,
    /// Field `IfType`.
    pub if_type: u32,
    /// Field `TunnelType`.
    pub tunnel_type: i32,
    /// Field `OperStatus`.
    pub oper_status: i32,
    /// Field `Flags`.
    pub flags: u32,
    /// Unicast addresses. Each address has its scope id and, since Windows Vista, its `OnLinkPrefixLength`.
    pub unicast: Vec<(IpAddr, u32, Option<u8>)>,
    /// Prefix list (networks and prefix lengths), in no particular order.
    pub prefixes: Vec<(IpAddr, u32)>,
}
