//! Look-up of threads by id and time.

use super::lifetimes::{Life, Lifetimes};
use crate::Threads;

/// Look-up of the thread that had an id at a given time. A look-up takes logarithmic time.
#[derive(Clone, Debug)]
pub struct ThreadTracker<'t> {
    table: &'t Threads,
    lifetimes: Lifetimes,
}

impl<'t> ThreadTracker<'t> {
    /// Creates a tracker from the lifetimes in the table.
    pub fn new(table: &'t Threads) -> Self {
        let lives = (0..table.len()).map(|row| Life {
            id: table.thread_id[row],
            first_seen_ns: table.first_seen_ns[row],
            start_ns: table.start_ns.get(row),
            end_ns: table.end_ns.get(row),
        });
        ThreadTracker {
            table,
            lifetimes: Lifetimes::new(lives),
        }
    }

    /// Returns the row of the thread that had the id. `time_ns` is in nanoseconds since the trace's start. A
    /// thread keeps its id after its end until another thread gets the id. The reason is that the last
    /// context switch of a thread is logged after the end of the thread. The idle threads of all CPUs have
    /// the id 0 and no row.
    pub fn lookup(&self, thread_id: u32, time_ns: i64) -> Option<usize> {
        self.lookup_span(thread_id, time_ns).0
    }

    /// Returns the result of [`ThreadTracker::lookup`]. Also returns the time range in which this result is
    /// valid. The end of the range is excluded.
    pub(crate) fn lookup_span(&self, thread_id: u32, time_ns: i64) -> (Option<usize>, i64, i64) {
        match thread_id {
            0 => (None, i64::MIN, i64::MAX),
            _ => self.lifetimes.span_at(thread_id, time_ns),
        }
    }

    /// Returns the time at which the thread in a row started; `None` if it is unknown.
    pub(crate) fn start_ns(&self, row: u32) -> Option<i64> {
        self.table.start_ns.get(row as usize)
    }

    /// Returns the process of the thread that had the id; `None` if it is unknown. Returns 0 for idle threads.
    pub fn process_id(&self, thread_id: u32, time_ns: i64) -> Option<u32> {
        if thread_id == 0 {
            return Some(0);
        }
        let row = self.lookup(thread_id, time_ns)?;
        self.table.process_id.get(row)
    }
}
