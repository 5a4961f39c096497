//! Kinds of waits: the object or event for which a thread waited.

use std::num::NonZeroU64;

use crate::codes::linux_states::{PARKED, STOPPED, TRACED};
use crate::column::Named;
use crate::run::SwitchOut;

/// Kind of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitKind {
    /// A time that the thread set itself.
    Sleep,
    /// A lock of the program or of the kernel.
    Lock,
    /// A lock, a condition variable or another object in the memory of the program. It is unknown which of them.
    Futex,
    /// Data that a call reads from or writes to a disk.
    Disk,
    /// A page of memory that is read from a disk.
    Page,
    /// Data or events of a pipe, a socket, a terminal or a message queue.
    Message,
    /// The end of a child process.
    Child,
    /// A signal, a debugger or another thread that lets the thread go on.
    Stopped,
    /// The end of the freeze of the thread's cgroup.
    Frozen,
}

impl Named for WaitKind {
    const NAMES: &'static [&'static str] = &[
        "sleep", "lock", "futex", "disk", "page", "message", "child", "stopped", "frozen",
    ];

    fn code(self) -> i8 {
        self as i8
    }
}

impl WaitKind {
    const ALL: [WaitKind; 9] = [
        WaitKind::Sleep,
        WaitKind::Lock,
        WaitKind::Futex,
        WaitKind::Disk,
        WaitKind::Page,
        WaitKind::Message,
        WaitKind::Child,
        WaitKind::Stopped,
        WaitKind::Frozen,
    ];

    /// Returns the kind with a name.
    pub fn from_name(name: &str) -> Option<WaitKind> {
        WaitKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the kind of a wait whose reason tells it: a `KWAIT_REASON` of Windows or a state of Linux. Sources: the names
    /// of the reasons (`KWAIT_REASON` in `wdm.h`), and the enumeration `ThreadWaitReason` of .NET, which describes the first
    /// of them.
    fn of_reason(reason: u8) -> Option<WaitKind> {
        Some(match reason {
            // PageIn, WrPageIn
            2 | 9 => WaitKind::Page,
            // DelayExecution, WrDelayExecution
            4 | 11 => WaitKind::Sleep,
            // Suspended, WrSuspended
            5 | 12 => WaitKind::Stopped,
            // WrLpcReceive, WrLpcReply
            16 | 17 => WaitKind::Message,
            // WrPageOut
            19 => WaitKind::Disk,
            // WrResource, WrPushLock, WrMutex, WrFastMutex, WrGuardedMutex
            27..=29 | 34 | 35 => WaitKind::Lock,
            // WrAlertByThreadId: locks and condition variables wait for an address of the program's memory.
            37 => WaitKind::Futex,
            STOPPED | TRACED | PARKED => WaitKind::Stopped,
            _ => return None,
        })
    }
}

/// Call with which a thread of Linux waits for a futex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FutexCall {
    /// [`WaitKind::Lock`] or [`WaitKind::Futex`].
    pub kind: WaitKind,
    /// Address of the futex in the memory of the program.
    pub address: NonZeroU64,
}

/// Part of the wait's kind that the stack shows with which a thread left its CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StackWait {
    /// There is no stack, or it has no known functions of the kernel.
    #[default]
    Silent,
    /// The kernel's function waits for something else than the kinds of waits, or is unknown.
    Other,
    /// The kernel's function waits for this.
    For(WaitKind),
}

