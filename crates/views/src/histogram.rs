//! How values are spread, per id.

use crate::{Bounds, Cancelled, Rows, TooLarge};

/// Counts values by class, for each id apart: durations per routine, say.
#[derive(Clone, Debug)]
pub struct Histogram {
    bounds: Bounds,
    ids: u32,
    /// By id, the unknown last, then by class.
    counts: Vec<u64>,
}

impl Histogram {
    /// Counts nothing yet, for ids below `ids`.
    ///
    /// # Errors
    /// When there are too many ids × classes.
    pub fn new(bounds: Bounds, ids: u32) -> Result<Histogram, TooLarge> {
        let cells = TooLarge::check(ids as usize + 1, bounds.classes())?;
        Ok(Histogram {
            bounds,
            ids,
            counts: vec![0; cells],
        })
    }

    /// Adds rows; unknown values are left out.
    ///
    /// # Errors
    /// When it is cancelled.
    ///
    /// # Panics
    /// If a column is shorter than the rows.
    pub fn add(&mut self, ids: &[u32], values: &[i64], rows: &Rows<'_>) -> Result<(), Cancelled> {
        let classes = self.bounds.classes();
        rows.each_run(|run| {
            for (id, value) in ids[run.clone()].iter().zip(&values[run]) {
                if *value != crate::NULL {
                    let id = (*id).min(self.ids) as usize;
                    self.counts[id * classes + self.bounds.class(*value)] += 1;
                }
            }
        })
    }

    /// Adds what another of the same bounds and ids has seen.
    ///
    /// # Panics
    /// If its bounds or ids differ.
    pub fn merge(&mut self, other: &Histogram) {
        assert!(
            self.bounds == other.bounds && self.ids == other.ids,
            "histograms of different shapes"
        );
        for (count, other) in self.counts.iter_mut().zip(&other.counts) {
            *count += other;
        }
    }

    /// For each id that has values its count per class, by id; that of unknown ids last.
    pub fn finish(self) -> Vec<(Option<u32>, Vec<u64>)> {
        self.counts
            .chunks(self.bounds.classes())
            .enumerate()
            .filter(|(_, counts)| counts.iter().any(|count| *count > 0))
            .map(|(id, counts)| {
                let id = id as u32;
                ((id < self.ids).then_some(id), counts.to_vec())
            })
            .collect()
    }
}
