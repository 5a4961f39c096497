//! Time in the model: integer ticks of the trace's clock, counted from the trace's start.

/// A moment or a duration, in ticks of the trace's clock. Moments count from the trace's start.
pub(crate) type Time = u64;

/// Time of an event that never happens.
pub(crate) const NEVER: Time = Time::MAX;

/// Conversion from nanoseconds to ticks, and from ticks to nanoseconds or processor cycles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeBase {
    frequency: u64,
    /// Nanoseconds per tick if this is an integer; otherwise 0.
    ns_per_tick: u64,
    /// Processor cycles per second.
    cycles_per_second: u64,
}

/// Longest duration in ns. It is longer than any trace, but small enough that the sum of several
/// durations in ticks fits into 64 bits.
pub(crate) const FOREVER: u64 = 1 << 50;

const SECOND: u64 = 1_000_000_000;

impl TimeBase {
    pub(crate) fn new(frequency: u64, cpu_mhz: u32) -> TimeBase {
        let whole = SECOND.is_multiple_of(frequency);
        TimeBase {
            frequency,
            ns_per_tick: if whole { SECOND / frequency } else { 0 },
            cycles_per_second: u64::from(cpu_mhz) * 1_000_000,
        }
    }

    /// Returns the number of ticks nearest to `ns` nanoseconds. If `ns` is longer than [`FOREVER`], returns
    /// the ticks of [`FOREVER`].
    #[inline]
    pub(crate) fn ticks(&self, ns: u64) -> Time {
        let ns = ns.min(FOREVER);
        match self.ns_per_tick {
            0 => {
                let ticks = u128::from(ns) * u128::from(self.frequency) + u128::from(SECOND / 2);
                (ticks / u128::from(SECOND)) as Time
            }
            per_tick => (ns + per_tick / 2) / per_tick,
        }
    }

    /// Returns the nanoseconds from the trace's start to `time`. The result is rounded down, because readers
    /// of traces also round down.
    #[inline]
    pub(crate) fn ns(&self, time: Time) -> u64 {
        match self.ns_per_tick {
            0 => (u128::from(time) * u128::from(SECOND) / u128::from(self.frequency)) as u64,
            per_tick => time * per_tick,
        }
    }

    /// Returns the nanoseconds between two moments, as a reader of the trace computes them.
    #[inline]
    pub(crate) fn ns_between(&self, from: Time, to: Time) -> u64 {
        self.ns(to) - self.ns(from)
    }

    /// Returns the number of processor cycles in `ticks`. A negative number of ticks is the time by which a thread
    /// exceeded its quantum.
    #[inline]
    pub(crate) fn cycles(&self, ticks: i64) -> i64 {
        let cycles = i128::from(ticks) * i128::from(self.cycles_per_second);
        (cycles / i128::from(self.frequency)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_any_clock() {
        let ten_mhz = TimeBase::new(10_000_000, 3_000);
        assert_eq!(ten_mhz.ticks(15_625_000), 156_250);
        assert_eq!(ten_mhz.ns(156_250), 15_625_000);
        assert_eq!(ten_mhz.cycles(156_250), 46_875_000);
        let acpi = TimeBase::new(3_579_545, 3_000);
        assert_eq!(acpi.ticks(SECOND), 3_579_545);
        assert_eq!(acpi.ns(1), 279);
        assert_eq!(acpi.ns_between(1, 3), 838 - 279);
        assert_eq!(acpi.cycles(-3_579_545), -3_000_000_000);
    }
}
