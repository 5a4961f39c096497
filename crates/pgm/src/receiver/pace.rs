//! Limit on the number of packets sent per second to all sources together.

use std::time::Duration;

use crate::Time;

/// Token bucket, stored as the time at which it will be full again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    interval: Duration,
    full_at: Time,
}

impl Pace {
    /// Size of the bucket, as a time. After a pause, the packets for this time can be sent at once.
    const BURST: Duration = Duration::from_millis(50);

    pub(super) fn per_second(packets: u32) -> Self {
        Self {
            interval: Duration::from_secs(1) / packets.max(1),
            full_at: Time::default(),
        }
    }

    /// Returns the time from which the next packet may be sent.
    pub(super) fn free_at(self) -> Time {
        let burst = u64::try_from(Self::BURST.as_nanos()).unwrap_or(u64::MAX);
        Time(self.full_at.0.saturating_sub(burst))
    }

    pub(super) fn sent(&mut self, now: Time) {
        self.full_at = self.full_at.max(now).plus(self.interval);
    }
}
