//! Time ranges and columns of intervals.

use std::ops::Range;

/// Half-open time range, in nanoseconds. A range never contains an unknown time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    start: i64,
    end: i64,
}

impl TimeRange {
    /// Creates the range `start..end`. The range is empty if `end` is not later than `start`.
    pub fn new(start: i64, end: i64) -> TimeRange {
        // The minimum of `i64` means an unknown time. So no range may start there.
        let start = start.max(i64::MIN + 1);
        TimeRange {
            start,
            end: end.max(start),
        }
    }

    /// Returns the first nanosecond of the range.
    pub fn start(self) -> i64 {
        self.start
    }

    /// Returns the first nanosecond after the range.
    pub fn end(self) -> i64 {
        self.end
    }

    /// Returns the length in nanoseconds. The type is unsigned, because the length can be greater
    /// than the maximum of `i64`.
    pub fn span(self) -> u64 {
        self.end.wrapping_sub(self.start).cast_unsigned()
    }

    /// Returns true if the range contains the time.
    pub fn contains(self, time: i64) -> bool {
        self.start <= time && time < self.end
    }
}

/// Returns the rows whose time is in the range. The times must be sorted, unknown times first.
pub fn rows_within(times: &[i64], range: TimeRange) -> Range<usize> {
    let start = times.partition_point(|time| *time < range.start);
    let end = times.partition_point(|time| *time < range.end);
    start..end.max(start)
}

/// Columns of intervals. Each interval belongs to one key (a CPU, a thread, a disk).
#[derive(Clone, Copy, Debug)]
pub struct Intervals<'a> {
    /// First nanosecond of each interval.
    pub starts: &'a [i64],
    /// First nanosecond after each interval.
    pub ends: &'a [i64],
    /// Dense id of the key of each interval.
    pub keys: &'a [u32],
}

/// Returns true if the start and the end are known and the end is not earlier than the start.
#[inline]
pub(crate) fn is_interval(start: i64, end: i64) -> bool {
    // `NULL` is the minimum of `i64`. Therefore an end that is not earlier than a known start is
    // known.
    start != crate::NULL && end >= start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NULL;

    #[test]
    fn rows_of_a_range_are_found_and_no_range_contains_unknown_times() {
        let times = [NULL, NULL, -3, 0, 0, 7, i64::MAX];
        let rows = |start, end| rows_within(&times, TimeRange::new(start, end));
        assert_eq!(rows(-3, 7), 2..5);
        assert_eq!(rows(0, 1), 3..5);
        assert_eq!(rows(1, 7), 5..5);
        assert_eq!(rows(7, 0), 5..5);
        assert_eq!(rows(i64::MIN, i64::MAX), 2..6);
        assert_eq!(rows_within(&[], TimeRange::new(0, 1)), 0..0);
    }

    #[test]
    fn the_widest_range_has_a_span() {
        assert_eq!(TimeRange::new(i64::MIN, i64::MAX).span(), u64::MAX - 1);
        assert_eq!(TimeRange::new(5, 5).span(), 0);
    }
}
