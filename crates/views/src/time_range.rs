//! A range of time, the rows in it, and columns of intervals.

use std::ops::Range;

/// A half-open range of time, in nanoseconds. Unknown times are in no range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    start: i64,
    end: i64,
}

impl TimeRange {
    /// From `start` to before `end`; empty if that is not later.
    pub fn new(start: i64, end: i64) -> TimeRange {
        // The least number is the unknown time.
        let start = start.max(i64::MIN + 1);
        TimeRange {
            start,
            end: end.max(start),
        }
    }

    /// Its first nanosecond.
    pub fn start(self) -> i64 {
        self.start
    }

    /// The nanosecond after its last.
    pub fn end(self) -> i64 {
        self.end
    }

    /// Nanoseconds in it: up to the whole range of `i64`, hence unsigned.
    pub fn span(self) -> u64 {
        self.end.wrapping_sub(self.start).cast_unsigned()
    }

    /// Whether it holds the time.
    pub fn contains(self, time: i64) -> bool {
        self.start <= time && time < self.end
    }
}

/// The rows whose time is in the range, of a column sorted by time (unknown times first).
pub fn rows_within(times: &[i64], range: TimeRange) -> Range<usize> {
    let start = times.partition_point(|time| *time < range.start);
    let end = times.partition_point(|time| *time < range.end);
    start..end.max(start)
}

/// Columns of intervals, each on one key (a CPU, a thread, a disk).
#[derive(Clone, Copy, Debug)]
pub struct Intervals<'a> {
    /// First nanosecond of each.
    pub starts: &'a [i64],
    /// The nanosecond after the last of each.
    pub ends: &'a [i64],
    /// Dense ids.
    pub keys: &'a [u32],
}

/// Whether both ends are known and in order.
#[inline]
pub(crate) fn is_interval(start: i64, end: i64) -> bool {
    // The unknown is the least number: an end no earlier than a known start is known.
    start != crate::NULL && end >= start
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NULL;

    #[test]
    fn rows_of_a_range_are_found_and_unknown_times_are_in_none() {
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
