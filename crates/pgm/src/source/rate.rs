//! How fast is sent.

use std::time::Duration;

use crate::Time;

/// A rate, in bytes that include the headers of IP and UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The rate in the long run.
    pub bytes_per_second: u64,
    /// How much may go at once after a pause.
    pub burst: usize,
}

/// A token bucket, kept as the moment at which it is full again: no tokens to be counted up.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenBucket {
    rate: Rate,
    full: Time,
}

impl TokenBucket {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            rate,
            full: Time::default(),
        }
    }

    /// When the next packet may go: as soon as less than a burst is missing.
    pub(super) fn ready(&self) -> Time {
        let burst = self.duration(self.rate.burst);
        Time(self.full.0.saturating_sub(burst.as_nanos() as u64))
    }

    /// Takes what a packet that goes now has.
    pub(super) fn charge(&mut self, now: Time, bytes: usize) {
        self.full = self.full.max(now).plus(self.duration(bytes));
    }

    /// How long so many bytes take; at most some 584 years.
    fn duration(&self, bytes: usize) -> Duration {
        let nanoseconds = bytes as u128 * 1_000_000_000 / u128::from(self.rate.bytes_per_second);
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}
