//! How Windows sleeps, and its timer resolution. Its allowance of unsafe code is for calls that are
//! handed numbers, addresses of local variables, which outlive the call, and handles of timers, which
//! their owner closes once.
#![allow(unsafe_code)]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::{STATUS_SUCCESS, WAIT_OBJECT_0};
use windows_sys::Win32::Media::{TIMERR_NOERROR, timeBeginPeriod, timeEndPeriod};
use windows_sys::Win32::System::Threading::{
    CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, CreateWaitableTimerExW, GetCurrentProcess, INFINITE,
    PROCESS_POWER_THROTTLING_CURRENT_VERSION, PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION,
    PROCESS_POWER_THROTTLING_STATE, ProcessPowerThrottling, SetProcessInformation,
    SetWaitableTimer, Sleep, TIMER_ALL_ACCESS, WaitForSingleObject,
};

use super::{Resolution, SleepMethod};

// Of ntdll.dll, in every Windows NT; not in Microsoft's headers for programs, but in those of System
// Informer (phnt, MIT).
windows_link::link!("ntdll.dll" "system" fn NtDelayExecution(alertable: u8, interval: *const i64) -> i32);
windows_link::link!("ntdll.dll" "system" fn NtQueryTimerResolution(coarsest: *mut u32, finest: *mut u32, current: *mut u32) -> i32);
windows_link::link!("ntdll.dll" "system" fn NtSetTimerResolution(desired: u32, set: u8, current: *mut u32) -> i32);

/// Something asked for, which is given back when this is dropped.
#[derive(Debug)]
pub(super) enum Held {
    Resolution(Resolution),
    NoThrottling,
}

impl Drop for Held {
    fn drop(&mut self) {
        match self {
            Held::Resolution(Resolution::Native(units)) => {
                let mut current = 0;
                // SAFETY: the address is a local variable's.
                unsafe { NtSetTimerResolution(*units, 0, &mut current) };
            }
            Held::Resolution(Resolution::Multimedia(ms)) => {
                // SAFETY: a number.
                unsafe { timeEndPeriod(*ms) };
            }
            Held::NoThrottling => {
                // What cannot be given back ends with the program.
                let _ = throttling(0);
            }
        }
    }
}

/// Asks for it and looks at what was set: the system rounds, and may take what another asked for.
pub(super) fn set_resolution(resolution: Resolution) -> Result<Held, String> {
    match resolution {
        Resolution::Native(units) => {
            let mut current = 0;
            // SAFETY: the address is a local variable's.
            let status = unsafe { NtSetTimerResolution(units, 1, &mut current) };
            if status != STATUS_SUCCESS {
                return Err(format!("NtSetTimerResolution: status {status:#010x}"));
            }
        }
        Resolution::Multimedia(ms) => {
            // SAFETY: a number.
            if unsafe { timeBeginPeriod(ms) } != TIMERR_NOERROR {
                return Err(format!("timeBeginPeriod does not take {ms} ms"));
            }
        }
    }
    let held = Held::Resolution(resolution);
    // Some tick a little faster than they were asked to: 0.4992 ms for 0.5 ms.
    let is_near = |ns: i64| ns <= resolution.ns() + resolution.ns() / 50;
    match resolutions_ns() {
        Some([coarsest, finest, now]) if !is_near(now) => {
            let ms = |ns: i64| ns as f64 / 1e6;
            Err(format!(
                "the system keeps to {} ms; ask for one that it has: {} to {} ms",
                ms(now),
                ms(finest),
                ms(coarsest)
            ))
        }
        _ => Ok(held),
    }
}

pub(super) fn refuse_throttling() -> Result<Held, String> {
    throttling(PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION)?;
    Ok(Held::NoThrottling)
}

