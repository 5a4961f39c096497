//! `ready_threads`: waiting threads that become ready to run.

use crate::column::Nullable;
use crate::register::{EventTable, Reader, Register};
use crate::schema::{Rows, table};
use crate::table::Table;
use crate::timed_values::TimedValues;
use crate::trackers::Trackers;
use crate::unreadable::EventPlace;

table! {
    /// One row for each time that a thread is made ready. Before this time, the thread waits for something.
    /// After this time, it waits only for a CPU.
    ///
    /// The readying thread is the thread that runs on `cpu`. If `by_dpc` is true, a DPC on `cpu` made the
    /// thread ready, not the readying thread.
    ReadyThreads, ReadyThreadsView = "ready_threads" sorted by time_ns
        title "Ready Threads"
        record "threads made ready (xperf -on DISPATCHER, WPR keyword ReadyThread)"
    {
        /// Time at which the thread became ready.
        time_ns: Vec<i64> = "ReadyThread: header time" wpa "Ready Time (s)",
        /// CPU that made the thread ready.
        cpu: Vec<u16> = "ReadyThread: CPU of the buffer",
        /// Thread that became ready.
        thread_id: Vec<u32> = "ReadyThread: TThreadId; sched_waking: pid" wpa "New Thread Id",
        /// Row of the thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Process of the thread; 0 for idle threads.
        process_id: Nullable<u32> = "thread_id and time_ns in `threads`" wpa "New Process Id",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// Thread that ran on the CPU. If `by_dpc` is false, this thread made the thread in `thread_id`
        /// ready.
        readying_thread_id: Nullable<u32> = "the thread running on the CPU"
            wpa "Readying Thread Id",
        /// Row in `threads` of the thread in `readying_thread_id`.
        readying_thread_row: Nullable<u32> = "readying_thread_id and time_ns in `threads`",
        /// Process of the readying thread.
        readying_process_id: Nullable<u32> = "readying_thread_id and time_ns in `threads`"
            wpa "Readying Process Id",
        /// Row in `processes` of the process in `readying_process_id`.
        readying_process_row: Nullable<u32> = "readying_process_id and time_ns in `processes`",
        /// Stack of the readying thread or DPC.
        stack_id: Nullable<u32> = "the stack of the ReadyThread" wpa "Ready Thread Stack",
        /// Reason for the adjustment of the thread's priority: 0 not adjusted, 1 end of a wait, 2 boost.
        adjust_reason: Nullable<u8> = "ReadyThread: AdjustReason" wpa "Adjust Reason",
        /// Increment of the thread's priority.
        adjust_increment: Nullable<i8> = "ReadyThread: AdjustIncrement" wpa "Adjust Increment",
        /// True if a DPC made the thread ready. False if the thread that runs on the CPU made it ready. On Linux: true
        /// if an interrupt or a softirq made it ready.
        by_dpc: Vec<bool> = "ReadyThread: Flag bit 0; sched_waking: common_flags" wpa "Ready Thread In DPC",
        /// True if the thread's kernel stack is paged out. The stack must be read from the disk first.
        kernel_stack_not_resident: Nullable<bool> = "ReadyThread: Flag bit 1"
            wpa "Kernel Stack Not Resident",
        /// True if the thread's process is swapped out. The process must be read from the disk first.
        process_out_of_memory: Nullable<bool> = "ReadyThread: Flag bit 2" wpa "Process Out Of Memory",
        /// True if the readying thread tried to pass its CPU directly to the thread.
        direct_switch_attempt: Nullable<bool> = "ReadyThread: Flag bit 3" wpa "Direct Switch Attempt",
    }
}

/// A ready event before it becomes a row.
#[derive(Clone, Copy, Debug)]
pub struct ReadyEvent {
    /// CPU that logged the event.
    pub cpu: u16,
    /// Position of the event in the recording.
    pub place: EventPlace,
    /// Thread that became ready.
    pub thread_id: u32,
    /// Thread that ran on the CPU according to the event itself. Only events of Linux have it.
    pub recorded_by: Option<u32>,
    /// True if a DPC, or an interrupt or softirq of Linux, made the thread ready.
    pub by_dpc: bool,
    /// Facts that only Windows logs.
    pub of_windows: Option<ReadiedOnWindows>,
}

/// Facts about a thread that became ready that only Windows logs.
#[derive(Clone, Copy, Debug)]
pub struct ReadiedOnWindows {
    /// Reason for the adjustment of the thread's priority.
    pub adjust_reason: u8,
    /// Amount by which the priority of the thread is raised.
    pub adjust_increment: i8,
    /// True if the thread's kernel stack is paged out.
    pub kernel_stack_not_resident: bool,
    /// True if the thread's process is swapped out.
    pub process_out_of_memory: bool,
    /// True if the readying thread tried to pass its CPU directly to the readied thread.
    pub direct_switch_attempt: bool,
}

impl Register for ReadyThreads {
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
        Reader::Table(Table::Stacks),
    ];
}

impl EventTable for ReadyThreads {
    type Raw = TimedValues<ReadyEvent>;
    type State = ();

    /// Fills the columns whose values come from the payload. The scheduler fills the other columns
    /// (`Scheduler::join`).
    fn join(raw: &mut TimedValues<ReadyEvent>, (): &mut (), _: &Trackers<'_>) -> ReadyThreads {
        let mut rows = ReadyThreads::default();
        rows.reserve(raw.rows());
        for (time_ns, readied) in &raw.0 {
            let payload = readied.of_windows.as_ref();
            rows.time_ns.push(*time_ns);
            rows.cpu.push(readied.cpu);
            rows.thread_id.push(readied.thread_id);
            rows.adjust_reason.push(payload.map(|it| it.adjust_reason));
            rows.adjust_increment
                .push(payload.map(|it| it.adjust_increment));
            rows.by_dpc.push(readied.by_dpc);
            rows.kernel_stack_not_resident
                .push(payload.map(|it| it.kernel_stack_not_resident));
            rows.process_out_of_memory
                .push(payload.map(|it| it.process_out_of_memory));
            rows.direct_switch_attempt
                .push(payload.map(|it| it.direct_switch_attempt));
        }
        rows
    }
}
