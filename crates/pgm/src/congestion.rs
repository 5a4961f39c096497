//! Congestion control with a single send rate for all receivers (PGMCC,
//! draft-ietf-rmt-bb-pgmcc-03). The slowest receiver, called the acker, acknowledges data packets.
//! A window similar to TCP's limits the number of packets in flight.

mod acknowledger;
mod controller;
mod loss_filter;

use std::time::Duration;

pub(crate) use acknowledger::Acknowledger;
pub(crate) use controller::Controller;
pub(crate) use loss_filter::Losses;

/// Parameters of congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CongestionConfig {
    /// Fraction of the acker's throughput. A receiver with a throughput below this fraction
    /// replaces the acker. A value below 1 prevents two similar receivers from replacing each other
    /// again and again.
    pub switch_below: f64,
    /// Time without an acknowledgement after which the congestion window starts again at one
    /// packet. After twice this time, the source looks for another acker.
    pub timeout: Duration,
}

impl Default for CongestionConfig {
    fn default() -> Self {
        Self {
            switch_below: 0.75,
            timeout: Duration::from_millis(500),
        }
    }
}
