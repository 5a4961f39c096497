//! Time in the model: whole ticks of the trace's clock since the trace began.

/// A moment, or a length of time, in ticks of the trace's clock. Moments count from the trace's
/// beginning.
pub(crate) type Time = u64;

/// A moment that never comes.
pub(crate) const NEVER: Time = Time::MAX;

/// How ticks and nanoseconds translate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeBase {
    frequency: u64,
    /// Nanoseconds of a tick if they are whole, else 0.
    ns_per_tick: u64,
    /// Cycles that a processor makes in a second.
    cycles_per_second: u64,
}

/// Longer than any trace, in ns, and short enough that a few of it can be added up in ticks.
const FOREVER: u64 = 1 << 50;

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

    /// The ticks nearest to `ns` nanoseconds, of which no more than [`FOREVER`] count.
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

    /// Nanoseconds from the trace's beginning to the moment, rounded down as readers of traces do.
    #[inline]
    pub(crate) fn ns(&self, time: Time) -> u64 {
        match self.ns_per_tick {
            0 => (u128::from(time) * u128::from(SECOND) / u128::from(self.frequency)) as u64,
            per_tick => time * per_tick,
        }
    }

    /// Nanoseconds between two moments, as a reader computes them from their nanoseconds.
    #[inline]
    pub(crate) fn ns_between(&self, from: Time, to: Time) -> u64 {
        self.ns(to) - self.ns(from)
    }

    /// Processor cycles in `ticks`; negative ones are what a thread took beyond its quantum.
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
