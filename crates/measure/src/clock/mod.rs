//! The clocks that samples are timed by, and how good they are.

#[cfg(windows)]
mod qpc;

use serde::Serialize;

#[cfg(target_arch = "x86_64")]
use crate::cpu;

/// Something that tells the time.
pub trait Now {
    /// Nanoseconds since a moment that does not change.
    fn now_ns(&self) -> i64;
}

/// Where a clock's time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockSource {
    /// Linux: the hardware's rate, which nobody adjusts. The usual choice there.
    MonotonicRaw,
    /// Linux and macOS: as above but slewed by time synchronisation; what sleeps are timed by.
    Monotonic,
    /// Windows: the performance counter.
    Qpc,
    /// The CPU's time-stamp counter, its rate measured against the system's clock.
    Tsc,
}

impl ClockSource {
    /// All of them.
    pub const ALL: [ClockSource; 4] = [
        ClockSource::MonotonicRaw,
        ClockSource::Monotonic,
        ClockSource::Qpc,
        ClockSource::Tsc,
    ];

    /// What this system times by unless told otherwise.
    pub const BEST: ClockSource = if cfg!(windows) {
        ClockSource::Qpc
    } else if cfg!(target_os = "linux") {
        ClockSource::MonotonicRaw
    } else {
        ClockSource::Monotonic
    };

    /// Its name in the field.
    pub fn name(self) -> &'static str {
        match self {
            ClockSource::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
            ClockSource::Monotonic => "CLOCK_MONOTONIC",
            ClockSource::Qpc => "QueryPerformanceCounter",
            ClockSource::Tsc => "TSC",
        }
    }
}

/// A clock cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the clock {} is not available here: {why}", clock.name())]
pub struct ClockError {
    /// Which.
    pub clock: ClockSource,
    /// Why not.
    pub why: &'static str,
}

/// A clock, ready to be read; its zero is the moment it was opened.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: ClockSource,
    origin: u64,
    /// Nanoseconds per tick, in units of 2⁻³².
    scale: u64,
    ticks_per_second: u64,
}

const NS_PER_SECOND: u64 = 1_000_000_000;

impl Clock {
    /// The clock that is usually right here.
    pub fn best() -> Clock {
        let ticks_per_second = match ClockSource::BEST {
            #[cfg(windows)]
            ClockSource::Qpc => qpc::frequency(),
            _ => NS_PER_SECOND,
        };
        Clock::with_rate(ClockSource::BEST, ticks_per_second)
    }

    /// A certain clock. The rate of the time-stamp counter is measured, which takes 20 ms.
    ///
    /// # Errors
    /// If this machine or system does not have it, or it is not to be trusted here.
    pub fn open(source: ClockSource) -> Result<Clock, ClockError> {
        let not_here = |why| Err(ClockError { clock: source, why });
        match source {
            ClockSource::Tsc => open_tsc(),
            ClockSource::Qpc if !cfg!(windows) => not_here("it is one of Windows"),
            ClockSource::MonotonicRaw if !cfg!(target_os = "linux") => {
                not_here("it is one of Linux")
            }
            ClockSource::Monotonic if !cfg!(unix) => not_here("it is one of Linux and macOS"),
            ClockSource::Monotonic => Ok(Clock::with_rate(source, NS_PER_SECOND)),
            ClockSource::MonotonicRaw | ClockSource::Qpc => Ok(Clock::best()),
        }
    }

    fn with_rate(source: ClockSource, ticks_per_second: u64) -> Clock {
        let scale = (u128::from(NS_PER_SECOND) << 32) / u128::from(ticks_per_second.max(1));
        Clock {
            source,
            origin: ticks(source),
            scale: scale as u64,
            ticks_per_second,
        }
    }

    /// Where its time comes from.
    pub fn source(&self) -> ClockSource {
        self.source
    }

    /// The counter itself.
    #[inline]
    pub fn ticks(&self) -> u64 {
        ticks(self.source)
    }

    /// How many ticks it has in a second.
    pub fn ticks_per_second(&self) -> u64 {
        self.ticks_per_second
    }

    /// The time at which the counter showed `ticks`.
    #[inline]
    pub fn at(&self, ticks: u64) -> i64 {
        let since = ticks.wrapping_sub(self.origin).cast_signed();
        ((i128::from(since) * i128::from(self.scale)) >> 32) as i64
    }
}

impl Now for Clock {
    #[inline]
    fn now_ns(&self) -> i64 {
        self.at(self.ticks())
    }
}

#[inline]
fn ticks(source: ClockSource) -> u64 {
    match source {
        #[cfg(target_arch = "x86_64")]
        ClockSource::Tsc => cpu::time_stamp(),
        #[cfg(windows)]
        _ => qpc::read(),
        #[cfg(target_os = "linux")]
        ClockSource::MonotonicRaw => of_unix(rustix::time::ClockId::MonotonicRaw),
        #[cfg(unix)]
        _ => of_unix(rustix::time::ClockId::Monotonic),
    }
}

#[cfg(unix)]
#[inline]
fn of_unix(clock: rustix::time::ClockId) -> u64 {
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec as u64 * NS_PER_SECOND + now.tv_nsec as u64
}

