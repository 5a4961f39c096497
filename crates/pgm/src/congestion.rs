//! Congestion control with a single send rate for all receivers (PGMCC, draft-ietf-rmt-bb-pgmcc-03). The
//! slowest receiver is called the acker. The acker acknowledges data packets. As in TCP, a window limits the
//! number of packets in flight.

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
    /// Fraction of the acker's throughput. If the throughput of another receiver is below this fraction, that
    /// receiver replaces the acker. With a value below 1, two similar receivers do not replace each other
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
