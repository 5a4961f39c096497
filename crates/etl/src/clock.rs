//! From a session's raw clock to nanoseconds and UTC, in integer arithmetic.

/// 100 ns units between 1601-01-01 (FILETIME) and 1970-01-01 (Unix), both UTC.
const UNIX_EPOCH_FILETIME: i128 = 116_444_736_000_000_000;

/// Far above any counter, and low enough that products with times fit in 128 bits.
const MAX_FREQUENCY: u64 = 1 << 60;

/// Which counter a session's times count (`ReservedFlags` of the log-file header).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockKind {
    /// Query-performance counter; the usual one.
    Qpc,
    /// System time: FILETIME.
    SystemTime,
    /// CPU cycle counter.
    CpuCycles,
}

impl ClockKind {
    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            ClockKind::Qpc => "QPC",
            ClockKind::SystemTime => "system time",
            ClockKind::CpuCycles => "CPU cycles",
        }
    }
}

/// Converts one segment's raw times to nanoseconds since the *trace's* start and to UTC.
///
/// Both are exact: the floor of the true quotient, never a floating-point result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    kind: ClockKind,
    /// Raw time of nanosecond 0.
    origin: i64,
    /// FILETIME of nanosecond 0.
    origin_filetime: i64,
    /// Ticks per second.
    frequency: u64,
    /// Nanoseconds per tick where that is a whole number, else 0.
    ns_per_tick: i64,
}

impl Clock {
    /// A clock on which the raw time `origin` is the moment `origin_filetime` (100 ns since
    /// 1601 UTC) and which ticks `frequency` times a second. A frequency of 0 counts as 10 MHz.
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

    /// Which counter this is.
    pub fn kind(&self) -> ClockKind {
        self.kind
    }

    /// Ticks per second.
    pub fn frequency(&self) -> u64 {
        self.frequency
    }

    /// Raw time of nanosecond 0.
    pub fn origin(&self) -> i64 {
        self.origin
    }

    /// FILETIME (100 ns since 1601 UTC) of nanosecond 0.
    pub fn origin_filetime(&self) -> i64 {
        self.origin_filetime
    }

    /// Nanoseconds since the trace's start; saturates at the ends of `i64` (292 years).
    #[inline]
    pub fn to_ns(&self, raw: i64) -> i64 {
        match raw.checked_sub(self.origin) {
            Some(ticks) if self.ns_per_tick != 0 => ticks.saturating_mul(self.ns_per_tick),
            _ => self.scale(raw, 1_000_000_000),
        }
    }

    /// Nanoseconds that `ticks` of this clock last.
    #[inline]
    pub fn ticks_to_ns(&self, ticks: i64) -> i64 {
        match self.ns_per_tick {
            0 => self.ticks_to(ticks.into(), 1_000_000_000),
            ns => ticks.saturating_mul(ns),
        }
    }

    /// The raw time that is `ns` nanoseconds after the trace's start (floor).
    pub fn from_ns(&self, ns: i64) -> i64 {
        let ticks = (i128::from(ns) * i128::from(self.frequency)).div_euclid(1_000_000_000);
        clamp(i128::from(self.origin) + ticks)
    }

    /// FILETIME: 100 ns since 1601-01-01 UTC.
    pub fn to_filetime(&self, raw: i64) -> i64 {
        self.origin_filetime
            .saturating_add(self.scale(raw, 10_000_000))
    }

    /// Nanoseconds since 1970-01-01 UTC, with the precision of the clock.
    pub fn to_unix_ns(&self, raw: i64) -> i128 {
        (i128::from(self.origin_filetime) - UNIX_EPOCH_FILETIME) * 100 + i128::from(self.to_ns(raw))
    }

    /// The same clock with nanosecond 0 moved to the moment `filetime`, to the clock's precision.
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

    /// `(raw - origin) * unit / frequency`, floored.
    fn scale(&self, raw: i64, unit: i64) -> i64 {
        self.ticks_to(i128::from(raw) - i128::from(self.origin), unit)
    }

    /// `ticks * unit / frequency`, floored.
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
        // 1,656,445 Hz: the counter of a real Windows 7 machine.
        let clock = Clock::new(ClockKind::Qpc, 0, START, 1_656_445);
        assert_eq!(clock.to_ns(1), 603); // 603.702...
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
        // How long ticks last does not hang on where the clock stands.
        for frequency in [10_000_000, 1_656_445] {
            let clock = Clock::new(ClockKind::Qpc, i64::MAX, START, frequency);
            assert_eq!(clock.ticks_to_ns(frequency as i64), 1_000_000_000);
        }
    }

    #[test]
    fn unix_time() {
        let clock = Clock::new(ClockKind::SystemTime, START, START, 0);
        // 2020-07-29T00:07:00.623616Z
        assert_eq!(clock.to_unix_ns(START), 1_595_981_220_623_616_000);
    }
}
