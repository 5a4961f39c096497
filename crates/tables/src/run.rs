//! A run of a thread on a CPU, and its row of `cpu_runs`.

use std::num::NonZeroU64;

use crate::CpuRuns;
use crate::table::ready_threads::ReadiedOnWindows;
use crate::trackers::ThreadIds;
use crate::wait_kind::{FutexCall, StackWait, WaitKind, wait_of};

/// States of a thread that was switched out but does not wait. They are ready, running, standby and deferred
/// ready.
const RUNNABLE: [u8; 4] = [1, 2, 3, 7];

/// State of a thread that waits.
const WAITING: u8 = 5;

/// Data of a context switch about the thread that begins to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SwitchIn {
    pub(crate) thread_id: u32,
    /// Index of the thread in `threads` of the scheduler.
    pub(crate) thread: u32,
    pub(crate) previous_thread_id: u32,
    pub(crate) previous_process_row: Option<u32>,
    pub(crate) priority: i8,
    pub(crate) nice: Option<i8>,
    pub(crate) priority_decrement: Option<u8>,
    pub(crate) wait_ticks: Option<u32>,
    pub(crate) qos: Option<u8>,
    pub(crate) previous_c_state: Option<u8>,
    pub(crate) stack_id: Option<u32>,
    /// Part of the kind of the wait before the run that the stack shows.
    pub(crate) stack_wait: StackWait,
}

/// Data of a context switch about the thread that stops running.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SwitchOut {
    pub(crate) time_ns: i64,
    pub(crate) cpu: u16,
    pub(crate) priority: i8,
    pub(crate) state: u8,
    pub(crate) wait_reason: Option<u8>,
    pub(crate) wait_mode: Option<u8>,
    pub(crate) futex: Option<FutexCall>,
    pub(crate) rank: Option<u8>,
    pub(crate) remaining_quantum: Option<i32>,
    pub(crate) ideal_processor: Option<u8>,
}

impl SwitchOut {
    /// Returns true if the thread waits after the switch.
    pub(crate) fn waits(&self) -> bool {
        self.state == WAITING
    }
}

/// An event that made a thread ready to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) time_ns: i64,
    pub(crate) cpu: u16,
    /// Id of the thread that ran on `cpu` at the time of the event. If no DPC caused the event, this thread
    /// made the other thread ready.
    pub(crate) by: Option<u32>,
    pub(crate) by_ids: ThreadIds,
    pub(crate) by_dpc: bool,
    /// Facts that only Windows logs.
    pub(crate) of_windows: Option<ReadiedOnWindows>,
    pub(crate) stack_id: Option<u32>,
}

/// A run of a thread on a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) cpu: u16,
    pub(crate) thread_id: u32,
    pub(crate) ids: ThreadIds,
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    /// The context switch that began the run; `None` if the run began before the CPU's first switch in the trace. If
    /// this switch is missing (see [`Begin`]), the values come from the switch that ended the run.
    pub(crate) switch_in: Option<SwitchIn>,
    /// The context switch that ended the thread's previous run.
    pub(crate) before: Option<SwitchOut>,
    /// The event that made the thread ready for this run.
    pub(crate) ready: Option<Ready>,
    /// The context switch that ended the run; `None` if the run ended after the trace or if this switch is missing.
    pub(crate) after: Option<SwitchOut>,
    /// True if the trace may lack runs of the thread between its last switch-out and this run. There are two
    /// possible reasons: context switches contradict each other, or a CPU was not recorded.
    pub(crate) ran_unseen: bool,
    pub(crate) begin: Begin,
}

/// Event with which a run begins.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Begin {
    /// The switch to the thread, or the start of the recording.
    #[default]
    Switch,
    /// The event that made the thread ready. The switch to the thread is missing. So it is unknown how long the thread
    /// was ready.
    Wake,
    /// The first event that shows the thread on its CPU. The switch to the thread is missing. The missing switch
    /// happened between this event and the previous event of the CPU. This time is short, because the timer of a busy
    /// CPU expires every 1 to 10 ms.
    Sight,
    /// The start of the thread. The switch to the thread is missing, and the CPU's last switch was before this start.
    Birth,
}

