//! Names of numbers in tables. Windows logs the reason of a wait. Linux logs only the state of the waiting thread, so each
//! state is a wait reason here.

use rules::names;

/// Wait reasons of Linux: states of a waiting thread.
pub mod linux_states {
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

    /// Returns true if a wait reason is a state of Linux.
    pub fn is_wait_reason(code: u8) -> bool {
        (INTERRUPTIBLE..=PARKED).contains(&code)
    }
}

/// Returns the name of a wait reason. The reason is a `KWAIT_REASON` of Windows or a state of Linux.
pub fn wait_reason(code: u8) -> Option<&'static str> {
    Some(match code {
        linux_states::INTERRUPTIBLE => "Interruptible",
        linux_states::UNINTERRUPTIBLE => "Uninterruptible",
        linux_states::STOPPED => "Stopped",
        linux_states::TRACED => "Traced",
        linux_states::IDLE => "Idle",
        linux_states::PARKED => "Parked",
        _ => return names::wait_reason(code),
    })
}

/// Returns the name of a thread state (`KTHREAD_STATE`).
pub fn thread_state(code: u8) -> Option<&'static str> {
    names::thread_state(code)
}
