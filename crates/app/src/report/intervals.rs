//! Time cut into intervals of one length.

use std::ops::Range;

use crate::cli::Failure;
use crate::duration::{Plain, nanoseconds};

/// The most intervals a report is cut into, times the CPUs it tells of: what memory allows.
const MOST_CELLS: usize = 8_000_000;

/// Intervals of one length that cover a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Intervals {
    span: Range<i64>,
    length: i64,
    count: usize,
}

/// Reads the length of intervals: milliseconds, or a time with its unit.
pub(crate) fn length(text: &str) -> Result<i64, &'static str> {
    nanoseconds(text, Plain::Milliseconds)
        .filter(|length| *length > 0)
        .ok_or("expected milliseconds, or a time such as 1s or 500us")
}

impl Intervals {
    /// Cuts a span; the last interval may be shorter.
    ///
    /// # Errors
    /// If there would be too many.
    pub(crate) fn new(span: Range<i64>, length: i64, lanes: usize) -> Result<Intervals, Failure> {
        let whole = span.end.saturating_sub(span.start).max(1);
        let count = usize::try_from((whole - 1) / length + 1).unwrap_or(usize::MAX);
        if count.saturating_mul(lanes.max(1)) > MOST_CELLS {
            return Err(Failure::Input(format!(
                "{count} intervals are too many; choose longer ones, or a part of the trace with \
                 --range"
            )));
        }
        Ok(Intervals {
            span,
            length,
            count,
        })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// How long each is; the last may be shorter.
    pub(crate) fn length(&self) -> i64 {
        self.length
    }

    /// From when to when an interval is.
    pub(crate) fn bounds(&self, index: usize) -> Range<i64> {
        let start = self.span.start + index as i64 * self.length;
        start..start.saturating_add(self.length).min(self.span.end)
    }

    /// The interval that a moment is in.
    pub(crate) fn at(&self, time: i64) -> Option<usize> {
        let inside = self.span.contains(&time);
        inside.then(|| ((time - self.span.start) / self.length) as usize)
    }

    /// The part of a stretch of time that is inside the span.
    pub(crate) fn clip(&self, stretch: Range<i64>) -> Range<i64> {
        let start = stretch.start.max(self.span.start);
        start..stretch.end.min(self.span.end).max(start)
    }

    /// The intervals that a stretch of time touches, and how much of it is in each.
    pub(crate) fn parts(&self, stretch: Range<i64>) -> impl Iterator<Item = (usize, i64)> {
        let stretch = self.clip(stretch);
        let first = self.at(stretch.start).unwrap_or(0);
        let last = match stretch.is_empty() {
            true => first,
            false => self.at(stretch.end - 1).map_or(first, |last| last + 1),
        };
        (first..last).map(move |index| {
            let bounds = self.bounds(index);
            let part = stretch.end.min(bounds.end) - stretch.start.max(bounds.start);
            (index, part)
        })
    }
}

/// How much time was used in each interval. Adding a stretch takes the same time however many
/// intervals it covers.
#[derive(Clone, Debug)]
pub(crate) struct Usage {
    /// What is used in an interval.
    used: Vec<i64>,
    /// By how much that grows from an interval on.
    grows: Vec<i64>,
}

impl Usage {
    pub(crate) fn new(intervals: &Intervals) -> Usage {
        Usage {
            used: vec![0; intervals.count],
            grows: vec![0; intervals.count + 1],
        }
    }

    /// Adds `used_ns` of a stretch of time, evenly spread over it.
    pub(crate) fn add(&mut self, intervals: &Intervals, stretch: Range<i64>, used_ns: i64) {
        let inside = intervals.clip(stretch.clone());
        let Some(first) = intervals.at(inside.start) else {
            return;
        };
        if stretch.is_empty() {
            return;
        }
        let length = i128::from(stretch.end) - i128::from(stretch.start);
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

    /// What was used in each interval.
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