impl Run {
    /// Returns the time at which the thread became ready. If the thread waited, this is the end of its wait. Otherwise,
    /// this is its last switch-out. Returns `None` if the trace does not show this time.
    pub(crate) fn ready_since(&self) -> Option<i64> {
        let preempted = |out: &SwitchOut| RUNNABLE.contains(&out.state);
        match (self.ready, self.before) {
            (Some(ready), Some(out)) => Some(ready.time_ns.max(out.time_ns)),
            (Some(ready), None) => Some(ready.time_ns),
            (None, out) => out.filter(preempted).map(|out| out.time_ns),
        }
    }

    fn ready_ns(&self) -> Option<i64> {
        let since = self.ready_since().filter(|_| self.begin != Begin::Wake)?;
        Some(self.start_ns.saturating_sub(since))
    }

    fn waits_ns(&self) -> Option<i64> {
        let (since, out) = (self.ready_since()?, self.before?);
        Some(since.saturating_sub(out.time_ns))
    }

    /// Returns the kind and the object of the wait before the run.
    fn wait(&self) -> (Option<WaitKind>, Option<NonZeroU64>) {
        let stack = self.as_planned().map(|it| it.stack_wait);
        self.before
            .map_or((None, None), |out| wait_of(&out, stack.unwrap_or_default()))
    }

    fn since_last_ns(&self) -> Option<i64> {
        Some(self.start_ns.saturating_sub(self.before?.time_ns))
    }

    /// Returns the thread that the starting switch named as its new thread. Returns `None` if this thread
    /// really ran.
    fn planned_thread_id(&self) -> Option<u32> {
        let planned = self.switch_in?.thread_id;
        (planned != self.thread_id).then_some(planned)
    }

    /// Returns the switch that began the run. Returns `None` if the switch named another thread than the
    /// thread that ran.
    fn as_planned(&self) -> Option<SwitchIn> {
        let is_planned = |switch_in: &SwitchIn| switch_in.thread_id == self.thread_id;
        self.switch_in.filter(is_planned)
    }
}

