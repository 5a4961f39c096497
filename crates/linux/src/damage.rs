//! Faults of a recording.

/// Kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
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
    /// A record of an unsupported kind was skipped: data of a hardware trace, or compressed records inside compressed
    /// records.
    #[error("a record of a hardware trace, or of records that were compressed twice, was skipped")]
    Unsupported,
    /// A recording of trace-cmd has several instances of the ring buffer. Only the instance with the most data is read.
    #[error("the events of a further instance of the ring buffer were skipped")]
    OtherInstance,
}

/// Faults that were found in a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Number of events that the kernel reported as lost, because a ring buffer was full.
    pub lost_events: u64,
    /// Number of times that the kernel throttled an event, because the event occurred too often.
    pub throttled: u64,
    /// Number of faults: skipped records, unreadable descriptions, and early ends of the file.
    pub skipped_records: u64,
    /// First fault and its offset in bytes. The offset counts from the start of the file, or from the start of the
    /// expanded records if the faulty record was compressed.
    pub first_fault: Option<(Fault, u64)>,
}

impl Damage {
    pub(crate) fn add(&mut self, fault: Fault, offset: u64) {
        self.skipped_records += 1;
        self.first_fault.get_or_insert((fault, offset));
    }

    /// Adds the faults that were found in another part of the same recording.
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
