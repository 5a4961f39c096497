//! `context_switches`: switches of CPUs from one thread to another.

use std::num::NonZeroU64;

use crate::column::Nullable;
use crate::register::{EventTable, Register};
use crate::schema::{Rows, table};
use crate::timed_values::TimedValues;
use crate::trackers::Trackers;
use crate::unreadable::EventPlace;
use crate::wait_kind::FutexCall;

table! {
    /// One row per context switch: a CPU stopped running the old thread and started the new thread.
    ///
    /// The rows have the logged values. The thread that really ran after a switch is the old thread of the
    /// CPU's next switch. If this thread differs from `new_thread_id`, the scheduler changed its decision.
    ContextSwitches, ContextSwitchesView = "context_switches" sorted by time_ns
        title "Context Switches"
        record "context switches (xperf -on CSWITCH, WPR keyword CSwitch)"
    {
        /// Time of the switch.
        time_ns: Vec<i64> = "CSwitch: header time" wpa "Switch-In Time (s)",
        /// CPU that switched threads.
        cpu: Vec<u16> = "CSwitch: CPU of the buffer" wpa "CPU",
        /// Thread that the scheduler chose; 0 is the CPU's idle thread.
        new_thread_id: Vec<u32> = "CSwitch: NewThreadId; sched_switch: next_pid" wpa "New Thread Id",
        /// Thread that ran until the switch; 0 is the CPU's idle thread.
        old_thread_id: Vec<u32> = "CSwitch: OldThreadId; sched_switch: prev_pid" wpa "Old Thread Id",
        /// Priority of the new thread: 0 to 31. On Linux: 0 a fair thread, 1 to 99 real time, 100 deadline.
        new_priority: Vec<i8> = "CSwitch: NewThreadPriority; sched_switch: next_prio" wpa "New In Pri",
        /// Priority of the old thread; values as in `new_priority`.
        old_priority: Vec<i8> = "CSwitch: OldThreadPriority; sched_switch: prev_prio",
        /// Nice value of the new thread, −20 to 19, if it is a fair thread of Linux. A thread with a lower value gets a
        /// larger share of a CPU. Unknown for idle threads.
        new_nice: Nullable<i8> = "sched_switch: next_prio - 120",
        /// Nice value of the old thread; values as in `new_nice`.
        old_nice: Nullable<i8> = "sched_switch: prev_prio - 120",
        /// State of the old thread after the switch: 0 initialized, 1 ready, 2 running, 3 standby,
        /// 4 terminated, 5 waiting, 6 transition, 7 deferred ready.
        old_state: Vec<u8> = "CSwitch: OldThreadState; sched_switch: prev_state" wpa "Old State",
        /// Wait reason of the old thread (`KWAIT_REASON`). The thread waits only if `old_state` is 5. If
        /// `old_state` is not 5, the value is the reason of the switch: 30 quantum end, 31 dispatch
        /// interrupt, 32 preempted, 33 yield. On Linux it is the state of a thread that waits: 200
        /// interruptible, 201 uninterruptible, 202 stopped, 203 traced, 204 idle, 205 parked.
        old_wait_reason: Nullable<u8> = "CSwitch: OldThreadWaitReason; sched_switch: prev_state"
            wpa "Old Wait Reason",
        /// Mode in which the old thread waits: 0 kernel, 1 user.
        old_wait_mode: Nullable<u8> = "CSwitch: OldThreadWaitMode",
        /// Low eight bits of the number of the old thread's ideal processor.
        old_ideal_processor: Nullable<u8> = "CSwitch: OldThreadWaitIdealProcessor" wpa "Ideal Cpu",
        /// Rank of the old thread in its scheduling group. Threads with rank 0 run before threads with higher
        /// ranks. Unknown for the idle thread. Also unknown before version 4 of the event (Windows 10 1709).
        /// The event has no rank of the new thread.
        old_rank: Nullable<u8> = "CSwitch: byte 10, unless OldThreadId is 0"
            wpa "Old Thread Rank",
        /// C-state of the CPU while the CPU was idle. Known only if the old thread is the idle thread. On Linux it is the
        /// number of the idle state in `/sys/devices/system/cpu/cpuN/cpuidle`.
        previous_c_state: Nullable<u8> = "CSwitch: byte 10, if OldThreadId is 0; cpu_idle: state"
            wpa "Prev CState",
        /// Boost that is part of the new thread's priority. The low four bits are the foreground boost. The
        /// high four bits are the unusual boost (inferred). Present since version 2 of the event.
        new_priority_decrement: Nullable<u8> = "CSwitch: NewThreadPriorityDecrement",
        /// Number of clock ticks since the start of the new thread's last wait. Meaningless for the idle
        /// thread. Present since version 2 of the event.
        new_wait_time: Nullable<u32> = "CSwitch: NewThreadWaitTime" in "clock ticks",
        /// Remaining quantum of the old thread. It is negative if the thread ran longer than its quantum.
        /// Present since version 2 of the event.
        old_remaining_quantum: Nullable<i32> = "CSwitch: OldThreadRemainingQuantum"
            in "1024 CPU cycles" wpa "Old Remaining Quantum",
        /// Quantum of the new thread. Present only in version 1 of the event (Windows XP, 2003).
        new_quantum: Nullable<i8> = "CSwitch: NewThreadQuantum" in "quantum units",
        /// Remaining quantum of the old thread. Present only in version 1 of the event (Windows XP, 2003).
        old_quantum: Nullable<i8> = "CSwitch: OldThreadQuantum" in "quantum units",
        /// Quality of service of the old thread: 0 high, 1 medium, 2 low, 3 multimedia, 4 deadline, 5 and
        /// above other. Present since version 4 of the event.
        old_qos: Nullable<u8> = "CSwitch: byte 13, bits 1-3" wpa "Old QoS",
        /// Quality of service of the new thread. The values are the same as in `old_qos`. Present since
        /// version 4 of the event.
        new_qos: Nullable<u8> = "CSwitch: byte 13, bits 4-6" wpa "New QoS",
        /// True if the background activity moderator rates the old thread as important. Present only in
        /// version 3 of the event (Windows 10 1703).
        old_bam_important: Nullable<bool> = "CSwitch: byte 13, bit 1",
        /// True if the background activity moderator rates the new thread as important. Present only in
        /// version 3 of the event (Windows 10 1703).
        new_bam_important: Nullable<bool> = "CSwitch: byte 13, bit 2",
        /// Four bits of unknown meaning. Present since version 5 of the event (Windows 11 24H2).
        unknown_flags: Nullable<u32> = "CSwitch: dword at 24",
    }
}

