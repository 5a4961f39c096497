//! Wait reasons of threads of Linux. Windows logs the reason of a wait. Linux logs only the state of the waiting
//! thread, so each state is a wait reason here.

/// Waits for an event or a signal (state S).
pub const INTERRUPTIBLE: u8 = 200;
/// Waits for an event, mostly of a device, and ignores signals (state D).
pub const UNINTERRUPTIBLE: u8 = 201;
/// A signal stopped the thread (state T).
pub const STOPPED: u8 = 202;
/// A debugger stopped the thread (state t).
pub const TRACED: u8 = 203;
/// The thread is a kernel thread that has nothing to do (state I).
pub const IDLE: u8 = 204;
/// The thread is a kernel thread that is parked (state P).
pub const PARKED: u8 = 205;

/// Bits of the field `prev_state` of `sched_switch` events, and the wait reason of each bit. Source:
/// `include/linux/sched.h`, since kernel 4.14.
const BITS: [(i64, u8); 6] = [
    (0x01, INTERRUPTIBLE),
    (0x02, UNINTERRUPTIBLE),
    (0x04, STOPPED),
    (0x08, TRACED),
    (0x40, PARKED),
    (0x80, IDLE),
];
/// Bits of `prev_state` of a thread that ended: `EXIT_DEAD` and `EXIT_ZOMBIE`.
const ENDED: i64 = 0x10 | 0x20;
/// Bit of `prev_state` of a thread that was preempted and is ready (`TASK_REPORT_MAX`).
const PREEMPTED: i64 = 0x100;

/// Converts the field `prev_state` of a `sched_switch` event. Returns the corresponding state of Windows (1 ready, 4
/// terminated, 5 waiting) and the wait reason of a waiting thread.
pub(super) fn of(previous_state: i64) -> (u8, Option<u8>) {
    match previous_state {
        0 => (1, None),
        state if state & PREEMPTED != 0 => (1, None),
        state if state & ENDED != 0 => (4, None),
        state => {
            let reason = BITS.iter().find(|(bit, _)| state & bit != 0);
            (5, reason.map(|(_, reason)| *reason))
        }
    }
}

/// Returns true if a wait reason is a state of Linux.
pub fn is_wait_reason(code: u8) -> bool {
    BITS.iter().any(|(_, reason)| *reason == code)
}

/// Returns the name of a wait reason. The reason is a `KWAIT_REASON` of Windows or a state of Linux.
pub fn wait_reason(code: u8) -> Option<&'static str> {
    Some(match code {
        INTERRUPTIBLE => "Interruptible",
        UNINTERRUPTIBLE => "Uninterruptible",
        STOPPED => "Stopped",
        TRACED => "Traced",
        IDLE => "Idle",
        PARKED => "Parked",
        _ => return events::kernel::wait_reason(code),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_those_of_the_kernel() {
        // For these values, perf prints the letters R, S, D, T, t, X, Z, P, I and R+, in this order.
        let expected = [
            (0, 1, None),
            (1, 5, Some("Interruptible")),
            (2, 5, Some("Uninterruptible")),
            (4, 5, Some("Stopped")),
            (8, 5, Some("Traced")),
            (0x10, 4, None),
            (0x20, 4, None),
            (0x40, 5, Some("Parked")),
            (0x80, 5, Some("Idle")),
            (0x100, 1, None),
        ];
        for (bits, state, name) in expected {
            let (found, reason) = of(bits);
            assert_eq!(
                (found, reason.and_then(wait_reason)),
                (state, name),
                "{bits:#x}"
            );
            assert!(reason.is_none_or(is_wait_reason));
        }
        assert_eq!(wait_reason(4), Some("DelayExecution"));
        assert!(!is_wait_reason(4));
    }
}
