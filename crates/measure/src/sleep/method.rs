//! The ways to sleep.

use std::fmt;
use std::str::FromStr;

/// A way to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepMethod {
    /// Linux and macOS: `nanosleep`, for a time.
    Nanosleep,
    /// Linux: `clock_nanosleep` with TIMER_ABSTIME, until a time. What cyclictest measures.
    ClockNanosleep,
    /// Linux: a `timerfd` set to a time, and read.
    Timerfd,
    /// Linux: the time-out of `epoll_wait`, in whole milliseconds.
    EpollWait,
    /// Linux: the time-out of a futex.
    Futex,
    /// Windows: `Sleep`, in whole milliseconds.
    Sleep,
    /// Windows: `NtDelayExecution`, in steps of 100 ns.
    NtDelayExecution,
    /// Windows: a waitable timer.
    WaitableTimer,
    /// Windows 10 1803 and later: a waitable timer of high resolution.
    HighResolutionTimer,
}

impl SleepMethod {
    /// All of them.
    pub const ALL: [SleepMethod; 9] = [
        SleepMethod::Nanosleep,
        SleepMethod::ClockNanosleep,
        SleepMethod::Timerfd,
        SleepMethod::EpollWait,
        SleepMethod::Futex,
        SleepMethod::Sleep,
        SleepMethod::NtDelayExecution,
        SleepMethod::WaitableTimer,
        SleepMethod::HighResolutionTimer,
    ];

    /// Those of this system.
    pub const HERE: &'static [SleepMethod] = if cfg!(windows) {
        &[
            SleepMethod::Sleep,
            SleepMethod::NtDelayExecution,
            SleepMethod::WaitableTimer,
            SleepMethod::HighResolutionTimer,
        ]
    } else if cfg!(target_os = "linux") {
        &[
            SleepMethod::Nanosleep,
            SleepMethod::ClockNanosleep,
            SleepMethod::Timerfd,
            SleepMethod::EpollWait,
            SleepMethod::Futex,
        ]
    } else {
        &[SleepMethod::Nanosleep]
    };

    /// Its name: the call's.
    pub fn name(self) -> &'static str {
        match self {
            SleepMethod::Nanosleep => "nanosleep",
            SleepMethod::ClockNanosleep => "clock_nanosleep",
            SleepMethod::Timerfd => "timerfd",
            SleepMethod::EpollWait => "epoll_wait",
            SleepMethod::Futex => "futex",
            SleepMethod::Sleep => "Sleep",
            SleepMethod::NtDelayExecution => "NtDelayExecution",
            SleepMethod::WaitableTimer => "waitable-timer",
            SleepMethod::HighResolutionTimer => "high-resolution-timer",
        }
    }

    /// Whether it sleeps until a time, not for one.
    pub fn is_absolute(self) -> bool {
        matches!(self, SleepMethod::ClockNanosleep | SleepMethod::Timerfd)
    }

    /// The step in which it takes times, in nanoseconds; times between are rounded up.
    pub fn grain_ns(self) -> i64 {
        match self {
            SleepMethod::EpollWait | SleepMethod::Sleep => 1_000_000,
            SleepMethod::NtDelayExecution
            | SleepMethod::WaitableTimer
            | SleepMethod::HighResolutionTimer => 100,
            _ => 1,
        }
    }

    /// Why it is not there, of one that [`SleepMethod::HERE`] lacks.
    pub(super) fn is_elsewhere(self) -> String {
        let system = match self {
            SleepMethod::Nanosleep => "Linux and macOS",
            SleepMethod::ClockNanosleep
            | SleepMethod::Timerfd
            | SleepMethod::EpollWait
            | SleepMethod::Futex => "Linux",
            _ => "Windows",
        };
        format!("it is one of {system}")
    }
}

impl fmt::Display for SleepMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No way to sleep has that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no way to sleep called `{0}`; here there are {names}", names = names())]
pub struct UnknownMethod(String);

fn names() -> String {
    let names: Vec<&str> = SleepMethod::HERE
        .iter()
        .map(|method| method.name())
        .collect();
    names.join(", ")
}

impl FromStr for SleepMethod {
    type Err = UnknownMethod;

    fn from_str(name: &str) -> Result<SleepMethod, UnknownMethod> {
        SleepMethod::ALL
            .into_iter()
            .find(|method| method.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownMethod(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_known_by_their_names() {
        for method in SleepMethod::ALL {
            assert_eq!(method.name().parse(), Ok(method));
        }
        assert_eq!("sleep".parse(), Ok(SleepMethod::Sleep));
        let error = "usleep".parse::<SleepMethod>().unwrap_err().to_string();
        assert!(error.contains("`usleep`") && error.contains(SleepMethod::HERE[0].name()));
    }
}
