//! Time ranges split into buckets of equal width.

use crate::TimeRange;

/// Time range split into buckets of equal width. If the width does not divide the range, the last
/// bucket is shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeBuckets {
    range: TimeRange,
    /// Width of a bucket in nanoseconds. It is at least 1, even for an empty range.
    width: u64,
    len: usize,
}

impl TimeBuckets {
    /// Maximum number of buckets. It is greater than the width of any screen in pixels.
    pub const LIMIT: usize = 1 << 16;

    /// Splits the range into at most `count` buckets. Their width is an integer number of nanoseconds.
    /// `count` is raised to 1 or lowered to [`LIMIT`](TimeBuckets::LIMIT) if needed. An empty range has no
    /// buckets.
    pub fn new(range: TimeRange, count: usize) -> TimeBuckets {
        let count = count.clamp(1, TimeBuckets::LIMIT) as u64;
        let width = range.span().div_ceil(count).max(1);
        TimeBuckets {
            range,
            width,
            len: range.span().div_ceil(width) as usize,
        }
    }

    /// Returns the whole range.
    pub fn range(&self) -> TimeRange {
        self.range
    }

    /// Returns the number of buckets.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no buckets, because the range is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the time range of a bucket. If there is no such bucket, returns an empty range at the end of
    /// the whole range.
    pub fn bucket(&self, index: usize) -> TimeRange {
        let edge = |index: usize| {
            let offset = (index as u64)
                .saturating_mul(self.width)
                .min(self.range.span());
            self.range.start().wrapping_add_unsigned(offset)
        };
        TimeRange::new(edge(index), edge(index.saturating_add(1)))
    }

    /// Returns the index of the bucket that contains the time. Returns `None` if the time is outside the
    /// range.
    pub fn index(&self, time: i64) -> Option<usize> {
        self.range.contains(time).then(|| {
            let offset = time.wrapping_sub(self.range.start()).cast_unsigned();
            (offset / self.width) as usize
        })
    }

    /// Creates a cursor for times that are mostly in order.
    pub(crate) fn cursor(&self) -> Cursor<'_> {
        Cursor {
            buckets: self,
            index: 0,
            start: self.range.start(),
            span: 0,
        }
    }
}

/// Finder of the buckets of times. It keeps the last found bucket, because a division for each of many millions of
/// rows would take most of the time. It is fastest if consecutive times are in the same bucket.
pub(crate) struct Cursor<'a> {
    buckets: &'a TimeBuckets,
    index: usize,
    start: i64,
    span: u64,
}

impl Cursor<'_> {
    /// Returns the index of the bucket that contains the time. Returns `None` if the time is outside the
    /// range.
    #[inline]
    pub(crate) fn index(&mut self, time: i64) -> Option<usize> {
        // For a time before the bucket, the unsigned offset wraps around and is greater than any span.
        if time.wrapping_sub(self.start).cast_unsigned() < self.span {
            return Some(self.index);
        }
        self.index = self.buckets.index(time)?;
        let bucket = self.buckets.bucket(self.index);
        (self.start, self.span) = (bucket.start(), bucket.span());
        Some(self.index)
    }

    /// Returns the number of times at the start of `times` that are in the last found bucket.
    #[inline]
    pub(crate) fn leading(&self, times: &[i64]) -> usize {
        let (start, span) = (self.start, self.span);
        let inside = |time: &&i64| time.wrapping_sub(start).cast_unsigned() < span;
        times.iter().take_while(inside).count()
    }

    /// Returns the end of the last found bucket.
    #[inline]
    pub(crate) fn end(&self) -> i64 {
        self.start.wrapping_add_unsigned(self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NULL;
    use testdata::Rng;

    fn edges(buckets: TimeBuckets) -> Vec<(i64, i64)> {
        (0..buckets.len())
            .map(|index| buckets.bucket(index))
            .map(|bucket| (bucket.start(), bucket.end()))
            .collect()
    }

    #[test]
    fn the_last_bucket_may_be_shorter() {
        let cut = |start, end, count| edges(TimeBuckets::new(TimeRange::new(start, end), count));
        assert_eq!(cut(-4, 6, 4), [(-4, -1), (-1, 2), (2, 5), (5, 6)]);
        assert_eq!(cut(0, 9, 3), [(0, 3), (3, 6), (6, 9)]);
        assert_eq!(cut(0, 2, 10), [(0, 1), (1, 2)]);
        assert_eq!(cut(0, 5, 0), [(0, 5)]);
        assert_eq!(cut(3, 3, 4), []);
        assert_eq!(cut(0, i64::MAX, usize::MAX).len(), TimeBuckets::LIMIT);
    }

    #[test]
    fn each_time_is_in_the_bucket_whose_edges_contain_it() {
        let mut rng = Rng(3);
        for _ in 0..300 {
            let start = rng.below(50) as i64 - 25;
            let range = TimeRange::new(start, start + rng.below(60) as i64);
            let buckets = TimeBuckets::new(range, 1 + rng.below(12));
            let edges = edges(buckets);
            let mut cursor = buckets.cursor();
            for _ in 0..40 {
                let time = rng.below(120) as i64 - 60;
                let expected = edges
                    .iter()
                    .position(|(start, end)| (*start..*end).contains(&time));
                assert_eq!(buckets.index(time), expected);
                assert_eq!(cursor.index(time), expected);
                if let Some(index) = expected {
                    assert_eq!(cursor.end(), edges[index].1);
                }
            }
        }
    }

    #[test]
    fn the_widest_range_contains_no_unknown_time() {
        let buckets = TimeBuckets::new(TimeRange::new(i64::MIN, i64::MAX), 1);
        let mut cursor = buckets.cursor();
        for time in [0, NULL, i64::MAX - 1, i64::MAX, NULL + 1] {
            let expected = (time != NULL && time != i64::MAX).then_some(0);
            assert_eq!(cursor.index(time), expected, "{time}");
        }
    }
}
