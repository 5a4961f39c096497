//! The timer resolution of Windows: how often the clock interrupts, which is when sleeps end.

use std::fmt;

use super::system;
use crate::Grant;

/// A timer resolution that a program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// By `NtSetTimerResolution`, in units of 100 ns.
    Native(u32),
    /// By `timeBeginPeriod`, in milliseconds.
    Multimedia(u32),
}

impl Resolution {
    /// In nanoseconds.
    pub fn ns(self) -> i64 {
        match self {
            Resolution::Native(units) => i64::from(units) * 100,
            Resolution::Multimedia(ms) => i64::from(ms) * 1_000_000,
        }
    }
}

impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.ns() as f64 / 1e6;
        match self {
            Resolution::Native(_) => write!(f, "resolution {ms} ms"),
            Resolution::Multimedia(_) => write!(f, "timeBeginPeriod {ms} ms"),
        }
    }
}

/// What is asked for as long as this lives.
#[derive(Debug, Default)]
pub struct HeldResolution {
    /// What came of it.
    pub grants: Vec<Grant>,
    /// Given back one by one.
    _held: Vec<system::Held>,
}

impl HeldResolution {
    /// The resolution now, in nanoseconds, where the system says.
    pub fn current_ns(&self) -> Option<i64> {
        system::resolution_ns()
    }
}

/// Asks for a timer resolution, and that it holds even while no window of the program is seen, until
/// what is given is dropped. Windows has both; elsewhere they are refused with the reason.
///
/// Since Windows 10 2004 a request counts for the timers of the program that makes it only.
pub fn hold_resolution(resolution: Option<Resolution>, without_throttling: bool) -> HeldResolution {
    let mut grants = Vec::new();
    let mut held = Vec::new();
    let mut take = |asked: String, outcome: Result<system::Held, String>| {
        grants.push(match outcome {
            Ok(one) => {
                held.push(one);
                Grant::new(asked, Ok(()))
            }
            Err(why) => Grant::new(asked, Err(why)),
        });
    };
    // First, so that the resolution is asked for under it.
    if without_throttling {
        take("no throttling".to_owned(), system::refuse_throttling());
    }
    if let Some(resolution) = resolution {
        take(resolution.to_string(), system::set_resolution(resolution));
    }
    HeldResolution {
        grants,
        _held: held,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolutions_say_what_they_are() {
        assert_eq!(Resolution::Native(5_070).to_string(), "resolution 0.507 ms");
        assert_eq!(Resolution::Native(5_070).ns(), 507_000);
        let multimedia = Resolution::Multimedia(1);
        assert_eq!(multimedia.to_string(), "timeBeginPeriod 1 ms");
    }

    #[cfg(not(windows))]
    #[test]
    fn elsewhere_than_on_windows_they_are_refused() {
        let held = hold_resolution(Some(Resolution::Native(5_000)), true);
        assert_eq!(held.grants.len(), 2);
        let says_why = |grant: &Grant| {
            grant
                .refused
                .as_ref()
                .is_some_and(|w| w.contains("Windows"))
        };
        assert!(held.grants.iter().all(says_why));
    }

    /// Wine takes any and keeps its own; Windows gives what it has.
    #[cfg(windows)]
    #[test]
    fn what_windows_sets_is_looked_at() {
        let finest = Resolution::Native(5_000);
        let held = hold_resolution(Some(finest), false);
        let grant = &held.grants[0];
        let current = held.current_ns().unwrap();
        assert!((500_000..=15_625_000).contains(&current));
        match &grant.refused {
            None => assert!(current <= finest.ns()),
            Some(why) => assert!(why.contains("ms"), "{why}"),
        }
    }
}
