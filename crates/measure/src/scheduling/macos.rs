//! What macOS is asked for. Its allowance of unsafe code is for setting a thread's policy, for which
//! there is no safe wrapper: the system reads a structure from the address of a local variable that
//! lives longer than the call.
#![allow(unsafe_code)]

use std::time::Duration;

use super::Policy;

pub(super) fn pin(_cpu: u32) -> Result<(), String> {
    Err("macOS lets no program choose its CPU".to_owned())
}

pub(super) fn set_nice(nice: i8) -> Result<(), String> {
    rustix::process::setpriority_process(None, nice.into()).map_err(|error| error.to_string())
}

pub(super) fn lock_memory() -> Result<(), String> {
    Err("macOS has no call that locks all memory of a program".to_owned())
}

pub(super) fn set_timer_slack(_slack: Duration) -> Result<(), String> {
    Err("the timer slack of a thread is one of Linux".to_owned())
}

pub(super) fn set_policy(policy: Policy) -> Result<(), String> {
    let (policy, priority) = match policy {
        Policy::Usual => (libc::SCHED_OTHER, 31), // the default priority of user threads
        Policy::Fifo(priority) => (libc::SCHED_FIFO, priority),
        Policy::RoundRobin(priority) => (libc::SCHED_RR, priority),
        Policy::Deadline { .. } => {
            return Err("SCHED_DEADLINE is one of Linux; ask for fifo or rr".to_owned());
        }
        Policy::TimeCritical | Policy::Multimedia => {
            return Err("it is one of Windows; ask for fifo or rr".to_owned());
        }
    };
    // SAFETY: plain numbers, of which all zero are valid.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority.into();
    // SAFETY: the thread is the calling one, and the structure lives until the call has returned.
    match unsafe { libc::pthread_setschedparam(libc::pthread_self(), policy, &parameters) } {
        0 => Ok(()),
        libc::EINVAL => Err("macOS knows no such priority; try 1 to 47".to_owned()),
        error => Err(std::io::Error::from_raw_os_error(error).to_string()),
    }
}
