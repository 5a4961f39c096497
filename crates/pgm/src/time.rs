//! Moments, which the caller says.

use std::time::Duration;

/// A moment, in nanoseconds since one that the caller has chosen.
///
/// The protocol has no clock: it is told what time it is and says when it wants to be called again.
/// Time that goes backwards does no harm beyond timers that fire late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The moment `duration` later, or the last one that there is.
    pub fn plus(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(nanoseconds(duration)))
    }

    /// How long after `earlier` this is; nothing if it is before.
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Whole milliseconds, which go round after 49 days.
    pub(crate) fn milliseconds(self) -> u32 {
        (self.0 / 1_000_000) as u32
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The earlier of two moments that may not come.
pub(crate) fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (only, None) | (None, only) => only,
    }
}
