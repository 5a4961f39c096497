//! How Linux sleeps.

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

/// Nothing of Windows' resolutions can be held.
pub(super) type Held = std::convert::Infallible;

const OF_WINDOWS: &str = "it is one of Windows; on Linux set a timer slack";

pub(super) fn set_resolution(_resolution: Resolution) -> Result<Held, String> {
    Err(OF_WINDOWS.to_owned())
}

pub(super) fn refuse_throttling() -> Result<Held, String> {
    Err("it is one of Windows".to_owned())
}

/// The calling thread's timer slack, which is how much later than asked for a sleep may end.
pub(super) fn resolution_ns() -> Option<i64> {
    let ns = rustix::thread::current_timer_slack().ok()?;
    i64::try_from(ns).ok()
}

/// Something that sleeps.
pub(super) enum Sleeper {
    Nanosleep,
    ClockNanosleep,
    Timerfd(OwnedFd),
    Epoll(OwnedFd),
    Futex(AtomicU32),
}

impl Sleeper {
    pub(super) fn open(method: SleepMethod) -> Result<Sleeper, String> {
        let said = |error: Errno| format!("Linux refuses it: {error}");
        Ok(match method {
            SleepMethod::Nanosleep => Sleeper::Nanosleep,
            SleepMethod::ClockNanosleep => Sleeper::ClockNanosleep,
            SleepMethod::Timerfd => {
                let flags = TimerfdFlags::CLOEXEC;
                let timer = rustix::time::timerfd_create(TimerfdClockId::Monotonic, flags);
                Sleeper::Timerfd(timer.map_err(said)?)
            }
            SleepMethod::EpollWait => {
                let nothing = epoll::create(epoll::CreateFlags::CLOEXEC);
                Sleeper::Epoll(nothing.map_err(said)?)
            }
            SleepMethod::Futex => Sleeper::Futex(AtomicU32::new(0)),
            other => return Err(other.is_elsewhere()),
        })
    }

    /// Sleeps for so many nanoseconds from now; asks the system even for none.
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
                let grain_ns = SleepMethod::EpollWait.grain_ns();
                let ns = (ns.max(0) + grain_ns - 1) / grain_ns * grain_ns;
                // It must be told of room for an event, though none can come.
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

/// Signals that are handled do not end a sleep. One with a time-out begins anew, and so ends later,
/// as it would in any program.
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