/// Returns the kind of the wait after a switch, and the address of the object that the thread waited for. `stack` is the
/// stack with which the thread left its CPU.
///
/// The call before the switch is only a sign of the wait: the call may have returned without a wait. So it counts only
/// if the stack does not contradict it.
pub(crate) fn wait_of(out: &SwitchOut, stack: StackWait) -> (Option<WaitKind>, Option<NonZeroU64>) {
    if !out.waits() {
        return (None, None);
    }
    if let Some(kind) = out.wait_reason.and_then(WaitKind::of_reason) {
        return (Some(kind), None);
    }
    match (stack, out.futex) {
        (StackWait::Silent | StackWait::For(WaitKind::Futex), Some(call)) => {
            (Some(call.kind), Some(call.address))
        }
        (StackWait::For(kind), _) => (Some(kind), None),
        (StackWait::Silent | StackWait::Other, _) => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::linux_states::{INTERRUPTIBLE, UNINTERRUPTIBLE};

    const LOCK: FutexCall = FutexCall {
        kind: WaitKind::Lock,
        address: NonZeroU64::new(0x1000).unwrap(),
    };

    fn out(state: u8, reason: Option<u8>, futex: Option<FutexCall>) -> SwitchOut {
        SwitchOut {
            time_ns: 0,
            cpu: 0,
            priority: 0,
            state,
            wait_reason: reason,
            wait_mode: None,
            futex,
            rank: None,
            remaining_quantum: None,
            ideal_processor: None,
        }
    }

    #[test]
    fn a_state_counts_before_a_stack_and_a_stack_before_a_call() {
        use StackWait::{For, Other, Silent};
        let of_lock = (Some(WaitKind::Lock), Some(LOCK.address));
        for (reason, stack, call, expected) in [
            (
                STOPPED,
                For(WaitKind::Sleep),
                None,
                (Some(WaitKind::Stopped), None),
            ),
            (TRACED, Silent, Some(LOCK), (Some(WaitKind::Stopped), None)),
            (INTERRUPTIBLE, Silent, None, (None, None)),
            (INTERRUPTIBLE, Silent, Some(LOCK), of_lock),
            (INTERRUPTIBLE, For(WaitKind::Futex), Some(LOCK), of_lock),
            (
                INTERRUPTIBLE,
                For(WaitKind::Futex),
                None,
                (Some(WaitKind::Futex), None),
            ),
            // The call returned without a wait. A lock of the kernel is another lock.
            (INTERRUPTIBLE, Other, Some(LOCK), (None, None)),
            (
                INTERRUPTIBLE,
                For(WaitKind::Sleep),
                Some(LOCK),
                (Some(WaitKind::Sleep), None),
            ),
            (
                UNINTERRUPTIBLE,
                For(WaitKind::Lock),
                Some(LOCK),
                (Some(WaitKind::Lock), None),
            ),
        ] {
            let shown = wait_of(&out(5, Some(reason), call), stack);
            assert_eq!(shown, expected, "{reason} {stack:?} {call:?}");
        }
        let ready = out(1, None, Some(LOCK));
        assert_eq!(wait_of(&ready, For(WaitKind::Sleep)), (None, None));
    }

    #[test]
    fn reasons_of_windows_tell_the_kind() {
        for (name, kind) in [
            ("DelayExecution", Some(WaitKind::Sleep)),
            ("WrDelayExecution", Some(WaitKind::Sleep)),
            ("PageIn", Some(WaitKind::Page)),
            ("WrPageIn", Some(WaitKind::Page)),
            ("WrPageOut", Some(WaitKind::Disk)),
            ("Suspended", Some(WaitKind::Stopped)),
            ("WrSuspended", Some(WaitKind::Stopped)),
            ("WrLpcReceive", Some(WaitKind::Message)),
            ("WrLpcReply", Some(WaitKind::Message)),
            ("WrResource", Some(WaitKind::Lock)),
            ("WrPushLock", Some(WaitKind::Lock)),
            ("WrMutex", Some(WaitKind::Lock)),
            ("WrFastMutex", Some(WaitKind::Lock)),
            ("WrGuardedMutex", Some(WaitKind::Lock)),
            ("WrAlertByThreadId", Some(WaitKind::Futex)),
            ("UserRequest", None),
            ("WrQueue", None),
        ] {
            let is_it = |reason: &u8| crate::wait_reason(*reason) == Some(name);
            let reason = (0..=u8::MAX)
                .find(is_it)
                .unwrap_or_else(|| panic!("{name}"));
            assert_eq!(WaitKind::of_reason(reason), kind, "{name}");
        }
    }
}
