//! What Windows is asked for. Its allowance of unsafe code is for calls about the calling thread,
//! which are handed its pseudo-handle, numbers, and one text that ends with 0 and lives longer than
//! the call.
#![allow(unsafe_code)]

use std::io;
use std::time::Duration;

use windows_sys::Win32::System::Threading::{
    AvSetMmThreadCharacteristicsW, GetCurrentThread, SetThreadAffinityMask, SetThreadPriority,
    THREAD_PRIORITY, THREAD_PRIORITY_ABOVE_NORMAL, THREAD_PRIORITY_BELOW_NORMAL,
    THREAD_PRIORITY_HIGHEST, THREAD_PRIORITY_LOWEST, THREAD_PRIORITY_NORMAL,
    THREAD_PRIORITY_TIME_CRITICAL,
};
use windows_sys::core::w;

use super::Policy;

pub(super) fn pin(cpu: u32) -> Result<(), String> {
    let mask = 1usize.checked_shl(cpu).ok_or_else(|| {
        format!("CPU {cpu} is beyond the first processor group, which is all that is asked for")
    })?;
    // SAFETY: a pseudo-handle and a number.
    match unsafe { SetThreadAffinityMask(GetCurrentThread(), mask) } {
        0 => Err(format!(
            "there is no CPU {cpu}, or it is not this process's to use"
        )),
        _ => Ok(()),
    }
}

pub(super) fn set_nice(nice: i8) -> Result<(), String> {
    set_priority(match nice {
        ..=-10 => THREAD_PRIORITY_HIGHEST,
        -9..=-1 => THREAD_PRIORITY_ABOVE_NORMAL,
        0 => THREAD_PRIORITY_NORMAL,
        1..=9 => THREAD_PRIORITY_BELOW_NORMAL,
        10.. => THREAD_PRIORITY_LOWEST,
    })
}

pub(super) fn lock_memory() -> Result<(), String> {
    Err("Windows has no call that locks all memory of a program".to_owned())
}

pub(super) fn set_timer_slack(_slack: Duration) -> Result<(), String> {
    Err("the timer slack of a thread is one of Linux; on Windows set a timer resolution".to_owned())
}

pub(super) fn set_policy(policy: Policy) -> Result<(), String> {
    match policy {
        Policy::Usual => set_priority(THREAD_PRIORITY_NORMAL),
        Policy::TimeCritical => set_priority(THREAD_PRIORITY_TIME_CRITICAL),
        Policy::Multimedia => multimedia(),
        Policy::Fifo(_) | Policy::RoundRobin(_) | Policy::Deadline { .. } => {
            Err("it is one of Linux; on Windows ask for time-critical or mmcss".to_owned())
        }
    }
}

fn set_priority(priority: THREAD_PRIORITY) -> Result<(), String> {
    // SAFETY: a pseudo-handle and a number.
    match unsafe { SetThreadPriority(GetCurrentThread(), priority) } {
        0 => Err(io::Error::last_os_error().to_string()),
        _ => Ok(()),
    }
}

/// The thread keeps what it gets until it ends.
fn multimedia() -> Result<(), String> {
    let mut task = 0;
    // SAFETY: the name is a constant that ends with 0, and the number a local variable.
    let handle = unsafe { AvSetMmThreadCharacteristicsW(w!("Pro Audio"), &mut task) };
    match handle.is_null() {
        true => {
            let error = io::Error::last_os_error();
            Err(format!(
                "{error} (is the service Multimedia Class Scheduler running?)"
            ))
        }
        false => Ok(()),
    }
}
