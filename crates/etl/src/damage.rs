//! Information about missing and damaged parts of a trace.

use std::collections::BTreeMap;
use std::fmt;

use crate::compress::DecompressError;
use crate::event::BadRecord;

/// Maximum number of faults that are kept with their positions. Further faults are only counted.
const KEPT_FAULTS: usize = 1000;

/// Name of [`FaultKind::ImplausibleSequence`].
const IMPLAUSIBLE_SEQUENCE: &str = "implausible_sequence";

/// All losses and damage that were found while a trace was read.
///
/// When a trace is opened, the reader finds the damage in headers and in the chain of buffers. Each walk over
/// events finds the damage inside the buffers that the walk reads. [`Damage::merge`] combines the two kinds.
#[derive(Clone, Debug, Default)]
pub struct Damage {
    /// Number of lost events according to the log-file headers.
    pub events_lost: u64,
    /// Number of lost buffers according to the log-file headers.
    pub buffers_lost: u64,
    /// Number of buffers whose flags state that events were lost while the buffer was being filled.
    pub buffers_marking_lost_events: u64,
    /// Number of buffers whose flags state that buffers were lost before this buffer.
    pub buffers_marking_lost_buffers: u64,
    /// Number of loss events. A real-time session logs such an event when it loses an event, a buffer or a
    /// file.
    pub loss_events: u64,
    /// Number of missing sequence numbers between the first and the last sequence number. In a circular log,
    /// the buffers with these numbers were overwritten. In other logs, they were never written.
    pub(crate) missing_sequence_numbers: u64,
    /// Number of zero bytes at the ends of files. They are unused space of a preallocated log.
    pub unused_bytes: u64,
    /// Number of segments that were never finalised. For these segments, the end time and the counts in the
    /// header are unknown.
    pub unfinished_segments: u64,
    faults: Vec<Fault>,
    counts: BTreeMap<&'static str, u64>,
}

/// One fault at a position in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Index of the file in [`crate::Trace::files`].
    pub file: u16,
    /// Offset of the buffer in the file, in bytes.
    pub buffer_offset: u64,
    /// Offset in bytes of the faulty record in the (decompressed) buffer. The field is `None` if the fault
    /// does not belong to a single record.
    pub offset: Option<u32>,
    /// Kind of fault.
    pub what: FaultKind,
}

/// Kind of a fault.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The segment's first event is not a readable log-file header. The times of the segment count from its
    /// first event. The frequency of its counter is assumed to be 10 MHz.
    NoLogFileHeader,
    /// A buffer header is missing. The bytes up to the next buffer header were skipped.
    NotABuffer {
        /// Number of skipped bytes.
        skipped: u64,
    },
    /// The file ends inside the buffer.
    Truncated {
        /// Number of missing bytes.
        missing: u64,
    },
    /// The file ends at the end of a buffer, but it has fewer buffers than its log-file header states.
    EndsEarly {
        /// Number of missing buffers.
        buffers: u64,
    },
    /// The size in the buffer's header is too large, because the next buffer begins before this buffer would
    /// end. The session's buffer size was used instead.
    WrongSize {
        /// Size in bytes in the buffer's header.
        claimed: u32,
        /// Size in bytes that was used instead.
        used: u32,
    },
    /// The number of valid bytes exceeds the buffer's capacity.
    TooManyValidBytes {
        /// Number of valid bytes in the buffer's header.
        claimed: u32,
        /// Maximum number of valid bytes. This number was used instead of `claimed`.
        limit: u32,
    },
    /// The sequence number of this buffer is too far from the sequence numbers of the other buffers. The
    /// session cannot have written all the buffers in between.
    ImplausibleSequence {
        /// Sequence number of the buffer.
        sequence: i64,
    },
    /// The compressed block is malformed.
    Decompress(DecompressError),
    /// The buffer could not be read.
    Io(String),
    /// The record starts with an unknown marker. The rest of the buffer is unreadable.
    UnknownRecord {
        /// First 32 bits of the record.
        marker: u32,
        /// Number of skipped bytes, up to the end of the buffer.
        skipped: u32,
    },
    /// The record is smaller than its header. The rest of the buffer is unreadable.
    RecordTooSmall {
        /// Size of the record in bytes.
        size: u32,
        /// Number of skipped bytes.
        skipped: u32,
    },
    /// The record ends after the buffer's valid bytes.
    RecordTooLarge {
        /// Size of the record in bytes.
        size: u32,
        /// Number of skipped bytes.
        skipped: u32,
    },
    /// The event's time is implausible: it is far before the session's start or far after the session's end.
    /// The limit is usually one day. If the times of the session's buffers agree with the session's start and
    /// end, the limit is 10 seconds. The time of the previous event was used instead.
    ImplausibleTime {
        /// Raw time of the event.
        time: i64,
    },
    /// The event is earlier than the previous event in the buffer. The reader sorted the events.
    ClockInversion {
        /// Time difference between the two events in raw units (ticks of the clock).
        by: i64,
    },
    /// The reader returned this event after a later event. The reason is that more buffers overlap in time
    /// than the reader merges at once.
    OutOfOrder {
        /// Time difference between the two events in nanoseconds. If the trace has a single clock, the
        /// difference is in raw units.
        by: i64,
    },
}

