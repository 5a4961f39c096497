//! Context switches.

use etl::le;

/// CSwitch, hook 0x0524: a CPU stops running the old thread and starts to run the new thread.
///
/// The meaning of byte 10 and of the flags in byte 13 depends on the version. A field is `None` if the
/// event's version does not have it. Sources: System Informer's `ntwmi.h`, Geoff Chappell, the MOF classes.
/// The layouts of versions 2 and 4 were checked with captured payloads. The layout of version 5 was checked
/// with 6,090 events of Windows 11 build 26200.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextSwitch {
    /// Thread that the scheduler chose to run; 0 is the CPU's idle thread. Sometimes another thread runs
    /// instead. The thread that really ran is the old thread of the CPU's next switch.
    pub new_thread_id: u32,
    /// Thread that ran until now; 0 is the CPU's idle thread.
    pub old_thread_id: u32,
    /// Priority of the new thread, 0 to 31.
    pub new_priority: i8,
    /// Priority of the old thread, 0 to 31.
    pub old_priority: i8,
    /// Reason why the old thread waits or stopped; see [`rules::names::wait_reason`]. The reason is a real wait
    /// reason only if the old thread's state is 5 (waiting).
    pub old_wait_reason: u8,
    /// Processor mode in which the old thread waits: 0 is kernel mode, 1 is user mode.
    pub old_wait_mode: u8,
    /// New state of the old thread; see [`rules::names::thread_state`].
    pub old_state: u8,
    /// Low eight bits of the old thread's ideal processor.
    pub old_ideal_processor: u8,
    /// Quantum of the new thread, in quantum units. Only version 1 has this field.
    pub new_quantum: Option<i8>,
    /// Remaining quantum of the old thread, in quantum units. Only version 1 has this field.
    pub old_quantum: Option<i8>,
    /// Boost in the new thread's priority. The low four bits are the foreground boost. The high four bits are
    /// an unusual boost; this meaning is inferred. Present since version 2.
    pub new_priority_decrement: Option<u8>,
    /// Number of clock ticks since the new thread began its last wait. This wait ended before the switch. The
    /// field has no meaning for an idle thread. Present since version 2.
    pub new_wait_time: Option<u32>,
    /// Remaining quantum of the old thread in units of 1024 CPU cycles. It is negative if the thread ran
    /// longer than its quantum. Present since version 2.
    pub old_remaining_quantum: Option<i32>,
    /// Two flags, for the old and the new thread. A flag is true if the background activity moderator (BAM)
    /// treats the thread as important. Only version 3 has this field.
    pub bam_important: Option<(bool, bool)>,
    /// Quality of service of the old thread; see [`super::qos_level`]. Present since version 4.
    pub old_qos: Option<u8>,
    /// Quality of service of the new thread. Present since version 4.
    pub new_qos: Option<u8>,
    /// Four bits of unknown meaning. Present since version 5.
    pub unknown_flags: Option<u32>,
    /// Byte 10 of the payload. It is a C-state if the old thread is an idle thread, otherwise a
    /// rank.
    rank_or_c_state: Option<u8>,
}

impl ContextSwitch {
    /// Reads the payload. Returns `None` if the payload is too short or older than version 1.
    #[inline]
    pub fn read(payload: &[u8], version: u8, _pointer_size: usize) -> Option<Self> {
        let head: &[u8; 16] = payload.first_chunk()?;
        let flags = head[13];
        let mut switch = ContextSwitch {
            new_thread_id: u32::from_le_bytes([head[0], head[1], head[2], head[3]]),
            old_thread_id: u32::from_le_bytes([head[4], head[5], head[6], head[7]]),
            new_priority: head[8] as i8,
            old_priority: head[9] as i8,
            old_wait_reason: head[12],
            old_wait_mode: if version < 3 { flags } else { flags & 1 },
            old_state: head[14],
            old_ideal_processor: head[15],
            new_quantum: None,
            old_quantum: None,
            new_priority_decrement: None,
            new_wait_time: None,
            old_remaining_quantum: None,
            bam_important: None,
            old_qos: None,
            new_qos: None,
            unknown_flags: None,
            rank_or_c_state: None,
        };
        match version {
            0 => return None,
            1 => {
                switch.new_quantum = Some(head[10] as i8);
                switch.old_quantum = Some(head[11] as i8);
                return Some(switch);
            }
            2 => {}
            3 => switch.bam_important = Some((flags & 2 != 0, flags & 4 != 0)),
            _ => {
                switch.old_qos = Some(flags >> 1 & 7);
                switch.new_qos = Some(flags >> 4 & 7);
            }
        }
        switch.rank_or_c_state = Some(head[10]);
        switch.new_priority_decrement = Some(head[11]);
        switch.new_wait_time = Some(le::u32(payload, 16)?);
        switch.old_remaining_quantum = Some(le::i32(payload, 20)?);
        if version >= 5 {
            switch.unknown_flags = Some(le::u32(payload, 24)?);
        }
        Some(switch)
    }

