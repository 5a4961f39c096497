//! Longest waits of ready threads.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use tables::{CpuRunsView, WaitKind};

use super::wait_filter::WaitFilter;
use crate::labels;

/// Maximum number of waits that are kept.
const KEPT: usize = 64;

/// Wait of a ready thread for a CPU, and the run that ended the wait. Fields have the names of
/// columns of `cpu_runs`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    /// Length of the wait, in nanoseconds.
    pub ready_ns: i64,
    /// Start of the run, in nanoseconds since the trace's start.
    pub start_ns: i64,
    /// End of the run, in nanoseconds since the trace's start.
    pub end_ns: i64,
    /// CPU of the run.
    pub cpu: u16,
    /// Id of the thread.
    pub thread_id: u32,
    /// Row of the thread in `threads`.
    pub thread_row: Option<u32>,
    /// Id of the thread's process.
    pub process_id: Option<u32>,
    /// Row of the thread's process in `processes`.
    pub process_row: Option<u32>,
    /// CPU of the thread's run before this one.
    pub previous_cpu: Option<u16>,
    /// Time when the thread was last switched out before the run, in nanoseconds since the trace's start.
    pub previous_out_ns: Option<i64>,
    /// Time when the thread was readied, in nanoseconds since the trace's start, if an event recorded it.
    pub readied_ns: Option<i64>,
    /// Time for which the thread waited for something else before it was readied, in nanoseconds.
    pub waits_ns: Option<i64>,
    /// Kind of this wait.
    pub wait_kind: Option<WaitKind>,
    /// Time from the last switch-out of the thread to the run, in nanoseconds.
    pub since_last_ns: Option<i64>,
    /// True if the thread may have run unseen during the wait.
    pub ran_unseen: bool,
    /// Id of the thread that readied this thread, or that the readying DPC interrupted.
    pub readying_thread_id: Option<u32>,
    /// Row of the readying thread in `threads`.
    pub readying_thread_row: Option<u32>,
    /// Id of the readying thread's process.
    pub readying_process_id: Option<u32>,
    /// Row of the readying thread's process in `processes`.
    pub readying_process_row: Option<u32>,
    /// CPU of the readying thread.
    pub readying_cpu: Option<u16>,
    /// True if a DPC readied the thread.
    pub readied_by_dpc: Option<bool>,
    /// True if the thread's kernel stack was paged out.
    pub kernel_stack_not_resident: Option<bool>,
    /// True if the thread's process was swapped out.
    pub process_out_of_memory: Option<bool>,
    /// Priority of the thread at the start of the run.
    pub priority: Option<i8>,
    /// Nice value of a fair thread of Linux at the start of the run.
    pub nice: Option<i8>,
    /// Priority of the thread at the last switch-out before the run.
    pub previous_priority: Option<i8>,
    /// Rank of the thread. The thread has a rank at the end of the run and a rank at the last switch-out
    /// before the run; this is the worse of the two.
    pub rank: Option<u8>,
    /// State of the thread after the last switch-out before the run.
    pub previous_state: Option<u8>,
    /// Wait reason of the thread at the last switch-out before the run.
    pub previous_wait_reason: Option<u8>,
    /// Low eight bits of the number of the thread's ideal processor.
    pub ideal_processor: Option<u8>,
    /// Row in `stacks` of the thread's call stack, which shows where the thread had waited.
    pub stack_id: Option<u32>,
    /// Row in `stacks` of the readying thread's call stack.
    pub readying_stack_id: Option<u32>,
}

impl Wait {
    /// Returns the time range of the wait.
    pub fn range(&self) -> Range<i64> {
        self.start_ns.saturating_sub(self.ready_ns)..self.start_ns
    }

    /// Returns words for what the thread waited for before it was readied.
    pub(crate) fn waited_for(&self) -> Option<String> {
        labels::waited_for(self.wait_kind, self.previous_wait_reason)
    }

    pub(crate) fn read(runs: &CpuRunsView<'_>, row: usize, ready_ns: i64) -> Wait {
        Wait {
            ready_ns,
            start_ns: runs.start_ns[row],
            end_ns: runs.end_ns[row],
            cpu: runs.cpu[row],
            thread_id: runs.thread_id[row],
            thread_row: runs.thread_row.get(row),
            process_id: runs.process_id.get(row),
            process_row: runs.process_row.get(row),
            previous_cpu: runs.previous_cpu.get(row),
            previous_out_ns: runs.previous_out_ns.get(row),
            readied_ns: runs.readied_ns.get(row),
            waits_ns: runs.waits_ns.get(row),
            wait_kind: runs.wait_kind.get(row).and_then(WaitKind::from_name),
            since_last_ns: runs.since_last_ns.get(row),
            ran_unseen: runs.ran_unseen.get(row).unwrap_or(false),
            readying_thread_id: runs.readying_thread_id.get(row),
            readying_thread_row: runs.readying_thread_row.get(row),
            readying_process_id: runs.readying_process_id.get(row),
            readying_process_row: runs.readying_process_row.get(row),
            readying_cpu: runs.readying_cpu.get(row),
            readied_by_dpc: runs.readied_by_dpc.get(row),
            kernel_stack_not_resident: runs.kernel_stack_not_resident.get(row),
            process_out_of_memory: runs.process_out_of_memory.get(row),
            priority: runs.priority.get(row),
            nice: runs.nice.get(row),
            previous_priority: runs.previous_priority_out.get(row),
            // If the rank changed, the worse rank caused the wait.
            rank: runs.rank_out.get(row).max(runs.previous_rank.get(row)),
            previous_state: runs.previous_state.get(row),
            previous_wait_reason: runs.previous_wait_reason.get(row),
            ideal_processor: runs.ideal_processor.get(row),
            stack_id: runs.stack_id.get(row),
            readying_stack_id: runs.readying_stack_id.get(row),
        }
    }
}

/// Collection of the longest waits in scope. The shortest of the collected waits is on top of the heap.
#[derive(Default)]
pub(super) struct LongestWaits(BinaryHeap<Reverse<Wait>>);

impl LongestWaits {
    pub(super) fn add(&mut self, runs: &CpuRunsView<'_>, wanted: &WaitFilter<'_>) {
        for row in 0..runs.len() {
            let Some(ready_ns) = runs.ready_ns.get(row).filter(|ns| *ns > 0) else {
                continue;
            };
            let shortest = self.0.peek().map_or(0, |wait| wait.0.ready_ns);
            if self.0.len() >= KEPT && ready_ns <= shortest || !wanted.is(runs, row, ready_ns) {
                continue;
            }
            self.0.push(Reverse(Wait::read(runs, row, ready_ns)));
            if self.0.len() > KEPT {
                self.0.pop();
            }
        }
    }

    pub(super) fn finish(self) -> Vec<Wait> {
        let sorted = self.0.into_sorted_vec().into_iter();
        sorted.map(|wait| wait.0).collect()
    }
}
