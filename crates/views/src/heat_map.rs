//! Distribution of values over time.

use crate::{Bounds, Cancelled, Rows, TimeBuckets, TooLarge};

/// Counts of rows by time bucket and class of values.
#[derive(Clone, Debug)]
pub struct HeatMap {
    buckets: TimeBuckets,
    bounds: Bounds,
    /// Counts. The counts of a bucket are adjacent, in the order of the classes.
    counts: Vec<u64>,
}

impl HeatMap {
    /// Creates a heat map without rows.
    ///
    /// # Errors
    /// Returns an error if the product of the number of buckets and the number of classes is too large.
    pub fn new(buckets: TimeBuckets, bounds: Bounds) -> Result<HeatMap, TooLarge> {
        let cells = TooLarge::check(buckets.len(), bounds.classes())?;
        Ok(HeatMap {
            buckets,
            bounds,
            counts: vec![0; cells],
        })
    }

    /// Adds rows. Rows outside the range and rows with an unknown time or value are ignored.
    ///
    /// # Errors
    /// Returns an error if the pass is cancelled.
    ///
    /// # Panics
    /// Panics if a column is shorter than the rows.
    pub fn add(&mut self, times: &[i64], values: &[i64], rows: &Rows<'_>) -> Result<(), Cancelled> {
        let classes = self.bounds.classes();
        let mut cursor = self.buckets.cursor();
        rows.each_run(|run| {
            for (time, value) in times[run.clone()].iter().zip(&values[run]) {
                if let Some(bucket) = cursor.index(*time)
                    && *value != crate::NULL
                {
                    self.counts[bucket * classes + self.bounds.class(*value)] += 1;
                }
            }
        })
    }

    /// Adds the counts of another heat map.
    ///
    /// # Panics
    /// Panics if the buckets or bounds of the other heat map differ.
    pub fn merge(&mut self, other: &HeatMap) {
        assert!(
            self.buckets == other.buckets && self.bounds == other.bounds,
            "heat maps of different shapes"
        );
        for (count, other) in self.counts.iter_mut().zip(&other.counts) {
            *count += other;
        }
    }

    /// Returns the counts, indexed by time bucket and then by class.
    pub fn finish(self) -> Vec<Vec<u64>> {
        self.counts
            .chunks(self.bounds.classes())
            .map(<[u64]>::to_vec)
            .collect()
    }
}
