//! Back-off interval that a source sets for its receivers (RFC 3208 appendix E).

use std::time::Duration;

use crate::wire::{BackOffInterval, BackOffRange, Sqn};

/// Limits of the back-off interval that the source sends to receivers. Before a receiver sends a request, it
/// waits for a random time up to this interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOffTuning {
    /// Minimum and initial back-off interval.
    pub min: Duration,
    /// Maximum back-off interval.
    pub max: Duration,
    /// Number of requests without a duplicate after which the interval is halved.
    pub probes: u32,
}

/// State that adapts the back-off interval. If the interval is too short, receivers send their requests
/// before the confirmation of another receiver's request arrives. Duplicate requests therefore show that the
/// interval is too short.
#[derive(Debug)]
pub(super) struct BackOff {
    tuning: BackOffTuning,
    interval: Duration,
    without_duplicate: u32,
}

impl BackOff {
    pub(super) fn new(tuning: BackOffTuning) -> Self {
        Self {
            tuning,
            interval: tuning.min,
            without_duplicate: 0,
        }
    }

    pub(super) fn on_request(&mut self, is_duplicate: bool) {
        if is_duplicate {
            self.interval = (self.interval * 2).min(self.tuning.max);
            self.without_duplicate = 0;
        } else {
            self.without_duplicate += 1;
            if self.without_duplicate >= self.tuning.probes {
                self.interval = (self.interval / 2).max(self.tuning.min);
                self.without_duplicate = 0;
            }
        }
    }

    pub(super) fn interval(&self) -> BackOffInterval {
        BackOffInterval {
            interval: microseconds(self.interval),
            poll: Sqn(0),
        }
    }

    pub(super) fn range(&self) -> BackOffRange {
        BackOffRange {
            max: microseconds(self.tuning.max),
            min: microseconds(self.tuning.min),
        }
    }
}

fn microseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_double_the_interval_and_their_absence_halves_it() {
        let mut back_off = BackOff::new(BackOffTuning {
            min: Duration::from_micros(100),
            max: Duration::from_micros(500),
            probes: 3,
        });
        let mut after = |duplicates: &[bool]| {
            for is_duplicate in duplicates {
                back_off.on_request(*is_duplicate);
            }
            back_off.interval().interval
        };
        assert_eq!(after(&[false]), 100);
        assert_eq!(after(&[true]), 200);
        assert_eq!(after(&[true, true]), 500);
        assert_eq!(after(&[false, false, false]), 250);
        assert_eq!(after(&[false; 6]), 100);
    }
}
