//! The rows of a table that a request is about: a stretch of time, less what filters take out.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rayon::prelude::*;
use views::{Rows, TimeRange, rows_within};

use crate::catalogue::{self, ColumnDef};
use crate::columns::{Columns, Keys, Measures, Opened};
use crate::filter::Filter;
use crate::stretches::Stretches;
use crate::trace::{Trace, check};
use crate::{Condition, ExploreError, query};

/// What requests are answered from.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) columns: &'a Columns,
    pub(crate) cancel: &'a AtomicBool,
}

/// Which rows are in a stretch of time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Within {
    /// Those that overlap it, if rows last.
    Overlap,
    /// Those of which a stretch of time in a column overlaps it.
    Stretch(Stretches),
    /// Those whose time lies in it.
    Moment,
}

/// The rows of a table that a request is about.
pub(crate) struct Selection<'a> {
    pub(crate) ask: Ask<'a>,
    pub(crate) table: Opened,
    /// The chunks that may have some.
    chunks: Vec<usize>,
    range: Option<Time>,
    filter: Filter,
    /// What rows they are, as SQL.
    pub(crate) sql: Vec<String>,
}

/// Where rows are in time.
enum Time {
    /// Each at a moment, sorted.
    Moments(Arc<Measures>, TimeRange),
    /// Each from a start to an end.
    Intervals(Arc<Measures>, Arc<Measures>, TimeRange),
}

impl<'a> Ask<'a> {
    /// Opens a table by its name.
    pub(crate) fn open(&self, name: &str) -> Result<Opened, ExploreError> {
        let def = catalogue::table(name)?;
        let stored = self.trace.table(def.table, self.cancel)?;
        Ok(Opened { def, stored })
    }

    pub(crate) fn keys(
        &self,
        table: &Opened,
        column: &'static ColumnDef,
    ) -> Result<Arc<Keys>, ExploreError> {
        self.columns.keys(self.trace, table, column, self.cancel)
    }

    pub(crate) fn measures(
        &self,
        table: &Opened,
        column: &'static ColumnDef,
    ) -> Result<Arc<Measures>, ExploreError> {
        self.columns.measures(table, column, self.cancel)
    }

    /// The stretch of time of a request, or all of the trace and of the table.
    pub(crate) fn span(
        &self,
        range: Option<[i64; 2]>,
        table: &Opened,
    ) -> Result<TimeRange, ExploreError> {
        if let Some(range) = range_of(range)? {
            return Ok(range);
        }
        let (start, end) = tables::span_of(self.trace.store.trace());
        let chunks = table.stored.chunks();
        let (first, last) = match (chunks.first(), chunks.last()) {
            (Some(first), Some(last)) => (first.first, last.last),
            _ => (start, end),
        };
        // Captured packets can be all that there is, and are where UTC has them.
        let is_captured = end == start;
        let start = if is_captured { first } else { start };
        Ok(TimeRange::new(start, end.max(last).saturating_add(1)))
    }
}

/// A request's stretch of time.
pub(crate) fn range_of(range: Option<[i64; 2]>) -> Result<Option<TimeRange>, ExploreError> {
    match range {
        Some([start, end]) if start >= end => Err(ExploreError::OutOfBounds {
            field: "range",
            needed: format!("must end after it starts; {start} to {end} is no stretch of time"),
        }),
        Some([start, end]) => Ok(Some(TimeRange::new(start, end))),
        None => Ok(None),
    }
}

/// # Errors
/// If a number of a request is not within its bounds.
pub(crate) fn bounded(
    field: &'static str,
    number: u64,
    least: u64,
    most: u64,
) -> Result<(), ExploreError> {
    match (least..=most).contains(&number) {
        true => Ok(()),
        false => Err(ExploreError::OutOfBounds {
            field,
            needed: format!("must be from {least} to {most}, not {number}"),
        }),
    }
}

