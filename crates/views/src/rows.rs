//! Selected rows of a chunk, and the flag that cancels a pass over them.

use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::IdSet;

/// Number of rows between two checks of the cancel flag. It is also the maximum length of a run of
/// rows.
const BLOCK: usize = 1 << 16;

/// Rows of a chunk that a kernel processes: a range without the rows that filters removed.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    range: Range<usize>,
    /// One bit per row, starting at `range.start`; a set bit selects the row. `None` until a filter
    /// is applied.
    mask: Option<Vec<u64>>,
    cancel: Option<&'a AtomicBool>,
}

/// Error for a pass that was cancelled, because the flag given to [`Rows::until`] is set. The state of the
/// kernel is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the computation was cancelled")
    }
}

impl Error for Cancelled {}

impl<'a> Rows<'a> {
    /// Selects a range of the rows of a chunk: all rows, or the result of
    /// [`rows_within`](crate::rows_within).
    pub fn from_range(range: Range<usize>) -> Rows<'a> {
        Rows {
            range,
            mask: None,
            cancel: None,
        }
    }

    /// Sets the flag that cancels passes over the rows. A pass stops soon after the flag becomes true.
    #[must_use]
    pub fn until(self, flag: &'a AtomicBool) -> Rows<'a> {
        Rows {
            cancel: Some(flag),
            ..self
        }
    }

    /// Removes the rows whose id is not in the set.
    ///
    /// # Panics
    /// Panics if the column is shorter than the rows.
    #[must_use]
    pub fn keep(self, ids: &[u32], allowed: &IdSet) -> Rows<'a> {
        self.keep_if(|row| allowed.contains(ids[row]))
    }

    /// Removes the rows for which `test` returns false.
    #[must_use]
    pub fn keep_if(mut self, test: impl Fn(usize) -> bool) -> Rows<'a> {
        let Range { start, end } = self.range;
        let mask = self
            .mask
            .get_or_insert_with(|| vec![u64::MAX; end.saturating_sub(start).div_ceil(64)]);
        for (first, word) in (start..end).step_by(64).zip(mask) {
            if *word == 0 {
                continue;
            }
            let mask = (first..end.min(first + 64))
                .enumerate()
                .fold(0, |mask, (bit, row)| mask | u64::from(test(row)) << bit);
            *word &= mask;
        }
        self
    }

    /// Returns the number of selected rows.
    pub fn count(&self) -> usize {
        match &self.mask {
            None => self.range.len(),
            Some(mask) => mask.iter().map(|word| word.count_ones() as usize).sum(),
        }
    }

    /// Calls `take` with each row, in order.
    ///
    /// # Errors
    /// Returns an error if the pass is cancelled.
    pub fn each(&self, mut take: impl FnMut(usize)) -> Result<(), Cancelled> {
        self.each_run(|run| run.for_each(&mut take))
    }

    /// Calls `take` with runs of consecutive rows, in order. A run has at most 65,536 rows.
    pub(crate) fn each_run(&self, mut take: impl FnMut(Range<usize>)) -> Result<(), Cancelled> {
        for start in self.range.clone().step_by(BLOCK) {
            self.check()?;
            let block = start..self.range.end.min(start + BLOCK);
            match &self.mask {
                None => take(block),
                Some(mask) => {
                    let first = (start - self.range.start) / 64;
                    let last = (block.end - self.range.start).div_ceil(64);
                    runs_of_ones(&mask[first..last], |run| {
                        take(start + run.start..start + run.end);
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns an error if the cancel flag is set.
    pub(crate) fn check(&self) -> Result<(), Cancelled> {
        match self.cancel {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(Cancelled),
            _ => Ok(()),
        }
    }
}

/// Calls `take` with each maximal run of set bits.
fn runs_of_ones(words: &[u64], mut take: impl FnMut(Range<usize>)) {
    let mut run = 0..0;
    for (at, word) in words.iter().enumerate() {
        let (mut word, mut bit) = (*word, at * 64);
        while word != 0 {
            let (zeros, rest) = (word.trailing_zeros(), word >> word.trailing_zeros());
            let ones = rest.trailing_ones();
            let start = bit + zeros as usize;
            let end = start + ones as usize;
            if start == run.end {
                run.end = end;
            } else {
                if !run.is_empty() {
                    take(run);
                }
                run = start..end;
            }
            bit = end;
            word = rest.checked_shr(ones).unwrap_or(0);
        }
    }
    if !run.is_empty() {
        take(run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NULL_ID;
    use testdata::Rng;

    fn taken(rows: &Rows<'_>) -> Vec<usize> {
        let mut runs = Vec::new();
        rows.each_run(|run| {
            assert!(!run.is_empty() && run.len() <= BLOCK);
            runs.extend(run);
        })
        .expect("not cancelled");
        assert_eq!(runs.len(), rows.count());
        runs
    }

    #[test]
    fn filters_keep_the_rows_that_pass() {
        let mut rng = Rng(7);
        for case in 0..200 {
            let len = 1 + rng.below(if case == 0 { 3 * BLOCK } else { 400 });
            let start = rng.below(len);
            let range = start..start + rng.below(len - start + 1);
            // The share of kept rows varies from nearly all to nearly zero, so that both long and
            // short runs occur.
            let count = rng.below(65);
            let ids: Vec<u32> = (0..len).map(|_| rng.below(64) as u32).collect();
            let set = IdSet::new(64).with(0..count as u32);
            let odd = rng.below(2) == 1;
            let expected: Vec<usize> = range
                .clone()
                .filter(|row| (ids[*row] as usize) < count && !(odd && row % 5 == 0))
                .collect();
            let mut rows = Rows::from_range(range).keep(&ids, &set);
            if odd {
                rows = rows.keep_if(|row| row % 5 != 0);
            }
            assert_eq!(taken(&rows), expected);
        }
    }

    #[test]
    fn without_filters_the_whole_range_is_taken() {
        assert_eq!(taken(&Rows::from_range(3..6)), [3, 4, 5]);
        assert!(taken(&Rows::from_range(4..4)).is_empty());
        assert_eq!(
            taken(&Rows::from_range(1..BLOCK + 3)),
            (1..BLOCK + 3).collect::<Vec<_>>()
        );
        let nothing = Rows::from_range(0..2).keep(&[NULL_ID, 1], &IdSet::new(1).with([0]));
        assert!(taken(&nothing).is_empty());
    }

    #[test]
    fn a_set_flag_stops_the_pass() {
        let flag = AtomicBool::new(false);
        let rows = Rows::from_range(0..10 * BLOCK).until(&flag);
        let mut seen = 0;
        let result = rows.each_run(|run| {
            seen += run.len();
            flag.store(true, Ordering::Relaxed);
        });
        assert_eq!((result, seen), (Err(Cancelled), BLOCK));
    }
}
