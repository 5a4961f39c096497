//! Runs of threads within a stretch of time.

use std::ops::Range;

use rustc_hash::FxHashSet;
use tables::{CpuRunsView, StoreError, Table};

use crate::Case;
use crate::ranges::overlap;

/// Hands over every run that reaches into the range, its row, and how long it was within it.
/// Runs that are not believed are left out. `start_ns`, `end_ns`, `cpu_ns`, `cpu`, `thread_id` and
/// `planned_thread_id` must be among the columns.
///
/// # Errors
/// If the table cannot be read, or the user stopped it.
pub(crate) fn each_within(
    case: &Case<'_>,
    range: &Range<i64>,
    columns: &[&str],
    mut each: impl FnMut(&CpuRunsView<'_>, usize, i64),
) -> Result<(), StoreError> {
    let runs = case.table(Table::CpuRuns)?;
    // Runs are sorted by their ends. The last of a CPU that began in time may end long after it.
    let mut over: FxHashSet<u16> = FxHashSet::default();
    for batch in case.batches(&runs, range.start..i64::MAX, columns) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        for row in 0..view.len() {
            let (start, end) = (view.start_ns[row], view.end_ns[row]);
            if end >= range.end {
                over.insert(view.cpu[row]);
            }
            if let Some(within) = overlap(&(start..end), range)
                && !case.survey.doubtful.is(&view, row)
            {
                each(&view, row, within.end - within.start);
            }
        }
        if over.len() == case.survey.cpus.len() {
            break;
        }
    }
    Ok(())
}

/// `cpu_runs` of threads other than idle ones within the range that are believed, and how long they
/// were within it, in SQL: what follows `FROM`, with the column `within_ns`.
pub(crate) fn query_within(case: &Case<'_>, range: &Range<i64>) -> String {
    let Range { start, end } = range;
    let runs = case.survey.doubtful.others();
    format!(
        "(SELECT *, least(end_ns, {end}) - greatest(start_ns, {start}) AS within_ns FROM {runs} \
         WHERE least(end_ns, {end}) > greatest(start_ns, {start}) AND thread_id <> 0) AS within"
    )
}
