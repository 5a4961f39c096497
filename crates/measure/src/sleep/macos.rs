//! Sleeping on macOS.

use std::io;

use rustix::thread::{NanosleepRelativeResult, Timespec};

use super::{Resolution, SleepMethod};
use crate::Refusal;

/// Type without values, because macOS has no timer resolution that a program could request.
pub(super) type GrantedRequest = std::convert::Infallible;

pub(super) fn set_resolution(_resolution: Resolution) -> Result<GrantedRequest, Refusal> {
    Err(Refusal::Unsupported("it exists on Windows only"))
}

pub(super) fn refuse_throttling() -> Result<GrantedRequest, Refusal> {
    Err(Refusal::Unsupported("it exists on Windows only"))
}

/// Returns `None`, because macOS does not report how it coalesces timers.
pub(super) fn resolution_ns() -> Option<i64> {
    None
}

/// Sleep method that is ready for use. macOS has only `nanosleep`.
pub(super) struct Sleeper;

impl Sleeper {
    pub(super) fn open(method: SleepMethod) -> Result<Sleeper, Refusal> {
        match method {
            SleepMethod::Nanosleep => Ok(Sleeper),
            other => Err(other.unsupported()),
        }
    }

    /// Sleeps for `ns` nanoseconds. Calls the system even if `ns` is 0.
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
