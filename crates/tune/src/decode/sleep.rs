//! How long a sleep becomes: whose request for a finer timer counts, and which clock interrupt ends
//! the sleep.
//!
//! Times are in units of 100 ns, as the interfaces of timers have them. Sources: documentation of
//! `timeBeginPeriod` and `SetProcessInformation`; measurements published by PC-Tuning and by
//! B. Dawson ("Windows Timer Resolution: The Great Rule Change").

use serde::Serialize;

/// The period of the clock interrupt unless somebody asks for a shorter one: 15.625 ms.
pub const COARSEST: u32 = 156_250;

/// The shortest period that most machines have: 0.5 ms.
pub const FINEST: u32 = 5_000;

/// From this build on (Windows 10 2004) a request counts for the process that made it.
const PER_PROCESS: u32 = 19_041;
/// From this build on (Server 2022) a value of the registry makes requests global again.
const GLOBAL_SWITCH: u32 = 20_348;
/// From this build on (Windows 11) requests of processes that nobody sees or hears are ignored.
const HIDDEN_IGNORED: u32 = 22_000;

/// A process's request for a timer resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The period asked for.
    pub period: u32,
    /// Whether all its windows are covered, minimised or otherwise hidden, and it is not heard.
    pub hidden: bool,
    /// Whether it said that its requests count all the same
    /// (`PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION` in the mask and not in the state).
    pub opted_out: bool,
}

/// What a process that sleeps, and Windows around it, have asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timers {
    /// The sleeping process's own request.
    pub own: Option<Request>,
    /// The finest request of another process.
    pub other: Option<Request>,
    /// `GlobalTimerResolutionRequests` is 1.
    pub global: bool,
}

/// Which clock interrupt a process's timers wait for, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resolution {
    /// The time between interrupts that end its sleeps.
    pub period: u32,
    /// Why it is that, a sentence for each rule that had a say.
    pub because: Vec<&'static str>,
}

impl Timers {
    /// The period that counts on a build of Windows.
    pub fn resolution(&self, build: u32) -> Resolution {
        let mut because = Vec::new();
        let mut period = COARSEST;
        let mut take =
            |request: Request| period = period.min(request.period.clamp(FINEST, COARSEST));
        let mut is_heard = |request: Request| {
            let is_ignored = build >= HIDDEN_IGNORED && request.hidden && !request.opted_out;
            if is_ignored {
                because.push(
                    "Windows 11 ignores the request of a process that nobody sees or hears, unless \
                     it opts out (PROCESS_POWER_THROTTLING_IGNORE_TIMER_RESOLUTION)",
                );
            }
            !is_ignored
        };
        let own = self.own.filter(|request| is_heard(*request));
        let other = self.other.filter(|request| is_heard(*request));
        if let Some(own) = own {
            take(own);
        }
        match other {
            None => {}
            Some(other) if build < PER_PROCESS => {
                take(other);
                because.push("before Windows 10 2004 a request of any process counts for all");
            }
            Some(other) if build >= GLOBAL_SWITCH && self.global => {
                take(other);
                because
                    .push("GlobalTimerResolutionRequests makes requests count for all processes");
            }
            Some(_) => {
                because.push(
                    "from Windows 10 2004 on a request counts for the process that made it alone",
                );
                if self.global {
                    because.push(
                        "this build does not know GlobalTimerResolutionRequests: it does nothing here",
                    );
                }
            }
        }
        if self.own.is_none() {
            because.push("the process that sleeps has not asked for a finer timer");
        }
        because.dedup();
        Resolution { period, because }
    }
}

/// How long a sleep takes in a loop that sleeps again at once: the thread runs shortly after an
/// interrupt, so the sleep is due shortly after a later one and ends with the one after that.
///
/// A sleep that begins at any time takes from `asked` to `asked + period`.
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

    /// Sleep(1) as published for Windows 10 21H2 and Windows 11 22H2 (PC-Tuning), in 100 ns: all
    /// measured values lie at most a clock tick's jitter (0.15 ms) below what the rule gives.
    #[test]
    fn published_sleeps_hold() {
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

    /// TimerResolution's issue 10: 0.507 ms gives 1.012 ms where 0.5 ms gives 1.496 ms.
    #[test]
    fn a_little_more_than_half_a_millisecond_is_better() {
        assert_eq!(sleep_takes(MS, 5_070), 10_140);
        assert_eq!(sleep_takes(MS, 5_000), 15_000);
        assert_eq!(sleep_takes(MS, COARSEST), 156_250);
        assert_eq!(sleep_takes(20 * MS, COARSEST), 312_500);
    }

    #[test]
    fn requests_count_for_all_before_windows_10_2004() {
        let timers = Timers {
            other: asks(MS),
            ..Timers::default()
        };
        assert_eq!(timers.resolution(18_363).period, MS);
        assert_eq!(timers.resolution(19_041).period, COARSEST);
        assert_eq!(timers.resolution(26_100).period, COARSEST);
    }

    #[test]
    fn the_own_request_counts_on_every_build() {
        let timers = Timers {
            own: asks(1),
            ..Timers::default()
        };
        for build in [7_601, 19_045, 26_200] {
            assert_eq!(timers.resolution(build).period, FINEST);
        }
    }
}
