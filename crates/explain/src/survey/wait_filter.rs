//! Selection of the waits that are in scope. Only these waits are examined.

use std::ops::Range;

use rustc_hash::FxHashSet;
use tables::{CpuRunsView, Identities};

use super::{Complete, Damage};
use crate::Scope;

/// Filter that selects the waits of ready threads in scope.
pub(crate) struct WaitFilter<'c> {
    threads: FxHashSet<u32>,
    /// Rows of the processes in scope in the table `processes`.
    processes: FxHashSet<u32>,
    is_of_all: bool,
    during: Option<Range<i64>>,
    /// Time during which all CPUs are recorded. If the scope names no threads and no processes,
    /// only waits in this time count.
    complete: &'c Complete,
    /// True if the file is broken. Then a contradicted run of an unknown thread does not count, because the id of the
    /// thread is probably wrong.
    is_broken: bool,
}

impl<'c> WaitFilter<'c> {
    pub(crate) fn new(
        names: &Identities,
        scope: &Scope,
        complete: &'c Complete,
        damage: Damage,
    ) -> WaitFilter<'c> {
        WaitFilter {
            threads: scope.threads.iter().copied().collect(),
            processes: scope.process_rows(names).collect(),
            is_of_all: scope.has_all_threads(),
            during: scope.during.clone(),
            complete,
            is_broken: damage.is_broken,
        }
    }

    /// Returns true if a wait is in scope. The wait has the length `ready_ns` and ended when the run in `row`
    /// began.
    pub(super) fn is(&self, runs: &CpuRunsView<'_>, row: usize, ready_ns: i64) -> bool {
        let (thread_id, start_ns) = (runs.thread_id[row], runs.start_ns[row]);
        let since_ns = start_ns.saturating_sub(ready_ns);
        let is_within = |during: &Range<i64>| start_ns > during.start && since_ns < during.end;
        let is_wrong =
            || runs.thread_row.get(row).is_none() && runs.planned_thread_id.get(row).is_some();
        thread_id != 0
            && !(self.is_broken && is_wrong())
            && self.during.as_ref().is_none_or(is_within)
            && (self.is_of_all && self.complete.holds(since_ns, start_ns)
                || self.threads.contains(&thread_id)
                || (runs.process_row.get(row)).is_some_and(|row| self.processes.contains(&row)))
    }

    /// Returns an SQL condition on rows of `cpu_runs`. It selects the runs of this process's threads that end
    /// a wait in scope.
    pub(crate) fn condition(&self, process_row: Option<u32>, process_id: Option<u32>) -> String {
        let mut condition = match (process_row, process_id) {
            (Some(row), _) => format!("process_row = {row}"),
            (None, Some(id)) => format!("process_row IS NULL AND process_id = {id}"),
            (None, None) => "process_row IS NULL AND process_id IS NULL".to_owned(),
        };
        condition += " AND thread_id <> 0";
        if self.is_broken {
            condition += " AND (thread_row IS NOT NULL OR planned_thread_id IS NULL)";
        }
        if let Some(Range { start, end }) = &self.during {
            condition += &format!(" AND start_ns > {start} AND start_ns - ready_ns < {end}");
        }
        if self.is_of_all {
            condition += &self.complete.condition("start_ns - ready_ns", "start_ns");
        } else if !process_row.is_some_and(|row| self.processes.contains(&row)) {
            let mut threads: Vec<u32> = self.threads.iter().copied().collect();
            threads.sort_unstable();
            let threads: Vec<String> = threads.iter().map(u32::to_string).collect();
            condition += &format!(" AND thread_id IN ({})", threads.join(", "));
        }
        condition
    }
}
