//! Configuration of a source.

use std::{net::IpAddr, time::Duration};

use super::{BackOffTuning, Rate};
use crate::{
    congestion::CongestionConfig,
    fec::Code,
    wire::{Dialect, Sqn, Tsi},
};

/// Configuration of a source. [`SourceConfig::new`] returns values for a local network.
#[derive(Clone, Copy, Debug)]
pub struct SourceConfig {
    /// Session identifier. It must be unique in the group, and a restarted source needs a new one.
    pub tsi: Tsi,
    /// PGM data-destination port. It must differ from the data-source port in `tsi`.
    pub destination_port: u16,
    /// Address of this source. Receivers send NAKs to this address.
    pub address: IpAddr,
    /// Address of the multicast group.
    pub group: IpAddr,
    /// Maximum size of a packet without IP and UDP headers, in bytes.
    pub max_packet: usize,
    /// Size of the IP and UDP headers in bytes. The rate limit includes these headers.
    pub overhead: usize,
    /// Sequence number of the first data packet.
    pub first: Sqn,
    /// Limits of the transmit window, which keeps sent packets for repairs.
    pub window: WindowLimit,
    /// Interval of ambient SPMs. Ambient SPMs are sent even while no data is sent.
    pub ambient: Duration,
    /// Time from the last data packet to the first heartbeat SPM. The interval doubles with each
    /// heartbeat.
    pub heartbeat_min: Duration,
    /// Maximum interval between heartbeat SPMs.
    pub heartbeat_max: Duration,
    /// Send rate; unlimited if `None`.
    pub rate: Option<Rate>,
    /// Number of repairs sent per original packet while packets of both kinds are waiting. With this ratio,
    /// neither kind blocks the other kind.
    pub repairs_per_original: u32,
    /// Forward error correction; `None` to send no parity.
    pub parity: Option<ParityConfig>,
    /// True to let receivers that join late request the earlier packets of the window.
    pub late_join: bool,
    /// Limits of the back-off interval that the source sends to receivers. If `None`, the source sends no
    /// interval.
    pub back_off: Option<BackOffTuning>,
    /// Congestion control, in which the slowest receiver sets the rate. If `None`, the source sends without
    /// congestion control.
    pub congestion: Option<CongestionConfig>,
    /// True to request loss reports from receivers. The result is in
    /// [`SourceStatistics::loss`](super::SourceStatistics::loss).
    pub loss_reports: bool,
    /// Time for which repairs are served after the end of the session. With congestion control, this time has
    /// a second use: if no receiver of a closed session acknowledges for two timeouts and then for this time, the
    /// source drops the packets that still wait to be sent.
    pub linger: Duration,
    /// Variant of the wire format, because OpenPGM encodes some bits differently from RFC 3208.
    pub dialect: Dialect,
    /// Seed of the random number generator.
    pub seed: u64,
}

/// Limits of the transmit window, which keeps sent packets for repairs. If a limit is exceeded, the
/// oldest packets are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimit {
    /// Maximum number of packets in the window.
    pub packets: u32,
    /// Maximum number of payload bytes in the window; unlimited if `None`.
    pub bytes: Option<usize>,
    /// Maximum time for which a sent packet is kept; unlimited if `None`.
    pub age: Option<Duration>,
}

/// Configuration of forward error correction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityConfig {
    /// Number of data packets per group: a power of two from 2 to 128.
    pub group_size: u32,
    /// Number of parity packets that are sent after each group even without a request (proactive parity).
    pub proactive: usize,
    /// True to let receivers request parity.
    pub on_demand: bool,
    /// True to end a group early if the source pauses within the group. The proactive parity of the group is
    /// then sent. If false, the last packets before a pause are repaired only on request. If messages are
    /// rare, each message may become a separate group, with as much parity as a full group.
    pub shorten_groups: bool,
}

/// Error in a source's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The maximum packet size is too small for data, or too large for UDP.
    #[error("invalid packet size of {0} bytes; use 128 to 65,507")]
    PacketSize(usize),
    /// The data-source port of the session identifier equals the data-destination port.
    #[error("the session's port {0} is also the destination port; use another one")]
    SamePort(u16),
    /// The group is not a multicast address.
    #[error("{0} is not a multicast group; use an address of 224.0.0.0/4 or ff00::/8")]
    NotMulticast(IpAddr),
    /// The addresses of the source and of the group belong to different families (IPv4 and IPv6).
    #[error("the address {address} and the group {group} have different address families")]
    Families {
        /// Address of the source.
        address: IpAddr,
        /// Address of the multicast group.
        group: IpAddr,
    },
    /// The window is too small, or larger than sequence numbers can distinguish.
    #[error("invalid window of {found} packets; use {min} to {max}")]
    Window {
        /// Configured number of packets.
        found: u32,
        /// Minimum number of packets in the window.
        min: u32,
        /// Maximum number of packets in the window.
        max: u32,
    },
    /// Parity is configured for OpenPGM. Receivers of OpenPGM abort their process when parity arrives.
    #[error(
        "cannot send parity to receivers of OpenPGM: version 5.3.128 aborts on it; send without parity"
    )]
    ParityToOpenPgm,
    /// The Reed–Solomon code does not support the configured group size or number of parity
    /// packets.
    #[error(
        "invalid parity: {proactive} packets for groups of {group_size}; the group size must be a \
         power of two from 2 to 128, and group and parity together at most 255"
    )]
    Parity {
        /// Configured group size.
        group_size: u32,
        /// Configured number of parity packets.
        proactive: usize,
    },
    /// Shortened groups are configured together with congestion control. Shortened groups leave
    /// sequence numbers unused, and congestion control would count these as lost.
    #[error(
        "cannot shorten groups together with congestion control: it would count the unused sequence numbers as lost"
    )]
    ShortenGroups,
    /// The configured rate is zero.
    #[error("invalid rate of 0 bytes per second; use a positive one")]
    Rate,
    /// An interval is zero, or a maximum is below its minimum.
    #[error("invalid interval: {0}")]
    Duration(&'static str),
}

impl SourceConfig {
    /// Returns a configuration for a local network.
    pub fn new(tsi: Tsi, address: IpAddr, group: IpAddr) -> SourceConfig {
        // Size of the IP and UDP headers. The maximum packet is Ethernet's 1,500 bytes minus these
        // headers.
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
        let min = self.parity.map_or(2, |parity| 2 * parity.group_size);
        let max = 1 << 24;
        if !(min..=max).contains(&self.window.packets) {
            return Err(ConfigError::Window {
                found: self.window.packets,
                min,
                max,
            });
        }
        if let Some(ParityConfig {
            group_size,
            proactive,
            ..
        }) = self.parity
            && Code::for_group_size(group_size).is_none_or(|code| proactive > code.max_parity())
        {
            return Err(ConfigError::Parity {
                group_size,
                proactive,
            });
        }
        if self.parity.is_some() && self.dialect == Dialect::OpenPgm {
            return Err(ConfigError::ParityToOpenPgm);
        }
        if self.congestion.is_some() && self.parity.is_some_and(|parity| parity.shorten_groups) {
            return Err(ConfigError::ShortenGroups);
        }
        if self.rate.is_some_and(|rate| rate.bytes_per_second == 0) {
            return Err(ConfigError::Rate);
        }
        if self.ambient.is_zero() || self.heartbeat_min.is_zero() {
            return Err(ConfigError::Duration("the interval of SPMs is 0"));
        }
        if self.heartbeat_max < self.heartbeat_min {
            return Err(ConfigError::Duration(
                "the maximum heartbeat interval is below the minimum",
            ));
        }
        Ok(())
    }
}
