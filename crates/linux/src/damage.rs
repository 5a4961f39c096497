//! Faults of a recording.

/// Kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The file ends within a record, or before the end that its header states.
    #[error("the file ends early")]
    CutOff,
    /// A record states an impossible size. The rest of the file cannot be read.
    #[error("a record has an impossible size")]
    RecordSize,
    /// A record is too short for its fields.
    #[error("a record is too short for its fields")]
    ShortRecord,
    /// A record has the id of no described event.
    #[error("a record belongs to no described event")]
    UnknownEvent,
    /// A description of the file (a feature section) cannot be read.
    #[error("a description of events or of the machine is unreadable")]
    Description,
    /// Compressed records are damaged, or expand too far.
    #[error("compressed records are damaged, or expand too far")]
    Decompress,
    /// A record of a hardware trace, or another kind that is not read.
    #[error("a record of a hardware trace was skipped")]
    Unsupported,
}

/// Faults that were found in a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Number of events that the kernel reported as lost, because a ring buffer was full.
    pub lost_events: u64,
    /// Number of times that the kernel paused an event, because it came too often.
    pub throttled: u64,
    /// Number of records that were skipped.
    pub skipped_records: u64,
    /// First fault, with its offset in the file.
    pub first_fault: Option<(Fault, u64)>,
}

impl Damage {
    pub(crate) fn add(&mut self, fault: Fault, offset: u64) {
        self.skipped_records += 1;
        self.first_fault.get_or_insert((fault, offset));
    }

    /// Adds the faults of another part of the same recording.
    pub fn merge(&mut self, other: &Damage) {
        self.lost_events = self.lost_events.saturating_add(other.lost_events);
        self.throttled = self.throttled.saturating_add(other.throttled);
        self.skipped_records = self.skipped_records.saturating_add(other.skipped_records);
        let earlier = |fault: &&(Fault, u64)| self.first_fault.is_none_or(|(_, at)| fault.1 < at);
        if let Some(fault) = other.first_fault.as_ref().filter(earlier) {
            self.first_fault = Some(*fault);
        }
    }
}
