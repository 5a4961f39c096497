//! Part of each row's duration, or of a duration in its columns, that is within the requested time range.

use views::{NULL, TimeRange};

use crate::ExploreError;
use crate::catalogue::TableDef;
use crate::context::OpenTable;
use crate::decoded_columns::RowIntervals;
use crate::query;

/// Durations of rows within a time range.
pub(crate) struct TimeInView {
    rows: RowIntervals,
    range: TimeRange,
}

impl TimeInView {
    /// Reads the starts and ends of rows. Returns `None` if the rows of the table are single moments.
    pub(crate) fn new(
        table: &OpenTable<'_>,
        range: TimeRange,
    ) -> Result<Option<TimeInView>, ExploreError> {
        let rows = table.intervals()?;
        Ok(rows.map(|rows| TimeInView { rows, range }))
    }

    /// Creates the parts of durations within a time range.
    pub(crate) fn from_intervals(rows: RowIntervals, range: TimeRange) -> TimeInView {
        TimeInView { rows, range }
    }

    /// Returns the duration of a row within the time range, in nanoseconds.
    pub(crate) fn row_ns(&self, chunk: usize, row: usize) -> i64 {
        let start = self.rows.starts.chunks[chunk][row].max(self.range.start());
        let end = self.rows.ends.chunks[chunk][row].min(self.range.end());
        end.saturating_sub(start).max(0)
    }

    /// Returns the duration of each row of a chunk within the time range, in nanoseconds.
    pub(crate) fn chunk_ns(&self, chunk: usize) -> Vec<i64> {
        let rows = 0..self.rows.starts.chunks[chunk].len();
        rows.map(|row| self.row_ns(chunk, row)).collect()
    }

    /// Returns the duration of each row of a chunk within the time range, in nanoseconds; NULL if the duration is
    /// unknown or does not overlap the range.
    pub(crate) fn known_ns(&self, chunk: usize) -> Vec<i64> {
        let rows = 0..self.rows.starts.chunks[chunk].len();
        let part = |row| {
            if self.rows.overlaps(chunk, row, self.range) {
                self.row_ns(chunk, row)
            } else {
                NULL
            }
        };
        rows.map(part).collect()
    }

    /// Returns an SQL expression for the duration of a row within the time range, in nanoseconds.
    pub(crate) fn sql(table: &TableDef, range: TimeRange) -> String {
        let (start, end) = query::interval(table);
        let (from, to) = (range.start(), range.end());
        format!("greatest(least({end}, {to}) - greatest({start}, {from}), 0)")
    }
}
