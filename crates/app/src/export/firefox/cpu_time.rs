//! How much of a CPU threads had, as their runs tell.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use tables::{CpuRunsView, Table};

use super::threads::Who;
use crate::cli::Failure;
use crate::export::part::{Part, Rows};

/// CPU time of threads up to a moment, which only moves on.
pub(super) struct CpuTime<'p> {
    runs: Rows<'p>,
    /// Runs that were read, by their end.
    ahead: VecDeque<Run>,
    spent: FxHashMap<Who, Spent>,
    /// When the run began that each CPU is at.
    began_ns: FxHashMap<u16, i64>,
    start_ns: i64,
    /// Whether the trace tells of runs at all.
    is_known: bool,
}

struct Run {
    who: Who,
    cpu: u16,
    start_ns: i64,
    end_ns: i64,
}

#[derive(Default)]
struct Spent {
    /// In runs that are over.
    ns: i64,
    /// What was given out of it, and of the run that is not over.
    told_ns: i64,
}

impl<'p> CpuTime<'p> {
    /// Of the threads in a part of a trace.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub(super) fn new(part: &'p Part<'_>) -> Result<CpuTime<'p>, Failure> {
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

    /// The CPU time of a thread, at a moment when it runs on that CPU, since it was asked for
    /// before. Moments rise. None if the trace tells of no runs.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub(super) fn since_asked(
        &mut self,
        who: Who,
        cpu: u16,
        time_ns: i64,
    ) -> Result<Option<i64>, Failure> {
        if !self.is_known {
            return Ok(None);
        }
        self.advance(time_ns)?;
        let began_ns = self.began_ns.get(&cpu).copied().unwrap_or(self.start_ns);
        let spent = self.spent.entry(who).or_default();
        let until_now = spent.ns.saturating_add(time_ns.saturating_sub(began_ns));
        let more = until_now.saturating_sub(spent.told_ns).max(0);
        spent.told_ns = spent.told_ns.max(until_now);
        Ok(Some(more))
    }

    /// Takes in the runs that are over by then.
    fn advance(&mut self, time_ns: i64) -> Result<(), Failure> {
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
