//! CPU time of threads, computed from their CPU runs.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use tables::{CpuRunsView, Table};

use super::threads::Who;
use crate::Error;
use crate::part::{Part, Rows};

/// Counter of the CPU time of all threads up to a current time. The current time never decreases.
pub(super) struct CpuTime<'p> {
    runs: Rows<'p>,
    /// Runs that were read but are not counted yet, sorted by end.
    ahead: VecDeque<Run>,
    spent: FxHashMap<Who, ThreadCpuTime>,
    /// Start of each CPU's current run, in nanoseconds.
    began_ns: FxHashMap<u16, i64>,
    start_ns: i64,
    /// True if the trace has CPU runs.
    is_known: bool,
}

struct Run {
    who: Who,
    cpu: u16,
    start_ns: i64,
    end_ns: i64,
}

#[derive(Default)]
struct ThreadCpuTime {
    /// CPU time in completed runs, in nanoseconds.
    ns: i64,
    /// CPU time that was already returned. It includes completed runs and the current run.
    reported_ns: i64,
}

impl<'p> CpuTime<'p> {
    /// Creates a counter of the CPU time of all threads in a part of a trace.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub(super) fn new(part: &'p Part<'_>) -> Result<CpuTime<'p>, Error> {
        let columns = ["start_ns", "end_ns", "cpu", "thread_id", "thread_row"];
        let runs = part.rows(Table::CpuRuns, &columns)?;
        Ok(CpuTime {
            is_known: runs.table().rows() > 0,
            runs,
            ahead: VecDeque::new(),
            spent: FxHashMap::default(),
            began_ns: FxHashMap::default(),
            start_ns: part.start_ns(),
        })
    }

    /// Returns the CPU time in nanoseconds that a thread used since the previous call for this thread. The
    /// thread must run on `cpu` at `time_ns`. Times must not decrease from call to call. Returns `None` if
    /// the trace has no runs.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub(super) fn since_asked(
        &mut self,
        who: Who,
        cpu: u16,
        time_ns: i64,
    ) -> Result<Option<i64>, Error> {
        if !self.is_known {
            return Ok(None);
        }
        self.advance(time_ns)?;
        let began_ns = self.began_ns.get(&cpu).copied().unwrap_or(self.start_ns);
        let spent = self.spent.entry(who).or_default();
        let until_now = spent.ns.saturating_add(time_ns.saturating_sub(began_ns));
        let more = until_now.saturating_sub(spent.reported_ns).max(0);
        spent.reported_ns = spent.reported_ns.max(until_now);
        Ok(Some(more))
    }

    /// Counts the runs that ended at or before `time_ns`.
    fn advance(&mut self, time_ns: i64) -> Result<(), Error> {
        loop {
            while let Some(run) = self.ahead.pop_front_if(|run| run.end_ns <= time_ns) {
                let spent = self.spent.entry(run.who).or_default();
                let start_ns = run.start_ns.max(self.start_ns);
                let ns = run.end_ns.saturating_sub(start_ns).max(0);
                spent.ns = spent.ns.saturating_add(ns);
                self.began_ns.insert(run.cpu, run.end_ns);
            }
            if !self.ahead.is_empty() {
                return Ok(());
            }
            let Some(batch) = self.runs.next() else {
                return Ok(());
            };
            let batch = batch?;
            let view = CpuRunsView::new(&batch)?;
            self.ahead.extend((0..batch.num_rows()).map(|row| Run {
                who: Who::new(view.thread_id[row], view.thread_row.get(row), view.cpu[row]),
                cpu: view.cpu[row],
                start_ns: view.start_ns[row],
                end_ns: view.end_ns[row],
            }));
        }
    }
}