/// A context switch before it becomes a row. The columns of the row have the same names and meanings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Switch {
    /// CPU that switched threads.
    pub cpu: u16,
    /// Position of the event in the recording.
    pub place: EventPlace,
    /// Time in nanoseconds from the first event that shows the old thread on the CPU to this switch. Known only if the
    /// switch to the old thread is missing.
    pub seen_for_ns: Option<NonZeroU64>,
    /// Thread that the scheduler chose.
    pub new_thread_id: u32,
    /// Thread that ran until the switch.
    pub old_thread_id: u32,
    /// Priority of the new thread.
    pub new_priority: i8,
    /// Priority of the old thread.
    pub old_priority: i8,
    /// Nice value of the new thread.
    pub new_nice: Option<i8>,
    /// Nice value of the old thread.
    pub old_nice: Option<i8>,
    /// State of the old thread.
    pub old_state: u8,
    /// Wait reason of the old thread.
    pub old_wait_reason: Option<u8>,
    /// Mode in which the old thread waits.
    pub old_wait_mode: Option<u8>,
    /// Last call of the old thread, if it waits for a futex and the thread made it directly before the switch.
    pub futex: Option<FutexCall>,
    /// Low bits of the number of the old thread's ideal processor.
    pub old_ideal_processor: Option<u8>,
    /// Rank of the old thread.
    pub old_rank: Option<u8>,
    /// C-state of the CPU while it was idle.
    pub previous_c_state: Option<u8>,
    /// Boost that is part of the new thread's priority.
    pub new_priority_decrement: Option<u8>,
    /// Clock ticks since the start of the new thread's last wait.
    pub new_wait_time: Option<u32>,
    /// Remaining quantum of the old thread, in 1024 CPU cycles.
    pub old_remaining_quantum: Option<i32>,
    /// Quantum of the new thread, in quantum units.
    pub new_quantum: Option<i8>,
    /// Remaining quantum of the old thread, in quantum units.
    pub old_quantum: Option<i8>,
    /// Quality of service of the old thread.
    pub old_qos: Option<u8>,
    /// Quality of service of the new thread.
    pub new_qos: Option<u8>,
    /// True if the background activity moderator rates the old and the new thread as important.
    pub bam_important: Option<(bool, bool)>,
    /// Four bits of unknown meaning.
    pub unknown_flags: Option<u32>,
}

