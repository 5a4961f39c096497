//! Which intervals of two tables overlap, and how long.

use crate::time_range::is_interval;
use crate::{Cancelled, Intervals, Rows, TooLarge};

/// Pairs found between two looks at the flag.
const PAIRS: u64 = 1 << 16;

/// Finds the pairs of intervals on the same key, one of each table, that overlap: the time that
/// interrupts took from runs, say.
///
/// Those of the first table are given whole, those of the second in chunks. Both are sorted by their
/// start, unknown ones first, and may nest and overlap among themselves. An interval of no length
/// overlaps nothing. The time it takes grows with the intervals and the pairs.
#[derive(Clone, Debug)]
pub struct OverlapJoin<'a> {
    first: Intervals<'a>,
    /// Those of the first table that have started.
    next: usize,
    /// Rows of the second table in the chunks before.
    seen: u64,
    /// By key, those of each table that may still run.
    open: Vec<[Open; 2]>,
    skipped: u64,
}

/// Two intervals that overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Overlap {
    /// The row of the first table.
    pub first: u64,
    /// The row of the second, counted from the first row of its first chunk.
    pub second: u64,
    /// Nanoseconds that both cover, at least 1; saturated.
    pub span: i64,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    row: u64,
    start: i64,
    end: i64,
}

/// Intervals that may still run.
#[derive(Clone, Debug, Default)]
struct Open {
    intervals: Vec<Interval>,
    /// When to look for ended ones: twice what was left the last time, so that looking costs no
    /// more than adding.
    limit: usize,
}

impl Open {
    fn push(&mut self, interval: Interval) {
        if self.intervals.len() >= self.limit.max(16) {
            self.intervals.retain(|open| open.end > interval.start);
            self.limit = 2 * self.intervals.len();
        }
        self.intervals.push(interval);
    }
}

impl<'a> OverlapJoin<'a> {
    /// For intervals on keys below `bound`; those on others overlap nothing.
    ///
    /// # Errors
    /// When there are too many keys.
    ///
    /// # Panics
    /// If the columns differ in length.
    pub fn new(first: Intervals<'a>, bound: u32) -> Result<OverlapJoin<'a>, TooLarge> {
        let len = first.starts.len();
        assert_eq!((first.ends.len(), first.keys.len()), (len, len), "columns");
        Ok(OverlapJoin {
            first,
            next: 0,
            seen: 0,
            open: vec![Default::default(); TooLarge::check(bound as usize, 1)?],
            skipped: 0,
        })
    }

    /// Adds the next chunk of the second table. Pairs are given as soon as both have started.
    ///
    /// # Errors
    /// When it is cancelled.
    ///
    /// # Panics
    /// If a column is shorter than the rows.
    pub fn add(
        &mut self,
        second: Intervals<'_>,
        rows: &Rows<'_>,
        mut found: impl FnMut(Overlap),
    ) -> Result<(), Cancelled> {
        let (mut pairs, mut cancelled) = (0, Ok(()));
        rows.each_run(|run| {
            for row in run {
                if cancelled.is_err() {
                    return;
                }
                let start = second.starts[row];
                pairs += self.start_until(start, &mut found);
                let interval = Interval {
                    row: self.seen + row as u64,
                    start,
                    end: second.ends[row],
                };
                pairs += self.start(interval, second.keys[row], 1, &mut found);
                if pairs >= PAIRS {
                    pairs = 0;
                    cancelled = rows.check();
                }
            }
        })?;
        self.seen += second.starts.len() as u64;
        cancelled
    }

    /// Gives the pairs of intervals of the first table that start after all of the second.
    pub fn finish(&mut self, mut found: impl FnMut(Overlap)) {
        self.start_until(i64::MAX, &mut found);
    }

    /// Rows of both tables left out so far for an unknown time or an end before their start.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Starts the intervals of the first table up to a time. Gives the number of pairs.
    fn start_until(&mut self, time: i64, found: &mut impl FnMut(Overlap)) -> u64 {
        let mut pairs = 0;
        while let Some(start) = self.first.starts.get(self.next).copied()
            && start <= time
        {
            let row = self.next;
            self.next += 1;
            let interval = Interval {
                row: row as u64,
                start,
                end: self.first.ends[row],
            };
            pairs += self.start(interval, self.first.keys[row], 0, found);
        }
        pairs
    }

    /// Pairs an interval of one table with those of the other that run when it starts. Each look at
    /// one of them either drops it for good or finds a pair.
    fn start(
        &mut self,
        interval: Interval,
        key: u32,
        table: usize,
        found: &mut impl FnMut(Overlap),
    ) -> u64 {
        let Interval { row, start, end } = interval;
        if !is_interval(start, end) {
            self.skipped += 1;
            return 0;
        }
        let Some(open) = self.open.get_mut(key as usize) else {
            return 0;
        };
        if start == end {
            return 0;
        }
        let mut pairs = 0;
        open[1 - table].intervals.retain(|other| {
            let span = end.min(other.end).saturating_sub(start.max(other.start));
            if other.end <= start {
                return false;
            }
            // Always so, unless the columns are not sorted.
            if span > 0 {
                let rows = [(row, other.row), (other.row, row)][table];
                pairs += 1;
                found(Overlap {
                    first: rows.0,
                    second: rows.1,
                    span,
                });
            }
            true
        });
        // One of the second table that ends before the next of the first starts is done with.
        let next = self.first.starts.get(self.next);
        if table == 0 || next.is_some_and(|next| *next < end) {
            open[table].push(interval);
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_intervals_are_forgotten_where_the_other_table_is_silent() {
        // Three of the second table run at any time, on the key 0; all of the first table but the
        // last are on the key 1.
        let starts: Vec<i64> = (0..100_000).map(|row| row * 10).collect();
        let ends: Vec<i64> = starts.iter().map(|start| start + 25).collect();
        let mut keys = vec![1; starts.len()];
        keys[starts.len() - 1] = 0;
        let first = Intervals {
            starts: &starts,
            ends: &ends,
            keys: &keys,
        };
        let second = Intervals {
            keys: &vec![0; starts.len()],
            ..first
        };
        let mut join = OverlapJoin::new(first, 2).expect("two keys");
        let mut spans = Vec::new();
        let rows = Rows::of(0..starts.len());
        let result = join.add(second, &rows, |pair| spans.push(pair.span));
        assert_eq!(result, Ok(()));
        assert!(join.open[0][1].intervals.len() <= 16);
        // That from 999,990 to 1,000,015 with those that started 20 and 10 before and with it.
        spans.sort_unstable();
        assert_eq!(spans, [5, 15, 25]);
    }
}
