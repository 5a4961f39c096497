//! Estimated size of a recording, by time.

use crate::kind::Rate;
use crate::{Capture, Kind};

/// Estimated growth of a recording. Most rates are assumptions, which are right only to an order of magnitude.
/// Only the rate of CPU samples is known: two public traces, from PerfView's tests on .NET 4.5, have 937 and 987
/// samples per second and CPU. The sizes of events are computed from the layouts of the events. Events in public
/// traces of Windows 7, 8 and 11 are not larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Bytes per second that an idle machine logs.
    pub quiet_bytes_per_second: u64,
    /// Bytes per second that a busy machine logs.
    pub busy_bytes_per_second: u64,
    /// Events per second that a busy machine logs. A stack counts as an event.
    pub busy_events_per_second: u64,
}

impl Cost {
    /// Estimates the growth of a recording on a machine with this number of CPUs.
    pub fn estimate(capture: &Capture, cpus: u32) -> Cost {
        let sum = |number: fn(Rate) -> u64| {
            let on_each: u64 = capture.kinds().map(Kind::rate).map(number).sum();
            on_each * u64::from(cpus)
        };
        Cost {
            quiet_bytes_per_second: sum(|rate| rate.events[0] * rate.bytes),
            busy_bytes_per_second: sum(|rate| rate.events[1] * rate.bytes),
            busy_events_per_second: sum(|rate| rate.events[1]),
        }
    }

    /// Returns the time in seconds until a recording reaches the size `bytes`, first on a busy machine and
    /// then on an idle machine.
    pub fn seconds_in(&self, bytes: u64) -> (u64, u64) {
        (
            bytes / self.busy_bytes_per_second.max(1),
            bytes / self.quiet_bytes_per_second.max(1),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_grows_with_kinds_and_cpus() {
        let few = Capture::from_kinds([Kind::Samples]);
        let many = Capture::from_kinds([Kind::Samples, Kind::SwitchStacks]);
        // A machine with 4 CPUs logs 1,000 samples of 32 bytes per second and CPU.
        assert_eq!(Cost::estimate(&few, 4).busy_bytes_per_second, 128_000);
        assert_eq!(Cost::estimate(&few, 4).busy_events_per_second, 4_000);
        assert!(Cost::estimate(&many, 4).quiet_bytes_per_second > 128_000);
        assert_eq!(Cost::estimate(&few, 4).seconds_in(1_280_000), (10, 10));
    }
}
