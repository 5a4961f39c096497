//! How a source behaves.

use std::{net::IpAddr, time::Duration};

use super::{BackOffTuning, Rate};
use crate::{
    congestion::CongestionConfig,
    fec::Code,
    wire::{Dialect, Sqn, Tsi},
};

/// How a source behaves. [`SourceConfig::new`] gives what works in a local network.
#[derive(Clone, Copy, Debug)]
pub struct SourceConfig {
    /// The session. No two sources of a group may have the same, and one that begins anew takes
    /// another.
    pub tsi: Tsi,
    /// The data-destination port. It must differ from the session's.
    pub destination_port: u16,
    /// The own address, which requests for repair are sent to.
    pub address: IpAddr,
    /// The group that is sent to.
    pub group: IpAddr,
    /// Bytes that a packet may have, without the headers of IP and UDP.
    pub max_packet: usize,
    /// Bytes of the headers of IP and UDP, which count for the rate.
    pub overhead: usize,
    /// The first packet's number.
    pub first: Sqn,
    /// How much is kept for repairs.
    pub window: WindowLimit,
    /// How often the source says that it lives, whatever else it sends.
    pub ambient: Duration,
    /// How soon after data the source says what its last packet was; each time after that it waits
    /// twice as long.
    pub heartbeat_min: Duration,
    /// The longest time between two such.
    pub heartbeat_max: Duration,
    /// How fast is sent; `None`: as fast as it is polled.
    pub rate: Option<Rate>,
    /// How many repairs are sent for each original while both wait. None of either is ever starved
    /// by the other.
    pub repairs_per_original: u32,
    /// Forward error correction.
    pub parity: Option<ParityConfig>,
    /// Whether those who join late may ask for what is still in the window.
    pub late_join: bool,
    /// Whether receivers are told how long to back off.
    pub back_off: Option<BackOffTuning>,
    /// Whether the slowest receiver sets the pace.
    pub congestion: Option<CongestionConfig>,
    /// Whether receivers are asked to say how much they lose: see [`SourceStatistics::loss`](super::SourceStatistics::loss).
    pub loss_reports: bool,
    /// How long repairs are served after the end.
    pub linger: Duration,
    /// The few bits that OpenPGM has otherwise.
    pub dialect: Dialect,
    /// What random choices come from.
    pub seed: u64,
}

/// How much is kept for repairs: as long as all limits hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimit {
    /// The most packets.
    pub packets: u32,
    /// The most bytes of payload.
    pub bytes: Option<usize>,
    /// The longest time since they were sent.
    pub age: Option<Duration>,
}

/// Forward error correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityConfig {
    /// Packets in a group: a power of two from 2 to 128.
    pub group_size: u32,
    /// How many parity packets follow each group unasked.
    pub proactive: usize,
    /// Whether receivers may ask for parity.
    pub on_demand: bool,
    /// Whether a group is cut short when the source pauses in the midst of it, so that its proactive
    /// parity goes out. Else what was sent last is repaired on request only. Of sparse messages each may
    /// be a group by itself, with as much parity as a whole one.
    pub cut_short: bool,
}

/// What contradicts itself in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Packets are too short to carry anything, or longer than UDP can carry.
    #[error("packets of {0} bytes are not possible: from 128 to 65,507 are")]
    PacketSize(usize),
    /// The ports of both directions are the same.
    #[error("the session's port {0} is also its destination port; they must differ")]
    SamePort(u16),
    /// The group is no multicast group.
    #[error("{0} is no multicast group: 224.0.0.0/4 and ff00::/8 are")]
    NotMulticast(IpAddr),
    /// Source and group have different families.
    #[error("{address} and the group {group} are of different address families")]
    Families {
        /// The source's address.
        address: IpAddr,
        /// The group.
        group: IpAddr,
    },
    /// The window keeps nothing, or more than numbers can tell apart.
    #[error("a window of {found} packets is not possible: from {least} to {most} are")]
    Window {
        /// As configured.
        found: u32,
        /// The least that would do.
        least: u32,
        /// The most that would do.
        most: u32,
    },
    /// No such parity.
    #[error(
        "{proactive} parity packets for groups of {group_size} are not possible: groups have a \
         power of two from 2 to 128 packets, and with their parity at most 255"
    )]
    Parity {
        /// As configured.
        group_size: u32,
        /// As configured.
        proactive: usize,
    },
    /// Groups that are cut short leave numbers unused, which congestion control counts as lost.
    #[error(
        "groups cannot be cut short with congestion control: numbers not used would count as lost"
    )]
    CutShort,
    /// The rate is nothing.
    #[error("a rate of 0 bytes a second sends nothing")]
    Rate,
    /// A time that must be longer than nothing is nothing, or the longer of two is the shorter.
    #[error("{0} is not possible")]
    Duration(&'static str),
}

impl SourceConfig {
    /// What works in a local network without tuning.
    pub fn new(tsi: Tsi, address: IpAddr, group: IpAddr) -> SourceConfig {
        // What Ethernet's 1,500 bytes leave after the headers of IP and UDP.
        let overhead = if address.is_ipv4() { 28 } else { 48 };
        SourceConfig {
            tsi,
            destination_port: 7500,
            address,
            group,
            max_packet: 1500 - overhead,
            overhead,
            first: Sqn(0),
            window: WindowLimit {
                packets: 16_384,
                bytes: None,
                age: None,
            },
            ambient: Duration::from_secs(10),
            heartbeat_min: Duration::from_millis(5),
            heartbeat_max: Duration::from_secs(5),
            rate: None,
            repairs_per_original: 4,
            parity: None,
            late_join: false,
            back_off: None,
            congestion: None,
            loss_reports: false,
            linger: Duration::from_secs(5),
            dialect: Dialect::Rfc3208,
            seed: 0,
        }
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if !(128..=65_507).contains(&self.max_packet) {
            return Err(ConfigError::PacketSize(self.max_packet));
        }
        if self.tsi.port == self.destination_port {
            return Err(ConfigError::SamePort(self.tsi.port));
        }
        if !self.group.is_multicast() {
            return Err(ConfigError::NotMulticast(self.group));
        }
        if self.address.is_ipv4() != self.group.is_ipv4() {
            return Err(ConfigError::Families {
                address: self.address,
                group: self.group,
            });
        }
        let least = self.parity.map_or(2, |parity| 2 * parity.group_size);
        let most = 1 << 24;
        if !(least..=most).contains(&self.window.packets) {
            return Err(ConfigError::Window {
                found: self.window.packets,
                least,
                most,
            });
        }
        if let Some(ParityConfig {
            group_size,
            proactive,
            ..
        }) = self.parity
            && Code::of(group_size).is_none_or(|code| proactive > code.most_parity())
        {
            return Err(ConfigError::Parity {
                group_size,
                proactive,
            });
        }
        if self.congestion.is_some() && self.parity.is_some_and(|parity| parity.cut_short) {
            return Err(ConfigError::CutShort);
        }
        if self.rate.is_some_and(|rate| rate.bytes_per_second == 0) {
            return Err(ConfigError::Rate);
        }
        if self.ambient.is_zero() || self.heartbeat_min.is_zero() {
            return Err(ConfigError::Duration("no time between two SPMs"));
        }
        if self.heartbeat_max < self.heartbeat_min {
            return Err(ConfigError::Duration(
                "a longest heartbeat below the shortest",
            ));
        }
        Ok(())
    }
}
