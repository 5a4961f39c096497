//! How values are spread over time.

use crate::{Bounds, Cancelled, Rows, TimeBuckets, TooLarge};

/// Counts rows by bucket of time and class of value.
#[derive(Clone, Debug)]
pub struct HeatMap {
    buckets: TimeBuckets,
    bounds: Bounds,
    /// By bucket, then by class.
    counts: Vec<u64>,
}

impl HeatMap {
    /// Counts nothing yet.
    ///
    /// # Errors
    /// When there are too many buckets × classes.
    pub fn new(buckets: TimeBuckets, bounds: Bounds) -> Result<HeatMap, TooLarge> {
        let cells = TooLarge::check(buckets.len(), bounds.classes())?;
        Ok(HeatMap {
            buckets,
            bounds,
            counts: vec![0; cells],
        })
    }

    /// Adds rows. Those outside the range and those whose time or value is unknown are left out.
    ///
    /// # Errors
    /// When it is cancelled.
    ///
    /// # Panics
    /// If a column is shorter than the rows.
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

    /// Adds what another of the same buckets and bounds has seen.
    ///
    /// # Panics
    /// If its buckets or bounds differ.
    pub fn merge(&mut self, other: &HeatMap) {
        assert!(
            self.buckets == other.buckets && self.bounds == other.bounds,
            "heat maps of different shapes"
        );
        for (count, other) in self.counts.iter_mut().zip(&other.counts) {
            *count += other;
        }
    }

    /// For each bucket of time its count per class.
    pub fn finish(self) -> Vec<Vec<u64>> {
        self.counts
            .chunks(self.bounds.classes())
            .map(<[u64]>::to_vec)
            .collect()
    }
}
