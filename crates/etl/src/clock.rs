//! Conversion of a session's raw times to nanoseconds and to UTC. The conversion uses integer arithmetic.

/// Number of 100 ns units between 1601-01-01 (FILETIME) and 1970-01-01 (Unix), both UTC.
const UNIX_EPOCH_FILETIME: i128 = 116_444_736_000_000_000;

/// Maximum frequency in Hz. All real counters have a far lower frequency. Products of this frequency with
/// times fit into 128 bits.
const MAX_FREQUENCY: u64 = 1 << 60;

/// Counter of a session's raw times (`ReservedFlags` of the log-file header).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockKind {
    /// Performance counter of Windows (`QueryPerformanceCounter`); the usual clock.
    Qpc,
    /// System time as FILETIME.
    SystemTime,
    /// CPU cycle counter.
    CpuCycles,
}

impl ClockKind {
    /// Returns the name that reports use.
    pub const fn name(self) -> &'static str {
        match self {
            ClockKind::Qpc => "QPC",
            ClockKind::SystemTime => "system time",
            ClockKind::CpuCycles => "CPU cycles",
        }
    }
}

/// Converter of one segment's raw times (counter ticks) to nanoseconds since the *trace's* start and to UTC.
///
/// Both results are exact quotients, rounded down. They are computed without floating-point arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    kind: ClockKind,
    /// Raw time at which the time in nanoseconds is 0.
    origin: i64,
    /// FILETIME at which the time in nanoseconds is 0.
    origin_filetime: i64,
    /// Number of ticks per second.
    frequency: u64,
    /// Nanoseconds per tick if the quotient is an integer, otherwise 0.
    ns_per_tick: i64,
}

impl Clock {
    /// Creates a clock with `frequency` ticks per second. The raw time `origin`, the FILETIME
    /// `origin_filetime` (100 ns since 1601 UTC) and nanosecond 0 are the same moment. If `frequency` is 0,
    /// the clock uses 10 MHz.
    pub fn new(kind: ClockKind, origin: i64, origin_filetime: i64, frequency: u64) -> Clock {
        let frequency = match kind {
            ClockKind::SystemTime => 10_000_000,
            _ if frequency == 0 => 10_000_000,
            _ => frequency.min(MAX_FREQUENCY),
        };
        let ns_per_tick = match 1_000_000_000 % frequency {
            0 => (1_000_000_000 / frequency) as i64,
            _ => 0,
        };
        Clock {
            kind,
            origin,
            origin_filetime,
            frequency,
            ns_per_tick,
        }
    }

    /// Returns the kind of counter.
    pub fn kind(&self) -> ClockKind {
        self.kind
    }

    /// Returns the number of ticks per second.
    pub fn frequency(&self) -> u64 {
        self.frequency
    }

    /// Returns the raw time at which the time in nanoseconds is 0.
    pub fn origin(&self) -> i64 {
        self.origin
    }

    /// Returns the FILETIME (100 ns since 1601 UTC) at which the time in nanoseconds is 0.
    pub fn origin_filetime(&self) -> i64 {
        self.origin_filetime
    }

    /// Converts a raw time to nanoseconds since the trace's start. Results outside the range of `i64` (292
    /// years) become the nearest limit of `i64`.
    #[inline]
    pub fn to_ns(&self, raw: i64) -> i64 {
        match raw.checked_sub(self.origin) {
            Some(ticks) if self.ns_per_tick != 0 => ticks.saturating_mul(self.ns_per_tick),
            _ => self.scale(raw, 1_000_000_000),
        }
    }

    /// Returns the duration of `ticks` in nanoseconds.
    #[inline]
    pub fn ticks_to_ns(&self, ticks: i64) -> i64 {
        match self.ns_per_tick {
            0 => self.ticks_to(ticks.into(), 1_000_000_000),
            ns => ticks.saturating_mul(ns),
        }
    }

    /// Returns the raw time that is `ns` nanoseconds after the trace's start, rounded down to a
    /// tick.
    pub fn from_ns(&self, ns: i64) -> i64 {
        let ticks = (i128::from(ns) * i128::from(self.frequency)).div_euclid(1_000_000_000);
        clamp(i128::from(self.origin) + ticks)
    }

