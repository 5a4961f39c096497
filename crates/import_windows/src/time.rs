//! Conversion of times.

use etl::Event;

/// Start of the year 1970 as a FILETIME, in units of 100 ns.
const UNIX_FILETIME: i64 = 116_444_736_000_000_000;

/// Converts a FILETIME to nanoseconds since 1970. Returns `None` if it is 0, which means unknown, or more than 292
/// years from 1970.
pub(crate) fn unix_ns(filetime: i64) -> Option<i64> {
    let since = Some(filetime).filter(|filetime| *filetime != 0)?;
    since.checked_sub(UNIX_FILETIME)?.checked_mul(100)
}

/// Converts a raw time of the event's clock to nanoseconds since the trace's start. The raw time is the start
/// of some work. The event reports the end of this work. So if the raw time is later than the event, it is
/// wrong, and the function returns `None`.
#[inline]
pub(crate) fn earlier_ns(event: &Event<'_>, raw: u64) -> Option<i64> {
    let raw = i64::try_from(raw).ok()?;
    (raw <= event.raw_time()).then(|| event.clock().to_ns(raw))
}
