//! The thread that held the lock of a convoy for most of the time.

use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::StoreError;

use super::convoy::Wait;
use crate::chain::parts::longest_part;
use crate::chain::path::Thread;
use crate::thresholds::{CAUSE_PERCENT, is_share};
use crate::{Case, duration};

/// Thread that held the lock for most of a convoy's time.
pub(super) struct Owner {
    pub(super) thread: Thread,
    pub(super) process_row: u32,
    pub(super) held_ns: i64,
    /// Longest time range for which the thread held the lock, and the thread that got it then.
    pub(super) longest: (Range<i64>, Thread),
}

impl Owner {
    /// Returns the thread that held the lock for at least `CAUSE_PERCENT` of the time in which other threads waited for
    /// it. Between two handovers, the thread of the second handover holds the lock, from the moment at which another
    /// thread waits for it.
    pub(super) fn most_frequent(waits: &[Wait]) -> Option<Owner> {
        let mut owners: FxHashMap<u32, Owner> = FxHashMap::default();
        let (mut all_ns, mut last_ns) = (0_i64, i64::MIN);
        for wait in waits {
            let range = wait.start_ns().max(last_ns)..wait.readied_ns;
            last_ns = wait.readied_ns;
            let ns = (range.end - range.start).min(wait.awake_ns);
            all_ns = all_ns.saturating_add(ns);
            let next = Thread {
                id: wait.thread_id,
                row: wait.thread_row,
            };
            let owner = owners.entry(wait.by_thread_id).or_insert_with(|| Owner {
                thread: Thread {
                    id: wait.by_thread_id,
                    row: None,
                },
                process_row: wait.by_process_row,
                held_ns: 0,
                longest: (range.clone(), next),
            });
            owner.held_ns = owner.held_ns.saturating_add(ns);
            if owner.longest.0.end - owner.longest.0.start < range.end - range.start {
                owner.longest = (range, next);
            }
        }
        let mut owners = owners.into_values();
        let mut owner = owners.find(|owner| is_share(owner.held_ns, all_ns, CAUSE_PERCENT))?;
        let mut same = waits
            .iter()
            .filter(|wait| wait.thread_id == owner.thread.id);
        owner.thread.row = same.next().and_then(|wait| wait.thread_row);
        Some(owner)
    }

    /// Returns a sentence about the longest time for which the thread held the lock.
    pub(super) fn why(&self, case: &Case<'_>) -> Result<String, StoreError> {
        let (held, next) = &self.longest;
        let thread = (self.thread.row, self.thread.id);
        let who = case.thread(thread, (Some(self.process_row), None));
        let mut why = format!(
            "{} held the lock for {} of this time, for {} at most.",
            wording::capitalized(&who),
            duration(self.held_ns),
            duration(held.end - held.start)
        );
        if let Some(clause) = longest_part(case, *next, held)? {
            why += &format!(" For most of this longest hold, {clause}.");
        }
        Ok(why)
    }
}
