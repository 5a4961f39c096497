//! Scheduling on Windows. Unsafe code is allowed for calls about the calling thread. The arguments of these
//! calls are the pseudo-handle of the thread, numbers, and a constant text that ends with 0.
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
use crate::Refusal;

pub(super) fn pin(cpu: u32) -> Result<(), Refusal> {
    let mask = 1usize.checked_shl(cpu).ok_or_else(|| {
        Refusal::Invalid(format!(
            "CPU {cpu} is outside of the first processor group; only that group is supported"
        ))
    })?;
    // SAFETY: the call takes a pseudo-handle and a number.
    match unsafe { SetThreadAffinityMask(GetCurrentThread(), mask) } {
        0 => Err(Refusal::Invalid(format!(
            "CPU {cpu} does not exist, or is not available to this process"
        ))),
        _ => Ok(()),
    }
}

pub(super) fn set_nice(nice: i8) -> Result<(), Refusal> {
    set_priority(match nice {
        ..=-10 => THREAD_PRIORITY_HIGHEST,
        -9..=-1 => THREAD_PRIORITY_ABOVE_NORMAL,
        0 => THREAD_PRIORITY_NORMAL,
        1..=9 => THREAD_PRIORITY_BELOW_NORMAL,
        10.. => THREAD_PRIORITY_LOWEST,
    })
}

pub(super) fn lock_memory() -> Result<(), Refusal> {
    Err(Refusal::Unsupported(
        "Windows cannot lock all memory of a program",
    ))
}

pub(super) fn set_timer_slack(_slack: Duration) -> Result<(), Refusal> {
    Err(Refusal::Unsupported(
        "timer slack exists on Linux only; on Windows set a timer resolution",
    ))
}

pub(super) fn set_policy(policy: Policy) -> Result<(), Refusal> {
    match policy {
        Policy::Default => set_priority(THREAD_PRIORITY_NORMAL),
        Policy::TimeCritical => set_priority(THREAD_PRIORITY_TIME_CRITICAL),
        Policy::Multimedia => multimedia(),
        Policy::Fifo(_) | Policy::RoundRobin(_) | Policy::Deadline { .. } => Err(
            Refusal::Unsupported("it exists on Linux only; on Windows use time-critical or mmcss"),
        ),
    }
}

fn set_priority(priority: THREAD_PRIORITY) -> Result<(), Refusal> {
    // SAFETY: the call takes a pseudo-handle and a number.
    match unsafe { SetThreadPriority(GetCurrentThread(), priority) } {
        0 => Err(io::Error::last_os_error().into()),
        _ => Ok(()),
    }
}

/// Joins the MMCSS task "Pro Audio" until the thread ends.
fn multimedia() -> Result<(), Refusal> {
    let mut task = 0;
    // SAFETY: the name is a constant that ends with 0, and the number is a local variable.
    let handle = unsafe { AvSetMmThreadCharacteristicsW(w!("Pro Audio"), &mut task) };
    if handle.is_null() {
        let error = io::Error::last_os_error();
        let advice = "check that the service Multimedia Class Scheduler is running";
        Err(Refusal::system(error, advice))
    } else {
        Ok(())
    }
}
