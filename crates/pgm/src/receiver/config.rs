//! How a receiver behaves.

use std::{net::IpAddr, time::Duration};

use crate::wire::Dialect;

/// How a receiver behaves. [`ReceiverConfig::new`] gives what works in a local network.
#[derive(Clone, Copy, Debug)]
pub struct ReceiverConfig {
    /// The data-destination port that sources send to.
    pub destination_port: u16,
    /// The own address.
    pub address: IpAddr,
    /// The group that is listened to.
    pub group: IpAddr,
    /// In which order messages are handed out.
    pub order: Order,
    /// Whether what was sent before is asked for, where a source allows it. Then nothing of a source
    /// is handed out before it has said so by an SPM.
    pub late_join: bool,
    /// Only listen: never ask for anything. What is missing comes by parity, or because others ask.
    pub passive: bool,
    /// The most packets of a source that wait, for others or to be taken. From 2 to 2²⁴.
    pub window: u32,
    /// The most bytes of a source that wait, about; half of it is the longest message.
    pub bytes: usize,
    /// The most sources that are listened to at once; further ones are ignored.
    pub sources: usize,
    /// A source of which nothing was heard for so long is given up.
    pub expiry: Duration,
    /// What is missing is asked for after a random time up to this, unless the source says how long.
    pub back_off: Duration,
    /// How long a request may go unconfirmed before it is made again; each time twice as long, up to 16
    /// times.
    pub confirmation: Duration,
    /// How long a confirmed repair may take before it is asked for again; each time twice as long, up to
    /// 16 times.
    pub repair: Duration,
    /// After so many requests without confirmation, what is missing is lost.
    pub confirmation_retries: u16,
    /// After so many confirmations without repair, what is missing is lost.
    pub repair_retries: u16,
    /// A source that has not introduced itself is asked to after a random time up to this.
    pub spm_back_off: Duration,
    /// And asked again after so long.
    pub spm_repeat: Duration,
    /// Where a source seeks an acker, the answer waits a random time up to this.
    pub ack_back_off: Duration,
    /// The few bits that OpenPGM has otherwise.
    pub dialect: Dialect,
    /// What random choices come from: different for each receiver.
    pub seed: u64,
}

/// In which order messages are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As each source has sent them.
    AsSent,
    /// As they come: none waits for another's repair.
    AsReceived,
}

impl ReceiverConfig {
    /// What works in a local network without tuning.
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
