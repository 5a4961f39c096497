//! What the kernel calls thread states and reasons to wait (`KTHREAD_STATE`, `KWAIT_REASON`).

use super::writer::Value;

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

/// A thread's state; its number if it has no name.
pub(crate) fn state(state: Option<u8>) -> Value<'static> {
    name(&STATES, state)
}

/// Why a thread waits; its number if it has no name.
pub(crate) fn wait_reason(reason: Option<u8>) -> Value<'static> {
    name(&WAIT_REASONS, reason)
}

/// Whether the stack of a thread that waits on behalf of the kernel or a user may be paged out.
pub(crate) fn swapable(wait_mode: Option<u8>) -> Value<'static> {
    name(&["NonSwap", "Swapable"], wait_mode)
}

/// Why a thread's priority was adjusted.
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
