//! Threads by id and time.

use super::lifetimes::Lifetimes;
use crate::Threads;

/// Finds the thread that had an id at a moment, in time that grows with the logarithm of their
/// number.
#[derive(Clone, Debug)]
pub struct ThreadTracker<'t> {
    table: &'t Threads,
    lifetimes: Lifetimes,
}

impl<'t> ThreadTracker<'t> {
    /// Reads the lifetimes in the table.
    pub fn new(table: &'t Threads) -> Self {
        let lifetimes = Lifetimes::new(
            &table.thread_id,
            &table.first_seen_ns,
            &table.start_ns,
            &table.end_ns,
        );
        ThreadTracker { table, lifetimes }
    }

    /// The row of the thread that had the id, in nanoseconds since the trace's start. A thread
    /// keeps its id beyond its end until another gets it: its last context switch comes after its
    /// end. Every CPU has an idle thread of id 0; they share no row.
    pub fn lookup(&self, thread_id: u32, time_ns: i64) -> Option<usize> {
        (thread_id != 0)
            .then(|| self.lifetimes.row(thread_id, time_ns))
            .flatten()
    }

    /// As [`ThreadTracker::lookup`], and from when until when (not included) the answer holds.
    pub(crate) fn lookup_span(&self, thread_id: u32, time_ns: i64) -> (Option<usize>, i64, i64) {
        match thread_id {
            0 => (None, i64::MIN, i64::MAX),
            _ => self.lifetimes.row_and_span(thread_id, time_ns),
        }
    }

    /// The process of the thread that had the id; of idle threads 0.
    pub fn process_id(&self, thread_id: u32, time_ns: i64) -> Option<u32> {
        if thread_id == 0 {
            return Some(0);
        }
        let row = self.lookup(thread_id, time_ns)?;
        Some(self.table.process_id[row])
    }
}
