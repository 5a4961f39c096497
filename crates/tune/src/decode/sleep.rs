//! Durations of sleeps: the timer request that applies to a process, and the clock interrupt that ends a
//! sleep.
//!
//! Times are in units of 100 ns, as in the timer interfaces. Sources: documentation of `timeBeginPeriod`,
//! `SetProcessInformation` and `ExSetTimerResolution`; measurements published by PC-Tuning and by B. Dawson
//! ("Windows Timer Resolution: The Great Rule Change").

use serde::Serialize;

/// Default period of the clock interrupt, 15.625 ms, in units of 100 ns.
pub const COARSEST: u32 = 156_250;

/// Shortest period of the clock interrupt on most machines, 0.5 ms, in units of 100 ns.
pub const FINEST: u32 = 5_000;

/// First build (Windows 10 2004) on which a request applies only to the process that made it.
const PER_PROCESS: u32 = 19_041;
/// First build (Server 2022) on which a registry value can make requests apply to all processes.
const GLOBAL_SWITCH: u32 = 20_348;
/// First build (Windows 11) that ignores the request of a process that shows no window and plays no sound.
const HIDDEN_IGNORED: u32 = 22_000;

/// A process's request for a timer resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// Requested period, in units of 100 ns.
    pub period: u32,
    /// True if all windows of the process are covered, minimised or hidden, and the process plays no
    /// sound.
    pub hidden: bool,
    /// True if the process requires that Windows honours its request even while it is hidden. The bit
    /// `PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION` is then set in its mask and clear in its
    /// state.
    pub opted_out: bool,
}

/// Timer requests on a machine that may affect a sleeping process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timers {
    /// Request of the sleeping process.
    pub own: Option<Request>,
    /// Request of another process with the shortest period.
    pub other: Option<Request>,
    /// True if the registry value `GlobalTimerResolutionRequests` is 1.
    pub global: bool,
}

/// Effective timer resolution of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resolution {
    /// Time between two clock interrupts that can end a sleep of the process, in units of 100 ns.
    pub period: u32,
    /// Reasons for the period: one sentence for each rule that applied.
    pub because: Vec<&'static str>,
}

impl Timers {
    /// Returns the effective resolution on a build of Windows.
    pub fn resolution(&self, build: u32) -> Resolution {
        let mut because = Vec::new();
        let mut period = COARSEST;
        let mut take =
            |request: Request| period = period.min(request.period.clamp(FINEST, COARSEST));
        let mut counts = |request: Request| {
            let is_ignored = build >= HIDDEN_IGNORED && request.hidden && !request.opted_out;
            if is_ignored {
                because.push(
                    "Windows 11 ignores the request of a process that is hidden and silent, unless it opts \
                     out (PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION)",
                );
            }
            !is_ignored
        };
        let own = self.own.filter(|request| counts(*request));
        let other = self.other.filter(|request| counts(*request));
        if let Some(own) = own {
            take(own);
        }
        match other {
            None => {}
            Some(other) if build < PER_PROCESS => {
                take(other);
                because.push(
                    "before Windows 10 2004, a request of any process applies to all processes",
                );
            }
            Some(other) if build >= GLOBAL_SWITCH && self.global => {
                take(other);
                because.push("GlobalTimerResolutionRequests makes requests apply to all processes");
            }
            Some(_) => {
                because.push(
                    "since Windows 10 2004, a request applies only to the process that made it; requests of the \
                     kernel and of drivers still change the interrupts of the whole system (`powercfg /energy` \
                     lists them)",
                );
                if self.global {
                    because.push(
                        "this build does not support GlobalTimerResolutionRequests, so the value \
                         has no effect",
                    );
                }
            }
        }
        if self.own.is_none() {
            because.push("the sleeping process has not requested a finer timer");
        }
        because.dedup();
        Resolution { period, because }
    }
}

/// Returns the duration of each sleep of a thread that sleeps in a loop, in units of 100 ns. The thread
/// always starts to sleep shortly after a clock interrupt. The first clock interrupt after the requested time
/// ends the sleep. If `asked` is a multiple of `period`, the sleep therefore takes `asked + period`.
///
/// A sleep that starts at any other time takes from `asked` to `asked + period`.
pub fn sleep_takes(asked: u32, period: u32) -> u64 {
    let period = u64::from(period.max(1));
    (u64::from(asked) / period + 1) * period
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u32 = 10_000;

    fn asks(period: u32) -> Option<Request> {
        Some(Request {
            period,
            hidden: false,
            opted_out: false,
        })
    }

    /// Published durations of Sleep(1) on Windows 10 21H2 and Windows 11 22H2 (PC-Tuning), in units of
    /// 100 ns. Each measured duration is less than the calculated one by at most the jitter of a clock
    /// tick (0.15 ms).
    #[test]
    fn published_sleeps_match() {
        let other = asks(FINEST);
        let hidden = other.map(|request| Request {
            hidden: true,
            ..request
        });
        let opted_out = hidden.map(|request| Request {
            opted_out: true,
            ..request
        });
        for (build, other, least, most) in [
            (19_044, other, 154_744, 155_810),
            (22_621, other, 14_953, 14_968),
            (22_621, hidden, 156_161, 156_245),
            (22_621, opted_out, 14_944, 14_959),
        ] {
            let timers = Timers {
                other,
                global: true,
                ..Timers::default()
            };
            let resolution = timers.resolution(build);
            let takes = sleep_takes(MS, resolution.period);
            assert!(takes >= most && takes - least < 1_600, "{build}: {takes}");
        }
    }

    /// Source: PC-Tuning, docs/research.md, section 7. With a period of 0.507 ms, Sleep(1) takes 1.012
    /// ms; with 0.5 ms, it takes 1.496 ms.
    #[test]
    fn a_little_more_than_half_a_millisecond_is_better() {
        assert_eq!(sleep_takes(MS, 5_070), 10_140);
        assert_eq!(sleep_takes(MS, 5_000), 15_000);
        assert_eq!(sleep_takes(MS, COARSEST), 156_250);
        assert_eq!(sleep_takes(20 * MS, COARSEST), 312_500);
    }

    #[test]
    fn requests_are_global_before_windows_10_2004() {
        let timers = Timers {
            other: asks(MS),
            ..Timers::default()
        };
        assert_eq!(timers.resolution(18_363).period, MS);
        assert_eq!(timers.resolution(19_041).period, COARSEST);
        assert_eq!(timers.resolution(26_100).period, COARSEST);
    }

    /// Source: documentation of `ExSetTimerResolution`, remarks: the change is system-wide.
    #[test]
    fn requests_of_drivers_are_named_as_the_exception() {
        let because = |build| {
            let timers = Timers {
                other: asks(FINEST),
                ..Timers::default()
            };
            timers.resolution(build).because.join("; ")
        };
        for build in [19_045, 26_100] {
            let because = because(build);
            assert!(
                because.contains("of the kernel and of drivers"),
                "{because}"
            );
            assert!(because.contains("powercfg /energy"), "{because}");
        }
        assert!(!because(18_363).contains("of drivers"));
    }

    #[test]
    fn the_own_request_applies_on_every_build() {
        let timers = Timers {
            own: asks(1),
            ..Timers::default()
        };
        for build in [7_601, 19_045, 26_200] {
            assert_eq!(timers.resolution(build).period, FINEST);
        }
    }
}
