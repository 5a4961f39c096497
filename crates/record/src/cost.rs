//! Estimated size of a recording, by time.

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

/// Events per second and CPU on an idle and on a busy machine, and bytes per event.
struct Rate {
    events: [u64; 2],
    bytes: u64,
}

/// Size of a stack event with 24 frames, in bytes. Averages in public traces are smaller: 87 bytes
/// for stacks of samples (Windows 7), 206 for stacks of context switches (Windows 11). If WPR
/// caches stacks, each repetition of a frequent stack takes only 40 bytes.
const STACK_BYTES: u64 = 32 + 8 * 24;
/// CPU samples per second and CPU.
const SAMPLES: u64 = 1_000;
const SWITCHES: [u64; 2] = [300, 8_000];
const READIED: [u64; 2] = [200, 6_000];
const REQUESTS: [u64; 2] = [5, 1_000];
const OPERATIONS: [u64; 2] = [20, 5_000];
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
        Kind::FileOperations => (OPERATIONS, 60),
        Kind::FileStarts => (OPERATIONS, 90),
        Kind::HardFaults => (FAULTS, 64),
        Kind::Traffic => ([10, 5_000], 80),
        Kind::SwitchStacks => (SWITCHES, STACK_BYTES),
        Kind::ReadyStacks => (READIED, STACK_BYTES),
        Kind::SampleStacks => ([SAMPLES, SAMPLES], STACK_BYTES),
        Kind::DiskReadStacks | Kind::DiskWriteStacks => (REQUESTS, STACK_BYTES),
        Kind::FaultStacks => (FAULTS, STACK_BYTES),
        Kind::Focus | Kind::Freezes | Kind::TimerRequests | Kind::Input => ([0, 5], 130),
        Kind::Packets => ([10, 5_000], 1_200),
        Kind::DotnetPauses | Kind::DotnetPools => ([0, 100], 100),
    };
    Rate { events, bytes }
}

impl Cost {
    /// Estimates the growth of a recording on a machine with this number of CPUs.
    pub fn estimate(capture: &Capture, cpus: u32) -> Cost {
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