/// Takes these kinds of throttling out of the system's hands, and switches them off.
fn throttling(kinds: u32) -> Result<(), String> {
    let state = PROCESS_POWER_THROTTLING_STATE {
        Version: PROCESS_POWER_THROTTLING_CURRENT_VERSION,
        ControlMask: kinds,
        StateMask: 0,
    };
    let address: *const PROCESS_POWER_THROTTLING_STATE = &state;
    // SAFETY: the structure outlives the call, which is told its size.
    let done = unsafe {
        SetProcessInformation(
            GetCurrentProcess(),
            ProcessPowerThrottling,
            address.cast(),
            size_of_val(&state) as u32,
        )
    };
    match done {
        0 => Err(format!(
            "{} (it takes Windows 11)",
            io::Error::last_os_error()
        )),
        _ => Ok(()),
    }
}

/// The timer resolution that holds for this program now.
pub(super) fn resolution_ns() -> Option<i64> {
    resolutions_ns().map(|[_, _, now]| now)
}

/// The coarsest and the finest timer resolution that there are, and that which holds now.
fn resolutions_ns() -> Option<[i64; 3]> {
    let (mut coarsest, mut finest, mut current) = (0, 0, 0);
    // SAFETY: the addresses are local variables'.
    let status = unsafe { NtQueryTimerResolution(&mut coarsest, &mut finest, &mut current) };
    (status == STATUS_SUCCESS && current > 0)
        .then(|| [coarsest, finest, current].map(|units| i64::from(units) * 100))
}

/// Something that sleeps.
pub(super) enum Sleeper {
    Sleep,
    NtDelayExecution,
    Timer(OwnedHandle),
}

impl Sleeper {
    pub(super) fn open(method: SleepMethod) -> Result<Sleeper, String> {
        Ok(match method {
            SleepMethod::Sleep => Sleeper::Sleep,
            SleepMethod::NtDelayExecution => Sleeper::NtDelayExecution,
            SleepMethod::WaitableTimer => Sleeper::Timer(timer(0)?),
            SleepMethod::HighResolutionTimer => {
                Sleeper::Timer(timer(CREATE_WAITABLE_TIMER_HIGH_RESOLUTION).map_err(|why| {
                    format!("Windows refuses it: {why} (it takes Windows 10 1803)")
                })?)
            }
            other => return Err(other.is_elsewhere()),
        })
    }

    /// Sleeps for so many nanoseconds from now; asks the system even for none.
    pub(super) fn sleep(&mut self, ns: i64) -> io::Result<()> {
        let units = u64::try_from(ns).unwrap_or(0).div_ceil(100);
        // Negative times count from now.
        let due = -i64::try_from(units).unwrap_or(i64::MAX);
        match self {
            Sleeper::Sleep => {
                let ms = u32::try_from(units.div_ceil(10_000)).unwrap_or(u32::MAX - 1);
                // SAFETY: a number.
                unsafe { Sleep(ms) };
                Ok(())
            }
            Sleeper::NtDelayExecution => {
                // SAFETY: the address is a local variable's.
                match unsafe { NtDelayExecution(0, &due) } {
                    STATUS_SUCCESS => Ok(()),
                    status => Err(io::Error::other(format!("status {status:#010x}"))),
                }
            }
            Sleeper::Timer(timer) => {
                let handle = timer.as_raw_handle();
                // SAFETY: the handle is the timer's, which lives; nobody is called back.
                let done = unsafe {
                    let set = SetWaitableTimer(handle, &due, 0, None, std::ptr::null(), 0);
                    set != 0 && WaitForSingleObject(handle, INFINITE) == WAIT_OBJECT_0
                };
                match done {
                    true => Ok(()),
                    false => Err(io::Error::last_os_error()),
                }
            }
        }
    }
}

fn timer(flags: u32) -> Result<OwnedHandle, String> {
    let (nobody, no_name) = (std::ptr::null(), std::ptr::null());
    // SAFETY: no attributes and no name.
    let handle = unsafe { CreateWaitableTimerExW(nobody, no_name, flags, TIMER_ALL_ACCESS) };
    match handle.is_null() {
        true => Err(io::Error::last_os_error().to_string()),
        // SAFETY: it was just made, and nobody else has it.
        false => Ok(unsafe { OwnedHandle::from_raw_handle(handle) }),
    }
}