impl FaultKind {
    /// Returns a short name of the kind. It is used for counting. The names do not change between versions of
    /// this crate.
    pub fn name(&self) -> &'static str {
        match self {
            FaultKind::NoLogFileHeader => "no_log_file_header",
            FaultKind::NotABuffer { .. } => "not_a_buffer",
            FaultKind::Truncated { .. } => "truncated",
            FaultKind::EndsEarly { .. } => "ends_early",
            FaultKind::WrongSize { .. } => "wrong_size",
            FaultKind::TooManyValidBytes { .. } => "too_many_valid_bytes",
            FaultKind::ImplausibleSequence { .. } => IMPLAUSIBLE_SEQUENCE,
            FaultKind::Decompress(_) => "decompress",
            FaultKind::Io(_) => "io",
            FaultKind::UnknownRecord { .. } => "unknown_record",
            FaultKind::RecordTooSmall { .. } => "record_too_small",
            FaultKind::RecordTooLarge { .. } => "record_too_large",
            FaultKind::ImplausibleTime { .. } => "implausible_time",
            FaultKind::ClockInversion { .. } => "clock_inversion",
            FaultKind::OutOfOrder { .. } => "out_of_order",
        }
    }
}

impl FaultKind {
    /// Returns the fault for a bad record. `skipped` is the number of bytes of the buffer that are unreadable
    /// because of this record.
    pub(crate) fn from_bad_record(bad: BadRecord, skipped: u32) -> FaultKind {
        match bad {
            BadRecord::UnknownMarker(marker) => FaultKind::UnknownRecord { marker, skipped },
            BadRecord::TooSmall(size) => FaultKind::RecordTooSmall { size, skipped },
            BadRecord::TooLarge(size) => FaultKind::RecordTooLarge { size, skipped },
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::NoLogFileHeader => write!(
                f,
                "no readable log-file header; times count from the first event at an assumed 10 MHz"
            ),
            FaultKind::NotABuffer { skipped } => {
                write!(
                    f,
                    "no buffer header here; skipped {skipped} bytes to the next one"
                )
            }
            FaultKind::Truncated { missing } => {
                write!(
                    f,
                    "the file ends inside this buffer; {missing} bytes are missing"
                )
            }
            FaultKind::EndsEarly { buffers } => {
                write!(
                    f,
                    "the file ends here; {buffers} of the buffers that its header counts are missing"
                )
            }
            FaultKind::WrongSize { claimed, used } => {
                write!(
                    f,
                    "buffer claims {claimed} bytes, but another begins after {used}"
                )
            }
            FaultKind::TooManyValidBytes { claimed, limit } => {
                write!(
                    f,
                    "buffer claims {claimed} valid bytes but can hold {limit}"
                )
            }
            FaultKind::ImplausibleSequence { sequence } => write!(
                f,
                "sequence number {sequence} is far from the numbers of the other buffers; the number of \
                 missing buffers is unknown"
            ),
            FaultKind::Decompress(e) => write!(f, "compressed block is malformed: {e}"),
            FaultKind::Io(e) => write!(f, "could not be read: {e}"),
            FaultKind::UnknownRecord { marker, skipped } => write!(
                f,
                "no known record begins with 0x{marker:08x}; skipped {skipped} bytes of the buffer"
            ),
            FaultKind::RecordTooSmall { size, skipped } => write!(
                f,
                "record of {size} bytes is smaller than its header; skipped {skipped} bytes of \
                 the buffer"
            ),
            FaultKind::RecordTooLarge { size, skipped } => write!(
                f,
                "record of {size} bytes reaches past the buffer's end; skipped {skipped} bytes"
            ),
            FaultKind::ImplausibleTime { time } => write!(
                f,
                "raw time {time} is far outside the session; the previous event's time was used"
            ),
            FaultKind::ClockInversion { by } => {
                write!(
                    f,
                    "event is {by} ticks older than the previous event of the buffer"
                )
            }
            FaultKind::OutOfOrder { by } => {
                write!(
                    f,
                    "event was read {by} too late to be returned in time order"
                )
            }
        }
    }
}

