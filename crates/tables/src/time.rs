//! Conversion of times in payloads.

use etl::Event;

/// Converts a raw time of the event's clock to nanoseconds since the trace's start. Returns `None` if the
/// time is later than the event. Such a time is wrong: it is the start of the work whose end the event
/// reports.
#[inline]
pub(crate) fn earlier_ns(event: &Event<'_>, raw: u64) -> Option<i64> {
    let raw = i64::try_from(raw).ok()?;
    (raw <= event.raw_time()).then(|| event.clock().to_ns(raw))
}
