//! Times during which Windows, or a cgroup of Linux, froze a process.

use std::ops::Range;

use selection::{Condition, Expression, Selection};
use tables::{ProcessFreezesView, StoreError, Table};

use crate::{Case, Evidence, Unit};

/// Time during which no thread of a process could run.
pub(crate) struct Freeze {
    pub(crate) range: Range<i64>,
    pub(crate) is_thawed: bool,
    pub(crate) process_id: u32,
    pub(crate) process_row: Option<u32>,
}

impl Freeze {
    /// Returns evidence with the row of the freeze.
    pub(crate) fn evidence(&self, case: &Case<'_>) -> Evidence {
        let Range { start, end } = self.range;
        let selection = Selection::new(Table::ProcessFreezes)
            .filter(Condition::is("process_id", self.process_id))
            .filter(Condition::is("start_ns", start));
        let process = Expression::Process("process_row");
        let frozen = Expression::Formula("end_ns - start_ns".to_owned());
        let evidence = Evidence::from_selection("The freeze", selection)
            .column("process", "process", Unit::None, process)
            .stored("start_ns", "frozen at", Unit::Moment)
            .stored("end_ns", "thawed at", Unit::Moment)
            .column("frozen_ns", "frozen", Unit::Duration, frozen);
        evidence.row([
            case.process_label(self.process_row).map(Into::into),
            Some(start.into()),
            Some(end.into()),
            Some((end - start).into()),
        ])
    }
}

/// Reads all freezes, in order of time.
pub(crate) fn read(case: &Case<'_>) -> Result<Vec<Freeze>, StoreError> {
    let table = case.table(Table::ProcessFreezes)?;
    let mut freezes = Vec::new();
    for chunk in 0..table.chunks().len() {
        let batch = table.read_all(chunk)?;
        let view = ProcessFreezesView::new(&batch)?;
        for row in 0..view.len() {
            freezes.push(Freeze {
                range: view.start_ns[row]..view.end_ns[row],
                is_thawed: view.ends_at_event.get(row).unwrap_or(false),
                process_id: view.process_id[row],
                process_row: view.process_row.get(row),
            });
        }
    }
    Ok(freezes)
}
