//! Report of lost and unreadable parts of a trace, with their positions.

use std::collections::BTreeMap;

use serde::Serialize;
use tables::{Damages, RecordingInfo, Store, StoreError, Table};
use wording::{QuotedName, counted, grouped};

use crate::fact_rows::FactRows;

/// Lost events and unreadable parts of a trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DamageReport {
    /// True if nothing is lost or unreadable.
    pub none: bool,
    /// True for a recording of Linux.
    #[serde(skip)]
    is_linux: bool,
    /// Number of lost events, according to the headers of the log files, or to the kernel of Linux.
    pub events_lost: u64,
    /// Number of lost buffers, according to the headers of the log files.
    pub buffers_lost: u64,
    /// Number of buffers whose flags state that events were lost.
    pub buffers_marking_lost_events: u64,
    /// Number of buffers whose flags state that earlier buffers were lost.
    pub buffers_marking_lost_buffers: u64,
    /// Number of events that report a loss in a real-time session.
    pub loss_events: u64,
    /// Number of times in which Linux left out samples of an event, because the event occurred too often. Absent for
    /// traces of Windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled: Option<u64>,
    /// Number of missing sequence numbers of buffers. Absent if it is unknown because some numbers are damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_sequence_numbers: Option<u64>,
    /// Number of zero bytes at the ends of preallocated files.
    pub unused_bytes: u64,
    /// Number of sessions whose log file was never finalised.
    pub unfinished_segments: u64,
    /// Number of faults, by kind.
    pub fault_counts: BTreeMap<String, u64>,
    /// Faults whose positions in the files are known, sorted by position. Further faults are only counted.
    pub faults: Vec<FaultReport>,
}

/// An unreadable part of a file.
#[derive(Clone, Debug, Serialize)]
pub struct FaultReport {
    /// Name of the file, without its folder.
    pub file: String,
    /// Offset of the buffer in the file, in bytes.
    pub buffer_offset: u64,
    /// Offset of the record in the buffer after decompression, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u32>,
    /// Kind of fault.
    pub kind: String,
    /// Description of the fault.
    pub what: String,
}

/// Losses and faults that are found only when the events are read.
#[derive(Debug, Default)]
pub struct Losses {
    /// Number of events that report a loss in a real-time session.
    pub loss_events: u64,
    /// Number of times in which Linux left out samples.
    pub throttled: u64,
    /// Number of faults by kind.
    pub faults: Vec<(String, u64)>,
    /// Faults whose position in the file is known.
    pub places: Vec<FaultReport>,
}

impl DamageReport {
    /// Creates the report from the table `damage` of a store. Returns `None` if the table was not made yet.
    ///
    /// # Errors
    /// Returns an error if the table cannot be read.
    pub fn made(store: &Store) -> Result<Option<DamageReport>, StoreError> {
        let Some(stored) = store.made(Table::Damages)? else {
            return Ok(None);
        };
        let mut rows = FactRows::default();
        for group in 0..stored.chunks().len() {
            rows.add(Table::Damages, &stored.read_all(group)?)?;
        }
        Ok(Some(DamageReport::from_losses(store.info(), rows.losses)))
    }

    /// Creates the report from damage that was found when the recording was opened, and from `losses`.
    pub fn from_losses(info: &RecordingInfo, losses: Losses) -> DamageReport {
        let (opened, is_linux) = (&info.losses, info.is_linux());
        let mut fault_counts: BTreeMap<String, u64> = BTreeMap::new();
        for (kind, count) in losses.faults {
            *fault_counts.entry(kind).or_default() += count;
        }
        let mut faults = losses.places;
        // Several threads find faults, so their order varies.
        faults.sort_by(|a, b| {
            (&a.file, a.buffer_offset, a.offset).cmp(&(&b.file, b.buffer_offset, b.offset))
        });
        let none = opened.are_none()
            && losses.loss_events == 0
            && losses.throttled == 0
            && fault_counts.is_empty();
        DamageReport {
            none,
            is_linux,
            throttled: is_linux.then_some(losses.throttled),
            events_lost: opened.events_lost,
            buffers_lost: opened.buffers_lost,
            buffers_marking_lost_events: opened.buffers_marking_lost_events,
            buffers_marking_lost_buffers: opened.buffers_marking_lost_buffers,
            loss_events: losses.loss_events,
            missing_sequence_numbers: opened.missing_sequence_numbers,
            unused_bytes: opened.unused_bytes,
            unfinished_segments: opened.unfinished_sessions,
            fault_counts,
            faults,
        }
    }

    /// Returns true if parts of the trace are missing or unreadable.
    pub fn has_gaps(&self) -> bool {
        self.buffers_lost > 0 || self.unfinished_segments > 0 || !self.fault_counts.is_empty()
    }

    /// Returns one sentence for each kind of damage. The first sentence is the most important one.
    pub fn sentences(&self) -> Vec<String> {
        const SHOWN_FAULTS: usize = 10;
        let is_first = |fault: &&FaultReport| Damages::lacks_descriptions(&fault.kind);
        let first = self.faults.iter().filter(is_first);
        let mut lines: Vec<String> = first.map(|fault| fault.what.clone()).collect();
        let mut say = |count: u64, one: &str, many: &str, what: &str| {
            if count > 0 {
                lines.push(format!("{}{what}", counted(count, one, many)));
            }
        };
        let of_header = if self.is_linux {
            " lost, because a ring buffer of the kernel was full"
        } else {
            " lost (count of the log-file header)"
        };
        say(self.events_lost, "event", "events", of_header);
        say(self.buffers_lost, "buffer", "buffers", of_header);
        let (buffer, buffers) = ("buffer", "buffers");
        let here = " with lost events (mark in the buffer header)";
        say(self.buffers_marking_lost_events, buffer, buffers, here);
        let before = " after lost buffers (mark in the buffer header)";
        say(self.buffers_marking_lost_buffers, buffer, buffers, before);
        say(
            self.loss_events,
            "event that reports",
            "events that report",
            " lost events, buffers or files of a real-time session",
        );
        say(
            self.throttled.unwrap_or(0),
            "time",
            "times",
            " in which the kernel left out samples of an event that occurred too often",
        );
        say(
            self.missing_sequence_numbers.unwrap_or(0),
            "buffer sequence number",
            "buffer sequence numbers",
            " missing (overwritten, lost or trimmed)",
        );
        say(
            self.unfinished_segments,
            "session never finalised: its end and counts",
            "sessions never finalised: their ends and counts",
            " are unknown",
        );
        say(
            self.unused_bytes,
            "byte",
            "bytes",
            " unused at the end (preallocated; nothing is lost)",
        );
        let counts = self.fault_counts.iter();
        for (kind, count) in counts.filter(|(kind, _)| !Damages::lacks_descriptions(kind)) {
            lines.push(format!("{} × {}", grouped(*count), kind.replace('_', " ")));
        }
        let faults = self.faults.iter().filter(|fault| !is_first(fault));
        for fault in faults.take(SHOWN_FAULTS) {
            let inside = fault
                .offset
                .map_or(String::new(), |at| format!(" + {at:#x}"));
            lines.push(format!(
                "{} at {:#x}{inside}: {}",
                QuotedName(&fault.file),
                fault.buffer_offset,
                fault.what
            ));
        }
        let known: u64 = self.fault_counts.values().sum();
        let shown = self.faults.len().min(SHOWN_FAULTS) as u64;
        if known > shown {
            lines.push(format!(
                "… and {} (see --json)",
                counted(known - shown, "more fault", "more faults")
            ));
        }
        lines
    }
}
