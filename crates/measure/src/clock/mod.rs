//! Clocks for timing samples, and their quality.

#[cfg(windows)]
mod qpc;

use serde::Serialize;

#[cfg(target_arch = "x86_64")]
use crate::cpu;

/// A source of the current time.
pub trait Now {
    /// Returns the time in nanoseconds since a fixed moment.
    fn now_ns(&self) -> i64;
}

/// Source of a clock's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockSource {
    /// Clock of Linux that time synchronisation does not adjust. It is the default on Linux.
    MonotonicRaw,
    /// Clock of Linux and macOS that time synchronisation adjusts. Sleeps use it.
    Monotonic,
    /// Performance counter of Windows.
    Qpc,
    /// Time-stamp counter of the CPU, with its rate measured against the system clock.
    Tsc,
}

impl ClockSource {
    /// All sources.
    pub const ALL: [ClockSource; 4] = [
        ClockSource::MonotonicRaw,
        ClockSource::Monotonic,
        ClockSource::Qpc,
        ClockSource::Tsc,
    ];

    /// Default source of this system.
    pub const BEST: ClockSource = if cfg!(windows) {
        ClockSource::Qpc
    } else if cfg!(target_os = "linux") {
        ClockSource::MonotonicRaw
    } else {
        ClockSource::Monotonic
    };

    /// Returns the usual name of the clock.
    pub fn name(self) -> &'static str {
        match self {
            ClockSource::MonotonicRaw => "CLOCK_MONOTONIC_RAW",
            ClockSource::Monotonic => "CLOCK_MONOTONIC",
            ClockSource::Qpc => "QueryPerformanceCounter",
            ClockSource::Tsc => "TSC",
        }
    }
}

/// Error of opening a clock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the clock {} is not available: {why}", clock.name())]
pub struct ClockError {
    /// Clock that cannot be opened.
    pub clock: ClockSource,
    /// Reason why the clock cannot be opened.
    pub why: &'static str,
}

/// Clock that is ready for use. The times of the clock count from its opening.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: ClockSource,
    origin: u64,
    /// Duration of a tick in units of 2⁻³² ns.
    scale: u64,
    ticks_per_second: u64,
}

const NS_PER_SECOND: u64 = 1_000_000_000;

impl Clock {
    /// Opens the default clock of this system.
    pub fn best() -> Clock {
        let ticks_per_second = match ClockSource::BEST {
            #[cfg(windows)]
            ClockSource::Qpc => qpc::frequency(),
            _ => NS_PER_SECOND,
        };
        Clock::with_rate(ClockSource::BEST, ticks_per_second)
    }

    /// Opens a clock. Measuring the rate of the time-stamp counter takes 20 ms.
    ///
    /// # Errors
    /// Returns an error if the machine or system does not have the clock, or if the clock is not reliable on
    /// this machine.
    pub fn open(source: ClockSource) -> Result<Clock, ClockError> {
        let not_here = |why| Err(ClockError { clock: source, why });
        match source {
            ClockSource::Tsc => open_tsc(),
            ClockSource::Qpc if !cfg!(windows) => not_here("it exists on Windows only"),
            ClockSource::MonotonicRaw if !cfg!(target_os = "linux") => {
                not_here("it exists on Linux only")
            }
            ClockSource::Monotonic if !cfg!(unix) => not_here("it exists on Linux and macOS only"),
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

    /// Returns the source of the clock.
    pub fn source(&self) -> ClockSource {
        self.source
    }

    /// Reads the counter.
    #[inline]
    pub fn ticks(&self) -> u64 {
        ticks(self.source)
    }

    /// Returns the number of ticks per second.
    pub fn ticks_per_second(&self) -> u64 {
        self.ticks_per_second
    }

    /// Converts a counter value into nanoseconds since the clock was opened.
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

/// Clock whose time is relative to the start of a measurement.
pub(crate) struct Since<'c> {
    pub(crate) clock: &'c Clock,
    pub(crate) start_ns: i64,
}

impl Now for Since<'_> {
    fn now_ns(&self) -> i64 {
        self.clock.now_ns() - self.start_ns
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
            why: "the CPU does not report a constant rate of the counter",
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
        why: "it exists on x86-64 only",
    })
}

/// Quality of a clock, measured by many consecutive readings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClockFacts {
    /// Name of the clock.
    pub name: &'static str,
    /// Number of ticks per second; `None` if the rate of the clock is unknown.
    pub ticks_per_second: Option<u64>,
    /// Mean duration of a reading in nanoseconds.
    pub reading_ns: f64,
    /// Smallest step between two readings in nanoseconds; `None` if the clock did not advance.
    pub resolution_ns: Option<i64>,
    /// Number of readings that were lower than the previous reading.
    pub went_back: u64,
    /// Largest step back in nanoseconds.
    pub went_back_by_ns: i64,
}

impl ClockFacts {
    /// Number of readings in one measurement of a clock.
    const READINGS: u32 = 20_000;

    /// Measures the quality of a clock by 20,000 readings, which take some milliseconds.
    pub fn measure(clock: &impl Now, name: &'static str) -> ClockFacts {
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

    /// Clock that returns the given values in order, and then repeats them.
    struct Scripted(Vec<i64>, Cell<usize>);

    impl Now for Scripted {
        fn now_ns(&self) -> i64 {
            let at = self.1.get();
            self.1.set(at + 1);
            // Each repetition of the values is 1 µs later than the previous repetition.
            self.0[at % self.0.len()] + 1_000 * (at / self.0.len()) as i64
        }
    }

    #[test]
    fn steps_of_the_clock_are_measured() {
        let steady = Scripted(vec![0, 0, 250, 500], Cell::default());
        let facts = ClockFacts::measure(&steady, "scripted");
        assert_eq!((facts.resolution_ns, facts.went_back), (Some(250), 0));
        assert!((facts.reading_ns - 250.0).abs() < 1.0);

        let wavering = Scripted(vec![0, 400, 300, 500], Cell::default());
        let facts = ClockFacts::measure(&wavering, "scripted");
        assert_eq!(facts.went_back, u64::from(ClockFacts::READINGS) / 4);
        assert_eq!(facts.went_back_by_ns, 100);
    }

    #[test]
    fn clocks_agree_with_the_standard_library_or_are_unavailable() {
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
            // The measured time `ns` includes the sleep, and `outside` includes `ns`. The rates of the two
            // clocks may differ by up to 1 %.
            assert!(ns >= 29_700_000, "{source:?}: {ns}");
            assert!(
                ns <= outside + outside / 100,
                "{source:?}: {ns} of {outside}"
            );
        }
        assert!(Clock::open(ClockSource::BEST).is_ok());
    }

    #[test]
    fn ticks_are_converted_to_nanoseconds() {
        let clock = Clock {
            source: ClockSource::BEST,
            origin: u64::MAX - 5,
            scale: Clock::with_rate(ClockSource::BEST, 10_000_000).scale,
            ticks_per_second: 10_000_000,
        };
        // The counter runs at 10 MHz (100 ns per tick) and wraps. The conversion stays exact even after
        // hours.
        assert_eq!(clock.at(4), 1_000);
        assert_eq!(clock.at(clock.origin - 1), -100);
        let hours = 10_000_000 * 3_600 * 5;
        assert_eq!(
            clock.at(clock.origin.wrapping_add(hours)),
            hours as i64 * 100
        );
    }
}
