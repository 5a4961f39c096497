//! States of threads that leave a CPU.

use linux::ThreadState;
use tables::linux_states::{IDLE, INTERRUPTIBLE, PARKED, STOPPED, TRACED, UNINTERRUPTIBLE};

/// Converts the state of a thread that leaves a CPU. Returns the corresponding state of Windows (1 ready, 4 terminated, 5
/// waiting) and the wait reason of a waiting thread.
pub(crate) fn codes(state: ThreadState) -> (u8, Option<u8>) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use tables::linux_states::is_wait_reason;
    use tables::wait_reason;

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
            let (5, Some(reason)) = codes(state) else {
                panic!("{state:?} is no wait");
            };
            assert_eq!(wait_reason(reason), Some(name));
            assert!(is_wait_reason(reason));
        }
        assert_eq!(codes(ThreadState::Unknown), (5, None));
        assert_eq!(wait_reason(4), Some("DelayExecution"));
        assert!(!is_wait_reason(4) && !is_wait_reason(206));
    }
}
