//! Limit on the send rate.

use std::time::Duration;

use crate::Time;

/// Limit on the send rate. The limit counts the bytes of packets including their IP and UDP headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Average rate in bytes per second.
    pub bytes_per_second: u64,
    /// Number of bytes that may be sent at once after a pause.
    pub burst: usize,
}

/// Token bucket, stored as the time at which it will be full again.
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

    /// Returns the time from which the next packet may be sent. From this time on, the bucket is not
    /// overdrawn.
    pub(super) fn ready(&self) -> Time {
        let burst = self.duration(self.rate.burst);
        Time(self.full.0.saturating_sub(burst.as_nanos() as u64))
    }

    /// Takes `bytes` from the bucket for a packet that is sent now.
    pub(super) fn charge(&mut self, now: Time, bytes: usize) {
        self.full = self.full.max(now).plus(self.duration(bytes));
    }

    /// Returns the time that `bytes` take at the average rate, limited to 584 years.
    fn duration(&self, bytes: usize) -> Duration {
        let nanoseconds = bytes as u128 * 1_000_000_000 / u128::from(self.rate.bytes_per_second);
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
}
