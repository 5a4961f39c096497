//! Points in time, which the caller supplies.

use std::time::Duration;

/// A point in time, in nanoseconds since an origin of the caller's choice.
///
/// The protocol has no clock. Calls take the current time, and return the time of the next call. If
/// the time runs backwards, the only effect is that timers fire late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// Returns the time that is `duration` later, limited to the maximum time.
    pub fn plus(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(nanoseconds(duration)))
    }

    /// Returns the time since `earlier`. Returns zero if `earlier` is later than this time.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the time in milliseconds, rounded down. The value wraps around after 49 days.
    pub(crate) fn milliseconds(self) -> u32 {
        (self.0 / 1_000_000) as u32
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the earlier of two optional times.
pub(crate) fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (only, None) | (None, only) => only,
    }
}