    /// Returns the rank of the old thread in its scheduling group. Threads with rank 0 run before threads
    /// with higher ranks. Returns `None` if the version is below 2 or the old thread is an idle thread.
    #[inline]
    pub fn old_rank(&self) -> Option<u8> {
        self.rank_or_c_state.filter(|_| self.old_thread_id != 0)
    }

    /// Returns the C-state (power state) that the CPU had while it was idle. Returns `None` if the version is
    /// below 2 or the old thread is not an idle thread.
    #[inline]
    pub fn previous_c_state(&self) -> Option<u8> {
        self.rank_or_c_state.filter(|_| self.old_thread_id == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a payload of a switch from thread `old` to thread 7. Byte 10 is 2, and byte 13 has a
    /// pattern of flag bits.
    fn payload(old: u8) -> [u8; 28] {
        let mut payload = [0; 28];
        payload[0] = 7;
        payload[4] = old;
        payload[8..16].copy_from_slice(&[9, 8, 2, 0x90, 32, 0b0101_0011, 1, 3]);
        payload[16] = 5;
        payload[20..24].copy_from_slice(&(-6i32).to_le_bytes());
        payload[24] = 8;
        payload
    }

    #[test]
    fn byte_10_is_a_rank_unless_the_cpu_was_idle() {
        let of_thread = ContextSwitch::read(&payload(4), 5, 8).unwrap();
        assert_eq!(
            (of_thread.old_rank(), of_thread.previous_c_state()),
            (Some(2), None)
        );
        let of_idle = ContextSwitch::read(&payload(0), 5, 8).unwrap();
        assert_eq!(
            (of_idle.old_rank(), of_idle.previous_c_state()),
            (None, Some(2))
        );
    }

    #[test]
    fn each_version_says_what_it_holds() {
        let read = |version| ContextSwitch::read(&payload(4), version, 8).unwrap();
        assert_eq!(ContextSwitch::read(&payload(4), 0, 8), None);
        let first = read(1);
        assert_eq!(
            (first.new_quantum, first.old_quantum),
            (Some(2), Some(-112))
        );
        assert_eq!(
            (first.old_rank(), first.new_wait_time, first.old_qos),
            (None, None, None)
        );
        assert_eq!(
            (read(2).old_wait_mode, read(2).bam_important),
            (0b0101_0011, None)
        );
        assert_eq!(
            (read(3).old_wait_mode, read(3).bam_important),
            (1, Some((true, false)))
        );
        let fourth = read(4);
        assert_eq!(
            (fourth.old_wait_mode, fourth.old_qos, fourth.new_qos),
            (1, Some(1), Some(5))
        );
        assert_eq!(
            (fourth.new_wait_time, fourth.old_remaining_quantum),
            (Some(5), Some(-6))
        );
        assert_eq!(
            (fourth.unknown_flags, read(5).unknown_flags),
            (None, Some(8))
        );
    }

    #[test]
    fn short_payloads_are_refused() {
        for (version, size) in [(1, 16), (2, 24), (4, 24), (5, 28), (9, 28)] {
            assert!(ContextSwitch::read(&payload(4)[..size], version, 8).is_some());
            assert!(ContextSwitch::read(&payload(4)[..size - 1], version, 8).is_none());
        }
    }
}