impl Damage {
    /// Returns at most 1000 faults. They are in the order in which they were found.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Returns the number of faults of each kind, by [`FaultKind::name`].
    pub fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// Returns the number of missing sequence numbers between the first and the last sequence number. In a
    /// circular log, the buffers with these numbers were overwritten. In other logs, they were never written. In a file
    /// of a series, numbers of earlier files do not count.
    /// Returns `None` if damaged sequence numbers make the number unknown. The faults then give the positions
    /// of the damaged numbers.
    pub fn missing_sequence_numbers(&self) -> Option<u64> {
        let is_known = !self.counts.contains_key(IMPLAUSIBLE_SEQUENCE);
        is_known.then_some(self.missing_sequence_numbers)
    }

    /// Returns true if a file was cut off. Such a file ends inside a buffer, or it has fewer buffers than its
    /// header states.
    pub fn is_cut_off(&self) -> bool {
        ["truncated", "ends_early"]
            .iter()
            .any(|kind| self.counts.contains_key(kind))
    }

    /// Returns true if nothing is lost or damaged. Unused bytes at the end of a file are not
    /// damage.
    pub fn is_empty(&self) -> bool {
        self.events_lost == 0
            && self.buffers_lost == 0
            && self.buffers_marking_lost_events == 0
            && self.buffers_marking_lost_buffers == 0
            && self.loss_events == 0
            && self.missing_sequence_numbers == 0
            && self.unfinished_segments == 0
            && self.counts.is_empty()
    }

    /// Adds damage that was found in another part of the trace.
    pub fn merge(&mut self, other: Damage) {
        // These counts come from the trace and can have any value, so the sums must not overflow.
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.events_lost, other.events_lost);
        add(&mut self.buffers_lost, other.buffers_lost);
        add(
            &mut self.buffers_marking_lost_events,
            other.buffers_marking_lost_events,
        );
        add(
            &mut self.buffers_marking_lost_buffers,
            other.buffers_marking_lost_buffers,
        );
        add(&mut self.loss_events, other.loss_events);
        add(
            &mut self.missing_sequence_numbers,
            other.missing_sequence_numbers,
        );
        add(&mut self.unused_bytes, other.unused_bytes);
        add(&mut self.unfinished_segments, other.unfinished_segments);
        let room = KEPT_FAULTS.saturating_sub(self.faults.len());
        self.faults.extend(other.faults.into_iter().take(room));
        for (name, count) in other.counts {
            *self.counts.entry(name).or_default() += count;
        }
    }

    pub(crate) fn add(&mut self, fault: Fault) {
        *self.counts.entry(fault.what.name()).or_default() += 1;
        if self.faults.len() < KEPT_FAULTS {
            self.faults.push(fault);
        }
    }
}
