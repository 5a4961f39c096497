//! What each theory must have recorded to be judged: the one table that theories, kits and checks
//! of captures share.

use std::fmt;

use crate::{Capture, Investigation, Keyword, Kind};
use Kind::{
    ContextSwitches, DiskReadStacks, DiskRequests, DiskStarts, DiskWriteStacks, Dpcs, FaultStacks,
    FileNames, Focus, Freezes, HardFaults, Images, Input, Packets, PowerStates, Priorities,
    Processes, ReadyStacks, ReadyThreads, SampleStacks, Samples, ServiceRoutines, SwitchStacks,
    TimerRequests, Traffic,
};

/// What a theory must have recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The theory's id.
    pub theory: &'static str,
    /// Of each of these, one kind at least: without it the answer is *not recorded*.
    pub each_of: &'static [&'static [Kind]],
    /// What makes the answer say more: who it was, where, and with what.
    pub better_with: &'static [Kind],
    /// A trace that lacks such events does not tell "none happened" from "not recorded": the theory
    /// is judged where there are any.
    pub only_if_any: bool,
    /// What else is to be known or done.
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
const INTERRUPTS: &[&[Kind]] = &[&[Dpcs, ServiceRoutines]];
const LARGER_BUFFERS: &str = "again, with more and larger buffers (xperf -BufferSize 1024 \
                              -MinBuffers 256; WPR: a profile with larger Buffers), to a quick disk \
                              or to memory (circular)";

/// The theories that are put to a whole trace.
pub static THEORIES: [Needs; 20] = [
    Needs {
        theory: "long-waits",
        each_of: SWITCHES,
        better_with: &[
            Processes,
            Images,
            ReadyThreads,
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
        theory: "outranked",
        each_of: SWITCHES,
        better_with: &[Processes],
        remark: "on Windows 10 1709 or later",
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
            Dpcs,
            ServiceRoutines,
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
        better_with: &[Dpcs, ServiceRoutines, Images],
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
        each_of: SWITCHES_AND_READY,
        better_with: &[Processes, Images, SwitchStacks, ReadyStacks],
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
        remark: "its events come only while the filter driver of NDIS is bound to the adapter: netsh \
                 trace start capture=yes binds it, pktmon captures by itself",
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
        each_of: SWITCHES,
        better_with: &[Samples, PowerStates, TimerRequests],
        ..NOTHING
    },
    Needs {
        theory: "hard-faults",
        each_of: &[&[HardFaults]],
        better_with: &[Processes, FileNames, FaultStacks, Images],
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

/// What is weighed for one wait.
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
        remark: "on Windows 10 1709 or later",
        ..NOTHING
    },
    Needs {
        theory: "dispatcher",
        each_of: SWITCHES,
        remark: "on Windows 10 1709 or later",
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

/// What the theory of that id must have recorded.
pub fn of(theory: &str) -> Option<&'static Needs> {
    let mut all = THEORIES.iter().chain(&CAUSES);
    all.find(|needs| needs.theory == theory)
}

impl Needs {
    /// All kinds that are of use to it, each once.
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
}

/// What to record, as it follows the word "record": what it needs in words, and what records all that
/// is of use to it.
impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alternatives = |any: &&[Kind]| {
            let names: Vec<&str> = any.iter().map(|kind| kind.name()).collect();
            names.join(" or ")
        };
        let needed: Vec<String> = self.each_of.iter().map(alternatives).collect();
        if needed.is_empty() {
            return f.write_str(self.remark);
        }
        write!(f, "{} (", listed(&needed))?;
        let mut all = Investigation::ALL.into_iter();
        if let Some(kit) = all.find(|asked| asked.theories().contains(&self.theory)) {
            write!(f, "laglab record --for {}; ", kit.name())?;
        }
        write!(f, "{})", switches(&Capture::of(self.kinds())))?;
        match self.remark {
            "" => Ok(()),
            remark => write!(f, "; {remark}"),
        }
    }
}

/// The switches of xperf and WPR that record it.
fn switches(capture: &Capture) -> String {
    let mut parts: Vec<String> = Vec::new();
    // xperf records it always, and has no use for being told.
    let flags: Vec<&str> = (capture.keywords())
        .filter(|keyword| *keyword != Keyword::CpuConfig)
        .map(|keyword| keyword.xperf())
        .collect();
    if !flags.is_empty() {
        let stacks: Vec<&str> = capture.stacks().map(|stack| stack.xperf()).collect();
        let walk = match stacks.is_empty() {
            true => String::new(),
            false => format!(" -stackwalk {}", stacks.join("+")),
        };
        parts.push(format!("xperf -on {}{walk}", flags.join("+")));
        let names: Vec<&str> = capture.keywords().map(|keyword| keyword.wpr()).collect();
        let word = if names.len() == 1 {
            "keyword"
        } else {
            "keywords"
        };
        parts.push(format!("WPR {word} {}", listed(&names)));
    }
    for enabled in capture.providers() {
        parts.push(match enabled.keywords {
            0 => format!("provider {}", enabled.provider.name()),
            keywords => format!(
                "provider {} with keywords {keywords:#x}",
                enabled.provider.name()
            ),
        });
    }
    parts.join("; ")
}

/// Things in words: `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(things: &[impl AsRef<str>]) -> String {
    let things: Vec<&str> = things.iter().map(AsRef::as_ref).collect();
    match things.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_theory_is_there_once() {
        let mut ids: Vec<&str> = THEORIES.iter().chain(&CAUSES).map(|n| n.theory).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all);
        assert!(ids.iter().all(|id| of(id).unwrap().theory == *id));
        assert_eq!(of("no-such-theory"), None);
    }

    #[test]
    fn needs_are_told_with_the_switches_of_both_recorders() {
        assert_eq!(
            of("saturation").unwrap().to_string(),
            "context switches (laglab record --for long-wait; xperf -on PROC_THREAD+CSWITCH; WPR \
             keywords ProcessThread, CpuConfig and CSwitch)"
        );
        assert_eq!(
            of("process-frozen").unwrap().to_string(),
            "processes frozen and thawed (provider Microsoft-Windows-Kernel-Process with keywords \
             0x200)"
        );
        let busy = of("busy-waiting").unwrap().to_string();
        assert!(
            busy.contains("xperf -on PROC_THREAD+LOADER+PROFILE -stackwalk Profile"),
            "{busy}"
        );
        assert!(busy.ends_with("; symbols of ntoskrnl.exe help"), "{busy}");
    }

    #[test]
    fn whoever_records_what_a_theory_needs_can_judge_it() {
        for needs in THEORIES.iter().chain(&CAUSES) {
            let capture = Capture::of(needs.kinds());
            assert!(capture.satisfies(needs), "{}", needs.theory);
            for any in needs.each_of {
                let less = any
                    .iter()
                    .fold(capture.clone(), |less, kind| less.without(*kind));
                assert!(!less.satisfies(needs), "{} without {any:?}", needs.theory);
            }
        }
    }
}
