//! How much, per slice of time and id.

use crate::time_range::is_interval;
use crate::{Cancelled, Intervals, Lane, Lanes, NULL, Rows, Summary, TimeBuckets, TooLarge};

/// Adds up values, or the time that intervals cover, per bucket of time and lane.
#[derive(Clone, Debug)]
pub struct Timeline {
    buckets: TimeBuckets,
    lanes: Lanes,
    /// By bucket, then by lane: times come in order, so the cells in use stay in the first cache.
    cells: Vec<Summary>,
    /// How many more intervals cover a cell's bucket wholly than the bucket before. Kept as
    /// differences, an interval costs the same however many buckets it covers.
    covers: Vec<i64>,
    skipped: u64,
}

/// A lane's line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// What it shows.
    pub lane: Lane,
    /// All its buckets together.
    pub total: Summary,
    /// One for each of the timeline's buckets.
    pub buckets: Vec<Summary>,
}

impl Timeline {
    /// An empty timeline.
    ///
    /// # Errors
    /// When there are too many buckets × lanes.
    pub fn new(buckets: TimeBuckets, lanes: Lanes) -> Result<Timeline, TooLarge> {
        let cells = TooLarge::check(buckets.len(), lanes.list().len())?;
        Ok(Timeline {
            buckets,
            lanes,
            cells: vec![Summary::EMPTY; cells],
            covers: Vec::new(),
            skipped: 0,
        })
    }

    /// Adds rows that each have a value at a moment. Fastest if they are sorted by time. Rows
    /// outside the timeline's range are left out, rows of an unknown time are skipped.
    ///
    /// # Errors
    /// When it is cancelled.
    ///
    /// # Panics
    /// If a column is shorter than the rows.
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
                    self.skipped += u64::from(*time == NULL);
                    run.start += 1;
                    continue;
                };
                // All rows of a bucket at once: the loop over them is then a plain one.
                let end = run.start + cursor.leading(&times[run.clone()]);
                let cells = &mut self.cells[bucket * width..][..width];
                for (id, value) in ids[run.start..end].iter().zip(&values[run.start..end]) {
                    cells[self.lanes.index(*id)].add(*value);
                }
                run.start = end;
            }
        })
    }

    /// Adds rows that each are an interval: its time is spread exactly over the buckets that it
    /// covers. A bucket then counts the intervals that touch it, and its least and greatest are of
    /// the time they cover in it. An interval of no length counts, with 0, where it is.
    ///
    /// Give all intervals that reach into the range, not only those that start in it.
    ///
    /// # Errors
    /// When it is cancelled.
    ///
    /// # Panics
    /// If a column is shorter than the rows.
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
                    self.skipped += 1;
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
                    continue; // cannot be: the interval was clipped to the range
                };
                let last_start = self.buckets.bucket(last).start();
                self.cells[first * width + lane].add(first_end.saturating_sub(start));
                self.cells[last * width + lane].add(end.saturating_sub(last_start));
                self.covers[(first + 1) * width + lane] += 1;
                self.covers[last * width + lane] -= 1;
            }
        })
    }

    /// Adds what another of the same buckets and lanes has seen.
    ///
    /// # Panics
    /// If its buckets or lanes differ.
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
        self.skipped += other.skipped;
    }

    /// Rows left out for an unknown time or an end before their start.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The lines of the `top` ids of the greatest sum, greatest first (of equals the least id
    /// first); then one of all other ids and one of unknown ids, where there are any.
    pub fn finish(mut self, top: usize) -> Vec<Series> {
        self.add_covered();
        let lanes = self.lanes.list();
        let mut all: Vec<Series> = lanes
            .iter()
            .enumerate()
            .map(|(index, lane)| {
                let cells = self.cells.iter().skip(index).step_by(lanes.len());
                Series::of(*lane, cells.copied().collect())
            })
            .filter(|series| series.total.count() > 0)
            .collect();
        all.sort_by_key(|series| match series.lane {
            Lane::Id(id) => (0, std::cmp::Reverse(series.total.sum()), id),
            Lane::Other => (1, std::cmp::Reverse(None), 0),
            Lane::Unknown => (2, std::cmp::Reverse(None), 0),
        });
        let ids = all
            .iter()
            .filter(|series| matches!(series.lane, Lane::Id(_)))
            .count();
        let unknown = all.pop_if(|series| series.lane == Lane::Unknown);
        let rest = all.split_off(top.min(ids));
        let other = rest.into_iter().reduce(|mut sum, series| {
            sum.buckets
                .iter_mut()
                .zip(&series.buckets)
                .for_each(|(bucket, more)| bucket.merge(more));
            sum
        });
        all.extend(other.map(|series| Series::of(Lane::Other, series.buckets)));
        all.extend(unknown);
        all
    }

    /// Adds to each cell the intervals that cover its bucket wholly.
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
    fn of(lane: Lane, buckets: Vec<Summary>) -> Series {
        let mut total = Summary::EMPTY;
        buckets.iter().for_each(|bucket| total.merge(bucket));
        Series {
            lane,
            total,
            buckets,
        }
    }
}
