//! Investigations: questions of users, each with the theories that answer it.

use crate::{Capture, Kind, Needs, needs};

/// A question about a machine. A kit for a question records the events that the theories of the question need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Investigation {
    /// Something took long although the machine was not busy.
    LongWait,
    /// DPCs and interrupt service routines that take long.
    Dpc,
    /// Threads that wait behind others of lower priority.
    Rank,
    /// CPU use.
    Cpu,
    /// Sleeps that take too long.
    Timer,
    /// Slow transfers.
    Network,
    /// DSCP marks of packets.
    Dscp,
    /// Slow disks and paging.
    Disk,
    /// Slow resume from sleep.
    Resume,
    /// Slow boot.
    Boot,
    /// All questions together.
    Full,
}

/// Kinds of events that every kit records. Without them, events of other kinds have no names.
const BASE: [Kind; 3] = [Kind::Processes, Kind::Images, Kind::CpuConfig];

impl Investigation {
    /// All investigations.
    pub const ALL: [Investigation; 11] = [
        Investigation::LongWait,
        Investigation::Dpc,
        Investigation::Rank,
        Investigation::Cpu,
        Investigation::Timer,
        Investigation::Network,
        Investigation::Dscp,
        Investigation::Disk,
        Investigation::Resume,
        Investigation::Boot,
        Investigation::Full,
    ];

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Investigation::LongWait => "long-wait",
            Investigation::Dpc => "dpc",
            Investigation::Rank => "rank",
            Investigation::Cpu => "cpu",
            Investigation::Timer => "timer",
            Investigation::Network => "network",
            Investigation::Dscp => "dscp",
            Investigation::Disk => "disk",
            Investigation::Resume => "resume",
            Investigation::Boot => "boot",
            Investigation::Full => "full",
        }
    }

    /// Returns the investigation with this name.
    pub fn from_name(name: &str) -> Option<Investigation> {
        let mut all = Investigation::ALL.into_iter();
        all.find(|investigation| investigation.name() == name)
    }

    /// Returns the question as a sentence.
    pub fn question(self) -> &'static str {
        match self {
            Investigation::LongWait => "Why does something wait for so long?",
            Investigation::Dpc => "Do DPCs and interrupts keep CPUs from programs?",
            Investigation::Rank => "Do threads wait behind others of lower priority?",
            Investigation::Cpu => "What uses the CPUs, and which threads wait for one?",
            Investigation::Timer => "Why do sleeps take longer than they should?",
            Investigation::Network => "Why are transfers over the network slow?",
            Investigation::Dscp => "Do packets carry the marks (DSCP) that a policy asks for?",
            Investigation::Disk => "Are disks slow, and do programs wait for paging?",
            Investigation::Resume => "Why does it take so long to resume from sleep?",
            Investigation::Boot => "Why does it take so long to boot?",
            Investigation::Full => "Why does it lag? (everything that can be judged)",
        }
    }

    /// Returns the ids of the theories that answer the question.
    pub fn theories(self) -> &'static [&'static str] {
        match self {
            Investigation::LongWait => &[
                "long-waits",
                "outranked",
                "locked-cpus",
                "long-interrupts",
                "frozen",
                "lock-convoy",
                "saturation",
                "quantum",
                "cpu-use",
                "suspended",
                "hard-faults",
                "clocks",
            ],
            Investigation::Dpc => &[
                "locked-cpus",
                "long-interrupts",
                "receive-spread",
                "busy-waiting",
            ],
            Investigation::Rank => &[
                "outranked",
                "long-waits",
                "saturation",
                "cpu-use",
                "suspended",
            ],
            Investigation::Cpu => &["cpu-use", "saturation", "quantum", "busy-waiting"],
            Investigation::Timer => &["timers", "suspended"],
            Investigation::Network => &[
                "network-throughput",
                "smb-security",
                "receive-spread",
                "locked-cpus",
                "long-interrupts",
            ],
            Investigation::Dscp => &["packet-marking", "network-throughput"],
            Investigation::Disk => &["disks", "hard-faults", "long-interrupts"],
            Investigation::Resume => &[
                "suspended",
                "long-waits",
                "outranked",
                "busy-waiting",
                "frozen",
                "saturation",
                "cpu-use",
                "long-interrupts",
                "hard-faults",
                "disks",
            ],
            Investigation::Boot => &[
                "cpu-use",
                "saturation",
                "disks",
                "hard-faults",
                "busy-waiting",
                "long-interrupts",
                "lock-convoy",
                "long-waits",
            ],
            Investigation::Full => &[
                "long-waits",
                "hangs",
                "short-waits",
                "outranked",
                "smb-security",
                "locked-cpus",
                "long-interrupts",
                "busy-waiting",
                "frozen",
                "lock-convoy",
                "dotnet-pauses",
                "dotnet-thread-pool",
                "saturation",
                "packet-marking",
                "quantum",
                "timers",
                "receive-spread",
                "network-throughput",
                "cpu-use",
                "suspended",
                "hard-faults",
                "disks",
                "clocks",
            ],
        }
    }

    /// Returns the kinds of events that these theories need.
    pub fn needs(self) -> impl Iterator<Item = &'static Needs> {
        self.theories()
            .iter()
            .filter_map(|theory| needs::for_theory(theory))
    }

    /// Returns the full capture: the basic kinds, and all kinds that the theories need or that make their
    /// answers more precise.
    pub fn capture(self) -> Capture {
        Capture::from_kinds(BASE.into_iter().chain(self.needs().flat_map(Needs::kinds)))
    }

    /// Returns the smallest capture with which the theories get a verdict. It lacks the kinds that only make
    /// answers more precise, which are mostly stacks.
    pub fn light_capture(self) -> Capture {
        let needed = self.needs().flat_map(|needs| needs.each_of.concat());
        Capture::from_kinds(BASE.into_iter().chain(needed))
    }

    /// Returns the capture for a large server. It lacks the stacks of the most frequent events,
    /// because these stacks are larger than the events themselves. They show the code that waited
    /// and the code that ended the wait. No theory needs them for a verdict.
    pub fn capture_for_large_server(self) -> Capture {
        let capture = self.capture();
        let dropped = [Kind::SwitchStacks, Kind::ReadyStacks];
        dropped
            .into_iter()
            .fold(capture, |less, kind| less.without(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_meet_the_needs_of_their_theories() {
        for investigation in Investigation::ALL {
            assert_eq!(
                Investigation::from_name(investigation.name()),
                Some(investigation)
            );
            let captures = [
                investigation.capture(),
                investigation.capture_for_large_server(),
                investigation.light_capture(),
            ];
            assert_eq!(
                investigation.needs().count(),
                investigation.theories().len(),
                "{investigation:?}"
            );
            for needs in investigation.needs() {
                for capture in &captures {
                    assert!(
                        needs.are_met_by(capture),
                        "{investigation:?}: {}",
                        needs.theory
                    );
                }
            }
        }
    }

    #[test]
    fn the_light_capture_is_a_part_of_the_full_one() {
        for investigation in Investigation::ALL {
            let whole = investigation.capture();
            let light = investigation.light_capture();
            let more: Vec<Kind> = light.kinds().filter(|kind| !whole.records(*kind)).collect();
            assert_eq!(more, [], "{investigation:?}");
            assert!(!light.records(Kind::SwitchStacks), "{investigation:?}");
            // Only for the investigation `dscp`, the light and the full capture are equal: it uses only packets and
            // traffic, and its theories need both.
            let is_whole = investigation == Investigation::Dscp;
            assert_eq!(light == whole, is_whole, "{investigation:?}");
        }
    }

    #[test]
    fn captures_include_the_published_flags() {
        // Flags of xperf that others published for the same questions: `PROC_THREAD+LOADER+INTERRUPT+DPC` for DPCs,
        // and `PROC_THREAD+LOADER+CSWITCH+DISPATCHER+PRIORITY+DPC+INTERRUPT+PROFILE -stackwalk
        // CSwitch+ReadyThread+Profile` for ranks.
        let has = |investigation: Investigation, flags: &str, stacks: &str| {
            let capture = investigation.capture();
            let recorded: Vec<&str> = capture.keywords().map(|keyword| keyword.xperf()).collect();
            let walked: Vec<&str> = capture.stacks().map(|stack| stack.xperf()).collect();
            flags.split('+').all(|flag| recorded.contains(&flag))
                && stacks
                    .split_terminator('+')
                    .all(|stack| walked.contains(&stack))
        };
        assert!(has(
            Investigation::Dpc,
            "PROC_THREAD+LOADER+INTERRUPT+DPC",
            ""
        ));
        assert!(has(
            Investigation::Rank,
            "PROC_THREAD+LOADER+CSWITCH+DISPATCHER+PRIORITY+DPC+INTERRUPT+PROFILE",
            "CSwitch+ReadyThread+Profile"
        ));
    }

    #[test]
    fn the_full_investigation_has_all_theories() {
        let theories = Investigation::Full.theories();
        let missing = needs::THEORIES.iter().map(|needs| needs.theory);
        let missing: Vec<&str> = missing
            .filter(|theory| !theories.contains(theory))
            .collect();
        // The theory `capture` needs no particular events.
        assert_eq!(missing, ["capture"]);
    }
}
