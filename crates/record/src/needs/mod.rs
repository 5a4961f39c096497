//! List of the kinds of events that theories and tables need. Theories, kits, reports, views and checks of captures use
//! this list.

mod tables;

pub use tables::{TABLES, TableNeeds, for_table};

use crate::{Capture, Kind};
use Kind::{
    ContextSwitches, DiskReadStacks, DiskRequests, DiskStarts, DiskWriteStacks, DotnetPauses,
    DotnetPools, Dpcs, FaultStacks, FileNames, Focus, Freezes, HardFaults, Images, Input, Packets,
    PowerStates, Priorities, Processes, ReadyStacks, ReadyThreads, SampleStacks, Samples,
    ServiceRoutines, SwitchStacks, TimerRequests, Traffic,
};

/// Kinds of events that a theory needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Id of the theory.
    pub theory: &'static str,
    /// Groups of kinds. The theory needs at least one kind of each group to answer no. Without them, its verdict is *not
    /// recorded*, unless the events that are there show a finding.
    pub each_of: &'static [&'static [Kind]],
    /// Kinds that make the answer more precise: names, source positions, stacks.
    pub better_with: &'static [Kind],
    /// True if the theory gets a verdict only if the trace contains at least one event of the needed kinds. Without
    /// such an event, it is unknown whether nothing happened or nothing was recorded.
    pub only_if_any: bool,
    /// Further advice for the user; empty if there is none.
    pub remark: &'static str,
}

const NOTHING: Needs = Needs {
    theory: "",
    each_of: &[],
    better_with: &[],
    only_if_any: false,
    remark: "",
};

const SWITCHES: &[&[Kind]] = &[&[ContextSwitches]];
const SWITCHES_AND_READY: &[&[Kind]] = &[&[ContextSwitches], &[ReadyThreads]];
const INTERRUPTS: &[&[Kind]] = &[&[Dpcs], &[ServiceRoutines]];
const LARGER_BUFFERS: &str = "again, with more and larger buffers (xperf -BufferSize 1024 \
                              -MinBuffers 256; WPR: a profile with larger Buffers), to a quick disk \
                              or to memory (circular)";

/// Needs of the theories about whole traces.
pub static THEORIES: [Needs; 24] = [
    Needs {
        theory: "long-waits",
        each_of: SWITCHES_AND_READY,
        better_with: &[
            Processes,
            Images,
            Priorities,
            Dpcs,
            ServiceRoutines,
            Samples,
            SwitchStacks,
            ReadyStacks,
            SampleStacks,
            Focus,
            Freezes,
            Input,
        ],
        ..NOTHING
    },
    Needs {
        theory: "hangs",
        each_of: &[&[ContextSwitches], &[ReadyThreads], &[Processes]],
        better_with: &[
            Images,
            Focus,
            DiskRequests,
            DiskStarts,
            HardFaults,
            Traffic,
            Dpcs,
            Samples,
            Freezes,
            Input,
            SwitchStacks,
            ReadyStacks,
        ],
        ..NOTHING
    },
    Needs {
        theory: "short-waits",
        each_of: &[
            &[ContextSwitches],
            &[ReadyThreads],
            &[Dpcs],
            &[ServiceRoutines],
            &[Processes],
        ],
        better_with: &[Images, Priorities, Focus],
        ..NOTHING
    },
    Needs {
        theory: "outranked",
        each_of: SWITCHES,
        better_with: &[Processes],
        remark: "only Windows 10 1709 and later record ranks",
        ..NOTHING
    },
    Needs {
        theory: "smb-security",
        each_of: &[&[Traffic], &[Samples], &[Images]],
        better_with: &[Processes, SampleStacks, Dpcs, ServiceRoutines],
        only_if_any: true,
        ..NOTHING
    },
    Needs {
        theory: "locked-cpus",
        each_of: INTERRUPTS,
        better_with: &[
            Processes,
            Images,
            ContextSwitches,
            ReadyThreads,
            Samples,
            SampleStacks,
        ],
        ..NOTHING
    },
    Needs {
        theory: "long-interrupts",
        each_of: INTERRUPTS,
        better_with: &[Images],
        ..NOTHING
    },
    Needs {
        theory: "busy-waiting",
        each_of: &[&[Samples], &[SampleStacks], &[Images]],
        better_with: &[Processes],
        remark: "symbols of ntoskrnl.exe help",
        ..NOTHING
    },
    Needs {
        theory: "frozen",
        each_of: &[&[Freezes]],
        better_with: &[Processes, ContextSwitches, ReadyThreads, Focus],
        only_if_any: true,
        ..NOTHING
    },
    Needs {
        theory: "lock-convoy",
        each_of: &[&[ContextSwitches], &[ReadyThreads], &[Processes]],
        better_with: &[Images, HardFaults, SwitchStacks, ReadyStacks],
        ..NOTHING
    },
    Needs {
        theory: "dotnet-pauses",
        each_of: &[&[DotnetPauses]],
        better_with: &[Processes, Focus],
        only_if_any: true,
        ..NOTHING
    },
    Needs {
        theory: "dotnet-thread-pool",
        each_of: &[&[DotnetPools]],
        better_with: &[Processes, Focus],
        only_if_any: true,
        ..NOTHING
    },
    Needs {
        theory: "saturation",
        each_of: SWITCHES,
        better_with: &[Processes],
        ..NOTHING
    },
    Needs {
        theory: "packet-marking",
        each_of: &[&[Packets]],
        better_with: &[Processes],
        only_if_any: true,
        remark: "packets are recorded only while the NDIS filter driver is bound to the adapter: run netsh \
                 trace start capture=yes, or capture with pktmon",
    },
    Needs {
        theory: "quantum",
        each_of: SWITCHES,
        better_with: &[Processes, Focus],
        ..NOTHING
    },
    Needs {
        theory: "timers",
        each_of: &[&[TimerRequests]],
        better_with: &[Processes, ContextSwitches, ReadyThreads],
        only_if_any: true,
        ..NOTHING
    },
    Needs {
        theory: "receive-spread",
        each_of: &[&[Dpcs], &[Images]],
        better_with: &[ServiceRoutines],
        ..NOTHING
    },
    Needs {
        theory: "network-throughput",
        each_of: &[&[Traffic]],
        better_with: &[Processes],
        only_if_any: true,
        ..NOTHING
    },
    Needs {
        theory: "cpu-use",
        each_of: &[&[ContextSwitches, Samples]],
        better_with: &[ContextSwitches, Samples, Processes, Images, SampleStacks],
        ..NOTHING
    },
    Needs {
        theory: "suspended",
        each_of: &[&[ContextSwitches], &[Samples]],
        better_with: &[PowerStates, TimerRequests],
        ..NOTHING
    },
    Needs {
        theory: "hard-faults",
        each_of: &[&[HardFaults]],
        better_with: &[Processes, Focus, FileNames, FaultStacks, Images],
        only_if_any: true,
        ..NOTHING
    },
    Needs {
        theory: "disks",
        each_of: &[&[DiskRequests]],
        better_with: &[
            DiskStarts,
            Processes,
            FileNames,
            DiskReadStacks,
            DiskWriteStacks,
            Images,
        ],
        only_if_any: true,
        ..NOTHING
    },
    Needs {
        theory: "clocks",
        each_of: SWITCHES_AND_READY,
        ..NOTHING
    },
    Needs {
        theory: "capture",
        remark: LARGER_BUFFERS,
        ..NOTHING
    },
];

