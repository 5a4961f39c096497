//! What a report rests on, and what to record where the trace lacks it.

use std::ops::Range;

use arrow_array::RecordBatch;
use rayon::prelude::*;
use tables::{StoredTable, Table};

use super::Recording;
use crate::cli::Failure;
use crate::watch;

/// A table that a report rests on.
pub(crate) struct Recorded {
    /// The table.
    pub(crate) table: Table,
    /// What its rows are, in the plural.
    pub(crate) what: &'static str,
    /// Flags of `xperf -on` that record it.
    pub(crate) xperf: &'static str,
    /// Keywords of a WPR profile that record it.
    pub(crate) wpr: &'static str,
}

impl Recorded {
    /// The table.
    ///
    /// # Errors
    /// [`Failure::NotRecorded`] if it has no rows.
    pub(crate) fn of(&self, trace: &Recording) -> Result<StoredTable, Failure> {
        let table = trace.tables.table(self.table)?;
        match table.rows() {
            0 => Err(Failure::NotRecorded(self.missing())),
            _ => Ok(table),
        }
    }

    /// What to say where there are no rows: a trace does not tell "none happened" from "not
    /// recorded".
    pub(crate) fn missing(&self) -> String {
        let Recorded {
            what, xperf, wpr, ..
        } = self;
        format!(
            "the trace holds no {what}: none happened, or they were not recorded; record them \
             with `xperf -on {xperf}`, or the keywords {wpr} in a WPR profile"
        )
    }
}

/// The columns named of those chunks of a table that hold rows of a time range; they may hold
/// others too. Threads read as many side by side as there are.
pub(crate) fn batches<'t>(
    table: &'t StoredTable,
    range: Range<i64>,
    columns: &'t [&str],
) -> impl Iterator<Item = Result<RecordBatch, Failure>> + 't {
    let chunks = table.chunks_within(range);
    let at_once = rayon::current_num_threads();
    chunks.clone().step_by(at_once).flat_map(move |from| {
        let read = |chunk: usize| {
            watch::check()?;
            Ok(table.read(chunk, columns)?)
        };
        let some = from..chunks.end.min(from + at_once);
        some.into_par_iter().map(read).collect::<Vec<_>>()
    })
}
