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
/// When a trace is opened, damage in headers and in the chain of buffers is found. Each walk over
/// events finds the damage inside the buffers that it reads. [`Damage::merge`] combines both.
#[derive(Clone, Debug, Default)]
pub struct Damage {
    /// Number of lost events according to the log-file headers.
    pub events_lost: u64,
    /// Number of lost buffers according to the log-file headers.
    pub buffers_lost: u64,
    /// Number of buffers with the flag "events were lost while this buffer was current".
    pub buffers_marking_lost_events: u64,
    /// Number of buffers with the flag "buffers were lost before this one".
    pub buffers_marking_lost_buffers: u64,
    /// Number of events with which a real-time session reports a lost event, buffer or file.
    pub loss_events: u64,
    /// Number of missing sequence numbers between the first and the last one. The buffers with
    /// these numbers were overwritten (in circular logs) or never written.
    pub(crate) missing_sequence_numbers: u64,
    /// Number of zero bytes at the ends of files. They are unused space of a preallocated log.
    pub unused_bytes: u64,
    /// Number of segments that were never finalised. For these segments, the end time and the
    /// numbers in the header are unknown.
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
    /// Offset in bytes of the faulty record in the (decompressed) buffer. `None` if the fault is
    /// not in a single record.
    pub offset: Option<u32>,
    /// Kind of fault.
    pub what: FaultKind,
}

/// Kind of a fault.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The segment's first event is not a readable log-file header. Times count from the first event,
    /// and the counter is assumed to run at 10 MHz.
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
    /// The file ends after a buffer, but has fewer buffers than its header states.
    EndsEarly {
        /// Number of missing buffers.
        buffers: u64,
    },
    /// The size in the buffer's header is too large, because the next buffer begins before the end.
    /// The session's buffer size was used instead.
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
        /// Maximum number of valid bytes, which was used instead.
        limit: u32,
    },
    /// The sequence number is so far from those of the other buffers that the session cannot have
    /// written that many buffers.
    ImplausibleSequence {
        /// Sequence number of the buffer.
        sequence: i64,
    },
    /// The compressed block is malformed.
    Decompress(DecompressError),
    /// The buffer could not be read.
    Io(String),
    /// The record starts with an unknown marker; the rest of the buffer is unreadable.
    UnknownRecord {
        /// First 32 bits of the record.
        marker: u32,
        /// Number of skipped bytes.
        skipped: u32,
    },
    /// The record is smaller than its header; the rest of the buffer is unreadable.
    RecordTooSmall {
        /// Size of the record.
        size: u32,
        /// Number of skipped bytes.
        skipped: u32,
    },
    /// The record ends after the buffer's valid bytes.
    RecordTooLarge {
        /// Size of the record.
        size: u32,
        /// Number of skipped bytes.
        skipped: u32,
    },
    /// The event's time is implausible: it is far before the session's start or far after its end. If the times of
    /// the session's buffers agree with start and end, far means more than 10 seconds, otherwise more than a day.
    /// The previous event's time was used instead.
    ImplausibleTime {
        /// Raw time of the event.
        time: i64,
    },
    /// The event is earlier than the event before it in the buffer. The reader sorted the events.
    ClockInversion {
        /// Time difference in raw units (ticks of the clock).
        by: i64,
    },
    /// The event was returned after a later event, because more buffers overlap in time than are
    /// merged at once.
    OutOfOrder {
        /// Time difference in nanoseconds (in raw units if the trace has a single clock).
        by: i64,
    },
}

impl FaultKind {
    /// Returns a short name of the kind, for counting. The names do not change between versions.
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
    /// Returns the fault for a bad record. Because of it, `skipped` bytes of its buffer are
    /// unreadable.
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
                "sequence number {sequence} is far from those of the other buffers; the number of \
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
    /// Returns the faults in the order in which they were found, at most 1000.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Returns the number of faults of each kind, by [`FaultKind::name`].
    pub fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// Returns the number of missing sequence numbers between the first and the last one. The
    /// buffers with these numbers were overwritten (in circular logs) or never written. Returns
    /// `None` if the number is unknown because sequence numbers are damaged; the faults then give
    /// their positions.
    pub fn missing_sequence_numbers(&self) -> Option<u64> {
        let is_known = !self.counts.contains_key(IMPLAUSIBLE_SEQUENCE);
        is_known.then_some(self.missing_sequence_numbers)
    }

    /// Returns true if a file was cut off: it ends inside a buffer, or has fewer buffers than its
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
        // The numbers come from the trace and can have any value, so the sums must not overflow.
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
