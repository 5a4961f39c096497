//! What a receiver has had of a source.

use std::time::Duration;

/// What a receiver has had of one source since it heard of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStatistics {
    /// Messages handed out.
    pub messages: u64,
    /// Bytes of these.
    pub message_bytes: u64,
    /// Data packets that were new, original or repaired.
    pub packets: u64,
    /// Of these, repairs.
    pub repairs: u64,
    /// Packets made of parity.
    pub recovered: u64,
    /// Parity packets received.
    pub parity: u64,
    /// Data packets that were there already, or given up, or before the window.
    pub duplicates: u64,
    /// Data packets refused since too much waits to be taken.
    pub refused: u64,
    /// Packets lost for good, as they were reported.
    pub lost: u64,
    /// Packets of messages that had begun before this receiver joined.
    pub skipped: u64,
    /// Packets whose numbers, lengths or parity contradict others.
    pub contradictory: u64,
    /// Packets that were missing for a while and then came.
    pub late: u64,
    /// How long these were missing, added up.
    pub late_total: Duration,
    /// How long one of these was missing at most.
    pub late_most: Duration,
    /// Source path messages received.
    pub spms: u64,
    /// Confirmations received.
    pub ncfs: u64,
    /// NAKs sent.
    pub naks: u64,
    /// Packets or groups that they asked for.
    pub numbers_requested: u64,
    /// NAKs of other receivers heard.
    pub naks_heard: u64,
}
