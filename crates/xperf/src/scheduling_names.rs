//! Names of thread states and wait reasons of Windows' kernel (`KTHREAD_STATE`, `KWAIT_REASON`). For recordings of
//! Linux, the crate `tables` has the names of wait reasons.

use crate::writer::Value;

const STATES: [&str; 10] = [
    "Initialized",
    "Ready",
    "Running",
    "Standby",
    "Terminated",
    "Waiting",
    "Transition",
    "DeferredReady",
    "GateWait",
    "WaitingForProcessInSwap",
];

const WAIT_REASONS: [&str; 43] = [
    "Executive",
    "FreePage",
    "PageIn",
    "PoolAllocation",
    "DelayExecution",
    "Suspended",
    "UserRequest",
    "WrExecutive",
    "WrFreePage",
    "WrPageIn",
    "WrPoolAllocation",
    "WrDelayExecution",
    "WrSuspended",
    "WrUserRequest",
    "WrEventPair",
    "WrQueue",
    "WrLpcReceive",
    "WrLpcReply",
    "WrVirtualMemory",
    "WrPageOut",
    "WrRendezvous",
    "WrKeyedEvent",
    "WrTerminated",
    "WrProcessInSwap",
    "WrCpuRateControl",
    "WrCalloutStack",
    "WrKernel",
    "WrResource",
    "WrPushLock",
    "WrMutex",
    "WrQuantumEnd",
    "WrDispatchInt",
    "WrPreempted",
    "WrYieldExecution",
    "WrFastMutex",
    "WrGuardedMutex",
    "WrRundown",
    "WrAlertByThreadId",
    "WrDeferredPreempt",
    "WrPhysicalFault",
    "WrIoRing",
    "WrMdlCache",
    "WrRcu",
];

/// Returns the name of a thread's state, or its number if it has no name.
pub(crate) fn state(state: Option<u8>) -> Value<'static> {
    name(&STATES, state)
}

/// Returns the name of a wait reason, or its number if it has no name.
pub(crate) fn wait_reason(reason: Option<u8>) -> Value<'static> {
    match reason.filter(|code| tables::linux_states::is_wait_reason(*code)) {
        Some(code) => tables::wait_reason(code).map_or(Value::Unknown, Value::Word),
        None => name(&WAIT_REASONS, reason),
    }
}

/// Returns the name of a wait mode. The wait mode determines whether the stack of the waiting thread may be
/// paged out.
pub(crate) fn swapable(wait_mode: Option<u8>) -> Value<'static> {
    name(&["NonSwap", "Swapable"], wait_mode)
}

/// Returns the name of the reason for a priority change.
pub(crate) fn adjust_reason(reason: Option<u8>) -> Value<'static> {
    name(&["None", "Unwait", "Boost"], reason)
}

fn name(names: &[&'static str], number: Option<u8>) -> Value<'static> {
    let Some(number) = number else {
        return Value::Unknown;
    };
    match names.get(usize::from(number)) {
        Some(name) => Value::Word(name),
        None => Value::Number(number.into()),
    }
}