    /// Converts a raw time to a FILETIME (100 ns since 1601-01-01 UTC).
    pub fn to_filetime(&self, raw: i64) -> i64 {
        self.origin_filetime
            .saturating_add(self.scale(raw, 10_000_000))
    }

    /// Converts a raw time to nanoseconds since 1970-01-01 UTC. Keeps the precision of the clock.
    pub fn to_unix_ns(&self, raw: i64) -> i128 {
        (i128::from(self.origin_filetime) - UNIX_EPOCH_FILETIME) * 100 + i128::from(self.to_ns(raw))
    }

    /// Returns a copy of this clock. In the copy, nanosecond 0 is the moment `filetime`, rounded down to a
    /// tick.
    pub(crate) fn starting_at(&self, filetime: i64) -> Clock {
        let units = i128::from(filetime) - i128::from(self.origin_filetime);
        let ticks = (units * i128::from(self.frequency)).div_euclid(10_000_000);
        let origin = clamp(i128::from(self.origin) + ticks);
        Clock {
            origin,
            origin_filetime: filetime,
            ..*self
        }
    }

    /// Computes `(raw - origin) * unit / frequency`, rounded down.
    fn scale(&self, raw: i64, unit: i64) -> i64 {
        self.ticks_to(i128::from(raw) - i128::from(self.origin), unit)
    }

    /// Computes `ticks * unit / frequency`, rounded down.
    fn ticks_to(&self, ticks: i128, unit: i64) -> i64 {
        clamp((ticks * i128::from(unit)).div_euclid(i128::from(self.frequency)))
    }
}

fn clamp(value: i128) -> i64 {
    value.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 132_404_548_206_236_160;

    #[test]
    fn ten_megahertz_is_a_hundred_nanoseconds() {
        let clock = Clock::new(ClockKind::Qpc, 1_942_608_875, START, 10_000_000);
        assert_eq!(clock.to_ns(1_942_608_875), 0);
        assert_eq!(clock.to_ns(1_942_608_876), 100);
        assert_eq!(clock.to_ns(1_942_608_870), -500);
        assert_eq!(
            clock.to_filetime(1_942_608_875 + 10_000_000),
            START + 10_000_000
        );
    }

    #[test]
    fn odd_frequencies_are_floored_exactly() {
        // The counter of a real Windows 7 machine has 1,656,445 Hz.
        let clock = Clock::new(ClockKind::Qpc, 0, START, 1_656_445);
        assert_eq!(clock.to_ns(1), 603); // the exact quotient is 603.702...
        assert_eq!(clock.to_ns(-1), -604);
        assert_eq!(clock.to_ns(1_656_445 * 86_400), 86_400_000_000_000);
        assert_eq!(clock.to_filetime(1_656_445 * 3 + 1), START + 30_000_006);
    }

    #[test]
    fn cycle_clocks_above_a_gigahertz() {
        let clock = Clock::new(ClockKind::CpuCycles, 10, START, 3_592_000_000);
        assert_eq!(clock.to_ns(10 + 3_592), 1_000);
        assert_eq!(clock.from_ns(1_000), 10 + 3_592);
    }

    #[test]
    fn extremes_saturate() {
        let clock = Clock::new(ClockKind::Qpc, i64::MIN, START, 1);
        assert_eq!(clock.to_ns(i64::MAX), i64::MAX);
        assert_eq!(Clock::new(ClockKind::Qpc, 0, 0, 0).frequency(), 10_000_000);
        let fast = Clock::new(ClockKind::Qpc, i64::MIN, i64::MAX, u64::MAX);
        assert_eq!(fast.starting_at(i64::MIN).origin(), i64::MIN);
        assert_eq!(fast.from_ns(i64::MAX), i64::MAX);
        assert!(fast.to_filetime(i64::MIN) == i64::MAX && fast.to_ns(i64::MAX) > 0);
        // The duration of ticks does not depend on the clock's origin.
        for frequency in [10_000_000, 1_656_445] {
            let clock = Clock::new(ClockKind::Qpc, i64::MAX, START, frequency);
            assert_eq!(clock.ticks_to_ns(frequency as i64), 1_000_000_000);
        }
    }

    #[test]
    fn unix_time() {
        let clock = Clock::new(ClockKind::SystemTime, START, START, 0);
        // `START` is 2020-07-29T00:07:00.623616Z.
        assert_eq!(clock.to_unix_ns(START), 1_595_981_220_623_616_000);
    }
}
