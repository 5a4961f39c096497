//! Wait reasons of threads of Linux. Windows logs the reason of a wait. Linux logs only the state of the waiting
//! thread, so each state is a wait reason here.

use linux::ThreadState;

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

/// Converts the state of a thread that leaves a CPU. Returns the corresponding state of Windows (1 ready, 4 terminated, 5
/// waiting) and the wait reason of a waiting thread.
pub(super) fn of(state: ThreadState) -> (u8, Option<u8>) {
    match state {
        ThreadState::Ready => (1, None),
        ThreadState::Ended => (4, None),
        ThreadState::Interruptible => (5, Some(INTERRUPTIBLE)),
        ThreadState::Uninterruptible => (5, Some(UNINTERRUPTIBLE)),
        ThreadState::Stopped => (5, Some(STOPPED)),
        ThreadState::Traced => (5, Some(TRACED)),
        ThreadState::Idle => (5, Some(IDLE)),
        ThreadState::Parked => (5, Some(PARKED)),
        ThreadState::Unknown => (5, None),
    }
}

/// Returns true if a wait reason is a state of Linux.
pub fn is_wait_reason(code: u8) -> bool {
    (INTERRUPTIBLE..=PARKED).contains(&code)
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
    fn states_of_linux_are_wait_reasons_with_names() {
        let names = [
            (ThreadState::Interruptible, "Interruptible"),
            (ThreadState::Uninterruptible, "Uninterruptible"),
            (ThreadState::Stopped, "Stopped"),
            (ThreadState::Traced, "Traced"),
            (ThreadState::Idle, "Idle"),
            (ThreadState::Parked, "Parked"),
        ];
        for (state, name) in names {
            let (5, Some(reason)) = of(state) else {
                panic!("{state:?} is no wait");
            };
            assert_eq!(wait_reason(reason), Some(name));
            assert!(is_wait_reason(reason));
        }
        assert_eq!(of(ThreadState::Unknown), (5, None));
        assert_eq!(wait_reason(4), Some("DelayExecution"));
        assert!(!is_wait_reason(4) && !is_wait_reason(206));
    }
}
