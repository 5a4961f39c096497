//! What a recording costs, roughly.

use crate::{Capture, Kind};

/// How fast a recording grows. These are assumptions for orders of magnitude, not measurements: only
/// samples come at a rate that is set (in two public traces, PerfView's of .NET 4.5, 937 and 987 in a
/// second on a CPU). Sizes are those of layouts; the events that public traces of Windows 7, 8 and 11
/// have are not larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Bytes in a second while the machine does little.
    pub quiet_bytes_per_second: u64,
    /// Bytes in a second while it is busy.
    pub busy_bytes_per_second: u64,
    /// Events in a second while it is busy; a stack is one of its own.
    pub busy_events_per_second: u64,
}

/// How many events of a kind a CPU logs in a second, quiet and busy, and the bytes of each.
struct Rate {
    events: [u64; 2],
    bytes: u64,
}

/// A stack: 24 frames with the event that has them. In public traces it is less on average: 87 bytes
/// of samples (Windows 7), 206 of context switches (Windows 11); and where WPR caches stacks, a frequent
/// one is a key of 40 bytes.
const STACK_BYTES: u64 = 32 + 8 * 24;
/// Samples of a CPU in a second: one a millisecond.
const SAMPLES: u64 = 1_000;
const SWITCHES: [u64; 2] = [300, 8_000];
const READIED: [u64; 2] = [200, 6_000];
const REQUESTS: [u64; 2] = [5, 1_000];
const FAULTS: [u64; 2] = [1, 200];

fn rate(kind: Kind) -> Rate {
    let (events, bytes) = match kind {
        Kind::Processes | Kind::Images | Kind::CpuConfig | Kind::PowerStates => ([1, 50], 150),
        Kind::ContextSwitches => (SWITCHES, 44),
        Kind::ReadyThreads => (READIED, 24),
        Kind::Priorities => ([100, 4_000], 28),
        Kind::Samples => ([SAMPLES, SAMPLES], 32),
        Kind::Dpcs => ([100, 4_000], 32),
        Kind::ServiceRoutines => ([100, 4_000], 40),
        Kind::DiskRequests => (REQUESTS, 80),
        Kind::DiskStarts => (REQUESTS, 56),
        Kind::FileNames => ([1, 100], 200),
        Kind::HardFaults => (FAULTS, 64),
        Kind::Traffic => ([10, 5_000], 80),
        Kind::SwitchStacks => (SWITCHES, STACK_BYTES),
        Kind::ReadyStacks => (READIED, STACK_BYTES),
        Kind::SampleStacks => ([SAMPLES, SAMPLES], STACK_BYTES),
        Kind::DiskReadStacks | Kind::DiskWriteStacks => (REQUESTS, STACK_BYTES),
        Kind::FaultStacks => (FAULTS, STACK_BYTES),
        Kind::Focus | Kind::Freezes | Kind::TimerRequests | Kind::Input => ([0, 5], 130),
        Kind::Packets => ([10, 5_000], 1_200),
    };
    Rate { events, bytes }
}

impl Cost {
    /// What a capture costs on a machine of so many CPUs.
    pub fn of(capture: &Capture, cpus: u32) -> Cost {
        let sum = |of: fn(Rate) -> u64| {
            let on_each: u64 = capture.kinds().map(rate).map(of).sum();
            on_each * u64::from(cpus)
        };
        Cost {
            quiet_bytes_per_second: sum(|rate| rate.events[0] * rate.bytes),
            busy_bytes_per_second: sum(|rate| rate.events[1] * rate.bytes),
            busy_events_per_second: sum(|rate| rate.events[1]),
        }
    }

    /// How long so many bytes last: while the machine is busy, and while it does little.
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
    fn more_costs_more() {
        let few = Capture::of([Kind::Samples]);
        let many = Capture::of([Kind::Samples, Kind::SwitchStacks]);
        // 1,000 samples of 32 bytes on each of 4 CPUs.
        assert_eq!(Cost::of(&few, 4).busy_bytes_per_second, 128_000);
        assert_eq!(Cost::of(&few, 4).busy_events_per_second, 4_000);
        assert!(Cost::of(&many, 4).quiet_bytes_per_second > 128_000);
        assert_eq!(Cost::of(&few, 4).seconds_in(1_280_000), (10, 10));
    }
}
