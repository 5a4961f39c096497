//! Report of lost and unreadable parts of a trace, with their positions.

use std::collections::BTreeMap;

use etl::{Damage, Trace};
use serde::Serialize;
use wording::{QuotedName, counted, grouped};

use crate::fact_rows::Losses;

/// Lost events and unreadable parts of a trace.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DamageReport {
    /// True if nothing is lost or unreadable.
    pub none: bool,
    /// Number of lost events, according to the headers of the log files.
    pub events_lost: u64,
    /// Number of lost buffers, according to the headers of the log files.
    pub buffers_lost: u64,
    /// Number of buffers whose flags state that events were lost.
    pub buffers_marking_lost_events: u64,
    /// Number of buffers whose flags state that earlier buffers were lost.
    pub buffers_marking_lost_buffers: u64,
    /// Number of events that report a loss in a real-time session.
    pub loss_events: u64,
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

impl DamageReport {
    /// Creates the report from damage that was found when the trace was opened, and when its events were
    /// read.
    pub fn new(trace: &Trace, read: &Damage) -> DamageReport {
        let mut damage = trace.damage().clone();
        damage.merge(read.clone());
        let places = damage.faults().iter().map(|fault| FaultReport {
            file: tables::file_name(trace.files().nth(fault.file.into()).unwrap_or_default())
                .to_owned(),
            buffer_offset: fault.buffer_offset,
            offset: fault.offset,
            kind: fault.what.name().to_owned(),
            what: fault.what.to_string(),
        });
        let counts = damage.counts().iter();
        let losses = Losses {
            loss_events: damage.loss_events,
            faults: counts
                .map(|(kind, count)| ((*kind).to_owned(), *count))
                .collect(),
            places: places.collect(),
        };
        DamageReport::from_losses(trace, losses)
    }

    /// Creates the report from damage that was found when the trace was opened, and from the rows of the
    /// table `damage`.
    pub(crate) fn from_losses(trace: &Trace, losses: Losses) -> DamageReport {
        let opened = trace.damage();
        let mut fault_counts: BTreeMap<String, u64> = BTreeMap::new();
        for (kind, count) in losses.faults {
            *fault_counts.entry(kind).or_default() += count;
        }
        let mut faults = losses.places;
        // Several threads find faults, so their order varies.
        faults.sort_by(|a, b| {
            (&a.file, a.buffer_offset, a.offset).cmp(&(&b.file, b.buffer_offset, b.offset))
        });
        let none = opened.is_empty() && losses.loss_events == 0 && fault_counts.is_empty();
        DamageReport {
            none,
            events_lost: opened.events_lost,
            buffers_lost: opened.buffers_lost,
            buffers_marking_lost_events: opened.buffers_marking_lost_events,
            buffers_marking_lost_buffers: opened.buffers_marking_lost_buffers,
            loss_events: losses.loss_events,
            missing_sequence_numbers: opened.missing_sequence_numbers(),
            unused_bytes: opened.unused_bytes,
            unfinished_segments: opened.unfinished_segments,
            fault_counts,
            faults,
        }
    }

    /// Returns true if parts of the trace are missing or unreadable.
    pub fn has_gaps(&self) -> bool {
        self.buffers_lost > 0 || self.unfinished_segments > 0 || !self.fault_counts.is_empty()
    }

    /// Returns one sentence for each kind of damage.
    pub fn sentences(&self) -> Vec<String> {
        const SHOWN_FAULTS: usize = 10;
        let mut lines = Vec::new();
        let mut say = |count: u64, one: &str, many: &str, what: &str| {
            if count > 0 {
                lines.push(format!("{}{what}", counted(count, one, many)));
            }
        };
        let of_header = " lost (count of the log-file header)";
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
        for (kind, count) in &self.fault_counts {
            lines.push(format!("{} × {}", grouped(*count), kind.replace('_', " ")));
        }
        for fault in self.faults.iter().take(SHOWN_FAULTS) {
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
