//! What a source has done.

use std::net::IpAddr;

use crate::wire::CongestionReport;

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
    /// Of the receivers that say how much they lose the one that loses most; none before the first says
    /// so, which it does with what it asks for. What it says later replaces that, and another that loses more
    /// then is known once it says so again; one that has left stays.
    pub loss: Option<LossReport>,
}

/// How much a receiver loses (RFC 3208 appendix B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossReport {
    /// Which.
    pub receiver: IpAddr,
    /// Its share of lost packets, in 1/65,536: a moving average over some 130 packets.
    pub loss: u16,
}

impl SourceStatistics {
    /// A receiver has said how much it loses. What it says later holds for it, be it less.
    pub(super) fn reported(&mut self, report: CongestionReport) {
        let new = LossReport {
            receiver: report.receiver,
            loss: report.worst_receiver,
        };
        let is_worst = (self.loss)
            .is_none_or(|worst| worst.receiver == new.receiver || worst.loss <= new.loss);
        if report.kinds & CongestionReport::RECEIVER != 0 && is_worst {
            self.loss = Some(new);
        }
    }
}
