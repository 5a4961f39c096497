//! How macOS sleeps.

use std::io;

use rustix::thread::{NanosleepRelativeResult, Timespec};

use super::{Resolution, SleepMethod};

/// Nothing of Windows' resolutions can be held.
pub(super) type Held = std::convert::Infallible;

pub(super) fn set_resolution(_resolution: Resolution) -> Result<Held, String> {
    Err("it is one of Windows".to_owned())
}

pub(super) fn refuse_throttling() -> Result<Held, String> {
    Err("it is one of Windows".to_owned())
}

/// macOS does not say how it coalesces timers.
pub(super) fn resolution_ns() -> Option<i64> {
    None
}

/// Something that sleeps.
pub(super) struct Sleeper;

impl Sleeper {
    pub(super) fn open(method: SleepMethod) -> Result<Sleeper, String> {
        match method {
            SleepMethod::Nanosleep => Ok(Sleeper),
            other => Err(other.is_elsewhere()),
        }
    }

    /// Sleeps for so many nanoseconds from now; asks the system even for none.
    pub(super) fn sleep(&mut self, ns: i64) -> io::Result<()> {
        let ns = ns.max(0);
        let mut time = Timespec {
            tv_sec: ns / 1_000_000_000,
            tv_nsec: ns % 1_000_000_000,
        };
        loop {
            match rustix::thread::nanosleep(&time) {
                NanosleepRelativeResult::Ok => return Ok(()),
                NanosleepRelativeResult::Interrupted(left) => time = left,
                NanosleepRelativeResult::Err(error) => return Err(error.into()),
            }
        }
    }
}
