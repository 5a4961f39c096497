//! Rows of a table that a report selects, as lines of the report or as sums.

use std::io;
use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use tables::{StoredTable, Table};

use crate::filter::WantedProcesses;
use crate::layout::{Cells, Fold, Layout, Stored};
use crate::sums::Sums;
use crate::{Error, Recording, Writer};

/// Time of a row that decides whether the row is in the requested time range.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Times {
    /// Time in this column.
    At(&'static str),
    /// Each time from `start_ns` to `end_ns`.
    Overlapping,
}

/// Rows of a table that are in the requested time range and pass the filter.
pub(crate) struct Rows<'t> {
    trace: &'t Recording,
    table: StoredTable,
    times: Times,
    wanted: WantedProcesses,
    /// Columns with the row and the id of the process to which the filter applies.
    process: [&'static str; 2],
}

impl Recording {
    /// Selects rows of a table.
    ///
    /// # Errors
    /// Returns an error if the table has no rows or cannot be made.
    pub(crate) fn rows(&self, table: Table, times: Times) -> Result<Rows<'_>, Error> {
        Ok(self.select(self.tables.recorded(table)?, times))
    }

    /// Selects rows of a table, which may be empty.
    pub(crate) fn select(&self, table: StoredTable, times: Times) -> Rows<'_> {
        Rows {
            trace: self,
            table,
            times,
            wanted: self.filter.wanted(&self.names),
            process: ["process_row", "process_id"],
        }
    }
}

