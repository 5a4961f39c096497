//! Timer resolution of Windows: the interval of clock interrupts. Sleeps end at such interrupts.

use std::fmt;

use super::system;
use crate::Grant;
use crate::Refusal;

/// A requested timer resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Request through `NtSetTimerResolution`, in units of 100 ns.
    Native(u32),
    /// Request through `timeBeginPeriod`, in milliseconds.
    Multimedia(u32),
}

impl Resolution {
    /// Returns the resolution in nanoseconds.
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

/// Timer resolution that is requested until this value is dropped.
#[derive(Debug, Default)]
pub struct HeldResolution {
    /// Outcomes of the requests.
    pub grants: Vec<Grant>,
    /// Granted requests, which are released in this order.
    _held: Vec<system::GrantedRequest>,
}

impl HeldResolution {
    /// Returns the current resolution in nanoseconds, if the system reports it.
    pub fn current_ns(&self) -> Option<i64> {
        system::resolution_ns()
    }
}

/// Requests a timer resolution. If `without_throttling` is true, also requests that Windows keeps the
/// resolution while no window of the program is visible. The requests last until the result is dropped.
/// Systems other than Windows refuse both requests.
///
/// Since Windows 10 2004, a request affects only the timers of the requesting program.
pub fn hold_resolution(resolution: Option<Resolution>, without_throttling: bool) -> HeldResolution {
    let mut grants = Vec::new();
    let mut requests = Vec::new();
    let mut take = |asked: String, outcome: Result<system::GrantedRequest, Refusal>| {
        grants.push(match outcome {
            Ok(one) => {
                requests.push(one);
                Grant::new(asked, Ok::<(), Refusal>(()))
            }
            Err(refusal) => Grant::new(asked, Err(refusal)),
        });
    };
    // Throttling is disabled before the resolution is requested, so that it does not affect the request.
    if without_throttling {
        take("no throttling".to_owned(), system::refuse_throttling());
    }
    if let Some(resolution) = resolution {
        take(resolution.to_string(), system::set_resolution(resolution));
    }
    HeldResolution {
        grants,
        _held: requests,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolutions_are_formatted() {
        assert_eq!(Resolution::Native(5_070).to_string(), "resolution 0.507 ms");
        assert_eq!(Resolution::Native(5_070).ns(), 507_000);
        let multimedia = Resolution::Multimedia(1);
        assert_eq!(multimedia.to_string(), "timeBeginPeriod 1 ms");
    }

    #[cfg(not(windows))]
    #[test]
    fn other_systems_refuse_resolutions() {
        let hold = hold_resolution(Some(Resolution::Native(5_000)), true);
        assert_eq!(hold.grants.len(), 2);
        let says_why = |grant: &Grant| {
            grant
                .refused
                .as_ref()
                .is_some_and(|w| w.contains("Windows"))
        };
        assert!(hold.grants.iter().all(says_why));
    }

    /// Checks that a granted request is in effect. Wine accepts any resolution but keeps its own resolution,
    /// so on Wine the request counts as refused. Windows reports its actual resolution.
    #[cfg(windows)]
    #[test]
    fn the_resolution_of_windows_is_checked() {
        let finest = Resolution::Native(5_000);
        let hold = hold_resolution(Some(finest), false);
        let grant = &hold.grants[0];
        let current = hold.current_ns().unwrap();
        assert!((500_000..=15_625_000).contains(&current));
        match &grant.refused {
            None => assert!(current <= finest.ns()),
            Some(why) => assert!(why.contains("ms"), "{why}"),
        }
    }
}
