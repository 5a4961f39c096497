//! The machine, and the rules of its dispatcher.

use serde::Deserialize;

use crate::quantity::Nanoseconds;
use crate::windows::Windows;

/// What the machine is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Machine {
    pub(crate) windows: Windows,
    /// A server edition: long, fixed quanta unless Win32PrioritySeparation says otherwise.
    pub(crate) server: bool,
    pub(crate) name: String,
    /// Logical processors.
    pub(crate) processors: u16,
    pub(crate) threads_per_core: u16,
    pub(crate) nodes: u16,
    /// Most processors of a processor group.
    pub(crate) group_size: u16,
    pub(crate) cpu_mhz: u32,
    /// Ticks of the performance counter per second.
    pub(crate) clock_hz: u64,
    pub(crate) win32_priority_separation: u32,
    /// The registry's GlobalTimerResolutionRequests.
    pub(crate) global_timer_requests: bool,
    /// Idle states, shallowest first.
    pub(crate) c_states: Vec<CState>,
    /// The local time of the trace's beginning, as FILETIME.
    pub(crate) start: u64,
}

/// An idle state of the processors.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CState {
    /// Chosen when the processor expects to be idle at least as long.
    pub(crate) residency: Nanoseconds,
    /// Time to wake from it.
    pub(crate) latency: Nanoseconds,
}

impl Default for Machine {
    fn default() -> Machine {
        let state = |residency, latency| CState {
            residency: Nanoseconds(residency),
            latency: Nanoseconds(latency),
        };
        Machine {
            windows: Windows::Ten,
            server: false,
            name: "LAGLAB".into(),
            processors: 8,
            threads_per_core: 2,
            nodes: 1,
            group_size: 64,
            cpu_mhz: 3_000,
            clock_hz: 10_000_000,
            win32_priority_separation: 2,
            global_timer_requests: false,
            c_states: vec![state(0, 0), state(50_000, 1_000), state(500_000, 30_000)],
            // 2026-01-15 12:00:00 UTC.
            start: 134_129_520_000_000_000,
        }
    }
}

/// The dispatcher's rules as far as they are known only roughly, or guessed: what the defaults are
/// and how sure they are is in `docs/scenarios.md`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Scheduler {
    /// How long a thread runs before it makes room for one of its priority although its quantum
    /// is not used up: seen on build 26200. By default only there.
    pub(crate) short_slice: Option<Nanoseconds>,
    /// How long the use of a scheduling group is summed before it starts at zero again (a guess).
    pub(crate) generation: Nanoseconds,
    /// Use beyond its share that costs a group one rank (a guess).
    pub(crate) rank_step: Nanoseconds,
    /// Weight of everything that is in no group, against the groups' weights (a guess).
    pub(crate) ungrouped_weight: u32,
    /// A group's highest rank.
    pub(crate) highest_rank: u8,
    /// A ready thread that waited so long is boosted to 15 by the scan of each second.
    pub(crate) starvation_wait: Nanoseconds,
    /// How many clock ticks the boosted thread gets.
    pub(crate) starvation_ticks: u32,
    /// Whether the scan sees the threads of scheduling groups too (a guess).
    pub(crate) starvation_scans_groups: bool,
    /// Time from the request of another processor to the interrupt there.
    pub(crate) ipi_delay: Nanoseconds,
    /// Time that a processor spends at the expiry of a timer.
    pub(crate) timer_expiry: Nanoseconds,
    /// Queued DPCs of low importance that make the processor run them at once.
    pub(crate) dpc_depth: usize,
    /// DPC requests per tick below which even one of low importance is run at once.
    pub(crate) dpc_rate: u32,
}

impl Default for Scheduler {
    fn default() -> Scheduler {
        Scheduler {
            short_slice: None,
            generation: Nanoseconds(150_000_000),
            rank_step: Nanoseconds(15_625_000),
            ungrouped_weight: 5,
            highest_rank: 63,
            starvation_wait: Nanoseconds(4_000_000_000),
            starvation_ticks: 4,
            starvation_scans_groups: false,
            ipi_delay: Nanoseconds(1_000),
            timer_expiry: Nanoseconds(1_000),
            dpc_depth: 4,
            dpc_rate: 3,
        }
    }
}