#[cfg(target_arch = "x86_64")]
fn open_tsc() -> Result<Clock, ClockError> {
    if !cpu::has_invariant_time_stamp() {
        return Err(ClockError {
            clock: ClockSource::Tsc,
            why: "this CPU does not say that it counts at one rate, whatever the CPU does",
        });
    }
    let system = Clock::best();
    let (ns, ticks) = (system.now_ns(), cpu::time_stamp());
    std::thread::sleep(std::time::Duration::from_millis(20));
    let (ns, ticks) = (system.now_ns() - ns, cpu::time_stamp().wrapping_sub(ticks));
    let rate = u128::from(ticks) * u128::from(NS_PER_SECOND) / (ns.max(1) as u128);
    Ok(Clock::with_rate(ClockSource::Tsc, rate as u64))
}

#[cfg(not(target_arch = "x86_64"))]
fn open_tsc() -> Result<Clock, ClockError> {
    Err(ClockError {
        clock: ClockSource::Tsc,
        why: "it is one of x86-64",
    })
}

/// How good a clock is, by reading it many times in a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClockFacts {
    /// Its name.
    pub name: &'static str,
    /// How many ticks it has in a second, where that is worth knowing.
    pub ticks_per_second: Option<u64>,
    /// What a reading costs: the mean over all.
    pub reading_ns: f64,
    /// The smallest step seen; unknown if it never moved.
    pub resolution_ns: Option<i64>,
    /// How often it showed less than just before.
    pub went_back: u64,
    /// The furthest that it went back.
    pub went_back_by_ns: i64,
}

impl ClockFacts {
    /// How often a clock is read for this.
    const READINGS: u32 = 20_000;

    /// Reads the clock 20,000 times, which takes some milliseconds.
    pub fn of(clock: &impl Now, name: &'static str) -> ClockFacts {
        let first = clock.now_ns();
        let mut facts = ClockFacts {
            name,
            ticks_per_second: None,
            reading_ns: 0.0,
            resolution_ns: None,
            went_back: 0,
            went_back_by_ns: 0,
        };
        let mut last = first;
        for _ in 0..Self::READINGS {
            let now = clock.now_ns();
            match now - last {
                0 => {}
                step @ 1.. => {
                    let smallest = facts.resolution_ns.unwrap_or(i64::MAX);
                    facts.resolution_ns = Some(smallest.min(step));
                }
                back => {
                    facts.went_back += 1;
                    facts.went_back_by_ns = facts.went_back_by_ns.max(-back);
                }
            }
            last = now;
        }
        facts.reading_ns = (last - first) as f64 / f64::from(Self::READINGS);
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Shows what it was given, over and over.
    struct Scripted(Vec<i64>, Cell<usize>);

    impl Now for Scripted {
        fn now_ns(&self) -> i64 {
            let at = self.1.get();
            self.1.set(at + 1);
            // Each round is 1 µs later than the one before.
            self.0[at % self.0.len()] + 1_000 * (at / self.0.len()) as i64
        }
    }

    #[test]
    fn the_smallest_step_and_steps_back_are_found() {
        let steady = Scripted(vec![0, 0, 250, 500], Cell::default());
        let facts = ClockFacts::of(&steady, "scripted");
        assert_eq!((facts.resolution_ns, facts.went_back), (Some(250), 0));
        assert!((facts.reading_ns - 250.0).abs() < 1.0);

        let wavering = Scripted(vec![0, 400, 300, 500], Cell::default());
        let facts = ClockFacts::of(&wavering, "scripted");
        assert_eq!(facts.went_back, u64::from(ClockFacts::READINGS) / 4);
        assert_eq!(facts.went_back_by_ns, 100);
    }

    #[test]
    fn every_clock_agrees_with_the_standard_library_or_says_why_it_is_not_there() {
        for source in ClockSource::ALL {
            let clock = match Clock::open(source) {
                Ok(clock) => clock,
                Err(error) => {
                    assert!(error.to_string().contains(source.name()));
                    continue;
                }
            };
            let inside = std::time::Instant::now();
            let start = clock.now_ns();
            std::thread::sleep(std::time::Duration::from_millis(30));
            let ns = clock.now_ns() - start;
            let outside = inside.elapsed().as_nanos() as i64;
            // Whatever the scheduler did, the inner span is within the outer one, and no shorter
            // than what was slept; rates agree within 1 %.
            assert!(ns >= 29_700_000, "{source:?}: {ns}");
            assert!(
                ns <= outside + outside / 100,
                "{source:?}: {ns} of {outside}"
            );
        }
        assert!(Clock::open(ClockSource::BEST).is_ok());
    }

    #[test]
    fn ticks_become_nanoseconds_exactly_enough() {
        let clock = Clock {
            source: ClockSource::BEST,
            origin: u64::MAX - 5,
            scale: Clock::with_rate(ClockSource::BEST, 10_000_000).scale,
            ticks_per_second: 10_000_000,
        };
        // A counter of 10 MHz that wraps: 100 ns each, for an hour and more.
        assert_eq!(clock.at(4), 1_000);
        assert_eq!(clock.at(clock.origin - 1), -100);
        let hours = 10_000_000 * 3_600 * 5;
        assert_eq!(
            clock.at(clock.origin.wrapping_add(hours)),
            hours as i64 * 100
        );
    }
}
