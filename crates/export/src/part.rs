//! Part of a trace that is exported.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use session::{Amount, Task, TraceTables};
use tables::{Recording, StoredTable, Table};

use crate::Error;

/// Tables of a trace, limited to a time range.
pub struct Part<'t> {
    tables: &'t TraceTables,
    /// Time range in nanoseconds since the trace's start.
    range: Range<i64>,
    task: Box<dyn Task>,
    done: AtomicU64,
}

impl<'t> Part<'t> {
    /// Makes the tables `wanted` and returns the part of the trace. The range is in nanoseconds since the
    /// trace's start.
    ///
    /// # Errors
    /// Returns an error if the tables cannot be made.
    pub fn new(
        tables: &'t TraceTables,
        range: Range<i64>,
        wanted: &[Table],
    ) -> Result<Part<'t>, Error> {
        tables.make(wanted)?;
        let mut rows = 0;
        for table in wanted {
            rows += tables.table(*table)?.rows() as u64;
        }
        Ok(Part {
            tables,
            range,
            task: tables.observer().begin("exporting", Amount::Units(rows)),
            done: AtomicU64::new(0),
        })
    }

    pub(super) fn recording(&self) -> &dyn Recording {
        self.tables.store().recording()
    }

    /// Returns the start of the trace in nanoseconds since 1970. Returns `None` if it is unknown.
    pub(super) fn start_unix_ns(&self) -> Option<i64> {
        self.recording().info().start_unix_ns
    }

    /// Returns the start of the range in nanoseconds since the trace's start, at least 0.
    pub(super) fn start_ns(&self) -> i64 {
        self.range.start.max(0)
    }

    /// Returns the given columns of the rows in the range, chunk by chunk. A row is in the range if its value
    /// in the sorted column is in the range. For CPU runs and interrupts, this is the end time. Processes,
    /// threads, images and stacks are not limited to the range, because rows of other tables refer to them.
    ///
    /// # Errors
    /// Returns an error if the table cannot be made.
    pub(super) fn rows(&self, table: Table, columns: &[&str]) -> Result<Rows<'_>, Error> {
        self.rows_in(self.range.clone(), table, columns)
    }

    /// Returns rows of a table that is sorted by start time. They include rows that started before the range, because
    /// such rows may end in the range. [`Part::cut`] limits their times to the range.
    ///
    /// # Errors
    /// Returns an error if the table cannot be made.
    pub(super) fn rows_begun(&self, table: Table, columns: &[&str]) -> Result<Rows<'_>, Error> {
        self.rows_in(i64::MIN..self.range.end, table, columns)
    }

    /// Returns the intersection of a time range with the range of this part. Returns `None` if there is none.
    pub(super) fn cut(&self, start_ns: i64, end_ns: i64) -> Option<Range<i64>> {
        cut(&self.range, start_ns..end_ns)
    }

    fn rows_in(
        &self,
        range: Range<i64>,
        table: Table,
        columns: &[&str],
    ) -> Result<Rows<'_>, Error> {
        let table = self.tables.table(table)?;
        let sorted_by = table.table().schema().sorted_by;
        let of_events = matches!(sorted_by, "time_ns" | "start_ns" | "end_ns");
        let mut columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        if of_events {
            columns.push(sorted_by.to_owned());
        }
        Ok(Rows {
            chunks: if of_events {
                table.chunks_within(range.clone())
            } else {
                0..table.chunks().len()
            },
            range: of_events.then_some((sorted_by, range)),
            columns,
            table,
            part: self,
        })
    }

    /// Adds `rows` to the number of exported rows. This number is reported as progress.
    fn advance(&self, rows: u64) -> Result<(), Error> {
        self.tables.check()?;
        let done = self.done.fetch_add(rows, Ordering::Relaxed) + rows;
        self.task.reach(done);
        Ok(())
    }

    /// Returns all columns of the rows in the range, as [`Part::rows`] does.
    ///
    /// # Errors
    /// Returns an error if the table cannot be made.
    pub(super) fn whole_rows(&self, table: Table) -> Result<Rows<'_>, Error> {
        let columns = table.schema().columns;
        let columns: Vec<&str> = columns.iter().map(|column| column.name).collect();
        self.rows(table, &columns)
    }
}

/// Returns the intersection of `time` with `range`. Returns `None` if the two ranges do not overlap, or only touch. An
/// empty `time` is within `range` if its start is within `range`.
fn cut(range: &Range<i64>, time: Range<i64>) -> Option<Range<i64>> {
    let start = time.start.max(range.start);
    let end = time.end.min(range.end).max(start);
    let is_within = start < range.end && (start < time.end || start == time.start);
    is_within.then_some(start..end)
}

/// Rows of a table, as an iterator of batches in the table's order. No batch is empty.
pub(super) struct Rows<'p> {
    table: StoredTable,
    chunks: Range<usize>,
    /// Column that sorts the table, and the range of its values that is selected. `None` selects all rows.
    range: Option<(&'static str, Range<i64>)>,
    columns: Vec<String>,
    part: &'p Part<'p>,
}

impl Rows<'_> {
    pub(super) fn table(&self) -> &StoredTable {
        &self.table
    }

    /// Reads the selected rows of a chunk.
    fn read(&self, chunk: usize) -> Result<RecordBatch, Error> {
        self.part.advance(self.table.chunks()[chunk].rows as u64)?;
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
    type Item = Result<RecordBatch, Error>;

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
