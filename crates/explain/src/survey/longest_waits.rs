//! The longest waits of ready threads.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use tables::CpuRunsView;

use super::wanted::Wanted;

/// How many are kept.
const KEPT: usize = 64;

/// A wait of a ready thread for a CPU, and the run that ended it. Columns of `cpu_runs` have the
/// same names there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    /// How long it was ready, in nanoseconds.
    pub ready_ns: i64,
    /// When it got a CPU.
    pub start_ns: i64,
    /// When that run ended.
    pub end_ns: i64,
    /// The CPU that it got.
    pub cpu: u16,
    /// The thread.
    pub thread_id: u32,
    /// Its row in `threads`.
    pub thread_row: Option<u32>,
    /// Its process.
    pub process_id: Option<u32>,
    /// Its process's row in `processes`.
    pub process_row: Option<u32>,
    /// When it was switched out before.
    pub previous_out_ns: Option<i64>,
    /// When it was made ready, if anything did.
    pub readied_ns: Option<i64>,
    /// How long it had waited for something else before.
    pub waits_ns: Option<i64>,
    /// Since it was switched out before.
    pub since_last_ns: Option<i64>,
    /// It may have run unseen meanwhile.
    pub ran_unseen: bool,
    /// The thread that made it ready, or that was interrupted by the DPC that did.
    pub readying_thread_id: Option<u32>,
    /// Its row in `threads`.
    pub readying_thread_row: Option<u32>,
    /// Its process.
    pub readying_process_id: Option<u32>,
    /// Its process's row in `processes`.
    pub readying_process_row: Option<u32>,
    /// The CPU that made it ready.
    pub readying_cpu: Option<u16>,
    /// A DPC made it ready.
    pub readied_by_dpc: Option<bool>,
    /// Its kernel stack was paged out.
    pub kernel_stack_not_resident: Option<bool>,
    /// Its process was swapped out.
    pub process_out_of_memory: Option<bool>,
    /// Its priority when it got the CPU.
    pub priority: Option<i8>,
    /// Its rank when that run ended, or if that is not known when it was switched out before.
    pub rank: Option<u8>,
    /// The state that it was switched out to before.
    pub previous_state: Option<u8>,
    /// Why it waited then.
    pub previous_wait_reason: Option<u8>,
    /// Low eight bits of its ideal processor.
    pub ideal_processor: Option<u8>,
    /// Row in `stacks` of its own stack: where it had waited.
    pub stack_id: Option<u32>,
    /// Row in `stacks` of the stack of whoever made it ready.
    pub readying_stack_id: Option<u32>,
}

impl Wait {
    /// When it could run, and when it did.
    pub fn range(&self) -> Range<i64> {
        self.start_ns.saturating_sub(self.ready_ns)..self.start_ns
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
            previous_out_ns: runs.previous_out_ns.get(row),
            readied_ns: runs.readied_ns.get(row),
            waits_ns: runs.waits_ns.get(row),
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
            // Where it changed, the worse one made it wait.
            rank: runs.rank_out.get(row).max(runs.previous_rank.get(row)),
            previous_state: runs.previous_state.get(row),
            previous_wait_reason: runs.previous_wait_reason.get(row),
            ideal_processor: runs.ideal_processor.get(row),
            stack_id: runs.stack_id.get(row),
            readying_stack_id: runs.readying_stack_id.get(row),
        }
    }
}

/// Finds the longest waits, of what is asked for if anything is; the shortest of them are on top.
#[derive(Default)]
pub(super) struct LongestWaits(BinaryHeap<Reverse<Wait>>);

impl LongestWaits {
    pub(super) fn add(&mut self, runs: &CpuRunsView<'_>, wanted: &Wanted<'_>) {
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
