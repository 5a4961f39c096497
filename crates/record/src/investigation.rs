//! Questions that people have, and what answers them.

use crate::{Capture, Kind, Needs, needs};

/// A question about a machine that is recorded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Investigation {
    /// Something took long although the machine was not busy.
    LongWait,
    /// DPCs and service routines.
    Dpc,
    /// Threads behind others of lower priority.
    Rank,
    /// What the CPUs are used for.
    Cpu,
    /// Sleeps that take too long.
    Timer,
    /// Slow transfers.
    Network,
    /// Marks of packets.
    Dscp,
    /// Slow disks and paging.
    Disk,
    /// Slow resume from sleep.
    Resume,
    /// Slow boot.
    Boot,
    /// Everything that laglab can judge.
    Full,
}

/// What is always recorded: who it was.
const BASE: [Kind; 3] = [Kind::Processes, Kind::Images, Kind::CpuConfig];

impl Investigation {
    /// All of them.
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

    /// Its name on the command line.
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

    /// The investigation of that name.
    pub fn named(name: &str) -> Option<Investigation> {
        let mut all = Investigation::ALL.into_iter();
        all.find(|investigation| investigation.name() == name)
    }

    /// The question.
    pub fn question(self) -> &'static str {
        match self {
            Investigation::LongWait => "Why does something wait for so long?",
            Investigation::Dpc => "Do DPCs and interrupts keep CPUs from programs?",
            Investigation::Rank => "Do threads wait behind others of lower priority?",
            Investigation::Cpu => "What uses the CPUs, and who has to wait for one?",
            Investigation::Timer => "Why do sleeps take longer than they should?",
            Investigation::Network => "Why are transfers over the network slow?",
            Investigation::Dscp => "Do packets carry the marks (DSCP) that a policy asks for?",
            Investigation::Disk => "Are disks slow, and do programs wait for paging?",
            Investigation::Resume => "Why does it take so long to resume from sleep?",
            Investigation::Boot => "Why does it take so long to boot?",
            Investigation::Full => "Why does it lag? (everything that can be judged)",
        }
    }

    /// The ids of the theories that answer it.
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
                "outranked",
                "smb-security",
                "locked-cpus",
                "long-interrupts",
                "busy-waiting",
                "frozen",
                "lock-convoy",
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

    /// What these theories must have recorded.
    pub fn needs(self) -> impl Iterator<Item = &'static Needs> {
        self.theories()
            .iter()
            .filter_map(|theory| needs::of(theory))
    }

    /// What is recorded for it: all that these theories need or are better with, and who it was.
    pub fn capture(self) -> Capture {
        Capture::of(BASE.into_iter().chain(self.needs().flat_map(Needs::kinds)))
    }

    /// As little of it as lets these theories be judged. What makes them say more is left out: stacks
    /// above all.
    pub fn light_capture(self) -> Capture {
        let needed = self.needs().flat_map(|needs| needs.each_of.concat());
        Capture::of(BASE.into_iter().chain(needed))
    }

    /// The whole for a large server: without the stacks of what happens most, which cost more than
    /// the events themselves. No theory needs them; they tell what code waited and who woke it.
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
    fn each_captures_what_its_theories_need() {
        for investigation in Investigation::ALL {
            assert_eq!(
                Investigation::named(investigation.name()),
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
                        capture.satisfies(needs),
                        "{investigation:?}: {}",
                        needs.theory
                    );
                }
            }
        }
    }

    #[test]
    fn the_light_one_records_a_part_of_the_whole() {
        for investigation in Investigation::ALL {
            let whole = investigation.capture();
            let light = investigation.light_capture();
            let more: Vec<Kind> = light.kinds().filter(|kind| !whole.records(*kind)).collect();
            assert_eq!(more, [], "{investigation:?}");
            assert!(!light.records(Kind::SwitchStacks), "{investigation:?}");
            // Packets and traffic are all that is of use to it.
            let is_whole = investigation == Investigation::Dscp;
            assert_eq!(light == whole, is_whole, "{investigation:?}");
        }
    }

    #[test]
    fn ready_investigations_are_those_of_the_books() {
        // Of DPCs: xperf -on PROC_THREAD+LOADER+INTERRUPT+DPC; of ranks: PROC_THREAD+LOADER+CSWITCH+
        // DISPATCHER+PRIORITY+DPC+INTERRUPT+PROFILE -stackwalk CSwitch+ReadyThread+Profile.
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
    fn the_full_one_asks_all_theories() {
        let asked = Investigation::Full.theories();
        let missing = needs::THEORIES.iter().map(|needs| needs.theory);
        let missing: Vec<&str> = missing.filter(|theory| !asked.contains(theory)).collect();
        // Which needs nothing recorded.
        assert_eq!(missing, ["capture"]);
    }
}
