//! `cpu_runs`: runs of threads on CPUs, and the waits before them.

use crate::column::{Nullable, NullableNames};
use crate::register::{Reader, Register};
use crate::schema::table;
use crate::table::Table;
use crate::wait_kind::WaitKind;

table! {
    /// One row per run of a thread on a CPU, from the context switch that started the run to the context
    /// switch that ended it. Idle threads have rows too. These are the rows of *CPU Usage (Precise)*.
    ///
    /// The thread of a row is the old thread of the switch that ended the run. If a run was in progress at
    /// the trace's first switch, its row starts at this switch. If a run was in progress at the end of the
    /// trace, its row ends at the end of the trace (see `starts_at_switch` and `ends_at_switch`). Such a row
    /// of a thread that is not idle is shorter if the trace has samples or was relogged, for example trimmed:
    /// it lasts only as far as samples of its thread show, with a gap of up to 50 ms. A CPU that
    /// never switched threads has one run. The thread of this run is the thread that all samples of the CPU
    /// name. If the CPU has no samples, the thread of this run is the idle thread. Columns named `previous_…`
    /// describe the thread's last switch-out before this run. Columns named `…_out` describe the switch that
    /// ended this run.
    CpuRuns, CpuRunsView = "cpu_runs" sorted by end_ns
        title "CPU Usage (Precise)"
        record "context switches and threads made ready (xperf -on PROC_THREAD+LOADER+CSWITCH+DISPATCHER, WPR keywords CSwitch and ReadyThread)"
        lasts start_ns to end_ns
    {
        /// Time at which the thread was switched in, or the start of the trace.
        start_ns: Vec<i64> = "CSwitch: header time" wpa "Switch-In Time (s)",
        /// Time at which the thread was switched out, or the end of the trace.
        end_ns: Vec<i64> = "the CPU's next CSwitch: header time" wpa "Next Switch-Out Time (s)",
        /// Duration of the run. It includes the DPCs and interrupts that ran on the CPU during the run.
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
        /// Thread that the starting switch named as its new thread, if another thread ran instead. There are
        /// two possible reasons: the scheduler changed its decision, or the switches in between are missing.
        /// The columns whose values come from the starting switch are then unknown.
        planned_thread_id: Nullable<u32> = "CSwitch: NewThreadId, where it differs",
        /// Time of the thread's last switch-out before the run. Unknown for the thread's first run in the
        /// trace.
        previous_out_ns: Nullable<i64> = "the thread's previous CSwitch: header time"
            wpa "Last Switch-Out Time (s)",
        /// Time at which an event made the thread ready. Unknown if the thread did not wait (it was preempted
        /// or its quantum ended). Also unknown if the trace has no such event.
        readied_ns: Nullable<i64> = "ReadyThread: header time" wpa "Ready Time (s)",
        /// Time that the thread was ready but had no CPU. If the thread did not wait, or was made ready while
        /// it still ran, this time starts at the switch-out. Otherwise, this time starts at `readied_ns`.
        ready_ns: Nullable<i64> = "start_ns - max(readied_ns, previous_out_ns)" wpa "Ready (us)",
        /// Time that the thread waited before it became ready. It is 0 if the thread was preempted or its
        /// quantum ended.
        waits_ns: Nullable<i64> = "readied_ns - previous_out_ns, at least 0" wpa "Waits (us)",
        /// Kind of the wait before the run: `sleep` (a time that the thread set), `lock`, `futex` (a lock, a
        /// condition variable or another object in the memory of the program, if it is unknown which of them), `disk`
        /// (a call that reads or writes), `page` (a page of memory that is read from a disk), `message` (a pipe, a
        /// socket, a terminal or a message queue, also with `poll` and a timeout), `child` (the end of a process),
        /// `stopped` (by a signal, a debugger or another thread) or `frozen` (with its cgroup). Unknown if the thread did
        /// not wait, or for another kind of wait.
        /// On Windows, some wait reasons tell the kind. On Linux it needs call chains of the switches with the names
        /// of the kernel's functions (`FILE.proc`), or the calls `futex` (see `futex_waits`). A call counts if the
        /// thread left its CPU within 0.1 ms and its call chain does not contradict.
        wait_kind: NullableNames<WaitKind> =
            "previous_wait_reason; sched_switch: call chain; sys_enter_futex: op, val",
        /// Address of the futex that the thread waited for, in the memory of its program. Known only if `wait_kind` is
        /// `lock` or `futex` and the call was recorded.
        wait_object: Nullable<u64> = "sys_enter_futex: uaddr",
        /// Time since the thread's last switch-out. This is the sum of wait time and ready time.
        since_last_ns: Nullable<i64> = "start_ns - previous_out_ns" wpa "Time Since Last (us)",
        /// 0 for a run of an idle thread, 1 for any other run. The sum of this column is the number of
        /// switches to threads that are not idle threads.
        count_waits: Vec<u8> = "thread_id" wpa "Count:Waits",
        /// True if the trace may lack runs of the thread between its last switch-out and this run. This
        /// happens if the switches of a CPU contradict each other or are not in the trace (see
        /// `recorded_from_ns` and `recorded_until_ns` in `cpus`). Then `ready_ns` and `since_last_ns` may be
        /// too long.
        ran_unseen: Vec<bool> = "CSwitch: NewThreadId and the CPU's next OldThreadId differ",
        /// Thread that ran on the CPU before this run.
        previous_thread_id: Nullable<u32> = "CSwitch: OldThreadId" wpa "Old Thread Id",
        /// Row in `processes` of the process that ran on the CPU before this run.
        previous_process_row: Nullable<u32> = "previous_thread_id in `threads`"
            wpa "Old Process",
        /// Thread that made this thread ready. If a DPC made this thread ready, this is the thread that the
        /// DPC interrupted.
        readying_thread_id: Nullable<u32> = "the thread running on ReadyThread's CPU"
            wpa "Readying Thread Id",
        /// Row in `threads` of the thread in `readying_thread_id`.
        readying_thread_row: Nullable<u32> = "readying_thread_id in `threads`",
        /// Process of the thread in `readying_thread_id`.
        readying_process_id: Nullable<u32> = "readying_thread_id in `threads`"
            wpa "Readying Process Id",
        /// Row in `processes` of the process in `readying_process_id`.
        readying_process_row: Nullable<u32> = "readying_process_id in `processes`"
            wpa "Readying Process",
        /// CPU that made the thread ready.
        readying_cpu: Nullable<u16> = "ReadyThread: CPU of the buffer",
        /// True if a DPC made the thread ready. In this case, `readying_thread_id` is only the thread that
        /// the DPC interrupted.
        readied_by_dpc: Nullable<bool> = "ReadyThread: Flag bit 0" wpa "Ready Thread In DPC",
        /// Reason for the adjustment of the thread's priority when the thread became ready: 0 not adjusted, 1
        /// end of a wait, 2 boost.
        adjust_reason: Nullable<u8> = "ReadyThread: AdjustReason" wpa "Adjust Reason",
        /// Increment of the thread's priority when the thread became ready.
        adjust_increment: Nullable<i8> = "ReadyThread: AdjustIncrement" wpa "Adjust Increment",
        /// True if the thread's kernel stack was paged out. The stack had to be read from the disk first.
        kernel_stack_not_resident: Nullable<bool> = "ReadyThread: Flag bit 1"
            wpa "Kernel Stack Not Resident",
        /// True if the thread's process was swapped out. The process had to be read from the disk first.
        process_out_of_memory: Nullable<bool> = "ReadyThread: Flag bit 2"
            wpa "Process Out Of Memory",
        /// True if the thread in `readying_thread_id` tried to pass its CPU directly to this thread.
        direct_switch_attempt: Nullable<bool> = "ReadyThread: Flag bit 3"
            wpa "Direct Switch Attempt",
        /// Priority of the thread when it was switched in: 0 to 31. On Linux: 0 a fair thread, 1 to 99 real time,
        /// 100 deadline.
        priority: Nullable<i8> = "CSwitch: NewThreadPriority" wpa "New In Pri",
        /// Nice value of the thread when it was switched in, −20 to 19, if it is a fair thread of Linux. A thread with a
        /// lower value gets a larger share of a CPU.
        nice: Nullable<i8> = "sched_switch: next_prio - 120",
        /// Boost that is part of `priority`. The low four bits are the foreground boost. The high four bits
        /// are the unusual boost (inferred).
        priority_decrement: Nullable<u8> = "CSwitch: NewThreadPriorityDecrement" wpa "New Pri Decr",
        /// Number of clock ticks that the thread waited before it became ready. The kernel counts these
        /// ticks.
        wait_ticks: Nullable<u32> = "CSwitch: NewThreadWaitTime" in "clock ticks",
        /// Quality of service of the thread: 0 high, 1 medium, 2 low, 3 multimedia, 4 deadline, 5 and above
        /// other. Present since Windows 10 1709.
        qos: Nullable<u8> = "CSwitch: byte 13, bits 4-6" wpa "New QoS",
        /// C-state of the CPU before this run. Known only if the idle thread ran before this run. On Linux it is the number
        /// of the idle state in `/sys/devices/system/cpu/cpuN/cpuidle`.
        previous_c_state: Nullable<u8> = "CSwitch: byte 10, if OldThreadId is 0; cpu_idle: state"
            wpa "Prev CState",
        /// Priority of the thread when it was switched out, with the meanings of `priority`.
        priority_out: Nullable<i8> = "the ending CSwitch: OldThreadPriority" wpa "New Out Pri",
        /// State of the thread after it was switched out: 0 initialized, 1 ready, 2 running, 3
        /// standby, 4 terminated, 5 waiting, 6 transition, 7 deferred ready.
        state_out: Nullable<u8> = "the ending CSwitch: OldThreadState" wpa "New State",
        /// Wait reason of the thread after it was switched out (`KWAIT_REASON`). The thread waits only if
        /// `state_out` is 5. If `state_out` is not 5, the value is the reason of the switch: 30 quantum end,
        /// 31 dispatch interrupt, 32 preempted, 33 yield. On Linux it is the state of a thread
        /// that waits: 200 interruptible, 201 uninterruptible, 202 stopped, 203 traced, 204 idle,
        /// 205 parked.
        wait_reason_out: Nullable<u8> = "the ending CSwitch: OldThreadWaitReason"
            wpa "New Wait Reason",
        /// Mode in which the thread waits after it was switched out: 0 kernel, 1 user.
        wait_mode_out: Nullable<u8> = "the ending CSwitch: OldThreadWaitMode" wpa "New Wait Mode",
        /// Rank of the thread in its scheduling group when the thread was switched out. Threads with rank 0
        /// run before threads with higher ranks, regardless of their priority. Present since Windows 10 1709.
        /// Unknown for idle threads.
        rank_out: Nullable<u8> = "the ending CSwitch: byte 10" wpa "New Thread Rank",
        /// Remaining quantum of the thread when it was switched out. It is negative if the thread ran longer
        /// than its quantum.
        remaining_quantum_out: Nullable<i32> = "the ending CSwitch: OldThreadRemainingQuantum"
            in "1024 CPU cycles" wpa "New Remaining Quantum",
        /// Low eight bits of the number of the thread's ideal processor.
        ideal_processor: Nullable<u8> = "the ending CSwitch: OldThreadIdealProcessor"
            wpa "Ideal Cpu",
        /// Priority of the thread at its last switch-out before the run.
        previous_priority_out: Nullable<i8> = "the thread's previous CSwitch: OldThreadPriority"
            wpa "New Prev Out Pri",
        /// State of the thread after its last switch-out before the run. The values are the same as in
        /// `state_out`. The state shows why the thread did not run.
        previous_state: Nullable<u8> = "the thread's previous CSwitch: OldThreadState"
            wpa "New Prev State",
        /// Wait reason of the thread before the run. The values are the same as in `wait_reason_out`.
        previous_wait_reason: Nullable<u8> = "the thread's previous CSwitch: OldThreadWaitReason"
            wpa "New Prev Wait Reason",
        /// Mode in which the thread waited before the run. The values are the same as in `wait_mode_out`.
        previous_wait_mode: Nullable<u8> = "the thread's previous CSwitch: OldThreadWaitMode"
            wpa "New Prev Wait Mode",
        /// Rank of the thread at its last switch-out before the run. The values are the same as in
        /// `rank_out`.
        previous_rank: Nullable<u8> = "the thread's previous CSwitch: byte 10"
            wpa "New Prev Thread Rank",
        /// Remaining quantum of the thread at its last switch-out before the run. The values are the same as
        /// in `remaining_quantum_out`.
        previous_remaining_quantum: Nullable<i32> =
            "the thread's previous CSwitch: OldThreadRemainingQuantum"
            in "1024 CPU cycles" wpa "New Prev Remaining Quantum",
        /// CPU of the thread's previous run.
        previous_cpu: Nullable<u16> = "the thread's previous CSwitch: CPU of the buffer"
            wpa "New Prev CPU",
        /// Stack of the thread when it was switched in. The stack shows where the thread waited and where it
        /// continues.
        stack_id: Nullable<u32> = "the stack of the CSwitch" wpa "New Thread Stack",
        /// Stack of the thread or DPC that made this thread ready.
        readying_stack_id: Nullable<u32> = "the stack of the ReadyThread"
            wpa "Ready Thread Stack",
    }
}

/// The module `scheduling` makes the rows.
impl Register for CpuRuns {
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
        Reader::Table(Table::Stacks),
    ];
}