impl<'a> Selection<'a> {
    pub(crate) fn new(
        ask: Ask<'a>,
        table: &Opened,
        within: Within,
        range: Option<TimeRange>,
        filter: &[Condition],
    ) -> Result<Selection<'a>, ExploreError> {
        let filter = Filter::new(ask, table, filter)?;
        let chunks = 0..table.stored.chunks().len();
        let mut selection = Selection {
            ask,
            table: table.clone(),
            chunks: chunks.filter(|chunk| filter.may_pass(*chunk)).collect(),
            range: None,
            sql: Vec::new(),
            filter,
        };
        if let Some(range) = range {
            selection.limit(within, range)?;
        }
        selection.sql.extend_from_slice(&selection.filter.sql);
        Ok(selection)
    }

    fn limit(&mut self, within: Within, range: TimeRange) -> Result<(), ExploreError> {
        let columns = self.ask.columns;
        let intervals = match within {
            Within::Overlap => columns.intervals(&self.table, self.ask.cancel)?,
            Within::Stretch(stretches) => {
                Some(columns.stretches(&self.table, stretches, self.ask.cancel)?)
            }
            Within::Moment => None,
        };
        let (start, end) = (range.start(), range.end());
        match intervals {
            Some((starts, ends)) => {
                self.chunks.retain(|chunk| {
                    let (starts, ends) = (starts.spans[*chunk], ends.spans[*chunk]);
                    starts.is_some_and(|(least, greatest)| {
                        let reaches = ends.is_some_and(|(_, last)| last > start);
                        least < end && (reaches || greatest >= start)
                    })
                });
                self.range = Some(Time::Intervals(starts, ends, range));
            }
            None => {
                let times = columns.times(&self.table, self.ask.cancel)?;
                self.chunks.retain(|chunk| {
                    times.spans[*chunk]
                        .is_some_and(|(least, greatest)| least < end && greatest >= start)
                });
                self.range = Some(Time::Moments(times, range));
            }
        }
        self.sql.push(query::within(self.table.def, within, range));
        Ok(())
    }

    /// The rows of a chunk that are selected.
    pub(crate) fn rows(&self, chunk: usize) -> Result<Rows<'_>, ExploreError> {
        let len = self.table.stored.chunks()[chunk].rows;
        let rows = match &self.range {
            None => Rows::of(0..len),
            Some(Time::Moments(times, range)) => {
                Rows::of(rows_within(&times.chunks[chunk], *range))
            }
            Some(Time::Intervals(starts, ends, range)) => {
                let (first, last) = (range.start(), range.end());
                let is_whole = starts.spans[chunk].is_some_and(|(_, greatest)| greatest < last)
                    && ends.spans[chunk].is_some_and(|(least, _)| least > first);
                let (starts, ends) = (&starts.chunks[chunk], &ends.chunks[chunk]);
                let rows = Rows::of(0..len);
                match is_whole {
                    true => rows,
                    false => rows.keep_if(|row| {
                        // What has no length is where it is.
                        starts[row] < last && (ends[row] > first || starts[row] >= first)
                    }),
                }
            }
        };
        let rows = self.filter.apply(&self.table, chunk, rows)?;
        Ok(rows.until(self.ask.cancel))
    }

    /// The chunks that may have selected rows, in order.
    pub(crate) fn chunks(&self) -> &[usize] {
        &self.chunks
    }

    /// Goes over all selected rows, in as many parts as there are threads, each of neighbouring
    /// chunks in order, and merges what they saw in the order of the parts.
    pub(crate) fn pass<K: Send>(
        &self,
        make: impl Fn() -> Result<K, ExploreError> + Sync,
        add: impl Fn(&mut K, usize, &Rows<'_>) -> Result<(), ExploreError> + Sync,
        merge: impl Fn(&mut K, K) + Sync,
    ) -> Result<K, ExploreError> {
        let parts = rayon::current_num_threads().max(1);
        let length = self.chunks.len().div_ceil(parts).max(1);
        let seen: Result<Vec<K>, ExploreError> = self
            .chunks
            .par_chunks(length)
            .map(|chunks| {
                let mut kernel = make()?;
                for chunk in chunks {
                    check(self.ask.cancel)?;
                    add(&mut kernel, *chunk, &self.rows(*chunk)?)?;
                }
                Ok(kernel)
            })
            .collect();
        let mut seen = seen?.into_iter();
        let mut all = match seen.next() {
            Some(first) => first,
            None => make()?,
        };
        seen.for_each(|more| merge(&mut all, more));
        Ok(all)
    }

    /// How many rows are selected.
    pub(crate) fn count(&self) -> Result<u64, ExploreError> {
        let count = |sum: &mut u64, _, rows: &Rows<'_>| {
            *sum += rows.count() as u64;
            Ok(())
        };
        self.pass(|| Ok(0), count, |sum, more| *sum += more)
    }

    /// Rows of the longest chunk.
    pub(crate) fn longest_chunk(&self) -> usize {
        let chunks = self.table.stored.chunks();
        let rows = self.chunks.iter().map(|chunk| chunks[*chunk].rows);
        rows.max().unwrap_or(0)
    }
}
