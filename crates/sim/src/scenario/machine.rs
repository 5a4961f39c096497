//! The simulated machine and the parameters of its dispatcher.

use serde::Deserialize;

use crate::quantity::Nanoseconds;
use crate::windows::Windows;

/// Properties of the simulated machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Machine {
    pub(crate) windows: Windows,
    /// True for a server edition, which has long, fixed quanta unless Win32PrioritySeparation
    /// requests others.
    pub(crate) server: bool,
    pub(crate) name: String,
    /// Number of logical processors.
    pub(crate) processors: u16,
    pub(crate) threads_per_core: u16,
    pub(crate) nodes: u16,
    /// Maximum number of processors in a processor group.
    pub(crate) group_size: u16,
    pub(crate) cpu_mhz: u32,
    /// Ticks of the performance counter per second.
    pub(crate) clock_hz: u64,
    pub(crate) win32_priority_separation: u32,
    /// Registry value GlobalTimerResolutionRequests.
    pub(crate) global_timer_requests: bool,
    /// Idle states, shallowest first.
    pub(crate) c_states: Vec<CState>,
    /// Local time of the trace's start, as FILETIME.
    pub(crate) start: u64,
}

/// An idle state of the processors.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CState {
    /// Minimum expected idle time for which the processor chooses the state.
    pub(crate) residency: Nanoseconds,
    /// Time that the processor needs to wake from the state.
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

/// Parameters of the dispatcher that are known only roughly or invented. `docs/scenarios.md` gives
/// the defaults and their certainty.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Scheduler {
    /// Time after which a thread yields to a thread of the same priority, even if its quantum has
    /// not ended. Observed on build 26200; by default, earlier builds do not have it.
    pub(crate) short_slice: Option<Nanoseconds>,
    /// Length of a generation: after this time, the used processor time of all scheduling groups is reset to
    /// zero (a guess).
    pub(crate) generation: Nanoseconds,
    /// Processor time beyond a group's share that raises the group's rank by one (a guess).
    pub(crate) rank_step: Nanoseconds,
    /// Weight of all threads that belong to no group, relative to the weights of groups (a guess).
    pub(crate) ungrouped_weight: u32,
    /// Maximum rank of a group.
    pub(crate) highest_rank: u8,
    /// Minimum time for which a thread must be ready before it is boosted to priority 15. A scan boosts such
    /// threads every second.
    pub(crate) starvation_wait: Nanoseconds,
    /// Quantum of a thread that the scan for starving threads boosted, in clock ticks.
    pub(crate) starvation_ticks: u32,
    /// True if the scan for starving threads includes threads of scheduling groups (a guess).
    pub(crate) starvation_scans_groups: bool,
    /// Time from the moment when a processor requests an inter-processor interrupt to the moment when the
    /// other processor is interrupted.
    pub(crate) ipi_delay: Nanoseconds,
    /// Processor time that the kernel needs to handle an expired timer.
    pub(crate) timer_expiry: Nanoseconds,
    /// Maximum number of queued DPCs that may wait. If more DPCs are queued, the processor runs them at once,
    /// even if their importance is low.
    pub(crate) dpc_depth: usize,
    /// Minimum number of DPC requests per clock tick at which DPCs of low importance wait. Below this number,
    /// even a DPC of low importance runs at once.
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
