//! Numbers that are stretches of time: a wait, a transfer, what a sample stands for. Drawn over time
//! they are where they were, not where they ended.

use tables::Table;
use views::NULL;

use crate::catalogue::{ColumnDef, TableDef};
use crate::columns::Measures;
use crate::query;

/// A column of stretches of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretches {
    /// How long each is.
    pub(crate) length: &'static ColumnDef,
    /// The stored column that says when each ended.
    pub(crate) end: &'static str,
}

/// Which columns are such, and the column that says when each ended.
const STRETCHES: [(Table, &str, &str); 7] = [
    (Table::CpuRuns, "cpu_ns", "end_ns"),
    (Table::CpuRuns, "ready_ns", "start_ns"),
    (Table::CpuRuns, "waits_ns", "readied_ns"),
    (Table::Samples, "weight_ns", "time_ns"),
    (Table::DiskIo, "service_ns", "time_ns"),
    (Table::FileIo, "duration_ns", "time_ns"),
    (Table::HardFaults, "duration_ns", "time_ns"),
];

impl Stretches {
    /// Those of a column, if it has some.
    pub(crate) fn of(table: &TableDef, column: &'static ColumnDef) -> Option<Stretches> {
        let is = |(of, name, _): &&(Table, &str, &str)| *of == table.table && *name == column.name;
        let (_, _, end) = STRETCHES.iter().find(is)?;
        Some(Stretches {
            length: column,
            end,
        })
    }

    /// When they began; unknown where their length or end is.
    pub(crate) fn starts(lengths: &Measures, ends: &Measures) -> Measures {
        let start = |(end, length): (&i64, &i64)| match (*end, *length) {
            (NULL, _) | (_, NULL) => NULL,
            (end, length) => end.saturating_sub(length.max(0)),
        };
        let chunks = ends.chunks.iter().zip(&lengths.chunks);
        let starts = chunks.map(|(ends, lengths)| ends.iter().zip(lengths).map(start).collect());
        Measures::new(starts.collect())
    }

    /// Their beginning and end as SQL; one that is not known has no beginning.
    pub(crate) fn sql(&self) -> (String, String) {
        let start = format!("{} - {}", self.end, query::number(self.length));
        (start, self.end.to_owned())
    }
}
