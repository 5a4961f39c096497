//! `cpu_runs`: runs of threads on CPUs, and the waits before them.

use crate::column::Nullable;
use crate::register::{Reader, Register};
use crate::schema::table;
use crate::table::Table;

table! {
    /// One row per run of a thread on a CPU, from the context switch that started the run to the
    /// context switch that ended it. Idle threads have rows too. These are the rows of *CPU Usage
    /// (Precise)*.
    ///
    /// The thread of a row is the old thread of the switch that ended the run. A run that was in
    /// progress at the trace's first switch, or at the end of the trace, is cut there (see
    /// `starts_at_switch` and `ends_at_switch`). A CPU that never switched threads has one such
    /// run, of the thread that all its samples name, or of its idle thread. Columns named `previous_…` describe the thread's
    /// last switch-out before this run. Columns named `…_out` describe the switch that ended this
    /// run.
    CpuRuns, CpuRunsView = "cpu_runs" sorted by end_ns
        title "CPU Usage (Precise)"
        record "context switches and threads made ready (xperf -on PROC_THREAD+LOADER+CSWITCH+DISPATCHER, WPR keywords CSwitch and ReadyThread)"
        lasts start_ns to end_ns
    {
        /// Time at which the thread was switched in, or the start of the trace.
        start_ns: Vec<i64> = "CSwitch: header time" wpa "Switch-In Time (s)",
        /// Time at which the thread was switched out, or the end of the trace.
        end_ns: Vec<i64> = "the CPU's next CSwitch: header time" wpa "Next Switch-Out Time (s)",
        /// Duration of the run, including DPCs and interrupts that ran on the CPU at the same time.
        cpu_ns: Vec<i64> = "end_ns - start_ns" wpa "CPU Usage (in view)",
        /// CPU of the run.
        cpu: Vec<u16> = "CSwitch: CPU of the buffer" wpa "CPU",
        /// Thread that ran; 0 is the CPU's idle thread.
        thread_id: Vec<u32> = "the ending CSwitch: OldThreadId; for an open run NewThreadId"
            wpa "New Thread Id",
        /// Row of the thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and start_ns in `threads`",
        /// Process of the thread; 0 for idle threads.
        process_id: Nullable<u32> = "thread_id and start_ns in `threads`" wpa "New Process Id",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and start_ns in `processes`" wpa "New Process",
        /// True if the trace has the switch that started the run.
        starts_at_switch: Vec<bool> = "a CSwitch at start_ns",
        /// True if the trace has the switch that ended the run.
        ends_at_switch: Vec<bool> = "a CSwitch at end_ns",
        /// Thread that the starting switch named as its new thread, if another thread ran. The
        /// reason is that the scheduler changed its decision, or that switches in between are
        /// missing. The columns whose values come from the starting switch are then unknown.
        planned_thread_id: Nullable<u32> = "CSwitch: NewThreadId, where it differs",
        /// Time of the thread's last switch-out before the run; unknown for the thread's first run
        /// in the trace.
        previous_out_ns: Nullable<i64> = "the thread's previous CSwitch: header time"
            wpa "Last Switch-Out Time (s)",
        /// Time at which an event made the thread ready. Unknown if the thread did not wait (it was
        /// preempted or its quantum ended), or if the trace has no such event.
        readied_ns: Nullable<i64> = "ReadyThread: header time" wpa "Ready Time (s)",
        /// Time that the thread was ready but had no CPU. If the thread was made ready while it
        /// still ran, or if it did not wait, this time starts at the switch-out.
        ready_ns: Nullable<i64> = "start_ns - max(readied_ns, previous_out_ns)" wpa "Ready (us)",
        /// Time that the thread waited before it became ready; 0 if it was preempted or its quantum
        /// ended.
        waits_ns: Nullable<i64> = "readied_ns - previous_out_ns, at least 0" wpa "Waits (us)",
        /// Time since the thread's last switch-out: wait and ready time together.
        since_last_ns: Nullable<i64> = "start_ns - previous_out_ns" wpa "Time Since Last (us)",
        /// 0 for a run of an idle thread, 1 for any other run. The sum is the number of switches to
        /// threads that are not idle threads.
        count_waits: Vec<u8> = "thread_id" wpa "Count:Waits",
        /// True if the trace may lack runs of the thread since its last switch-out, because
        /// switches on a CPU contradict each other or are not in the trace (see `recorded_from_ns`
        /// and `recorded_until_ns` in `cpus`). Then `ready_ns` and `since_last_ns` may be too long.
        ran_unseen: Vec<bool> = "CSwitch: NewThreadId and the CPU's next OldThreadId differ",
        /// Thread that ran on the CPU before this run.
        previous_thread_id: Nullable<u32> = "CSwitch: OldThreadId" wpa "Old Thread Id",
        /// Row in `processes` of the process that ran on the CPU before this run.
        previous_process_row: Nullable<u32> = "previous_thread_id in `threads`"
            wpa "Old Process",
        /// Thread that made this thread ready. If a DPC made it ready, this is the thread that the
        /// DPC interrupted.
        readying_thread_id: Nullable<u32> = "the thread running on ReadyThread's CPU"
            wpa "Readying Thread Id",
        /// Row of the readying thread in `threads`.
        readying_thread_row: Nullable<u32> = "readying_thread_id in `threads`",
        /// Process of the readying thread.
        readying_process_id: Nullable<u32> = "readying_thread_id in `threads`"
            wpa "Readying Process Id",
        /// Row of the process of the readying thread in `processes`.
        readying_process_row: Nullable<u32> = "readying_process_id in `processes`"
            wpa "Readying Process",
        /// CPU that made the thread ready.
        readying_cpu: Nullable<u16> = "ReadyThread: CPU of the buffer",
        /// True if a DPC made the thread ready. The readying thread is then only the thread that
        /// the DPC interrupted.
        readied_by_dpc: Nullable<bool> = "ReadyThread: Flag bit 0" wpa "Ready Thread In DPC",
        /// Reason for adjusting the thread's priority when it became ready: 0 not adjusted, 1 end
        /// of a wait, 2 boost.
        adjust_reason: Nullable<u8> = "ReadyThread: AdjustReason" wpa "Adjust Reason",
        /// Increment of the thread's priority when it became ready.
        adjust_increment: Nullable<i8> = "ReadyThread: AdjustIncrement" wpa "Adjust Increment",
        /// True if the thread's kernel stack was paged out and had to be read first.
        kernel_stack_not_resident: Nullable<bool> = "ReadyThread: Flag bit 1"
            wpa "Kernel Stack Not Resident",
        /// True if the thread's process was swapped out and had to be read first.
        process_out_of_memory: Nullable<bool> = "ReadyThread: Flag bit 2"
            wpa "Process Out Of Memory",
        /// True if the readying thread tried to pass its CPU to the thread directly.
        direct_switch_attempt: Nullable<bool> = "ReadyThread: Flag bit 3"
            wpa "Direct Switch Attempt",
        /// Priority of the thread when it was switched in, 0 to 31.
        priority: Nullable<i8> = "CSwitch: NewThreadPriority" wpa "New In Pri",
        /// Boost that is part of `priority`. The low four bits are the foreground boost, the high
        /// four bits are the unusual boost (inferred).
        priority_decrement: Nullable<u8> = "CSwitch: NewThreadPriorityDecrement" wpa "New Pri Decr",
        /// Clock ticks that the thread waited before it became ready, counted by the kernel.
        wait_ticks: Nullable<u32> = "CSwitch: NewThreadWaitTime" in "clock ticks",
        /// Quality of service of the thread: 0 high, 1 medium, 2 low, 3 multimedia, 4 deadline, 5
        /// and above other. Since Windows 10 1709.
        qos: Nullable<u8> = "CSwitch: byte 13, bits 4-6" wpa "New QoS",
        /// C-state of the CPU before this run. Known only if the idle thread ran before.
        previous_c_state: Nullable<u8> = "CSwitch: byte 10, if OldThreadId is 0"
            wpa "Prev CState",
        /// Priority of the thread when it was switched out, 0 to 31.
        priority_out: Nullable<i8> = "the ending CSwitch: OldThreadPriority" wpa "New Out Pri",
        /// State of the thread after it was switched out: 0 initialized, 1 ready, 2 running, 3
        /// standby, 4 terminated, 5 waiting, 6 transition, 7 deferred ready.
        state_out: Nullable<u8> = "the ending CSwitch: OldThreadState" wpa "New State",
        /// Wait reason of the thread after it was switched out (`KWAIT_REASON`). The thread waits
        /// only if `state_out` is 5. Otherwise the value is the reason of the switch: 30 quantum
        /// end, 31 dispatch interrupt, 32 preempted, 33 yield.
        wait_reason_out: Nullable<u8> = "the ending CSwitch: OldThreadWaitReason"
            wpa "New Wait Reason",
        /// Mode in which the thread waits after it was switched out: 0 kernel, 1 user.
        wait_mode_out: Nullable<u8> = "the ending CSwitch: OldThreadWaitMode" wpa "New Wait Mode",
        /// Rank of the thread in its scheduling group when it was switched out; rank 0 runs before
        /// higher ranks, independent of the priority. Since Windows 10 1709; unknown for idle
        /// threads.
        rank_out: Nullable<u8> = "the ending CSwitch: byte 10" wpa "New Thread Rank",
        /// Remaining quantum of the thread when it was switched out; negative if the thread ran
        /// longer than its quantum.
        remaining_quantum_out: Nullable<i32> = "the ending CSwitch: OldThreadRemainingQuantum"
            in "1024 CPU cycles" wpa "New Remaining Quantum",
        /// Low eight bits of the number of the thread's ideal processor.
        ideal_processor: Nullable<u8> = "the ending CSwitch: OldThreadIdealProcessor"
            wpa "Ideal Cpu",
        /// Priority of the thread at its last switch-out before the run.
        previous_priority_out: Nullable<i8> = "the thread's previous CSwitch: OldThreadPriority"
            wpa "New Prev Out Pri",
        /// State of the thread after its last switch-out before the run; values as in `state_out`.
        /// It shows why the thread did not run.
        previous_state: Nullable<u8> = "the thread's previous CSwitch: OldThreadState"
            wpa "New Prev State",
        /// Wait reason of the thread before the run; values as in `wait_reason_out`.
        previous_wait_reason: Nullable<u8> = "the thread's previous CSwitch: OldThreadWaitReason"
            wpa "New Prev Wait Reason",
        /// Mode in which the thread waited before the run; values as in `wait_mode_out`.
        previous_wait_mode: Nullable<u8> = "the thread's previous CSwitch: OldThreadWaitMode"
            wpa "New Prev Wait Mode",
        /// Rank of the thread at its last switch-out before the run; values as in `rank_out`.
        previous_rank: Nullable<u8> = "the thread's previous CSwitch: byte 10"
            wpa "New Prev Thread Rank",
        /// Remaining quantum of the thread at its last switch-out before the run; values as in
        /// `remaining_quantum_out`.
        previous_remaining_quantum: Nullable<i32> =
            "the thread's previous CSwitch: OldThreadRemainingQuantum"
            in "1024 CPU cycles" wpa "New Prev Remaining Quantum",
        /// CPU of the thread's previous run.
        previous_cpu: Nullable<u16> = "the thread's previous CSwitch: CPU of the buffer"
            wpa "New Prev CPU",
        /// Stack of the thread when it was switched in. It shows where the thread waited and where
        /// it continues.
        stack_id: Nullable<u32> = "the stack of the CSwitch" wpa "New Thread Stack",
        /// Stack of the readying thread or DPC.
        readying_stack_id: Nullable<u32> = "the stack of the ReadyThread"
            wpa "Ready Thread Stack",
    }
}

/// The rows are made by the scheduler ([`Scheduler`](crate::scheduling::Scheduler)).
impl Register for CpuRuns {
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
        Reader::Table(Table::Stacks),
    ];
}
