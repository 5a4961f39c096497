//! Runs of threads within a stretch of time.

use std::ops::Range;

use rustc_hash::FxHashSet;
use tables::{CpuRunsView, StoreError, Table};

use crate::Case;
use crate::ranges::overlap;
use crate::survey::Interrupted;

/// How long a run was within a stretch of time.
pub(crate) struct Within {
    /// The thread itself, without what interrupted it.
    pub(crate) cpu_ns: i64,
    /// DPCs and service routines that interrupted it.
    pub(crate) inside_ns: i64,
}

/// Hands over every run of a thread that reaches into the range, its row, and how long it was within
/// it, idle threads and runs that are not believed left out; [`crate::survey::interrupted_runs`] is
/// the same in SQL. `start_ns`, `end_ns`, `cpu_ns`, `cpu`, `thread_id` and `planned_thread_id` must be
/// among the columns.
///
/// # Errors
/// If a table cannot be read, or the user stopped it.
pub(crate) fn each_within(
    case: &Case<'_>,
    range: &Range<i64>,
    columns: &[&str],
    mut each: impl FnMut(&CpuRunsView<'_>, usize, Within),
) -> Result<(), StoreError> {
    let runs = case.table(Table::CpuRuns)?;
    let mut interrupted = Interrupted::new(case, range.clone())?;
    // Runs are sorted by their ends. The last of a CPU that began in time may end long after it.
    let mut over: FxHashSet<u16> = FxHashSet::default();
    for batch in case.batches(&runs, range.start..i64::MAX, columns) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        for row in 0..view.len() {
            let (start, end, cpu) = (view.start_ns[row], view.end_ns[row], view.cpu[row]);
            if end >= range.end {
                over.insert(cpu);
            }
            let Some(within) = overlap(&(start..end), range) else {
                continue;
            };
            let ran_ns = within.end - within.start;
            let inside_ns = interrupted.of_run(cpu, end, ran_ns)?;
            if view.thread_id[row] != 0 && !case.survey.doubtful.is(&view, row) {
                let cpu_ns = ran_ns - inside_ns;
                each(&view, row, Within { cpu_ns, inside_ns });
            }
        }
        if over.len() == case.survey.cpus.len() {
            break;
        }
    }
    Ok(())
}
