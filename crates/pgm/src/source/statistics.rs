//! Statistics of a source.

use std::net::IpAddr;

use crate::wire::CongestionReport;

/// Statistics of a source since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceStatistics {
    /// Number of original data packets sent.
    pub packets: u64,
    /// Total size of the payloads of the original data packets sent, in bytes.
    pub bytes: u64,
    /// Number of packets that were never sent. This happens if the session was aborted, or if it was closed
    /// and no receiver acknowledged.
    pub dropped: u64,
    /// Number of proactive parity packets sent.
    pub parity_sent: u64,
    /// Number of data packets sent again as repairs.
    pub repairs: u64,
    /// Number of parity packets sent on request.
    pub parity_repairs: u64,
    /// Number of SPMs (source path messages) sent.
    pub spms: u64,
    /// Number of confirmations (NCFs) sent.
    pub ncfs: u64,
    /// Number of NAKs received.
    pub naks: u64,
    /// Number of packets and groups that the received NAKs requested.
    pub numbers_requested: u64,
    /// Number of requested packets and groups whose repair was already queued.
    pub numbers_eliminated: u64,
    /// Number of received NAKs for another source or group.
    pub other_naks: u64,
    /// Number of null NAKs received. Local repairers use null NAKs to report NAKs.
    pub nnaks: u64,
    /// Number of received requests for an SPM.
    pub spm_requests: u64,
    /// Number of acknowledgements received.
    pub acks: u64,
    /// Report of the receiver with the highest loss; `None` before the first report. Receivers send reports
    /// with their NAKs. A new report replaces this report if it comes from the same receiver or contains at least
    /// the same loss. If a receiver has left, its report stays.
    pub loss: Option<LossReport>,
}

/// Loss that a receiver reported (RFC 3208 appendix B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossReport {
    /// Address of the receiver.
    pub receiver: IpAddr,
    /// Fraction of lost packets in units of 1/65,536. It is a moving average over about 130 packets.
    pub loss: u16,
}

impl SourceStatistics {
    /// Records a loss report in two cases: its loss is at least the loss of the current report, or both reports
    /// come from the same receiver.
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
