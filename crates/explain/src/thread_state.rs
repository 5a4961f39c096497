//! Codes of the states and wait reasons of threads, as in the columns `state_out`, `previous_state`,
//! `wait_reason_out` and `previous_wait_reason` of the table `cpu_runs`.

/// The thread lost its CPU, and is ready.
pub(crate) const READY: u8 = 1;
/// State of a thread that has ended.
pub const TERMINATED: u8 = 4;
/// State of a thread that waits.
pub const WAITING: u8 = 5;

/// Wait reasons of a sleeping thread: `DelayExecution` and `WrDelayExecution`.
pub const SLEEP_REASONS: [u8; 2] = [4, 11];
/// Wait reason of a ready thread whose quantum ended (`WrQuantumEnd`).
pub const QUANTUM_END: u8 = 30;

/// Codes of the wait reasons of locks or possible locks: `WrKeyedEvent`, `WrResource`,
/// `WrPushLock`, `WrMutex`, `WrFastMutex`, `WrGuardedMutex` and `WrAlertByThreadId` (locks and
/// condition variables of user mode since Windows 8).
pub(crate) const LOCKS: [u8; 7] = [21, 27, 28, 29, 34, 35, 37];

/// Returns true for the states of a thread that needs only a CPU: ready, standby and deferred ready.
pub(crate) fn is_ready(state: u8) -> bool {
    matches!(state, READY | 3 | 7)
}
