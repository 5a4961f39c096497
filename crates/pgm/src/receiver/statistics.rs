//! Statistics that a receiver keeps for each source.

use std::time::Duration;

/// Statistics of one source since its first packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStatistics {
    /// Number of messages returned to the application.
    pub messages: u64,
    /// Total size of the returned messages in bytes.
    pub message_bytes: u64,
    /// Number of different data packets that arrived as originals or repairs, or that were recovered from
    /// parity.
    pub packets: u64,
    /// Number of repairs among the packets that `packets` counts.
    pub repairs: u64,
    /// Number of packets recovered from parity.
    pub recovered: u64,
    /// Number of parity packets received.
    pub parity: u64,
    /// Number of received data packets that were not needed: packets that were already received or given up,
    /// and packets before the window.
    pub duplicates: u64,
    /// Number of received packets that were refused, for example because the memory limit was
    /// reached.
    pub refused: u64,
    /// Number of packets reported as lost.
    pub lost: u64,
    /// Number of packets that were skipped because their message started before this receiver
    /// joined.
    pub skipped: u64,
    /// Number of parity packets that were dropped because they contradict each other or the data.
    pub contradictory: u64,
    /// Number of late packets: all repairs, all recovered packets, and originals that arrived after they were
    /// missing for some time.
    pub late: u64,
    /// Total time for which the late packets were missing.
    pub late_total: Duration,
    /// Longest time for which one of the late packets was missing.
    pub late_max: Duration,
    /// Number of SPMs (source path messages) received.
    pub spms: u64,
    /// Number of confirmations (NCFs) received.
    pub ncfs: u64,
    /// Number of NAKs sent.
    pub naks: u64,
    /// Number of packets and groups that the sent NAKs requested.
    pub numbers_requested: u64,
    /// Number of SPMs that came from one address and named a different address for requests.
    pub foreign_paths: u64,
    /// Number of packets to the source that were not sent because the source itself had sent too few bytes.
    pub withheld: u64,
    /// Number of NAKs received from other receivers.
    pub naks_heard: u64,
}