impl CpuRuns {
    /// Adds the rows column by column. If they were added row by row, each row would access all columns. The columns
    /// do not fit into the caches of a CPU.
    pub(crate) fn extend(&mut self, runs: &[Run]) {
        self.start_ns.extend(runs.iter().map(|run| run.start_ns));
        self.end_ns.extend(runs.iter().map(|run| run.end_ns));
        self.cpu_ns.extend(
            runs.iter()
                .map(|run| run.end_ns.saturating_sub(run.start_ns)),
        );
        self.cpu.extend(runs.iter().map(|run| run.cpu));
        self.thread_id.extend(runs.iter().map(|run| run.thread_id));
        self.thread_row.extend(runs, |run| run.ids.thread_row);
        self.process_id.extend(runs, |run| run.ids.process_id);
        self.process_row.extend(runs, |run| run.ids.process_row);
        self.starts_at_switch
            .extend((runs.iter()).map(|run| run.switch_in.is_some() && run.begin == Begin::Switch));
        self.ends_at_switch
            .extend(runs.iter().map(|run| run.after.is_some()));
        self.planned_thread_id.extend(runs, Run::planned_thread_id);
        self.previous_out_ns
            .extend(runs, |run| run.before.map(|out| out.time_ns));
        self.readied_ns
            .extend(runs, |run| run.ready.map(|r| r.time_ns));
        self.ready_ns.extend(runs, Run::ready_ns);
        self.waits_ns.extend(runs, Run::waits_ns);
        let waits: Vec<_> = runs.iter().map(Run::wait).collect();
        self.wait_kind.extend(&waits, |(kind, _)| *kind);
        self.wait_object
            .extend(&waits, |(_, object)| object.map(NonZeroU64::get));
        self.since_last_ns.extend(runs, Run::since_last_ns);
        self.count_waits
            .extend(runs.iter().map(|run| u8::from(run.thread_id != 0)));
        self.ran_unseen
            .extend(runs.iter().map(|run| run.ran_unseen));
        self.previous_thread_id
            .extend(runs, |run| run.switch_in.map(|s| s.previous_thread_id));
        self.previous_process_row.extend(runs, |run| {
            run.switch_in.and_then(|s| s.previous_process_row)
        });
        self.extend_ready(runs);
        self.priority
            .extend(runs, |run| run.as_planned().map(|s| s.priority));
        self.nice
            .extend(runs, |run| run.as_planned().and_then(|s| s.nice));
        self.priority_decrement.extend(runs, |run| {
            run.as_planned().and_then(|s| s.priority_decrement)
        });
        self.wait_ticks
            .extend(runs, |run| run.as_planned().and_then(|s| s.wait_ticks));
        self.qos
            .extend(runs, |run| run.as_planned().and_then(|s| s.qos));
        self.previous_c_state
            .extend(runs, |run| run.switch_in.and_then(|s| s.previous_c_state));
        self.priority_out
            .extend(runs, |run| run.after.map(|out| out.priority));
        self.state_out
            .extend(runs, |run| run.after.map(|out| out.state));
        self.wait_reason_out
            .extend(runs, |run| run.after.and_then(|out| out.wait_reason));
        self.wait_mode_out
            .extend(runs, |run| run.after.and_then(|out| out.wait_mode));
        self.rank_out
            .extend(runs, |run| run.after.and_then(|out| out.rank));
        self.remaining_quantum_out
            .extend(runs, |run| run.after.and_then(|out| out.remaining_quantum));
        self.ideal_processor
            .extend(runs, |run| run.after.and_then(|out| out.ideal_processor));
        self.previous_priority_out
            .extend(runs, |run| run.before.map(|out| out.priority));
        self.previous_state
            .extend(runs, |run| run.before.map(|out| out.state));
        self.previous_wait_reason
            .extend(runs, |run| run.before.and_then(|out| out.wait_reason));
        self.previous_wait_mode
            .extend(runs, |run| run.before.and_then(|out| out.wait_mode));
        self.previous_rank
            .extend(runs, |run| run.before.and_then(|out| out.rank));
        self.previous_remaining_quantum
            .extend(runs, |run| run.before.and_then(|out| out.remaining_quantum));
        self.previous_cpu
            .extend(runs, |run| run.before.map(|out| out.cpu));
        self.stack_id
            .extend(runs, |run| run.as_planned().and_then(|s| s.stack_id));
    }

    /// Adds the columns about the events that made the threads ready.
    fn extend_ready(&mut self, runs: &[Run]) {
        self.readying_thread_id
            .extend(runs, |run| run.ready.and_then(|r| r.by));
        self.readying_thread_row
            .extend(runs, |run| run.ready.and_then(|r| r.by_ids.thread_row));
        self.readying_process_id
            .extend(runs, |run| run.ready.and_then(|r| r.by_ids.process_id));
        self.readying_process_row
            .extend(runs, |run| run.ready.and_then(|r| r.by_ids.process_row));
        self.readying_cpu
            .extend(runs, |run| run.ready.map(|r| r.cpu));
        self.readied_by_dpc
            .extend(runs, |run| run.ready.map(|r| r.by_dpc));
        let readied = |run: &Run| run.ready.and_then(|ready| ready.of_windows);
        self.adjust_reason
            .extend(runs, |run| readied(run).map(|it| it.adjust_reason));
        self.adjust_increment
            .extend(runs, |run| readied(run).map(|it| it.adjust_increment));
        self.kernel_stack_not_resident.extend(runs, |run| {
            readied(run).map(|it| it.kernel_stack_not_resident)
        });
        self.process_out_of_memory
            .extend(runs, |run| readied(run).map(|it| it.process_out_of_memory));
        self.direct_switch_attempt
            .extend(runs, |run| readied(run).map(|it| it.direct_switch_attempt));
        self.readying_stack_id
            .extend(runs, |run| run.ready.and_then(|r| r.stack_id));
    }
}