impl Register for ContextSwitches {}

impl EventTable for ContextSwitches {
    type Raw = TimedValues<Switch>;
    type State = ();

    fn join(raw: &mut TimedValues<Switch>, (): &mut (), _: &Trackers<'_>) -> ContextSwitches {
        let mut rows = ContextSwitches::default();
        rows.reserve(raw.rows());
        for switches in raw.0.chunks(SWITCHES_AT_ONCE) {
            rows.extend(switches);
        }
        rows
    }
}

/// Number of switches that are added at once. They fit into the first-level cache of a CPU.
const SWITCHES_AT_ONCE: usize = 64;

impl ContextSwitches {
    /// Adds the rows column by column, because the columns of one row do not fit into the caches of a CPU.
    fn extend(&mut self, switches: &[(i64, Switch)]) {
        let all = || switches.iter().map(|(_, switch)| switch);
        self.time_ns
            .extend(switches.iter().map(|(time_ns, _)| *time_ns));
        self.cpu.extend(all().map(|it| it.cpu));
        self.new_thread_id.extend(all().map(|it| it.new_thread_id));
        self.old_thread_id.extend(all().map(|it| it.old_thread_id));
        self.new_priority.extend(all().map(|it| it.new_priority));
        self.old_priority.extend(all().map(|it| it.old_priority));
        self.new_nice.extend(switches, |(_, it)| it.new_nice);
        self.old_nice.extend(switches, |(_, it)| it.old_nice);
        self.old_state.extend(all().map(|it| it.old_state));
        self.old_wait_reason
            .extend(switches, |(_, it)| it.old_wait_reason);
        self.old_wait_mode
            .extend(switches, |(_, it)| it.old_wait_mode);
        self.old_ideal_processor
            .extend(switches, |(_, it)| it.old_ideal_processor);
        self.old_rank.extend(switches, |(_, it)| it.old_rank);
        self.previous_c_state
            .extend(switches, |(_, it)| it.previous_c_state);
        self.new_priority_decrement
            .extend(switches, |(_, it)| it.new_priority_decrement);
        self.new_wait_time
            .extend(switches, |(_, it)| it.new_wait_time);
        self.old_remaining_quantum
            .extend(switches, |(_, it)| it.old_remaining_quantum);
        self.new_quantum.extend(switches, |(_, it)| it.new_quantum);
        self.old_quantum.extend(switches, |(_, it)| it.old_quantum);
        self.old_qos.extend(switches, |(_, it)| it.old_qos);
        self.new_qos.extend(switches, |(_, it)| it.new_qos);
        self.old_bam_important
            .extend(switches, |(_, it)| it.bam_important.map(|(old, _)| old));
        self.new_bam_important
            .extend(switches, |(_, it)| it.bam_important.map(|(_, new)| new));
        self.unknown_flags
            .extend(switches, |(_, it)| it.unknown_flags);
    }
}
