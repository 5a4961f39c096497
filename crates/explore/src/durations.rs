//! Columns of durations: a wait, a transfer, the time that a sample represents. On a time line, a duration is
//! drawn from its start to its end, not only at its end.

use tables::Table;
use views::NULL;

use crate::catalogue::{ColumnDef, TableDef};
use crate::decoded_columns::Measures;

/// A column of durations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Durations {
    /// Column with the lengths of the durations.
    pub(crate) length: &'static ColumnDef,
    /// Name of the stored column with the ends of the durations.
    pub(crate) end: &'static str,
}

/// Columns of durations: the table, the column with the lengths, and the column with the ends.
static DURATIONS: [(Table, &str, &str); 7] = [
    (Table::CpuRuns, "cpu_ns", "end_ns"),
    (Table::CpuRuns, "ready_ns", "start_ns"),
    (Table::CpuRuns, "waits_ns", "readied_ns"),
    (Table::Samples, "weight_ns", "time_ns"),
    (Table::DiskIo, "service_ns", "time_ns"),
    (Table::FileIo, "duration_ns", "time_ns"),
    (Table::HardFaults, "duration_ns", "time_ns"),
];

impl Durations {
    /// Returns the durations in a column; `None` if the column does not contain durations.
    pub(crate) fn find(table: &TableDef, column: &'static ColumnDef) -> Option<Durations> {
        let entry = DURATIONS.iter().find(|(table_of_entry, name, _)| {
            *table_of_entry == table.table && *name == column.name
        });
        entry.map(|(_, _, end)| Durations {
            length: column,
            end,
        })
    }

    /// Returns all durations of a table.
    pub(crate) fn all(table: &'static TableDef) -> impl Iterator<Item = Durations> {
        let of_table = DURATIONS
            .iter()
            .filter(move |(owner, ..)| *owner == table.table);
        of_table.filter_map(move |(_, name, _)| Durations::find(table, table.column(name).ok()?))
    }

    /// Returns the starts of the durations. If the length or the end of a duration is unknown, its start is
    /// unknown.
    pub(crate) fn starts(lengths: &Measures, ends: &Measures) -> Measures {
        let start = |(end, length): (&i64, &i64)| match (*end, *length) {
            (NULL, _) | (_, NULL) => NULL,
            (end, length) => end.saturating_sub(length.max(0)),
        };
        let chunks = ends.chunks.iter().zip(&lengths.chunks);
        let starts = chunks.map(|(ends, lengths)| ends.iter().zip(lengths).map(start).collect());
        Measures::new(starts.collect())
    }

    /// Returns SQL expressions for the start and the end of a duration. The start of an unknown duration is
    /// null.
    pub(crate) fn sql(&self) -> (String, String) {
        let start = format!("{} - {}", self.end, self.length.name);
        (start, self.end.to_owned())
    }
}
