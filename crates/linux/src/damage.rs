//! Faults and losses of a recording.

use std::collections::BTreeMap;

/// Kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Fault {
    /// The header was never completed.
    #[error(
        "perf was killed: the descriptions of events and the machine are missing; stop perf with Ctrl-C (SIGINT), so \
         that it completes the file"
    )]
    Killed,
    /// The file ends before the descriptions of events and the machine.
    #[error(
        "the end of the file is missing, with the descriptions of events and the machine; copy the whole file"
    )]
    NoDescriptions,
    /// The file ends within a record, or before the end that its header states.
    #[error("the file ends early")]
    CutOff,
    /// The size of a record is impossible. The rest of the file cannot be read.
    #[error("a record has an impossible size")]
    RecordSize,
    /// A record is too short for its fields.
    #[error("a record is too short for its fields")]
    ShortRecord,
    /// A sample has an id that belongs to no described event, or the description of its tracepoint is missing or does
    /// not fit.
    #[error("a record belongs to no described event")]
    UnknownEvent,
    /// A description of the events or of the machine cannot be read.
    #[error("a description of events or of the machine is unreadable")]
    Description,
    /// Compressed records are damaged, or they expand to more bytes than allowed.
    #[error("compressed records are damaged, or expand too far")]
    Decompress,
    /// A record of an unsupported kind was skipped: data of a hardware trace, or compressed records or descriptions inside
    /// compressed records.
    #[error("a record of a hardware trace, or of records that were compressed twice, was skipped")]
    Unsupported,
    /// Neighbouring records of a large recording are of different CPUs too often. The further records are not read.
    #[error(
        "a record was skipped, because almost each record is of another CPU than the one before"
    )]
    Scattered,
    /// A line of a text is not the line of an event, or a field of its event is unreadable.
    #[error("a line of the text cannot be read")]
    Line,
    /// A recording of trace-cmd has several instances of the ring buffer. Only the instance with the most data is read.
    #[error("the events of a further instance of the ring buffer were skipped")]
    OtherInstance,
}

/// Faults of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// Number of faults.
    pub count: u64,
    /// Offset of the first fault in bytes. It counts from the start of the file, or from the start of the expanded
    /// records if the faulty record was compressed.
    pub offset: u64,
}

/// Time range in which events of a CPU are missing. Its times are in nanoseconds of the recording's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Reason why events are missing.
    pub kind: GapKind,
    /// CPU whose events are missing; `None` if the recording does not contain it.
    pub cpu: Option<u32>,
    /// Start of the range; `None` if the range begins before the first record of the CPU.
    pub start_ns: Option<u64>,
    /// End of the range; `None` if the range continues until the end of the recording.
    pub end_ns: Option<u64>,
}

/// Reason why events are missing in a [`Gap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapKind {
    /// The kernel lost this number of events, because a ring buffer was full.
    Lost(u64),
    /// The kernel throttled an event, because the event occurred too often.
    Throttled,
}

/// Faults and losses that were found in a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Number of events that the kernel reported as lost, because a ring buffer was full.
    pub lost_events: u64,
    /// Number of times that the kernel throttled an event, because the event occurred too often.
    pub throttled: u64,
    /// Places of losses and of throttling. If there are very many, the later ones are only counted.
    pub gaps: Vec<Gap>,
    /// Skipped records, unreadable descriptions, and early ends of the file, by kind.
    pub faults: BTreeMap<Fault, Faults>,
}

impl Damage {
    pub(crate) fn add(&mut self, fault: Fault, offset: u64) {
        self.merge_faults(fault, Faults { count: 1, offset });
    }

    /// Adds `count` faults of one kind.
    pub fn merge_faults(&mut self, fault: Fault, found: Faults) {
        let known = self
            .faults
            .entry(fault)
            .or_insert(Faults { count: 0, ..found });
        known.count = known.count.saturating_add(found.count);
        known.offset = known.offset.min(found.offset);
    }

    /// Adds the faults and losses that were found in another part of the same recording.
    pub fn merge(&mut self, other: &Damage) {
        self.lost_events = self.lost_events.saturating_add(other.lost_events);
        self.throttled = self.throttled.saturating_add(other.throttled);
        self.gaps.extend(&other.gaps);
        for (fault, found) in &other.faults {
            self.merge_faults(*fault, *found);
        }
    }
}
