//! Sleeping on Linux.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU32;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::thread::{NanosleepRelativeResult, futex};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, clock_gettime,
};

use super::{Resolution, SleepMethod};
use crate::Refusal;

/// Type without values, because Linux has no timer resolution that a program could request.
pub(super) type GrantedRequest = std::convert::Infallible;

pub(super) fn set_resolution(_resolution: Resolution) -> Result<GrantedRequest, Refusal> {
    Err(Refusal::Unsupported(
        "it exists on Windows only; on Linux set a timer slack",
    ))
}

pub(super) fn refuse_throttling() -> Result<GrantedRequest, Refusal> {
    Err(Refusal::Unsupported("it exists on Windows only"))
}

/// Returns the timer slack of the calling thread in nanoseconds: the time by which a sleep may end
/// late.
pub(super) fn resolution_ns() -> Option<i64> {
    let ns = rustix::thread::current_timer_slack().ok()?;
    i64::try_from(ns).ok()
}

/// Sleep method that is ready for use, with its timer or other object if it has one.
pub(super) enum Sleeper {
    Nanosleep,
    ClockNanosleep,
    Timerfd(OwnedFd),
    Epoll(OwnedFd),
    Futex(AtomicU32),
}

impl Sleeper {
    pub(super) fn open(method: SleepMethod) -> Result<Sleeper, Refusal> {
        let refused = |error: Errno| Refusal::system(error, "");
        Ok(match method {
            SleepMethod::Nanosleep => Sleeper::Nanosleep,
            SleepMethod::ClockNanosleep => Sleeper::ClockNanosleep,
            SleepMethod::Timerfd => {
                let flags = TimerfdFlags::CLOEXEC;
                let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags);
                Sleeper::Timerfd(timer.map_err(refused)?)
            }
            SleepMethod::EpollWait => {
                let nothing = epoll::create(epoll::CreateFlags::CLOEXEC);
                Sleeper::Epoll(nothing.map_err(refused)?)
            }
            SleepMethod::Futex => Sleeper::Futex(AtomicU32::new(0)),
            other => return Err(other.unsupported()),
        })
    }

    /// Sleeps for `ns` nanoseconds. Calls the system even if `ns` is 0.
    pub(super) fn sleep(&mut self, ns: i64) -> io::Result<()> {
        match self {
            Sleeper::Nanosleep => nanosleep(timespec(ns)),
            Sleeper::ClockNanosleep => {
                let due = timespec(monotonic_ns() + ns);
                again(|| rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &due))
            }
            Sleeper::Timerfd(timer) => {
                let due = Itimerspec {
                    it_interval: timespec(0),
                    it_value: timespec(monotonic_ns() + ns),
                };
                rustix::time::timerfd_settime(&*timer, TimerfdTimerFlags::ABSTIME, &due)?;
                let mut expirations = [0; 8];
                again(|| rustix::io::read(&*timer, &mut expirations).map(drop))
            }
            Sleeper::Epoll(nothing) => {
                let step = SleepMethod::EpollWait.granularity_ns();
                let ns = (ns.max(0) + step - 1) / step * step;
                // The call needs room for one event, although no event can arrive.
                let mut room = [MaybeUninit::uninit(); 1];
                again(|| epoll::wait(&*nothing, &mut room, Some(&timespec(ns))).map(drop))
            }
            Sleeper::Futex(word) => {
                again(
                    || match futex::wait(word, futex::Flags::PRIVATE, 0, Some(&timespec(ns))) {
                        Err(Errno::TIMEDOUT) => Ok(()),
                        other => other,
                    },
                )
            }
        }
    }
}

fn monotonic_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

fn timespec(ns: i64) -> Timespec {
    let ns = ns.max(0);
    Timespec {
        tv_sec: ns / 1_000_000_000,
        tv_nsec: ns % 1_000_000_000,
    }
}

/// Repeats a sleep that a signal interrupted. A sleep for a duration then starts over and ends later. Other programs
/// repeat interrupted sleeps in the same way.
fn again(mut sleep: impl FnMut() -> rustix::io::Result<()>) -> io::Result<()> {
    loop {
        match sleep() {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

fn nanosleep(mut time: Timespec) -> io::Result<()> {
    loop {
        match rustix::thread::nanosleep(&time) {
            NanosleepRelativeResult::Ok => return Ok(()),
            NanosleepRelativeResult::Interrupted(left) => time = left,
            NanosleepRelativeResult::Err(error) => return Err(error.into()),
        }
    }
}