impl<'t> Rows<'t> {
    /// Applies the filter to the process in other columns: its row and its id.
    pub(crate) fn by_process(self, process: [&'static str; 2]) -> Rows<'t> {
        Rows { process, ..self }
    }

    /// Returns the time range to which percentages refer.
    pub(crate) fn span(&self) -> Range<i64> {
        self.trace.span(&[&self.table])
    }

    /// Reads `columns`. Calls `visit` with each batch and the indexes of the selected rows in it.
    pub(crate) fn for_each(
        &self,
        columns: &[&str],
        mut visit: impl FnMut(&RecordBatch, &[usize]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (trace, filter, range) = (self.trace, &self.trace.filter, &self.trace.range);
        let (start, end) = match self.times {
            Times::At(time) => (time, time),
            Times::Overlapping => ("start_ns", "end_ns"),
        };
        // The other time of a row can have any distance from the time by which the table is sorted.
        let chunks = match (self.table.table().schema().sorted_by, self.times) {
            (sorted_by, Times::At(time)) if sorted_by == time => range.clone(),
            ("end_ns", _) => range.start..i64::MAX,
            _ => i64::MIN..range.end,
        };
        let [row, id] = self.process;
        let filtered = [
            (!self.wanted.are_all(), row),
            (!self.wanted.are_all(), id),
            (!filter.thread.is_empty(), "thread_id"),
            (!filter.cpu.is_empty(), "cpu"),
        ];
        let filtered = filtered.iter().filter(|(is_used, _)| *is_used);
        let mut columns = columns.to_vec();
        columns.extend([start, end]);
        columns.extend(filtered.map(|(_, column)| *column));
        for batch in trace.tables.batches(&self.table, chunks, &columns) {
            let batch = batch?;
            let [row, id, thread, cpu] =
                [row, id, "thread_id", "cpu"].map(|name| Stored::new(&batch, name));
            let is_in = |id: Option<u32>, ids: &[u32]| id.is_some_and(|id| ids.contains(&id));
            let cpus: Vec<u32> = filter.cpu.iter().map(|cpu| (*cpu).into()).collect();
            let passes = |at: &usize| {
                (self.wanted.are_all() || self.wanted.has((row.id(*at), id.id(*at))))
                    && (filter.thread.is_empty() || is_in(thread.id(*at), &filter.thread))
                    && (cpus.is_empty() || is_in(cpu.id(*at), &cpus))
            };
            let [starts, ends] = [start, end].map(|name| times(&batch, name));
            let within = |at: &usize| match self.times {
                Times::At(_) => range.contains(&starts[*at]),
                Times::Overlapping => starts[*at] < range.end && ends[*at] >= range.start,
            };
            let rows = (0..starts.len().min(ends.len())).filter(within);
            visit(&batch, &rows.filter(passes).collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Writes a line for each row.
    pub(crate) fn list(&self, layout: &'static Layout, out: &mut Writer) -> Result<(), Error> {
        self.list_with(layout, out, &[], |_, rows| {
            Ok(rows.iter().map(|row| (*row, ())).collect())
        })
    }

    /// Writes a line for each row that `compute` returns. `compute` gets each batch, with the further columns `columns`,
    /// and the indexes of the selected rows in it. It returns rows with what it computed for them.
    pub(crate) fn list_with<X: Sync>(
        &self,
        layout: &'static Layout<X>,
        out: &mut Writer,
        columns: &[&str],
        compute: impl FnMut(&RecordBatch, &[usize]) -> Result<Vec<(usize, X)>, Error>,
    ) -> Result<(), Error> {
        let mut table = out.table(layout, &self.trace.names);
        self.compute(layout, columns, compute, |cells, rows| {
            table.rows(rows.len(), |at, column| {
                let (row, computed) = &rows[at];
                cells[column].value(*row, computed)
            })
        })
    }

    /// Writes the sums of the rows, a line for each group. [`Sums::write`] describes `order`.
    pub(crate) fn sums(
        &self,
        layout: &'static Layout,
        order: &[&str],
        out: &mut Writer,
    ) -> Result<Sums<()>, Error> {
        self.sums_with(layout, order, out, &[], |_, rows| {
            Ok(rows.iter().map(|row| (*row, ())).collect())
        })
    }

    /// Writes the sums of the rows that `compute` returns, like [`Rows::list_with`].
    pub(crate) fn sums_with<X>(
        &self,
        layout: &'static Layout<X>,
        order: &[&str],
        out: &mut Writer,
        columns: &[&str],
        compute: impl FnMut(&RecordBatch, &[usize]) -> Result<Vec<(usize, X)>, Error>,
    ) -> Result<Sums<X>, Error> {
        let mut sums = Sums::new(layout);
        self.compute(layout, columns, compute, |cells, rows| {
            for (row, computed) in &rows {
                sums.add(|column| cells[column].value(*row, computed));
            }
            Ok(())
        })?;
        let mut folds = layout.columns.iter().map(|column| column.fold);
        let whole_ns = if folds.any(|fold| fold == Some(Fold::Share)) {
            self.trace.cpu_ns(&self.span())?
        } else {
            0
        };
        sums.write(order, whole_ns, &self.trace.names, out)?;
        Ok(sums)
    }

    fn compute<X>(
        &self,
        layout: &'static Layout<X>,
        columns: &[&str],
        mut compute: impl FnMut(&RecordBatch, &[usize]) -> Result<Vec<(usize, X)>, Error>,
        mut visit: impl FnMut(&[Cells<'_, X>], Vec<(usize, X)>) -> io::Result<()>,
    ) -> Result<(), Error> {
        let stored = layout
            .columns
            .iter()
            .flat_map(|column| column.stored_names());
        let stored: Vec<String> = stored.collect();
        let columns: Vec<&str> = stored
            .iter()
            .map(String::as_str)
            .chain(columns.iter().copied())
            .collect();
        self.for_each(&columns, |batch, rows| {
            let rows = compute(batch, rows)?;
            Ok(visit(&Cells::of_layout(layout, batch), rows)?)
        })
    }
}

/// Returns the times in a column.
fn times<'b>(batch: &'b RecordBatch, name: &str) -> &'b [i64] {
    let column = batch.column_by_name(name);
    let times = column.and_then(|column| column.as_primitive_opt::<Int64Type>());
    times.map_or(&[], |times| times.values())
}
