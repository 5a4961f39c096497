//! Processes by id and time.

use super::lifetimes::Lifetimes;
use crate::Processes;

/// Finds the process that had an id at a moment, in time that grows with the logarithm of their
/// number.
#[derive(Clone, Debug)]
pub struct ProcessTracker<'t> {
    table: &'t Processes,
    lifetimes: Lifetimes,
}

impl<'t> ProcessTracker<'t> {
    /// Reads the lifetimes in the table.
    pub fn new(table: &'t Processes) -> Self {
        let lifetimes = Lifetimes::new(
            &table.process_id,
            &table.first_seen_ns,
            &table.start_ns,
            &table.end_ns,
        );
        ProcessTracker { table, lifetimes }
    }

    /// The row of the process that had the id, in nanoseconds since the trace's start. A process
    /// keeps its id beyond its end until another gets it.
    pub fn lookup(&self, process_id: u32, time_ns: i64) -> Option<usize> {
        self.lifetimes.row(process_id, time_ns)
    }

    /// As [`ProcessTracker::lookup`], and from when until when (not included) the answer holds.
    pub(crate) fn lookup_span(&self, process_id: u32, time_ns: i64) -> (Option<usize>, i64, i64) {
        self.lifetimes.row_and_span(process_id, time_ns)
    }

    /// File name of the image of the process that had the id. The ids 0 and 4 are `Idle` and
    /// `System` on every machine, whether or not the trace says so.
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
