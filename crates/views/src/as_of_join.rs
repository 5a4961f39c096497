//! For each row the last one of another table at or before it.

use crate::{Cancelled, NULL, Rows, TooLarge};

/// No row was found.
pub const NO_ROW: u64 = u64::MAX;

/// Finds for each probe (a time and a key, say a sample's CPU) the last row with the same key at or
/// before it: one pass over both, with the last row of every key.
///
/// The probes are given whole, since the answer is as long. The rows are given in chunks, in order.
/// Both are sorted by time, unknown times first. Of rows at the same time the last is found, also
/// when they are in different chunks.
#[derive(Clone, Debug)]
pub struct AsOfJoin<'a> {
    times: &'a [i64],
    keys: &'a [u32],
    /// By key; a place after the last is for the unknown, which matches nothing.
    last: Vec<u64>,
    /// Rows of the chunks before.
    seen: u64,
    /// One for each probe that has its answer.
    found: Vec<u64>,
}

impl<'a> AsOfJoin<'a> {
    /// For probes with keys below `bound`.
    ///
    /// # Errors
    /// When there are too many keys.
    ///
    /// # Panics
    /// If the columns differ in length.
    pub fn new(times: &'a [i64], keys: &'a [u32], bound: u32) -> Result<AsOfJoin<'a>, TooLarge> {
        assert_eq!(times.len(), keys.len(), "the probes' columns");
        Ok(AsOfJoin {
            times,
            keys,
            last: vec![NO_ROW; TooLarge::check(bound as usize + 1, 1)?],
            seen: 0,
            found: Vec::with_capacity(times.len()),
        })
    }

    /// Adds the next chunk of rows.
    ///
    /// # Errors
    /// When it is cancelled.
    ///
    /// # Panics
    /// If a column is shorter than the rows.
    pub fn add(&mut self, times: &[i64], keys: &[u32], rows: &Rows<'_>) -> Result<(), Cancelled> {
        let unknown = self.last.len() - 1;
        rows.each_run(|run| {
            let first = self.seen + run.start as u64;
            let (times, keys) = (&times[run.clone()], &keys[run]);
            let mut next = times.partition_point(|time| *time == NULL);
            while let Some(probe) = self.times.get(self.found.len()) {
                while next < times.len() && times[next] <= *probe {
                    self.last[(keys[next] as usize).min(unknown)] = first + next as u64;
                    next += 1;
                }
                if next == times.len() {
                    break; // the next rows may be at the same time
                }
                self.answer();
            }
        })?;
        self.seen += times.len() as u64;
        Ok(())
    }

    /// For each probe the number of its row, counted from the first of the first chunk, or
    /// [`NO_ROW`].
    pub fn finish(mut self) -> Vec<u64> {
        while self.found.len() < self.times.len() {
            self.answer();
        }
        self.found
    }

    /// Answers the next probe.
    fn answer(&mut self) {
        let probe = self.found.len();
        let key = self.keys[probe] as usize;
        let matches = key < self.last.len() - 1 && self.times[probe] != NULL;
        self.found
            .push(if matches { self.last[key] } else { NO_ROW });
    }
}
