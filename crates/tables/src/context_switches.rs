//! `context_switches`: CPUs going from one thread to another.

use etl::Event;
use events::kernel::ContextSwitch;

use crate::column::Nullable;
use crate::schema::table;

table! {
    /// One row per context switch: a CPU stopped running the old thread and began the new one.
    ///
    /// Raw, as logged. The thread that really ran next is the old thread of the CPU's next switch;
    /// where that differs from `new_thread_id`, the scheduler changed its mind.
    ContextSwitches, ContextSwitchesView = "context_switches" sorted by time_ns {
        /// When the CPU switched.
        time_ns: Vec<i64> = "CSwitch: header time" wpa "Switch-In Time (s)",
        /// The CPU.
        cpu: Vec<u16> = "CSwitch: CPU of the buffer" wpa "CPU",
        /// The thread that the scheduler chose; 0 is the CPU's idle thread.
        new_thread_id: Vec<u32> = "CSwitch: NewThreadId" wpa "New Thread Id",
        /// The thread that ran until now; 0 is the CPU's idle thread.
        old_thread_id: Vec<u32> = "CSwitch: OldThreadId" wpa "Old Thread Id",
        /// Priority of the new thread, 0 to 31.
        new_priority: Vec<i8> = "CSwitch: NewThreadPriority" wpa "New In Pri",
        /// Priority of the old thread, 0 to 31.
        old_priority: Vec<i8> = "CSwitch: OldThreadPriority",
        /// The state the old thread went to: 0 initialized, 1 ready, 2 running, 3 standby,
        /// 4 terminated, 5 waiting, 6 transition, 7 deferred ready.
        old_state: Vec<u8> = "CSwitch: OldThreadState" wpa "Old State",
        /// Why the old thread waits (`KWAIT_REASON`). Names a real wait only if `old_state` is 5;
        /// else 30 quantum end, 31 dispatch interrupt, 32 preempted, 33 yield.
        old_wait_reason: Vec<u8> = "CSwitch: OldThreadWaitReason" wpa "Old Wait Reason",
        /// On whose behalf the old thread waits: 0 kernel, 1 user.
        old_wait_mode: Vec<u8> = "CSwitch: OldThreadWaitMode",
        /// Low eight bits of the old thread's ideal processor.
        old_ideal_processor: Vec<u8> = "CSwitch: OldThreadWaitIdealProcessor" wpa "Ideal Cpu",
        /// Rank of the old thread in its scheduling group; 0 runs before higher ranks. Unknown for
        /// the idle thread and before version 4 of the event (Windows 10 1709). A thread's rank is
        /// known only when it is switched out.
        old_rank: Nullable<u8> = "CSwitch: byte 10, unless OldThreadId is 0"
            wpa "Old Thread Rank",
        /// The C-state the CPU was in while idle. Known only when the idle thread is left.
        previous_c_state: Nullable<u8> = "CSwitch: byte 10, if OldThreadId is 0"
            wpa "Prev CState",
        /// How much of the new thread's priority is boost: low nibble foreground boost, high
        /// nibble unusual boost (inferred). Since version 2.
        new_priority_decrement: Nullable<u8> = "CSwitch: NewThreadPriorityDecrement",
        /// Clock ticks since the new thread began the wait that ended before this switch;
        /// meaningless for the idle thread. Since version 2.
        new_wait_time: Nullable<u32> = "CSwitch: NewThreadWaitTime" in "clock ticks",
        /// What the old thread had left of its quantum; negative if overdrawn. Since version 2.
        old_remaining_quantum: Nullable<i32> = "CSwitch: OldThreadRemainingQuantum"
            in "1024 CPU cycles" wpa "Old Remaining Quantum",
        /// Quantum of the new thread. Version 1 only (Windows XP, 2003).
        new_quantum: Nullable<i8> = "CSwitch: NewThreadQuantum" in "quantum units",
        /// Quantum the old thread had left. Version 1 only (Windows XP, 2003).
        old_quantum: Nullable<i8> = "CSwitch: OldThreadQuantum" in "quantum units",
        /// Quality of service of the old thread: 0 high, 1 medium, 2 low, 3 multimedia,
        /// 4 deadline, 5 and above other. Since version 4.
        old_qos: Nullable<u8> = "CSwitch: byte 13, bits 1-3" wpa "Old QoS",
        /// Quality of service of the new thread, as `old_qos`. Since version 4.
        new_qos: Nullable<u8> = "CSwitch: byte 13, bits 4-6" wpa "New QoS",
        /// Whether the background activity moderator thought the old thread important. Version 3
        /// only (Windows 10 1703).
        old_bam_important: Nullable<bool> = "CSwitch: byte 13, bit 1",
        /// The same of the new thread.
        new_bam_important: Nullable<bool> = "CSwitch: byte 13, bit 2",
        /// Four bits of unknown meaning. Since version 5 (Windows 11 24H2).
        unknown_flags: Nullable<u32> = "CSwitch: dword at 24",
    }
}

impl ContextSwitches {
    /// Adds a row; `None` if the payload is unreadable.
    #[inline]
    pub(crate) fn push(&mut self, event: &Event<'_>) -> Option<()> {
        let version = event.version()?;
        let switch = ContextSwitch::read(event.payload(), version, event.pointer_size())?;
        self.time_ns.push(event.time_ns());
        self.cpu.push(event.cpu());
        self.new_thread_id.push(switch.new_thread_id);
        self.old_thread_id.push(switch.old_thread_id);
        self.new_priority.push(switch.new_priority);
        self.old_priority.push(switch.old_priority);
        self.old_state.push(switch.old_state);
        self.old_wait_reason.push(switch.old_wait_reason);
        self.old_wait_mode.push(switch.old_wait_mode);
        self.old_ideal_processor.push(switch.old_ideal_processor);
        // Versions 2 and 3 are said to share the byte too, but no trace at hand shows a rank in them.
        self.old_rank
            .push(switch.old_rank().filter(|_| version >= 4));
        self.previous_c_state.push(switch.previous_c_state());
        self.new_priority_decrement
            .push(switch.new_priority_decrement);
        self.new_wait_time.push(switch.new_wait_time);
        self.old_remaining_quantum
            .push(switch.old_remaining_quantum);
        self.new_quantum.push(switch.new_quantum);
        self.old_quantum.push(switch.old_quantum);
        self.old_qos.push(switch.old_qos);
        self.new_qos.push(switch.new_qos);
        self.old_bam_important
            .push(switch.bam_important.map(|b| b.0));
        self.new_bam_important
            .push(switch.bam_important.map(|b| b.1));
        self.unknown_flags.push(switch.unknown_flags);
        Some(())
    }
}
