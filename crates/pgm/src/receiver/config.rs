//! Configuration of a receiver.

use std::{net::IpAddr, time::Duration};

use crate::wire::Dialect;

/// Configuration of a receiver. [`ReceiverConfig::new`] returns values for a local network.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverConfig {
    /// PGM data-destination port of the sources. Packets for other ports are ignored.
    pub destination_port: u16,
    /// Address of this receiver.
    pub address: IpAddr,
    /// Address of the multicast group.
    pub group: IpAddr,
    /// Order in which messages are returned.
    pub order: Order,
    /// True to request packets that were sent before this receiver joined, if the source allows such
    /// requests. In this case, messages of a source are returned only after the first SPM of the source.
    pub late_join: bool,
    /// True if the receiver must send nothing. Missing packets can still arrive as parity, or because other
    /// receivers request them.
    pub passive: bool,
    /// Maximum number of packets kept in memory per source, from 2 to 2²⁴.
    pub window: u32,
    /// Approximate maximum number of bytes kept in memory per source. A message can have at most
    /// half of this size.
    pub bytes: usize,
    /// Maximum number of sources. Further sources are ignored.
    pub sources: usize,
    /// Maximum number of bytes sent to a source that does not answer, at least 256. Each byte
    /// received from the source allows two more bytes, up to this maximum.
    pub request_bytes: usize,
    /// Maximum number of packets sent per second to all sources together.
    pub packets_per_second: u32,
    /// True to send requests to the address that an SPM names (path NLA), even if the SPM came from another
    /// address. Networks with PGM routers need this setting. If false, requests go to the address from which
    /// the SPM came. The value false is safer, because any member of the group can name any address in an
    /// SPM.
    pub trusts_path: bool,
    /// Time of silence after which a source is dropped.
    pub expiry: Duration,
    /// Maximum random delay before a request for missing packets. The source can set another
    /// maximum.
    pub back_off: Duration,
    /// Time after which a request is repeated if no confirmation arrived. The time doubles with each
    /// repetition, up to 16 times this value.
    pub confirmation: Duration,
    /// Time after which a confirmed request is repeated if no repair arrived. The time doubles with each
    /// repetition, up to 16 times this value.
    pub repair: Duration,
    /// Number of unconfirmed requests after which a packet is given up as lost.
    pub confirmation_retries: u16,
    /// Number of confirmations without a repair after which a packet is given up as lost.
    pub repair_retries: u16,
    /// Maximum random delay before the receiver requests an SPM from a source that has not sent one
    /// yet.
    pub spm_back_off: Duration,
    /// Interval at which the request for an SPM is repeated.
    pub spm_repeat: Duration,
    /// Maximum random delay of an acknowledgement for congestion control. The delay applies while the source
    /// has not yet chosen the one receiver that acknowledges (the acker).
    pub ack_back_off: Duration,
    /// Variant of the wire format, because OpenPGM encodes some bits differently from RFC 3208.
    pub dialect: Dialect,
    /// Seed of the random number generator. Each receiver needs a different seed.
    pub seed: u64,
}

/// Order in which messages are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Order in which each source sent its messages.
    AsSent,
    /// Order of arrival. No message waits for the repair of another message.
    AsReceived,
}

impl ReceiverConfig {
    /// Returns a configuration for a local network.
    pub fn new(address: IpAddr, group: IpAddr) -> ReceiverConfig {
        ReceiverConfig {
            destination_port: 7500,
            address,
            group,
            order: Order::AsSent,
            late_join: false,
            passive: false,
            window: 16_384,
            bytes: 64 << 20,
            sources: 256,
            request_bytes: 16 << 10,
            packets_per_second: 20_000,
            trusts_path: false,
            expiry: Duration::from_secs(30),
            back_off: Duration::from_micros(500),
            confirmation: Duration::from_millis(2),
            repair: Duration::from_millis(5),
            confirmation_retries: 100,
            repair_retries: 100,
            spm_back_off: Duration::from_millis(50),
            spm_repeat: Duration::from_millis(250),
            ack_back_off: Duration::from_millis(5),
            dialect: Dialect::Rfc3208,
            seed: 0,
        }
    }
}
