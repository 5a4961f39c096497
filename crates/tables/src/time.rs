//! Conversion of times in payloads.

use etl::Event;

/// Converts a raw time of the event's clock to nanoseconds since the trace's start. The raw time is the start
/// of some work. The event reports the end of this work. So if the raw time is later than the event, it is
/// wrong, and the function returns `None`.
#[inline]
pub(crate) fn earlier_ns(event: &Event<'_>, raw: u64) -> Option<i64> {
    let raw = i64::try_from(raw).ok()?;
    (raw <= event.raw_time()).then(|| event.clock().to_ns(raw))
}
