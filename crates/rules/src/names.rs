//! Names of numbers that Windows logs about threads.
//!
//! Sources: the Windows SDK and WDK, Microsoft's ETW reference, System Informer's `ntkeapi.h`.

/// States of a thread (`KTHREAD_STATE`), in the order of their numbers.
pub const THREAD_STATES: &[(u8, &str)] = &[
    (0, "Initialized"),
    (1, "Ready"),
    (2, "Running"),
    (3, "Standby"),
    (4, "Terminated"),
    (5, "Waiting"),
    (6, "Transition"),
    (7, "DeferredReady"),
    (8, "GateWait"),
    (9, "WaitingForProcessInSwap"),
];

/// Reasons why a thread waits or stopped running (`KWAIT_REASON`), in the order of their numbers. The reasons 30 to 33 do
/// not mean a wait. They mean that the thread stopped running because of a preemption or a similar cause.
pub const WAIT_REASONS: &[(u8, &str)] = &[
    (0, "Executive"),
    (1, "FreePage"),
    (2, "PageIn"),
    (3, "PoolAllocation"),
    (4, "DelayExecution"),
    (5, "Suspended"),
    (6, "UserRequest"),
    (7, "WrExecutive"),
    (8, "WrFreePage"),
    (9, "WrPageIn"),
    (10, "WrPoolAllocation"),
    (11, "WrDelayExecution"),
    (12, "WrSuspended"),
    (13, "WrUserRequest"),
    (14, "WrEventPair"),
    (15, "WrQueue"),
    (16, "WrLpcReceive"),
    (17, "WrLpcReply"),
    (18, "WrVirtualMemory"),
    (19, "WrPageOut"),
    (20, "WrRendezvous"),
    (21, "WrKeyedEvent"),
    (22, "WrTerminated"),
    (23, "WrProcessInSwap"),
    (24, "WrCpuRateControl"),
    (25, "WrCalloutStack"),
    (26, "WrKernel"),
    (27, "WrResource"),
    (28, "WrPushLock"),
    (29, "WrMutex"),
    (30, "WrQuantumEnd"),
    (31, "WrDispatchInt"),
    (32, "WrPreempted"),
    (33, "WrYieldExecution"),
    (34, "WrFastMutex"),
    (35, "WrGuardedMutex"),
    (36, "WrRundown"),
    (37, "WrAlertByThreadId"),
    (38, "WrDeferredPreempt"),
    (39, "WrPhysicalFault"),
    (40, "WrIoRing"),
    (41, "WrMdlCache"),
    (42, "WrRcu"),
];

/// Returns the name of a thread state.
pub fn thread_state(state: u8) -> Option<&'static str> {
    name(THREAD_STATES, state)
}

/// Returns the name of a wait reason.
pub fn wait_reason(reason: u8) -> Option<&'static str> {
    name(WAIT_REASONS, reason)
}

fn name(names: &[(u8, &'static str)], number: u8) -> Option<&'static str> {
    // The place of a name is its number.
    names.get(usize::from(number)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_names() {
        assert_eq!(wait_reason(37), Some("WrAlertByThreadId"));
        assert_eq!(wait_reason(43), None);
        assert_eq!(thread_state(5), Some("Waiting"));
        for names in [THREAD_STATES, WAIT_REASONS] {
            assert!(
                (0..)
                    .zip(names)
                    .all(|(place, (number, _))| place == *number)
            );
        }
    }
}
