//! How long receivers are told to back off (RFC 3208 appendix E).

use std::time::Duration;

use crate::wire::{BackOffInterval, BackOffRange, Sqn};

/// Between which times receivers are told to back off before they ask for repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOffTuning {
    /// The shortest, which it begins with.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
    /// After so many requests of which none was a duplicate, the time is halved.
    pub probes: u32,
}

/// Duplicate requests mean that receivers do not wait long enough to hear each other's confirmed.
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

    pub(super) fn measured(&mut self, is_duplicate: bool) {
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
    fn duplicates_double_and_their_absence_halves() {
        let mut back_off = BackOff::new(BackOffTuning {
            min: Duration::from_micros(100),
            max: Duration::from_micros(500),
            probes: 3,
        });
        let mut after = |duplicates: &[bool]| {
            for is_duplicate in duplicates {
                back_off.measured(*is_duplicate);
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
