//! `damage`: lost events and unreadable parts of the trace.

use crate::column::{Nullable, Text};
use crate::register::Register;
use crate::schema::table;

table! {
    /// One row per report of a loss of events or buffers, or per fault in a file. A result that is computed
    /// over a time range with a loss is doubtful.
    ///
    /// One loss can have several rows: for the count in the header, for marks in buffers, and for gaps in the
    /// sequence numbers of buffers.
    Damages, DamagesView = "damage" sorted by start_ns
        title "Losses and Faults"
        lasts start_ns to end_ns
    {
        /// Earliest possible time of the loss. If no better time is known, this is the start of the session
        /// or of the buffer.
        start_ns: Vec<i64> = "log-file header: StartTime; first event of the buffer",
        /// Latest possible time of the loss, if it is known.
        end_ns: Nullable<i64> = "log-file header: EndTime; first event of the CPU's next buffer",
        /// Kind of the loss or fault. Kinds of losses are `events_lost` and `buffers_lost` (counted by a
        /// session), `buffer_marks_lost_events`, `buffer_marks_lost_buffers`, `loss_events` (of a real-time
        /// session), `missing_sequence_numbers`, `unfinished`, and `throttled` (Linux left out samples of an
        /// event that occurred too often). Kinds of faults are `clock_inversion`, `truncated`, `ends_early`,
        /// `decompress`, `not_a_buffer`, `unknown_record`, `killed` (the recorder of Linux was killed),
        /// `no_descriptions` (the end of a recording of Linux is missing), …
        kind: Text = "the loss or fault",
        /// Number of lost events, lost buffers, missing sequence numbers or faults.
        count: Nullable<u64> = "the header's count; number of such events or faults",
        /// Name of the file.
        file: Text = "the file",
        /// Offset of the buffer in the file.
        buffer_offset_bytes: Nullable<u64> = "offset of the buffer",
        /// Offset of the record in the decompressed buffer.
        record_offset_bytes: Nullable<u32> = "offset of the record",
        /// CPU of the buffer.
        cpu: Nullable<u16> = "CPU of the buffer",
        /// Description of the fault.
        text: Text = "the fault",
    }
}

/// Kinds of rows that are losses, not faults.
const LOSSES: [&str; 8] = [
    "events_lost",
    "buffers_lost",
    "unfinished",
    "buffer_marks_lost_events",
    "buffer_marks_lost_buffers",
    LOSS_EVENTS,
    "missing_sequence_numbers",
    Damages::THROTTLED,
];

const LOSS_EVENTS: &str = "loss_events";

impl Damages {
    /// Kind of the row that counts the loss events of a real-time session. Such an event reports a loss.
    pub const LOSS_EVENTS: &'static str = LOSS_EVENTS;

    /// Kind of the rows for times in which Linux left out samples of an event, because the event occurred too often.
    pub const THROTTLED: &'static str = "throttled";

    /// Kind of the row for a recording of Linux whose recorder was killed, so that descriptions are missing.
    pub const KILLED: &'static str = "killed";

    /// Kind of the row for a recording of Linux whose end is missing, so that descriptions are missing.
    pub const NO_DESCRIPTIONS: &'static str = "no_descriptions";

    /// Returns true if a kind of row means that the descriptions of most events are missing. Then almost all tables are
    /// empty.
    pub fn lacks_descriptions(kind: &str) -> bool {
        [Damages::KILLED, Damages::NO_DESCRIPTIONS].contains(&kind)
    }

    /// Returns true if a kind of row means a fault. A fault is an unreadable part of a file.
    pub fn is_fault(kind: &str) -> bool {
        !LOSSES.contains(&kind)
    }
}

impl Register for Damages {}
