//! Slices of time in which a recording is read. So the memory use does not depend on its length.

use crate::build::Cancelled;
use crate::slice::RawRows;

/// Approximate size of the decompressed buffers of a slice, in bytes.
pub(crate) const SLICE_BYTES: u64 = 16 << 20;

/// Time in nanoseconds that is read beyond the end of a slice. This is necessary, because an event can be a
/// little older than the first event of its buffer. The reason is that a thread first reads the clock for its
/// event and then reserves space in the buffer.
pub const SLACK_NS: i64 = 10_000_000;

/// Source of the data of tables of events, in slices of time.
pub trait RowSource: Send {
    /// Reads the next slice. Returns the end of the slice and its data, sorted. Returns `None` after the last slice.
    ///
    /// # Errors
    /// Returns an error if `progress` asks to stop.
    fn next(&mut self, progress: &Progress<'_>) -> Result<Option<(i64, RawRows)>, Cancelled>;

    /// Returns the time of the last event that was read so far. Returns 0 if no event was read.
    fn last_ns(&self) -> i64;
}

/// Callback that gets the number of bytes that were just read. Reading stops if it returns false.
pub type Progress<'p> = dyn Fn(u64) -> bool + Sync + 'p;

/// Divides a recording into slices of about `SLICE_BYTES` each, and returns the ends of the slices. `parts` has the time
/// of the first event and the size in bytes of each part of the trace.
pub fn ends_of_slices(mut parts: Vec<(i64, u32)>) -> Vec<i64> {
    parts.sort_unstable();
    let mut ends = Vec::new();
    let mut bytes = 0;
    for (first, size) in parts {
        if bytes >= SLICE_BYTES && ends.last().is_none_or(|end| *end < first) {
            ends.push(first);
            bytes = 0;
        }
        bytes += u64::from(size);
    }
    // The last slice contains all remaining events. So events with wrong times are not left out.
    ends.push(i64::MAX);
    ends
}
