//! Scheduling on macOS. Unsafe code is allowed for setting a policy, because there is no safe
//! wrapper. The system reads a local structure that outlives the call.
#![allow(unsafe_code)]

use std::time::Duration;

use super::Policy;
use crate::Refusal;

pub(super) fn pin(_cpu: u32) -> Result<(), Refusal> {
    Err(Refusal::Unsupported(
        "macOS does not let a program choose its CPU",
    ))
}

pub(super) fn set_nice(nice: i8) -> Result<(), Refusal> {
    rustix::process::setpriority_process(None, nice.into())
        .map_err(|error| Refusal::system(error, ""))
}

pub(super) fn lock_memory() -> Result<(), Refusal> {
    Err(Refusal::Unsupported(
        "macOS cannot lock all memory of a program",
    ))
}

pub(super) fn set_timer_slack(_slack: Duration) -> Result<(), Refusal> {
    Err(Refusal::Unsupported("timer slack exists on Linux only"))
}

pub(super) fn set_policy(policy: Policy) -> Result<(), Refusal> {
    let (policy, priority) = match policy {
        Policy::Default => (libc::SCHED_OTHER, 31), // the default priority of user threads
        Policy::Fifo(priority) => (libc::SCHED_FIFO, priority),
        Policy::RoundRobin(priority) => (libc::SCHED_RR, priority),
        Policy::Deadline { .. } => {
            return Err(Refusal::Unsupported(
                "it exists on Linux only; use fifo or rr",
            ));
        }
        Policy::TimeCritical | Policy::Multimedia => {
            return Err(Refusal::Unsupported(
                "it exists on Windows only; use fifo or rr",
            ));
        }
    };
    // SAFETY: the structure holds only numbers, for which zero is valid.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority.into();
    // SAFETY: the call concerns the calling thread, and the structure outlives the call.
    match unsafe { libc::pthread_setschedparam(libc::pthread_self(), policy, &parameters) } {
        0 => Ok(()),
        error => {
            let advice = match error {
                libc::EINVAL => "use a priority from 1 to 47",
                _ => "",
            };
            Err(Refusal::system(
                std::io::Error::from_raw_os_error(error),
                advice,
            ))
        }
    }
}
