//! Sleeping on Windows, and its timer resolution. Unsafe code is allowed for calls whose arguments
//! are numbers, addresses of local variables that outlive the call, and timer handles. The owner of
//! a timer handle closes it once.
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
use crate::Refusal;

// Every Windows NT exports these functions from ntdll.dll. Microsoft's headers lack them, but the
// headers of System Informer have them (phnt, MIT).
windows_link::link!("ntdll.dll" "system" fn NtDelayExecution(alertable: u8, interval: *const i64) -> i32);
windows_link::link!("ntdll.dll" "system" fn NtQueryTimerResolution(coarsest: *mut u32, finest: *mut u32, current: *mut u32) -> i32);
windows_link::link!("ntdll.dll" "system" fn NtSetTimerResolution(desired: u32, set: u8, current: *mut u32) -> i32);

/// Granted request, which is released on drop.
#[derive(Debug)]
pub(super) enum GrantedRequest {
    Resolution(Resolution),
    NoThrottling,
}

impl Drop for GrantedRequest {
    fn drop(&mut self) {
        match self {
            GrantedRequest::Resolution(Resolution::Native(units)) => {
                let mut current = 0;
                // SAFETY: the pointer refers to a local variable.
                unsafe { NtSetTimerResolution(*units, 0, &mut current) };
            }
            GrantedRequest::Resolution(Resolution::Multimedia(ms)) => {
                // SAFETY: the argument is a number.
                unsafe { timeEndPeriod(*ms) };
            }
            GrantedRequest::NoThrottling => {
                // If releasing fails, the request ends with the program.
                let _ = throttling(0);
            }
        }
    }
}

/// Requests a resolution and checks the result. The check is needed because the system rounds the
/// resolution, and because it may apply another program's request.
pub(super) fn set_resolution(resolution: Resolution) -> Result<GrantedRequest, Refusal> {
    match resolution {
        Resolution::Native(units) => {
            let mut current = 0;
            // SAFETY: the pointer refers to a local variable.
            let status = unsafe { NtSetTimerResolution(units, 1, &mut current) };
            if status != STATUS_SUCCESS {
                return Err(Refusal::Invalid(format!(
                    "NtSetTimerResolution failed: status {status:#010x}"
                )));
            }
        }
        Resolution::Multimedia(ms) => {
            // SAFETY: the argument is a number.
            if unsafe { timeBeginPeriod(ms) } != TIMERR_NOERROR {
                return Err(Refusal::Invalid(format!(
                    "timeBeginPeriod does not accept {ms} ms"
                )));
            }
        }
    }
    let request = GrantedRequest::Resolution(resolution);
    // Some systems tick slightly faster than requested: 0.4992 ms for 0.5 ms.
    let is_near = |ns: i64| ns <= resolution.ns() + resolution.ns() / 50;
    match resolutions_ns() {
        Some([coarsest, finest, now]) if !is_near(now) => {
            let ms = |ns: i64| ns as f64 / 1e6;
            Err(Refusal::Invalid(format!(
                "the system keeps a resolution of {} ms; use {} to {} ms",
                ms(now),
                ms(finest),
                ms(coarsest)
            )))
        }
        _ => Ok(request),
    }
}

pub(super) fn refuse_throttling() -> Result<GrantedRequest, Refusal> {
    throttling(PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION)?;
    Ok(GrantedRequest::NoThrottling)
}

/// Takes control of the throttling in `kinds` and disables this throttling. If `kinds` is 0, returns the
/// control to the system.
fn throttling(kinds: u32) -> Result<(), Refusal> {
    let state = PROCESS_POWER_THROTTLING_STATE {
        Version: PROCESS_POWER_THROTTLING_CURRENT_VERSION,
        ControlMask: kinds,
        StateMask: 0,
    };
    let address: *const PROCESS_POWER_THROTTLING_STATE = &state;
    // SAFETY: the structure outlives the call, and the call gets its size.
    let done = unsafe {
        SetProcessInformation(
            GetCurrentProcess(),
            ProcessPowerThrottling,
            address.cast(),
            size_of_val(&state) as u32,
        )
    };
    match done {
        0 => Err(Refusal::system(
            io::Error::last_os_error(),
            "it needs Windows 11",
        )),
        _ => Ok(()),
    }
}

/// Returns the current timer resolution for this program in nanoseconds.
pub(super) fn resolution_ns() -> Option<i64> {
    resolutions_ns().map(|[_, _, now]| now)
}

/// Returns the coarsest, finest and current timer resolution in nanoseconds.
fn resolutions_ns() -> Option<[i64; 3]> {
    let (mut coarsest, mut finest, mut current) = (0, 0, 0);
    // SAFETY: the pointers refer to local variables.
    let status = unsafe { NtQueryTimerResolution(&mut coarsest, &mut finest, &mut current) };
    (status == STATUS_SUCCESS && current > 0)
        .then(|| [coarsest, finest, current].map(|units| i64::from(units) * 100))
}

/// Sleep method that is ready for use, with its timer if it has one.
pub(super) enum Sleeper {
    Sleep,
    NtDelayExecution,
    Timer(OwnedHandle),
}

impl Sleeper {
    pub(super) fn open(method: SleepMethod) -> Result<Sleeper, Refusal> {
        Ok(match method {
            SleepMethod::Sleep => Sleeper::Sleep,
            SleepMethod::NtDelayExecution => Sleeper::NtDelayExecution,
            SleepMethod::WaitableTimer => Sleeper::Timer(timer(0)?),
            SleepMethod::HighResolutionTimer => {
                let created = timer(CREATE_WAITABLE_TIMER_HIGH_RESOLUTION);
                Sleeper::Timer(
                    created.map_err(|error| Refusal::system(error, "it needs Windows 10 1803"))?,
                )
            }
            other => return Err(other.unsupported()),
        })
    }

    /// Sleeps for `ns` nanoseconds. Calls the system even if `ns` is 0.
    pub(super) fn sleep(&mut self, ns: i64) -> io::Result<()> {
        let units = u64::try_from(ns).unwrap_or(0).div_ceil(100);
        // A negative time is relative to the present.
        let due = -i64::try_from(units).unwrap_or(i64::MAX);
        match self {
            Sleeper::Sleep => {
                let ms = u32::try_from(units.div_ceil(10_000)).unwrap_or(u32::MAX - 1);
                // SAFETY: the argument is a number.
                unsafe { Sleep(ms) };
                Ok(())
            }
            Sleeper::NtDelayExecution => {
                // SAFETY: the pointer refers to a local variable.
                match unsafe { NtDelayExecution(0, &due) } {
                    STATUS_SUCCESS => Ok(()),
                    status => Err(io::Error::other(format!("status {status:#010x}"))),
                }
            }
            Sleeper::Timer(timer) => {
                let handle = timer.as_raw_handle();
                // SAFETY: the handle of the timer is open, and there is no callback.
                let done = unsafe {
                    let set = SetWaitableTimer(handle, &due, 0, None, std::ptr::null(), 0);
                    set != 0 && WaitForSingleObject(handle, INFINITE) == WAIT_OBJECT_0
                };
                if done {
                    Ok(())
                } else {
                    Err(io::Error::last_os_error())
                }
            }
        }
    }
}

fn timer(flags: u32) -> io::Result<OwnedHandle> {
    let (no_attributes, no_name) = (std::ptr::null(), std::ptr::null());
    // SAFETY: the call gets neither attributes nor a name.
    let handle = unsafe { CreateWaitableTimerExW(no_attributes, no_name, flags, TIMER_ALL_ACCESS) };
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was just created and has no other owner.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}
