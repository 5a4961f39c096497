//! Division of a time range into intervals of equal length.

use std::ops::Range;

use crate::Error;

/// Maximum product of the number of intervals and the number of CPUs or disks that have data for each interval. This
/// product determines the memory.
const MOST_CELLS: usize = 8_000_000;

/// Intervals of equal length that cover a time range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Intervals {
    span: Range<i64>,
    length: i64,
    count: usize,
}

impl Intervals {
    /// Divides the time range `span` into intervals. The last interval may be shorter. `lanes` is the number of CPUs
    /// or disks that have data for each interval.
    ///
    /// # Errors
    /// Returns an error if there are too many intervals.
    pub(crate) fn new(span: Range<i64>, length: i64, lanes: usize) -> Result<Intervals, Error> {
        let whole = span.end.saturating_sub(span.start).max(1);
        let count = usize::try_from((whole - 1) / length + 1).unwrap_or(usize::MAX);
        if count.saturating_mul(lanes.max(1)) > MOST_CELLS {
            return Err(Error::TooManyIntervals { count });
        }
        Ok(Intervals {
            span,
            length,
            count,
        })
    }

    /// Returns the number of intervals.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the length of an interval in nanoseconds. The last interval may be shorter.
    pub(crate) fn length(&self) -> i64 {
        self.length
    }

    /// Returns the start and the end of an interval.
    pub(crate) fn bounds(&self, index: usize) -> Range<i64> {
        let start = self.span.start + index as i64 * self.length;
        start..start.saturating_add(self.length).min(self.span.end)
    }

    /// Returns the index of the interval that contains a time.
    pub(crate) fn at(&self, time: i64) -> Option<usize> {
        let inside = self.span.contains(&time);
        inside.then(|| ((time - self.span.start) / self.length) as usize)
    }

    /// Returns the part of a time range that is within the intervals.
    pub(crate) fn clip(&self, time_range: Range<i64>) -> Range<i64> {
        let start = time_range.start.max(self.span.start);
        start..time_range.end.min(self.span.end).max(start)
    }

    /// Returns the index of each interval that a time range overlaps, and the length of the overlap.
    pub(crate) fn parts(&self, time_range: Range<i64>) -> impl Iterator<Item = (usize, i64)> {
        let time_range = self.clip(time_range);
        let first = self.at(time_range.start).unwrap_or(0);
        let last = if time_range.is_empty() {
            first
        } else {
            self.at(time_range.end - 1).map_or(first, |last| last + 1)
        };
        (first..last).map(move |index| {
            let bounds = self.bounds(index);
            let part = time_range.end.min(bounds.end) - time_range.start.max(bounds.start);
            (index, part)
        })
    }
}

/// Sums of used time, by interval. Adding a time range takes the same time for short and for long ranges.
#[derive(Clone, Debug)]
pub(crate) struct Usage {
    /// Used time in the first and in the last interval that a time range overlaps, in nanoseconds.
    used: Vec<i64>,
    /// Used time in the intervals between the first and the last interval, stored as differences: each entry is the
    /// used time of the interval minus the used time of the previous interval.
    grows: Vec<i64>,
}

impl Usage {
    pub(crate) fn new(intervals: &Intervals) -> Usage {
        Usage {
            used: vec![0; intervals.count],
            grows: vec![0; intervals.count + 1],
        }
    }

    /// Adds `used_ns` nanoseconds. They are spread evenly over the time range. Only the part within the intervals
    /// counts.
    pub(crate) fn add(&mut self, intervals: &Intervals, time_range: Range<i64>, used_ns: i64) {
        let inside = intervals.clip(time_range.clone());
        let Some(first) = intervals.at(inside.start) else {
            return;
        };
        if time_range.is_empty() {
            return;
        }
        let length = i128::from(time_range.end) - i128::from(time_range.start);
        let share = |part: i64| (i128::from(part) * i128::from(used_ns) / length) as i64;
        let last = intervals.at(inside.end - 1).unwrap_or(first);
        if first == last {
            self.used[first] += share(inside.end - inside.start);
            return;
        }
        self.used[first] += share(intervals.bounds(first).end - inside.start);
        self.used[last] += share(inside.end - intervals.bounds(last).start);
        let whole = share(intervals.length);
        self.grows[first + 1] += whole;
        self.grows[last] -= whole;
    }

    /// Returns the used time in each interval, in nanoseconds.
    pub(crate) fn finish(&self) -> Vec<i64> {
        let running = self.grows.iter().scan(0i64, |sum, grows| {
            *sum += grows;
            Some(*sum)
        });
        self.used
            .iter()
            .zip(running)
            .map(|(used, whole)| used + whole)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_spread_over_the_intervals_it_covers() {
        let intervals = Intervals::new(0..35, 10, 1).unwrap();
        assert_eq!(intervals.count(), 4);
        assert_eq!(intervals.bounds(3), 30..35);
        let parts: Vec<_> = intervals.parts(5..32).collect();
        assert_eq!(parts, [(0, 5), (1, 10), (2, 10), (3, 2)]);
        assert_eq!(intervals.parts(40..50).count(), 0);

        let mut usage = Usage::new(&intervals);
        usage.add(&intervals, 5..32, 27);
        usage.add(&intervals, 12..16, 2);
        usage.add(&intervals, -10..10, 20);
        usage.add(&intervals, 100..200, 100);
        assert_eq!(usage.finish(), [15, 12, 10, 2]);
    }

    #[test]
    fn too_many_intervals_are_refused() {
        assert!(Intervals::new(0..i64::MAX, 1, 1).is_err());
        assert!(Intervals::new(0..1_000_000, 1, 64).is_err());
        assert_eq!(Intervals::new(0..0, 1, 1).unwrap().count(), 1);
    }
}
