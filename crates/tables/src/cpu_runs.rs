//! `cpu_runs`: who ran where, from when to when, and why not sooner.

use crate::column::Nullable;
use crate::schema::table;

table! {
    /// One row per run of a thread on a CPU, idle threads included: from the context switch that
    /// brought it there to the one that ended it. These are the rows of *CPU Usage (Precise)*.
    ///
    /// The thread is the one that the ending switch says ran. A run that was under way at the trace's
    /// first switch, or when it ended, is cut there (`starts_at_switch`, `ends_at_switch`).
    /// Columns named `previous_…` tell of the thread's switch-out before this run, `…_out` of the
    /// switch that ended it.
    CpuRuns, CpuRunsView = "cpu_runs" sorted by end_ns {
        /// When the thread was switched in, or where the trace begins.
        start_ns: Vec<i64> = "CSwitch: header time" wpa "Switch-In Time (s)",
        /// When it was switched out, or where the trace ends.
        end_ns: Vec<i64> = "the CPU's next CSwitch: header time" wpa "Next Switch-Out Time (s)",
        /// How long it had the CPU; DPCs and interrupts that ran meanwhile are in it.
        cpu_ns: Vec<i64> = "end_ns - start_ns" wpa "CPU Usage (in view)",
        /// The CPU.
        cpu: Vec<u16> = "CSwitch: CPU of the buffer" wpa "CPU",
        /// The thread that ran; 0 is the CPU's idle thread.
        thread_id: Vec<u32> = "the ending CSwitch: OldThreadId; of an open run NewThreadId"
            wpa "New Thread Id",
        /// Row of the thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and start_ns in `threads`",
        /// Its process; 0 of idle threads.
        process_id: Nullable<u32> = "thread_id and start_ns in `threads`" wpa "New Process Id",
        /// Row of its process in `processes`.
        process_row: Nullable<u32> = "process_id and start_ns in `processes`" wpa "New Process",
        /// The run began with a switch that the trace holds.
        starts_at_switch: Vec<bool> = "a CSwitch at start_ns",
        /// The run ended with a switch that the trace holds.
        ends_at_switch: Vec<bool> = "a CSwitch at end_ns",
        /// The thread that the switch-in announced, where another one ran: the scheduler changed
        /// its mind, or switches in between are missing. What the switch-in tells of its thread
        /// is then unknown.
        planned_thread_id: Nullable<u32> = "CSwitch: NewThreadId, where it differs",
        /// When the thread was switched out before; unknown of its first run in the trace.
        previous_out_ns: Nullable<i64> = "the thread's CSwitch before: header time"
            wpa "Last Switch-Out Time (s)",
        /// When something made it ready; unknown if it never waited (it was preempted or its
        /// quantum ended) or no event tells.
        readied_ns: Nullable<i64> = "ReadyThread: header time" wpa "Ready Time (s)",
        /// How long it was ready and got no CPU. Counted from the switch-out if it was readied
        /// while it still ran, or if it never waited.
        ready_ns: Nullable<i64> = "start_ns - max(readied_ns, previous_out_ns)" wpa "Ready (us)",
        /// How long it waited before it became ready; 0 if it was preempted or its quantum ended.
        waits_ns: Nullable<i64> = "readied_ns - previous_out_ns, at least 0" wpa "Waits (us)",
        /// Since it was switched out before: waits and ready time together.
        since_last_ns: Nullable<i64> = "start_ns - previous_out_ns" wpa "Time Since Last (us)",
        /// 1, or 0 for a run of an idle thread: sums to the number of switches to threads.
        count_waits: Vec<u8> = "thread_id" wpa "Count:Waits",
        /// Since the thread was switched out, switches on some CPU contradicted each other, or are
        /// not in the trace (`recorded_from_ns` and `recorded_until_ns` in `cpus`): it may have run
        /// unseen, and `ready_ns` and `since_last_ns` may be too long.
        ran_unseen: Vec<bool> = "CSwitch: NewThreadId and the CPU's next OldThreadId differ",
        /// Which thread ran on the CPU before.
        previous_thread_id: Nullable<u32> = "CSwitch: OldThreadId" wpa "Old Thread Id",
        /// Row of its process in `processes`.
        previous_process_row: Nullable<u32> = "previous_thread_id in `threads`"
            wpa "Old Process",
        /// The thread that made it ready, or that was interrupted by the DPC that did.
        readying_thread_id: Nullable<u32> = "the thread running on ReadyThread's CPU"
            wpa "Readying Thread Id",
        /// Row of the readying thread in `threads`.
        readying_thread_row: Nullable<u32> = "readying_thread_id in `threads`",
        /// The process of the readying thread.
        readying_process_id: Nullable<u32> = "readying_thread_id in `threads`"
            wpa "Readying Process Id",
        /// Row of the process of the readying thread in `processes`.
        readying_process_row: Nullable<u32> = "readying_process_id in `processes`"
            wpa "Readying Process",
        /// The CPU that made it ready.
        readying_cpu: Nullable<u16> = "ReadyThread: CPU of the buffer",
        /// A DPC made it ready; the readying thread had nothing to do with it.
        readied_by_dpc: Nullable<bool> = "ReadyThread: Flag bit 0" wpa "Ready Thread In DPC",
        /// Why its priority was adjusted when it became ready: 0 not at all, 1 end of a wait,
        /// 2 boost.
        adjust_reason: Nullable<u8> = "ReadyThread: AdjustReason" wpa "Adjust Reason",
        /// By how much its priority was raised.
        adjust_increment: Nullable<i8> = "ReadyThread: AdjustIncrement" wpa "Adjust Increment",
        /// Its kernel stack was paged out and had to be read first.
        kernel_stack_not_resident: Nullable<bool> = "ReadyThread: Flag bit 1"
            wpa "Kernel Stack Not Resident",
        /// Its process was swapped out and had to be brought in first.
        process_out_of_memory: Nullable<bool> = "ReadyThread: Flag bit 2"
            wpa "Process Out Of Memory",
        /// The readying thread tried to hand its CPU over directly.
        direct_switch_attempt: Nullable<bool> = "ReadyThread: Flag bit 3"
            wpa "Direct Switch Attempt",
        /// Its priority when switched in, 0 to 31.
        priority: Nullable<i8> = "CSwitch: NewThreadPriority" wpa "New In Pri",
        /// How much of that is boost: low nibble foreground boost, high nibble unusual boost
        /// (inferred).
        priority_decrement: Nullable<u8> = "CSwitch: NewThreadPriorityDecrement" wpa "New Pri Decr",
        /// Clock ticks that it waited before it became ready, by the kernel's own count.
        wait_ticks: Nullable<u32> = "CSwitch: NewThreadWaitTime" in "clock ticks",
        /// Its quality of service: 0 high, 1 medium, 2 low, 3 multimedia, 4 deadline, 5 and above
        /// other. Since Windows 10 1709.
        qos: Nullable<u8> = "CSwitch: byte 13, bits 4-6" wpa "New QoS",
        /// The C-state that the CPU came from; known after the idle thread only.
        previous_c_state: Nullable<u8> = "CSwitch: byte 10, if OldThreadId is 0"
            wpa "Prev CState",
        /// Its priority when switched out.
        priority_out: Nullable<i8> = "the ending CSwitch: OldThreadPriority" wpa "New Out Pri",
        /// The state it went to: 0 initialized, 1 ready, 2 running, 3 standby, 4 terminated,
        /// 5 waiting, 6 transition, 7 deferred ready.
        state_out: Nullable<u8> = "the ending CSwitch: OldThreadState" wpa "New State",
        /// Why it waits then (`KWAIT_REASON`), a real wait only if `state_out` is 5; else
        /// 30 quantum end, 31 dispatch interrupt, 32 preempted, 33 yield.
        wait_reason_out: Nullable<u8> = "the ending CSwitch: OldThreadWaitReason"
            wpa "New Wait Reason",
        /// On whose behalf it waits then: 0 kernel, 1 user.
        wait_mode_out: Nullable<u8> = "the ending CSwitch: OldThreadWaitMode" wpa "New Wait Mode",
        /// Its rank in its scheduling group; 0 runs before higher ranks, whatever the priority.
        /// Known at the switch-out only, since Windows 10 1709, and not of idle threads.
        rank_out: Nullable<u8> = "the ending CSwitch: byte 10" wpa "New Thread Rank",
        /// What it had left of its quantum; negative if overdrawn.
        remaining_quantum_out: Nullable<i32> = "the ending CSwitch: OldThreadRemainingQuantum"
            in "1024 CPU cycles" wpa "New Remaining Quantum",
        /// Low eight bits of its ideal processor.
        ideal_processor: Nullable<u8> = "the ending CSwitch: OldThreadIdealProcessor"
            wpa "Ideal Cpu",
        /// Its priority when it was switched out before.
        previous_priority_out: Nullable<i8> = "the thread's CSwitch before: OldThreadPriority"
            wpa "New Prev Out Pri",
        /// The state that it went to then: why it had not run. As `state_out`.
        previous_state: Nullable<u8> = "the thread's CSwitch before: OldThreadState"
            wpa "New Prev State",
        /// Why it waited, as `wait_reason_out`.
        previous_wait_reason: Nullable<u8> = "the thread's CSwitch before: OldThreadWaitReason"
            wpa "New Prev Wait Reason",
        /// On whose behalf it waited, as `wait_mode_out`.
        previous_wait_mode: Nullable<u8> = "the thread's CSwitch before: OldThreadWaitMode"
            wpa "New Prev Wait Mode",
        /// Its rank then, as `rank_out`.
        previous_rank: Nullable<u8> = "the thread's CSwitch before: byte 10"
            wpa "New Prev Thread Rank",
        /// What it had left of its quantum then, as `remaining_quantum_out`.
        previous_remaining_quantum: Nullable<i32> =
            "the thread's CSwitch before: OldThreadRemainingQuantum"
            in "1024 CPU cycles" wpa "New Prev Remaining Quantum",
        /// The CPU that it ran on before.
        previous_cpu: Nullable<u16> = "the thread's CSwitch before: CPU of the buffer"
            wpa "New Prev CPU",
        /// Its stack when it was switched in: where it goes on, and so where it had waited.
        stack_id: Nullable<u32> = "the stack of the CSwitch" wpa "New Thread Stack",
        /// The stack of whoever made it ready.
        readying_stack_id: Nullable<u32> = "the stack of the ReadyThread"
            wpa "Ready Thread Stack",
    }
}
