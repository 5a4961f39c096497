//! Runs of threads within a time range.

use std::ops::Range;

use rustc_hash::FxHashSet;
use tables::{CpuRunsView, StoreError, Table};

use crate::Case;
use crate::ranges::overlap;
use crate::survey::InterruptReader;

/// Times of the part of a run that lies in a time range.
pub(crate) struct RunPart {
    /// Time of the thread itself, without interrupts, in nanoseconds.
    pub(crate) cpu_ns: i64,
    /// Time of the DPCs and service routines that interrupted the thread, in nanoseconds.
    pub(crate) inside_ns: i64,
}

/// Calls `each` for every run of a thread that overlaps the range. `each` receives the view, the row, and the
/// times within the range. Skips idle threads and doubtful runs. Returns the time for which DPCs and service
/// routines interrupted idle threads within the range, in nanoseconds. [`crate::survey::interrupted_runs`]
/// and [`crate::survey::totals`] compute the same times in SQL.
///
/// The columns must include `start_ns`, `end_ns`, `cpu_ns`, `cpu`, `thread_id` and `planned_thread_id`.
///
/// # Errors
/// Returns an error if a table cannot be read, or the user cancelled.
pub(crate) fn each_within(
    case: &Case<'_>,
    range: &Range<i64>,
    columns: &[&str],
    mut each: impl FnMut(&CpuRunsView<'_>, usize, RunPart),
) -> Result<i64, StoreError> {
    let runs = case.table(Table::CpuRuns)?;
    let mut interrupted = InterruptReader::new(case, range.clone())?;
    // Runs are sorted by their ends. On each CPU, the last run that overlaps the range may end long
    // after the range. So reading continues until each CPU has such a run.
    let mut idle_ns = 0_i64;
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
            let inside_ns = interrupted.of_run(cpu, end, ran_ns, |_, _| {})?;
            if case.survey.doubtful.is(&view, row) {
                continue;
            }
            if view.thread_id[row] == 0 {
                idle_ns = idle_ns.saturating_add(inside_ns);
            } else {
                let cpu_ns = ran_ns - inside_ns;
                each(&view, row, RunPart { cpu_ns, inside_ns });
            }
        }
        if over.len() == case.survey.cpus.len() {
            break;
        }
    }
    Ok(idle_ns)
}
