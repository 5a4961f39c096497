//! Selected rows: rows of a table within a time range that pass a filter.

use rayon::prelude::*;
use std::sync::Arc;
use views::{Rows, TimeRange, rows_within};

use crate::context::OpenTable;
use crate::decoded_columns::{Measures, RowIntervals};
use crate::durations::Durations;
use crate::filter::Filter;
use crate::query::{self, RangeRule};
use crate::trace::check;
use crate::{Condition, ExploreError};

/// Rows of a table that a request selects.
pub(crate) struct SelectedRows<'a> {
    pub(crate) table: OpenTable<'a>,
    /// Chunks that may contain selected rows.
    chunks: Vec<usize>,
    range: Option<Time>,
    filter: Filter,
    /// SQL conditions that select the rows.
    pub(crate) sql: Vec<String>,
}

/// Times of rows, and the time range that they must be in or overlap.
enum Time {
    /// Rows that are single moments, in ascending order.
    Moments(Arc<Measures>, TimeRange),
    /// Rows with a start and an end.
    Intervals(RowIntervals, TimeRange),
    /// Rows with several intervals, one of which must overlap the time range.
    Any(Vec<RowIntervals>, TimeRange),
}

impl<'a> SelectedRows<'a> {
    pub(crate) fn new(
        table: &OpenTable<'a>,
        within: RangeRule,
        range: Option<TimeRange>,
        filter: &[Condition],
    ) -> Result<SelectedRows<'a>, ExploreError> {
        let filter = Filter::new(table, filter)?;
        let chunks = 0..table.stored.chunks().len();
        let mut selected = SelectedRows {
            table: table.clone(),
            chunks: chunks.filter(|chunk| filter.may_pass(*chunk)).collect(),
            range: None,
            sql: Vec::new(),
            filter,
        };
        if let Some(range) = range {
            selected.limit(within, range)?;
        }
        selected.sql.extend_from_slice(&selected.filter.sql);
        Ok(selected)
    }

    fn limit(&mut self, within: RangeRule, range: TimeRange) -> Result<(), ExploreError> {
        self.sql.push(query::within(self.table.def, within, range));
        let intervals = match within {
            RangeRule::Overlap => self.table.intervals()?,
            RangeRule::Duration(durations) => Some(self.table.durations(durations)?),
            RangeRule::Reach => return self.limit_reach(range),
            RangeRule::Moment => None,
        };
        let (start, end) = (range.start(), range.end());
        self.range = Some(match intervals {
            Some(rows) => {
                self.chunks
                    .retain(|chunk| may_overlap(&rows, *chunk, range));
                Time::Intervals(rows, range)
            }
            None => {
                let times = self.table.times()?;
                self.chunks.retain(|chunk| {
                    times.spans[*chunk].is_some_and(|(first, last)| first < end && last >= start)
                });
                Time::Moments(times, range)
            }
        });
        Ok(())
    }

    fn limit_reach(&mut self, range: TimeRange) -> Result<(), ExploreError> {
        let own = match self.table.intervals()? {
            Some(own) => own,
            None => {
                let times = self.table.times()?;
                RowIntervals {
                    starts: Arc::clone(&times),
                    ends: times,
                }
            }
        };
        let mut any = vec![own];
        for durations in Durations::all(self.table.def) {
            any.push(self.table.durations(durations)?);
        }
        self.chunks
            .retain(|chunk| any.iter().any(|rows| may_overlap(rows, *chunk, range)));
        self.range = Some(Time::Any(any, range));
        Ok(())
    }

    /// Returns the selected rows of a chunk.
    pub(crate) fn rows(&self, chunk: usize) -> Result<Rows<'_>, ExploreError> {
        let len = self.table.stored.chunks()[chunk].rows;
        let rows = match &self.range {
            None => Rows::from_range(0..len),
            Some(Time::Moments(times, range)) => {
                Rows::from_range(rows_within(&times.chunks[chunk], *range))
            }
            Some(Time::Any(any, range)) => Rows::from_range(0..len)
                .keep_if(|row| any.iter().any(|rows| rows.overlaps(chunk, row, *range))),
            Some(Time::Intervals(RowIntervals { starts, ends }, range)) => {
                let (first, last) = (range.start(), range.end());
                let is_whole = starts.spans[chunk].is_some_and(|(_, max)| max < last)
                    && ends.spans[chunk].is_some_and(|(min, _)| min > first);
                let (starts, ends) = (&starts.chunks[chunk], &ends.chunks[chunk]);
                let rows = Rows::from_range(0..len);
                if is_whole {
                    rows
                } else {
                    rows.keep_if(|row| {
                        // A row of length 0 is selected if the time range contains its start.
                        starts[row] < last && (ends[row] > first || starts[row] >= first)
                    })
                }
            }
        };
        let rows = self.filter.apply(&self.table, chunk, rows)?;
        Ok(rows.until(self.table.context.cancel))
    }

    /// Returns the chunks that may contain selected rows, in ascending order.
    pub(crate) fn chunks(&self) -> &[usize] {
        &self.chunks
    }

    /// Processes all selected rows in one part per thread. Each part consists of consecutive chunks. The
    /// results are merged in the order of the parts.
    pub(crate) fn pass<K: Send>(
        &self,
        make: impl Fn() -> Result<K, ExploreError> + Sync,
        add: impl Fn(&mut K, usize, &Rows<'_>) -> Result<(), ExploreError> + Sync,
        merge: impl Fn(&mut K, K) + Sync,
    ) -> Result<K, ExploreError> {
        let parts = rayon::current_num_threads().max(1);
        let length = self.chunks.len().div_ceil(parts).max(1);
        let results: Result<Vec<K>, ExploreError> = self
            .chunks
            .par_chunks(length)
            .map(|chunks| {
                let mut kernel = make()?;
                for chunk in chunks {
                    check(self.table.context.cancel)?;
                    add(&mut kernel, *chunk, &self.rows(*chunk)?)?;
                }
                Ok(kernel)
            })
            .collect();
        let mut results = results?.into_iter();
        let mut all = match results.next() {
            Some(first) => first,
            None => make()?,
        };
        results.for_each(|more| merge(&mut all, more));
        Ok(all)
    }

    /// Returns the number of selected rows.
    pub(crate) fn count(&self) -> Result<u64, ExploreError> {
        let count = |sum: &mut u64, _, rows: &Rows<'_>| {
            *sum += rows.count() as u64;
            Ok(())
        };
        self.pass(|| Ok(0), count, |sum, more| *sum += more)
    }

    /// Returns the number of rows in the longest chunk.
    pub(crate) fn longest_chunk(&self) -> usize {
        let chunks = self.table.stored.chunks();
        let rows = self.chunks.iter().map(|chunk| chunks[*chunk].rows);
        rows.max().unwrap_or(0)
    }
}

/// Returns false if no row of a chunk can overlap a time range.
fn may_overlap(rows: &RowIntervals, chunk: usize, range: TimeRange) -> bool {
    let (starts, ends) = (rows.starts.spans[chunk], rows.ends.spans[chunk]);
    starts.is_some_and(|(first, last)| {
        let reaches = ends.is_some_and(|(_, last)| last > range.start());
        first < range.end() && (reaches || last >= range.start())
    })
}
