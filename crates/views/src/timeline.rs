//! Sums per time bucket and id.

use crate::time_range::is_interval;
use crate::{Cancelled, Intervals, Lane, Lanes, Rows, Summary, TimeBuckets, TooLarge};

/// Sums of values, or of the time that intervals cover, per time bucket and lane.
#[derive(Clone, Debug)]
pub struct Timeline {
    buckets: TimeBuckets,
    lanes: Lanes,
    /// Summaries. The cells of a bucket are adjacent, in the order of the lanes. Because times are in order, the
    /// cells of the current bucket stay in the L1 cache.
    cells: Vec<Summary>,
    /// Difference for each cell: the number of intervals that cover the cell's bucket completely, minus the same
    /// number for the previous bucket. Because only differences are stored, adding an interval takes the same time
    /// for any number of buckets.
    covers: Vec<i64>,
}

/// Values of one lane in all buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// Lane that has these values.
    pub lane: Lane,
    /// Summary over all buckets.
    pub total: Summary,
    /// Summary of each bucket.
    pub buckets: Vec<Summary>,
}

impl Timeline {
    /// Creates an empty timeline.
    ///
    /// # Errors
    /// Returns an error if the product of the number of buckets and the number of lanes is too large.
    pub fn new(buckets: TimeBuckets, lanes: Lanes) -> Result<Timeline, TooLarge> {
        let cells = TooLarge::check(buckets.len(), lanes.list().len())?;
        Ok(Timeline {
            buckets,
            lanes,
            cells: vec![Summary::EMPTY; cells],
            covers: Vec::new(),
        })
    }

    /// Adds rows that have a time and a value. This is fastest if the rows are sorted by time. Rows with an
    /// unknown time or a time outside the range are ignored.
    ///
    /// # Errors
    /// Returns an error if the pass is cancelled.
    ///
    /// # Panics
    /// Panics if a column is shorter than the rows.
    pub fn add_values(
        &mut self,
        times: &[i64],
        ids: &[u32],
        values: &[i64],
        rows: &Rows<'_>,
    ) -> Result<(), Cancelled> {
        let width = self.lanes.list().len();
        let mut cursor = self.buckets.cursor();
        rows.each_run(|mut run| {
            while let Some(time) = times[run.clone()].first() {
                let Some(bucket) = cursor.index(*time) else {
                    run.start += 1;
                    continue;
                };
                // One inner loop adds all consecutive rows of a bucket, so the bucket is looked up only once.
                let end = run.start + cursor.leading(&times[run.clone()]);
                let cells = &mut self.cells[bucket * width..][..width];
                for (id, value) in ids[run.start..end].iter().zip(&values[run.start..end]) {
                    cells[self.lanes.index(*id)].add(*value);
                }
                run.start = end;
            }
        })
    }

    /// Adds rows that have a start and an end. The duration of an interval is split exactly among the buckets that it
    /// covers. The count of a bucket is the number of intervals that overlap the bucket. The minimum and the maximum of
    /// a bucket refer to the durations of single intervals within the bucket. An interval of length 0 counts with the
    /// value 0 in the bucket of its start.
    ///
    /// The rows must include all intervals that overlap the range, even if they start before the range.
    ///
    /// # Errors
    /// Returns an error if the pass is cancelled.
    ///
    /// # Panics
    /// Panics if a column is shorter than the rows.
    pub fn add_intervals(
        &mut self,
        intervals: Intervals<'_>,
        rows: &Rows<'_>,
    ) -> Result<(), Cancelled> {
        let width = self.lanes.list().len();
        let range = self.buckets.range();
        self.covers.resize(self.cells.len(), 0);
        let mut cursor = self.buckets.cursor();
        rows.each_run(|run| {
            let columns = intervals.starts[run.clone()]
                .iter()
                .zip(&intervals.ends[run.clone()])
                .zip(&intervals.keys[run]);
            for ((start, end), key) in columns {
                if !is_interval(*start, *end) {
                    continue;
                }
                let lane = self.lanes.index(*key);
                let (start, end) = if start == end {
                    (*start, *end)
                } else {
                    let clipped = ((*start).max(range.start()), (*end).min(range.end()));
                    if clipped.0 >= clipped.1 {
                        continue;
                    }
                    clipped
                };
                let Some(first) = cursor.index(start) else {
                    continue;
                };
                let first_end = cursor.end();
                if end <= first_end {
                    self.cells[first * width + lane].add(end.saturating_sub(start));
                    continue;
                }
                let Some(last) = self.buckets.index(end - 1) else {
                    continue; // impossible: the interval is clipped to the range
                };
                let last_start = self.buckets.bucket(last).start();
                self.cells[first * width + lane].add(first_end.saturating_sub(start));
                self.cells[last * width + lane].add(end.saturating_sub(last_start));
                self.covers[(first + 1) * width + lane] += 1;
                self.covers[last * width + lane] -= 1;
            }
        })
    }

    /// Adds the sums of another timeline.
    ///
    /// # Panics
    /// Panics if the other timeline has other buckets or lanes.
    pub fn merge(&mut self, other: &Timeline) {
        assert!(
            self.buckets == other.buckets && self.lanes == other.lanes,
            "timelines of different shapes"
        );
        for (cell, other) in self.cells.iter_mut().zip(&other.cells) {
            cell.merge(other);
        }
        if !other.covers.is_empty() {
            self.covers.resize(self.cells.len(), 0);
        }
        for (cover, other) in self.covers.iter_mut().zip(&other.covers) {
            *cover += other;
        }
    }

    /// Returns the series of all lanes that have values. Lanes with a single id come first, sorted by descending sum
    /// and then by id. The lane of all other ids follows. The lane of unknown ids comes last.
    pub fn finish(mut self) -> Vec<Series> {
        self.add_covered();
        let lanes = self.lanes.list();
        let mut all: Vec<Series> = lanes
            .iter()
            .enumerate()
            .map(|(index, lane)| {
                let cells = self.cells.iter().skip(index).step_by(lanes.len());
                Series::new(*lane, cells.copied().collect())
            })
            .filter(|series| series.total.count() > 0)
            .collect();
        all.sort_by_key(|series| match series.lane {
            Lane::Id(id) => (0, std::cmp::Reverse(series.total.sum()), id),
            Lane::Other => (1, std::cmp::Reverse(None), 0),
            Lane::Unknown => (2, std::cmp::Reverse(None), 0),
        });
        all
    }

    /// Adds to each cell the intervals that cover its bucket completely.
    fn add_covered(&mut self) {
        let width = self.lanes.list().len();
        let mut covers = vec![0i64; width];
        let buckets = self.cells.chunks_mut(width).zip(self.covers.chunks(width));
        for (bucket, (cells, changes)) in buckets.enumerate() {
            let span = i64::try_from(self.buckets.bucket(bucket).span()).unwrap_or(i64::MAX);
            for ((cell, covers), change) in cells.iter_mut().zip(&mut covers).zip(changes) {
                *covers += change;
                if *covers > 0 {
                    cell.add_times(span, covers.cast_unsigned());
                }
            }
        }
    }
}

impl Series {
    fn new(lane: Lane, buckets: Vec<Summary>) -> Series {
        let mut total = Summary::EMPTY;
        buckets.iter().for_each(|bucket| total.merge(bucket));
        Series {
            lane,
            total,
            buckets,
        }
    }
}
