//! Damage as a report: everything that was lost or broken, with its place.

use std::collections::BTreeMap;

use etl::{Damage, Trace};
use serde::Serialize;

/// What is lost or broken in a trace.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct DamageReport {
    /// Nothing is.
    pub(crate) none: bool,
    /// Events lost, by the log-file headers.
    pub(crate) events_lost: u64,
    /// Buffers lost, by the log-file headers.
    pub(crate) buffers_lost: u64,
    /// Buffers flagged "events were lost".
    pub(crate) buffers_marking_lost_events: u64,
    /// Buffers flagged "buffers were lost before".
    pub(crate) buffers_marking_lost_buffers: u64,
    /// Events saying that a real-time session lost something.
    pub(crate) loss_events: u64,
    /// Sequence numbers that no buffer carries.
    pub(crate) missing_sequence_numbers: u64,
    /// Zero bytes at the ends of preallocated files.
    pub(crate) unused_bytes: u64,
    /// Sessions that were never finalised.
    pub(crate) unfinished_segments: u64,
    /// Broken places per kind.
    pub(crate) fault_counts: BTreeMap<&'static str, u64>,
    /// The first of them.
    pub(crate) faults: Vec<FaultReport>,
}

/// A broken place.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FaultReport {
    /// The file's name.
    pub(crate) file: String,
    /// Offset of the buffer in the file, in bytes.
    pub(crate) buffer_offset: u64,
    /// Offset of the record in the (decompressed) buffer, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offset: Option<u32>,
    /// Kind of fault.
    pub(crate) kind: &'static str,
    /// What is wrong.
    pub(crate) what: String,
}

impl DamageReport {
    /// The report of what opening found and what `walk` met.
    pub(crate) fn new(trace: &Trace, walk: Damage) -> DamageReport {
        let mut damage = trace.damage().clone();
        damage.merge(walk);
        let mut faults: Vec<FaultReport> = damage
            .faults()
            .iter()
            .map(|fault| FaultReport {
                file: trace
                    .files()
                    .nth(fault.file.into())
                    .unwrap_or_default()
                    .to_owned(),
                buffer_offset: fault.buffer_offset,
                offset: fault.offset,
                kind: fault.what.name(),
                what: fault.what.to_string(),
            })
            .collect();
        // Threads met them in no particular order.
        faults.sort_by(|a, b| {
            (&a.file, a.buffer_offset, a.offset).cmp(&(&b.file, b.buffer_offset, b.offset))
        });
        DamageReport {
            none: damage.is_empty(),
            events_lost: damage.events_lost,
            buffers_lost: damage.buffers_lost,
            buffers_marking_lost_events: damage.buffers_marking_lost_events,
            buffers_marking_lost_buffers: damage.buffers_marking_lost_buffers,
            loss_events: damage.loss_events,
            missing_sequence_numbers: damage.missing_sequence_numbers,
            unused_bytes: damage.unused_bytes,
            unfinished_segments: damage.unfinished_segments,
            fault_counts: damage.counts().clone(),
            faults,
        }
    }

    /// One sentence per kind of damage.
    pub(crate) fn sentences(&self) -> Vec<String> {
        const SHOWN_FAULTS: usize = 10;
        let mut lines = Vec::new();
        let mut say = |count: u64, what: &str| {
            if count > 0 {
                lines.push(format!("{count} {what}"));
            }
        };
        say(self.events_lost, "events lost, by the log-file header");
        say(self.buffers_lost, "buffers lost, by the log-file header");
        say(
            self.buffers_marking_lost_events,
            "buffers marked: events were lost here",
        );
        say(
            self.buffers_marking_lost_buffers,
            "buffers marked: buffers were lost before",
        );
        say(
            self.loss_events,
            "events saying that a real-time session lost events, buffers or a file",
        );
        say(
            self.missing_sequence_numbers,
            "buffer sequence numbers missing (overwritten, lost or trimmed)",
        );
        say(
            self.unfinished_segments,
            "sessions never finalised: their end and counts are unknown",
        );
        say(
            self.unused_bytes,
            "bytes unused at the end (preallocated; nothing is lost)",
        );
        for (kind, count) in &self.fault_counts {
            lines.push(format!("{count} × {}", kind.replace('_', " ")));
        }
        for fault in self.faults.iter().take(SHOWN_FAULTS) {
            let inside = fault
                .offset
                .map_or(String::new(), |at| format!(" + {at:#x}"));
            lines.push(format!(
                "{} at {:#x}{inside}: {}",
                fault.file, fault.buffer_offset, fault.what
            ));
        }
        let known: u64 = self.fault_counts.values().sum();
        let shown = self.faults.len().min(SHOWN_FAULTS) as u64;
        if known > shown {
            lines.push(format!(
                "… and {} more broken places (see --json)",
                known - shown
            ));
        }
        lines
    }
}
