//! What is missing from a trace or wrong with it, as data.

use std::collections::BTreeMap;
use std::fmt;

use crate::compress::DecompressError;
use crate::event::BadRecord;

/// Faults kept with their places; further ones are only counted.
const KEPT_FAULTS: usize = 1000;

/// Everything known to be lost or broken in what was read.
///
/// Opening a trace fills what the headers and the buffer chain say; each walk adds what it met in
/// the buffers it read. [`Damage::merge`] joins the two.
#[derive(Clone, Debug, Default)]
pub struct Damage {
    /// Events that the log-file headers state as lost.
    pub events_lost: u64,
    /// Buffers that the log-file headers state as lost.
    pub buffers_lost: u64,
    /// Buffers flagged "events were lost here".
    pub buffers_marking_lost_events: u64,
    /// Buffers flagged "buffers were lost before this one".
    pub buffers_marking_lost_buffers: u64,
    /// Events saying that a real-time session lost an event, a buffer or a file.
    pub loss_events: u64,
    /// Sequence numbers between the first and the last that no buffer carries: buffers that were
    /// overwritten (circular logs) or never written.
    pub missing_sequence_numbers: u64,
    /// Zero bytes at the end of the file: a preallocated log that was not filled.
    pub unused_bytes: u64,
    /// Segments that were never finalised: their end time and counts are unknown.
    pub unfinished_segments: u64,
    faults: Vec<Fault>,
    counts: BTreeMap<&'static str, u64>,
}

/// One broken place.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Index of the file in [`crate::Trace::files`].
    pub file: u16,
    /// Offset in the file of the buffer concerned, in bytes.
    pub buffer_offset: u64,
    /// Offset inside the (decompressed) buffer, where one record is concerned, in bytes.
    pub offset: Option<u32>,
    /// What is wrong.
    pub what: FaultKind,
}

/// What is wrong at a place.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The segment's first event is not a readable log-file header: times are relative to the
    /// first event and assume a 10 MHz counter.
    NoLogFileHeader,
    /// No buffer header where one should be; so many bytes were skipped to the next one.
    NotABuffer {
        /// Bytes skipped.
        skipped: u64,
    },
    /// The file ends inside the buffer.
    Truncated {
        /// Bytes that are missing.
        missing: u64,
    },
    /// The file ends after a buffer, before it has as many as its header counts.
    EndsEarly {
        /// Buffers that are missing.
        buffers: u64,
    },
    /// The buffer claims to reach over the next one; the session's buffer size was used.
    WrongSize {
        /// Bytes claimed.
        claimed: u32,
        /// Bytes used.
        used: u32,
    },
    /// The buffer claims more valid bytes than it can hold.
    TooManyValidBytes {
        /// Bytes claimed.
        claimed: u32,
        /// Bytes there can be.
        limit: u32,
    },
    /// The buffer's compressed block is malformed.
    Decompress(DecompressError),
    /// The buffer could not be read.
    Io(String),
    /// The record starts with bytes that name no header kind; the buffer's rest is unreadable.
    UnknownRecord {
        /// First 32 bits found.
        marker: u32,
        /// Bytes of the buffer given up.
        skipped: u32,
    },
    /// The record is smaller than its header; the buffer's rest is unreadable.
    RecordTooSmall {
        /// Size found.
        size: u32,
        /// Bytes of the buffer given up.
        skipped: u32,
    },
    /// The record reaches past the buffer's valid bytes.
    RecordTooLarge {
        /// Size found.
        size: u32,
        /// Bytes of the buffer given up.
        skipped: u32,
    },
    /// An event's time is more than a day outside its session; its predecessor's was taken.
    ImplausibleTime {
        /// Raw time found.
        time: i64,
    },
    /// An event is older than its predecessor in the buffer; the reader put it in order.
    ClockInversion {
        /// Raw time units it lies back.
        by: i64,
    },
    /// An event came too late to be put in order: more buffers overlap in time than are held.
    OutOfOrder {
        /// Nanoseconds (raw units where the trace has one clock) it lies back.
        by: i64,
    },
}

impl FaultKind {
    /// A short stable name for counting.
    pub fn name(&self) -> &'static str {
        match self {
            FaultKind::NoLogFileHeader => "no_log_file_header",
            FaultKind::NotABuffer { .. } => "not_a_buffer",
            FaultKind::Truncated { .. } => "truncated",
            FaultKind::EndsEarly { .. } => "ends_early",
            FaultKind::WrongSize { .. } => "wrong_size",
            FaultKind::TooManyValidBytes { .. } => "too_many_valid_bytes",
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
    /// The fault of a bad record behind which `skipped` bytes of its buffer were given up.
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
            FaultKind::Decompress(e) => write!(f, "compressed block is malformed: {e}"),
            FaultKind::Io(e) => write!(f, "could not be read: {e}"),
            FaultKind::UnknownRecord { marker, skipped } => write!(
                f,
                "0x{marker:08x} begins no known record; gave up {skipped} bytes of the buffer"
            ),
            FaultKind::RecordTooSmall { size, skipped } => write!(
                f,
                "record of {size} bytes is smaller than its header; gave up {skipped} bytes of \
                 the buffer"
            ),
            FaultKind::RecordTooLarge { size, skipped } => write!(
                f,
                "record of {size} bytes reaches past the buffer's end; gave up {skipped} bytes"
            ),
            FaultKind::ImplausibleTime { time } => write!(
                f,
                "raw time {time} is more than a day outside the session; the time of the event \
                 before was taken"
            ),
            FaultKind::ClockInversion { by } => {
                write!(f, "event is {by} ticks older than the one before it")
            }
            FaultKind::OutOfOrder { by } => {
                write!(f, "event came {by} too late to be put in time order")
            }
        }
    }
}

impl Damage {
    /// Broken places in the order met; at most the first 1000.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// How often each kind of fault was met, by [`FaultKind::name`].
    pub fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// Whether a file ends before its session did: inside a buffer, or with fewer than it counts.
    pub fn is_cut_off(&self) -> bool {
        ["truncated", "ends_early"]
            .iter()
            .any(|kind| self.counts.contains_key(kind))
    }

    /// Whether anything was lost or broken. A preallocated tail is neither.
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

    /// Adds what another part of the reading met.
    pub fn merge(&mut self, other: Damage) {
        // Numbers that a trace states itself can be anything.
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
