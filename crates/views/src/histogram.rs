//! Distribution of values per id.

use crate::{Bounds, Cancelled, Rows, TooLarge};

/// Counts of values by id and class, for example durations per routine.
#[derive(Clone, Debug)]
pub struct Histogram {
    bounds: Bounds,
    ids: u32,
    /// Counts. The counts of an id are adjacent, in the order of the classes. The unknown id comes after all other
    /// ids.
    counts: Vec<u64>,
}

impl Histogram {
    /// Creates a histogram without values, for ids below `ids`.
    ///
    /// # Errors
    /// Returns an error if the product of the number of ids and the number of classes is too large.
    pub fn new(bounds: Bounds, ids: u32) -> Result<Histogram, TooLarge> {
        let cells = TooLarge::check(ids as usize + 1, bounds.classes())?;
        Ok(Histogram {
            bounds,
            ids,
            counts: vec![0; cells],
        })
    }

    /// Adds rows. Unknown values are ignored.
    ///
    /// # Errors
    /// Returns an error if the pass is cancelled.
    ///
    /// # Panics
    /// Panics if a column is shorter than the rows.
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

    /// Adds the counts of another histogram.
    ///
    /// # Panics
    /// Panics if the other histogram has other bounds or another number of ids.
    pub fn merge(&mut self, other: &Histogram) {
        assert!(
            self.bounds == other.bounds && self.ids == other.ids,
            "histograms of different shapes"
        );
        for (count, other) in self.counts.iter_mut().zip(&other.counts) {
            *count += other;
        }
    }

    /// Returns the ids that have values, in ascending order, with their counts by class. The unknown id is
    /// `None` and comes last.
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