/// Needs of the theories about the cause of a single wait.
pub static CAUSES: [Needs; 11] = [
    Needs {
        theory: "higher-priority",
        each_of: SWITCHES,
        ..NOTHING
    },
    Needs {
        theory: "equal-priority",
        each_of: SWITCHES,
        ..NOTHING
    },
    Needs {
        theory: "better-rank",
        each_of: SWITCHES,
        remark: "only Windows 10 1709 and later record ranks",
        ..NOTHING
    },
    Needs {
        theory: "dispatcher",
        each_of: SWITCHES,
        remark: "only Windows 10 1709 and later record ranks",
        ..NOTHING
    },
    Needs {
        theory: "interrupted-cpus",
        each_of: INTERRUPTS,
        better_with: &[Dpcs, ServiceRoutines],
        ..NOTHING
    },
    Needs {
        theory: "affinity",
        each_of: &[&[Processes]],
        ..NOTHING
    },
    Needs {
        theory: "stack-paged-out",
        each_of: &[&[ReadyThreads]],
        ..NOTHING
    },
    Needs {
        theory: "process-frozen",
        each_of: &[&[Freezes]],
        only_if_any: true,
        ..NOTHING
    },
    Needs {
        theory: "machine-suspended",
        each_of: SWITCHES,
        better_with: &[Samples],
        ..NOTHING
    },
    Needs {
        theory: "lost-events",
        remark: LARGER_BUFFERS,
        ..NOTHING
    },
    Needs {
        theory: "late-waker",
        each_of: &[&[ReadyThreads]],
        ..NOTHING
    },
];

/// Returns the needs of the theory with this id.
pub fn for_theory(theory: &str) -> Option<&'static Needs> {
    let mut all = THEORIES.iter().chain(&CAUSES);
    all.find(|needs| needs.theory == theory)
}

impl Needs {
    /// Returns all kinds that the theory needs or that make its answer more precise, without repetition.
    pub fn kinds(&self) -> Vec<Kind> {
        let needed = self.each_of.iter().copied().flatten();
        let mut kinds: Vec<Kind> = Vec::new();
        for kind in needed.chain(self.better_with) {
            if !kinds.contains(kind) {
                kinds.push(*kind);
            }
        }
        kinds
    }

    /// Returns true if a capture records enough for a verdict.
    pub fn are_met_by(&self, capture: &Capture) -> bool {
        let has_any = |any: &&[Kind]| any.iter().any(|kind| capture.records(*kind));
        self.each_of.iter().all(has_any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn theory_ids_are_unique() {
        let mut ids: Vec<&str> = THEORIES.iter().chain(&CAUSES).map(|n| n.theory).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all);
        assert!(ids.iter().all(|id| for_theory(id).unwrap().theory == *id));
        assert_eq!(for_theory("no-such-theory"), None);
    }

    #[test]
    fn a_capture_of_all_needed_kinds_meets_the_needs() {
        for needs in THEORIES.iter().chain(&CAUSES) {
            let capture = Capture::from_kinds(needs.kinds());
            assert!(needs.are_met_by(&capture), "{}", needs.theory);
            for any in needs.each_of {
                let less = any
                    .iter()
                    .fold(capture.clone(), |less, kind| less.without(*kind));
                assert!(!needs.are_met_by(&less), "{} without {any:?}", needs.theory);
            }
        }
    }
}
