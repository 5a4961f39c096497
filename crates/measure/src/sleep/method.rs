//! Sleep methods.

use crate::Refusal;
use crate::UnknownName;
use std::fmt;
use std::str::FromStr;

/// A sleep method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepMethod {
    /// `nanosleep` of Linux and macOS, which sleeps for a duration.
    Nanosleep,
    /// `clock_nanosleep` of Linux with TIMER_ABSTIME, which sleeps until a time. The tool
    /// cyclictest also measures it.
    ClockNanosleep,
    /// Read from a `timerfd` of Linux that expires at a time.
    Timerfd,
    /// Timeout of `epoll_wait` on Linux, in milliseconds.
    EpollWait,
    /// Timeout of a futex on Linux.
    Futex,
    /// `Sleep` of Windows, in milliseconds.
    Sleep,
    /// `NtDelayExecution` of Windows, in steps of 100 ns.
    NtDelayExecution,
    /// Waitable timer of Windows.
    WaitableTimer,
    /// High-resolution waitable timer of Windows 10 1803 and later.
    HighResolutionTimer,
}

impl SleepMethod {
    /// All methods.
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

    /// Methods that this system has.
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

    /// Returns the name of the method, which is the name of the call or timer.
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

    /// Returns true if the method sleeps until a time instead of for a duration.
    pub fn is_absolute(self) -> bool {
        matches!(self, SleepMethod::ClockNanosleep | SleepMethod::Timerfd)
    }

    /// Returns the granularity in nanoseconds of the durations that the method accepts. Other durations are
    /// rounded up.
    pub fn granularity_ns(self) -> i64 {
        match self {
            SleepMethod::EpollWait | SleepMethod::Sleep => 1_000_000,
            SleepMethod::NtDelayExecution
            | SleepMethod::WaitableTimer
            | SleepMethod::HighResolutionTimer => 100,
            _ => 1,
        }
    }

    /// Returns the reason why a method is not in [`SleepMethod::HERE`].
    pub(super) fn unsupported(self) -> Refusal {
        Refusal::Unsupported(match self {
            SleepMethod::Nanosleep => "it exists on Linux and macOS only",
            SleepMethod::ClockNanosleep
            | SleepMethod::Timerfd
            | SleepMethod::EpollWait
            | SleepMethod::Futex => "it exists on Linux only",
            _ => "it exists on Windows only",
        })
    }
}

impl fmt::Display for SleepMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SleepMethod {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<SleepMethod, UnknownName> {
        SleepMethod::ALL
            .into_iter()
            .find(|method| method.name().eq_ignore_ascii_case(name))
            .ok_or_else(|| {
                let known = SleepMethod::HERE.iter().map(|method| method.name());
                UnknownName::new("sleep method", name, known)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_parsed_by_name() {
        for method in SleepMethod::ALL {
            assert_eq!(method.name().parse(), Ok(method));
        }
        assert_eq!("sleep".parse(), Ok(SleepMethod::Sleep));
        let error = "usleep".parse::<SleepMethod>().unwrap_err().to_string();
        assert!(error.contains("`usleep`") && error.contains(SleepMethod::HERE[0].name()));
    }
}
