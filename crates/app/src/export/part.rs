//! The part of a trace that is exported.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use etl::Trace;
use tables::{StoredTable, Table};

use crate::cli::{Failure, TraceTables};
use crate::watch::Watch;

/// Some tables of a trace, in a range of time.
pub(crate) struct Part<'t> {
    tables: &'t TraceTables,
    /// Nanoseconds since the trace's start.
    range: Range<i64>,
    watch: Watch,
}

impl<'t> Part<'t> {
    /// Makes the tables that are wanted. The range is in nanoseconds since the trace's start.
    ///
    /// # Errors
    /// If they cannot be made.
    pub(crate) fn new(
        tables: &'t TraceTables,
        range: Range<i64>,
        wanted: &[Table],
    ) -> Result<Part<'t>, Failure> {
        tables.make(wanted)?;
        let mut rows = 0;
        for table in wanted {
            rows += tables.table(*table)?.rows() as u64;
        }
        Ok(Part {
            tables,
            range,
            watch: Watch::new("exporting", rows).in_percent(),
        })
    }

    /// The trace.
    pub(super) fn trace(&self) -> &Trace {
        self.tables.store.trace()
    }

    /// Where it begins, in nanoseconds since the trace's start, and not before that.
    pub(super) fn start_ns(&self) -> i64 {
        self.range.start.max(0)
    }

    /// The wanted columns of a table's rows in the range, chunk by chunk. Rows are where the table
    /// sorts them: runs and interrupts at their end. Processes, threads, images and stacks are of
    /// all times, because rows of other tables name them.
    ///
    /// # Errors
    /// If the table cannot be made.
    pub(super) fn rows(&self, table: Table, columns: &[&str]) -> Result<Rows<'_>, Failure> {
        self.rows_in(self.range.clone(), table, columns)
    }

    /// The same of a table that is sorted by when something began, with what began before the
    /// range: it may hold in it. [`Part::cut`] says what of it does.
    ///
    /// # Errors
    /// If the table cannot be made.
    pub(super) fn rows_begun(&self, table: Table, columns: &[&str]) -> Result<Rows<'_>, Failure> {
        self.rows_in(i64::MIN..self.range.end, table, columns)
    }

    /// What of a time is in the range.
    pub(super) fn cut(&self, start_ns: i64, end_ns: i64) -> Option<Range<i64>> {
        cut(&self.range, start_ns..end_ns)
    }

    fn rows_in(
        &self,
        range: Range<i64>,
        table: Table,
        columns: &[&str],
    ) -> Result<Rows<'_>, Failure> {
        let table = self.tables.table(table)?;
        let sorted_by = table.table().schema().sorted_by;
        let of_events = matches!(sorted_by, "time_ns" | "start_ns" | "end_ns");
        let mut columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        if of_events {
            columns.push(sorted_by.to_owned());
        }
        Ok(Rows {
            chunks: match of_events {
                true => table.chunks_within(range.clone()),
                false => 0..table.chunks().len(),
            },
            range: of_events.then_some((sorted_by, range)),
            columns,
            table,
            watch: &self.watch,
        })
    }

    /// All columns of them.
    ///
    /// # Errors
    /// If the table cannot be made.
    pub(super) fn whole_rows(&self, table: Table) -> Result<Rows<'_>, Failure> {
        let columns = table.schema().columns;
        let columns: Vec<&str> = columns.iter().map(|column| column.name).collect();
        self.rows(table, &columns)
    }
}

/// What of a time is in a range: nothing if it only touches it. A time of no length is where it is.
fn cut(range: &Range<i64>, time: Range<i64>) -> Option<Range<i64>> {
    let start = time.start.max(range.start);
    let end = time.end.min(range.end).max(start);
    let is_within = start < range.end && (start < time.end || start == time.start);
    is_within.then_some(start..end)
}

/// The wanted rows of a table: batches in the order of the table, none of them empty.
pub(super) struct Rows<'p> {
    table: StoredTable,
    chunks: Range<usize>,
    /// By which column rows are picked.
    range: Option<(&'static str, Range<i64>)>,
    columns: Vec<String>,
    watch: &'p Watch,
}

impl Rows<'_> {
    /// The table.
    pub(super) fn table(&self) -> &StoredTable {
        &self.table
    }

    /// Reads a chunk and leaves the rows in the range.
    fn read(&self, chunk: usize) -> Result<RecordBatch, Failure> {
        self.watch.advance(self.table.chunks()[chunk].rows as u64)?;
        let columns: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let batch = self.table.read(chunk, &columns)?;
        let Some((sorted_by, range)) = &self.range else {
            return Ok(batch);
        };
        let sorted = batch
            .column_by_name(sorted_by)
            .and_then(|column| column.as_primitive_opt::<Int64Type>());
        let Some(sorted) = sorted else {
            return Ok(batch);
        };
        let from = sorted.values().partition_point(|ns| *ns < range.start);
        let to = sorted.values().partition_point(|ns| *ns < range.end);
        Ok(batch.slice(from, to.saturating_sub(from)))
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<RecordBatch, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let chunk = self.chunks.next()?;
            match self.read(chunk) {
                Ok(batch) if batch.num_rows() == 0 => {}
                read => return Some(read),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_cut_to_the_range() {
        for (time, expected) in [
            (12..15, Some(12..15)),
            (5..15, Some(10..15)),
            (15..25, Some(15..20)),
            (5..25, Some(10..20)),
            (10..20, Some(10..20)),
            (15..15, Some(15..15)),
            (10..10, Some(10..10)),
            (5..10, None),
            (5..8, None),
            (5..5, None),
            (20..25, None),
            (20..20, None),
        ] {
            assert_eq!(cut(&(10..20), time.clone()), expected, "{time:?}");
        }
        assert_eq!(cut(&(i64::MIN..i64::MAX), -5..7), Some(-5..7));
    }
}
