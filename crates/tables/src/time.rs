//! Times that payloads hold.

use etl::Event;

/// A raw time of the event's clock as nanoseconds since the trace's start; `None` if it lies after
/// the event, which only ever looks back.
#[inline]
pub(crate) fn since(event: &Event<'_>, raw: u64) -> Option<i64> {
    let raw = i64::try_from(raw).ok()?;
    (raw <= event.raw_time()).then(|| event.clock().to_ns(raw))
}
