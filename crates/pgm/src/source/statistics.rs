//! What a source has done.

/// What a source has done since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceStatistics {
    /// Original data packets sent.
    pub packets: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Parity packets sent unasked.
    pub parity_sent: u64,
    /// Packets sent again.
    pub repairs: u64,
    /// Parity packets sent because they were asked for.
    pub parity_repairs: u64,
    /// Source path messages sent.
    pub spms: u64,
    /// Confirmations sent.
    pub ncfs: u64,
    /// NAKs received.
    pub naks: u64,
    /// Packets or groups that they asked for.
    pub numbers_requested: u64,
    /// Of these, those that were waiting to be repaired already.
    pub numbers_eliminated: u64,
    /// NAKs for another source or group.
    pub foreign_naks: u64,
    /// Null NAKs received: what local repairers have seen.
    pub nnaks: u64,
    /// Requests for an SPM received.
    pub spm_requests: u64,
    /// Acknowledgements received.
    pub acks: u64,
}
