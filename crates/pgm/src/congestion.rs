//! Congestion control for one rate (PGMCC, draft-ietf-rmt-bb-pgmcc-03): the slowest receiver, the
//! acker, acknowledges data, and a window much like TCP's sets the source's pace.

mod acknowledger;
mod controller;
mod loss_filter;

use std::time::Duration;

pub(crate) use acknowledger::Acknowledger;
pub(crate) use controller::Controller;
pub(crate) use loss_filter::Losses;

/// How a source chooses its acker and how long it waits for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CongestionConfig {
    /// Another receiver becomes the acker when its throughput is below so much of the acker's. Below
    /// 1, so that two that are much alike do not take turns.
    pub switch_below: f64,
    /// Without acknowledgement for so long, the pace begins anew; after twice, another acker is
    /// sought.
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
