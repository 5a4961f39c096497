//! How long rows last within the stretch of time that is looked at.

use std::sync::Arc;

use views::TimeRange;

use crate::ExploreError;
use crate::catalogue::TableDef;
use crate::columns::{Measures, Opened};
use crate::query;
use crate::selection::Ask;

/// What the time that rows last is called.
pub(crate) const TIME: &str = "time";

/// How long rows last within a stretch of time.
pub(crate) struct InView {
    starts: Arc<Measures>,
    ends: Arc<Measures>,
    range: TimeRange,
}

impl InView {
    /// Of the rows of a table whose rows last.
    pub(crate) fn new(
        ask: Ask<'_>,
        table: &Opened,
        range: TimeRange,
    ) -> Result<Option<InView>, ExploreError> {
        let intervals = ask.columns.intervals(table, ask.cancel)?;
        Ok(intervals.map(|(starts, ends)| InView {
            starts,
            ends,
            range,
        }))
    }

    /// Nanoseconds of a row.
    pub(crate) fn of(&self, chunk: usize, row: usize) -> i64 {
        let start = self.starts.chunks[chunk][row].max(self.range.start());
        let end = self.ends.chunks[chunk][row].min(self.range.end());
        end.saturating_sub(start).max(0)
    }

    /// Nanoseconds of the rows of a chunk.
    pub(crate) fn chunk(&self, chunk: usize) -> Vec<i64> {
        let rows = 0..self.starts.chunks[chunk].len();
        rows.map(|row| self.of(chunk, row)).collect()
    }

    /// The same as SQL.
    pub(crate) fn sql(table: &TableDef, range: TimeRange) -> String {
        let (start, end) = query::interval(table);
        let (from, to) = (range.start(), range.end());
        format!("greatest(least({end}, {to}) - greatest({start}, {from}), 0)")
    }
}
