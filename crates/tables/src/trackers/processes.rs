//! Look-up of processes by id and time.

use super::lifetimes::{Life, Lifetimes};
use crate::Processes;

/// Look-up of the process that had an id at a given time. A look-up takes logarithmic time.
#[derive(Clone, Debug)]
pub struct ProcessTracker<'t> {
    table: &'t Processes,
    lifetimes: Lifetimes,
}

impl<'t> ProcessTracker<'t> {
    /// Creates a tracker from the lifetimes in the table.
    pub fn new(table: &'t Processes) -> Self {
        let lives = (0..table.len()).map(|row| Life {
            id: table.process_id[row],
            first_seen_ns: table.first_seen_ns[row],
            start_ns: table.start_ns.get(row),
            end_ns: table.end_ns.get(row),
        });
        ProcessTracker {
            table,
            lifetimes: Lifetimes::new(lives),
        }
    }

    /// Returns the row of the process that had the id. `time_ns` is in nanoseconds since the trace's start. A
    /// process keeps its id after its end until another process gets the id.
    pub fn lookup(&self, process_id: u32, time_ns: i64) -> Option<usize> {
        self.lifetimes.at(process_id, time_ns)
    }

    /// Returns the result of [`ProcessTracker::lookup`]. Also returns the time range in which this result is
    /// valid. The end of the range is excluded.
    pub(crate) fn lookup_span(&self, process_id: u32, time_ns: i64) -> (Option<usize>, i64, i64) {
        self.lifetimes.span_at(process_id, time_ns)
    }

    /// Returns the file name of the image of the process that had the id. On every machine, process 0 is
    /// `Idle` and process 4 is `System`.
    pub fn name(&self, process_id: u32, time_ns: i64) -> Option<&'t str> {
        let recorded = self
            .lookup(process_id, time_ns)
            .and_then(|row| self.table.image_name.get(row));
        match process_id {
            0 => Some("Idle"),
            4 => recorded.or(Some("System")),
            _ => recorded,
        }
    }
}
