//! Heat maps of samples. Time is to the right, latency is upward, and density shows the number of
//! samples.

use std::ops::Range;

use serde::Serialize;
use views::{Bounds, Rows, TimeBuckets, TimeRange};

use crate::{Group, Series};

/// Scale of the latency axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HeatScale {
    /// Scale on which equal differences have equal length.
    Linear,
    /// Scale on which equal factors have equal length. This scale shows usual samples and very late samples
    /// in one map.
    #[default]
    Logarithmic,
}

/// Axes shared by several heat maps, so that the maps can be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatAxes {
    columns: usize,
    /// Upper latency bound of each row except the last, in ascending order.
    upper_ns: Vec<i64>,
    low_ns: i64,
    high_ns: i64,
}

/// Heat map: the number of samples in each cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeatMap {
    /// Title of the map.
    pub title: String,
    /// Length of the time axis in nanoseconds. The length is the sum of the lengths of the group's runs. It
    /// does not include the gaps in which other groups ran.
    pub span_ns: i64,
    /// Number of samples in each cell, by column, then by row from the lowest latency.
    pub counts: Vec<Vec<u64>>,
    /// Number of samples without a latency, which are in no cell.
    pub unknown: u64,
}

impl HeatAxes {
    /// Returns axes that cover all samples of the groups. The numbers of columns and rows are
    /// limited to 1 to 2,000.
    pub fn around(groups: &[Group<'_>], scale: HeatScale, columns: usize, rows: usize) -> HeatAxes {
        let known = || {
            let samples = groups.iter().flat_map(|group| &group.runs);
            samples.flat_map(|run| run.samples.iter().filter_map(|sample| sample.latency_ns))
        };
        let low_ns = match scale {
            HeatScale::Linear => 0,
            // Latencies of 0 or less have no logarithm. Such latencies count in the lowest row.
            HeatScale::Logarithmic => known().filter(|ns| *ns > 0).min().unwrap_or(1),
        };
        let high_ns = known().max().unwrap_or(0);
        HeatAxes::new(low_ns..high_ns, scale, columns, rows)
    }

    /// Returns axes for latencies of a range. The numbers of columns and rows are limited to 1 to 2,000. A
    /// logarithmic axis begins above 0.
    pub fn new(latencies: Range<i64>, scale: HeatScale, columns: usize, rows: usize) -> HeatAxes {
        let low_ns = match scale {
            HeatScale::Linear => latencies.start,
            HeatScale::Logarithmic => latencies.start.max(1),
        };
        let high_ns = latencies.end.max(low_ns.saturating_add(1));
        let rows = rows.clamp(1, 2_000);
        let edge = |row: usize| {
            let share = row as f64 / rows as f64;
            let (low, high) = (low_ns as f64, high_ns as f64);
            (match scale {
                HeatScale::Linear => low + share * (high - low),
                HeatScale::Logarithmic => low * (high / low).powf(share),
            }) as i64
        };
        HeatAxes {
            columns: columns.clamp(1, 2_000),
            // The bounds of narrow rows may be equal. Equal bounds are kept, because each row needs a bound.
            upper_ns: (1..rows).map(edge).collect(),
            low_ns,
            high_ns,
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.upper_ns.len() + 1
    }

    /// Returns the latency at the lower edge of a row. If `row` is the number of rows, returns the upper end
    /// of the axis.
    pub fn edge_ns(&self, row: usize) -> i64 {
        match row {
            0 => self.low_ns,
            _ => self.upper_ns.get(row - 1).copied().unwrap_or(self.high_ns),
        }
    }

    /// Returns the map of a group.
    pub fn map(&self, group: &Group<'_>, title: &str) -> HeatMap {
        let lengths = group.runs.iter().map(|run| length_ns(run));
        let mut growing = self.begin(lengths.fold(0, i64::saturating_add));
        for run in &group.runs {
            let samples = run.samples.iter();
            growing.add_run(samples.map(|sample| (sample.start_ns, sample.latency_ns)));
        }
        growing.finish(title)
    }

    /// Begins a map of several runs. `span_ns` is the sum of the durations of these runs. The runs are added
    /// one by one.
    pub fn begin(&self, span_ns: i64) -> GrowingHeatMap<'_> {
        let span_ns = span_ns.max(1);
        let buckets = TimeBuckets::new(TimeRange::new(0, span_ns), self.columns);
        let bounds = Bounds::new(self.upper_ns.clone());
        GrowingHeatMap {
            axes: self,
            classes: self.upper_ns.iter().map(|ns| bounds.class(*ns)).collect(),
            // The numbers of columns and rows are far below the limits of `views`.
            map: views::HeatMap::new(buckets, bounds).expect("at most 2,000 by 2,000 cells"),
            span_ns,
            offset_ns: 0,
            unknown: 0,
        }
    }
}

/// Heat map to which runs are added.
#[derive(Debug)]
pub struct GrowingHeatMap<'a> {
    axes: &'a HeatAxes,
    /// For each row except the last, the index of the class in `map` to which the upper bound of the row belongs.
    classes: Vec<usize>,
    map: views::HeatMap,
    span_ns: i64,
    /// Position of the next run on the time axis. On this axis, the runs follow each other without gaps.
    offset_ns: i64,
    unknown: u64,
}

impl GrowingHeatMap<'_> {
    /// Adds the samples of a run, in order of time. Each sample is a pair of start and latency.
    pub fn add_run(&mut self, samples: impl Iterator<Item = (i64, Option<i64>)> + Clone) {
        let length = run_length_ns(samples.clone());
        let first = samples.clone().next().map_or(0, |(start, _)| start);
        let mut known = (Vec::new(), Vec::new());
        for (start, latency) in samples {
            let since = start.saturating_sub(first).clamp(0, length - 1);
            match latency {
                Some(latency) => {
                    known.0.push(self.offset_ns.saturating_add(since));
                    known.1.push(latency);
                }
                None => self.unknown += 1,
            }
        }
        // No cancellation is requested here, so the call cannot fail.
        let rows = Rows::from_range(0..known.0.len());
        (self.map.add(&known.0, &known.1, &rows)).expect("not cancelled");
        self.offset_ns = self.offset_ns.saturating_add(length);
    }

    /// Returns the map.
    pub fn finish(self, title: &str) -> HeatMap {
        let rows = self.axes.rows();
        let spread = |column: Vec<u64>| {
            let mut spread = vec![0; rows];
            for (class, count) in column.into_iter().enumerate() {
                // If several rows share a bound, the first of these rows gets the count. The last class
                // contains the values above all bounds and belongs to the last row.
                let row = self
                    .classes
                    .iter()
                    .position(|candidate| *candidate == class);
                spread[row.unwrap_or(rows - 1)] += count;
            }
            spread
        };
        let mut counts: Vec<Vec<u64>> = self.map.finish().into_iter().map(spread).collect();
        counts.resize(self.axes.columns, vec![0; rows]);
        HeatMap {
            title: title.to_owned(),
            span_ns: self.span_ns,
            counts,
            unknown: self.unknown,
        }
    }
}

impl HeatMap {
    /// Returns the maximum number of samples in a cell.
    pub fn most(&self) -> u64 {
        self.counts.iter().flatten().copied().max().unwrap_or(0)
    }
}

fn length_ns(run: &Series) -> i64 {
    let samples = run.samples.iter();
    run_length_ns(samples.map(|sample| (sample.start_ns, sample.latency_ns)))
}

/// Returns the duration of a run: the time from the start of its first sample to the latest end of a sample.
/// The duration is at least 1 ns. The ends of the samples matter, because all samples may start at once, for
/// example queued reads.
pub fn run_length_ns(samples: impl Iterator<Item = (i64, Option<i64>)>) -> i64 {
    let (mut first, mut last) = (None, 0);
    for (start, latency) in samples {
        let since = start.saturating_sub(*first.get_or_insert(start));
        last = last.max(since.saturating_add(latency.unwrap_or(0).max(0)));
    }
    last.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Probe, Sample};

    /// Returns two runs that start one hour apart. Each run has one sample per latency, and its
    /// samples start every millisecond.
    fn runs(latencies: &[i64]) -> Vec<Series> {
        let run = |number: i64| {
            let mut series = Series::new(Probe::Sleep, "m", "s", number as u32);
            series.samples = (0..)
                .zip(latencies)
                .map(|(n, ns)| {
                    let start = number * 3_600_000_000_000 + n * 1_000_000;
                    Sample::timed(start, start, start + ns)
                })
                .collect();
            series
        };
        vec![run(0), run(1)]
    }

    fn group(series: &[Series]) -> Group<'_> {
        Group {
            first: &series[0],
            runs: series.iter().collect(),
        }
    }

    #[test]
    fn every_sample_with_a_latency_is_in_one_cell() {
        let mut series = runs(&[100, 1_000, 10_000, 100_000, 1_000_000]);
        series[1].samples[2].latency_ns = None;
        let group = group(&series);
        for scale in [HeatScale::Linear, HeatScale::Logarithmic] {
            for (columns, rows) in [(1, 1), (7, 3), (80, 40), (5_000, 5_000)] {
                let axes = HeatAxes::around(std::slice::from_ref(&group), scale, columns, rows);
                let map = axes.map(&group, "m");
                assert_eq!(map.counts.len(), columns.min(2_000));
                assert!(map.counts.iter().all(|column| column.len() == axes.rows()));
                assert_eq!(map.counts.iter().flatten().sum::<u64>(), 9);
                assert_eq!(map.unknown, 1);
            }
        }
    }

    #[test]
    fn rows_cover_the_range_of_latencies() {
        let series = runs(&[100, 1_500, 15_000, 150_000, 1_000_000]);
        let group = group(&series);
        let axes = HeatAxes::around(std::slice::from_ref(&group), HeatScale::Logarithmic, 2, 4);
        assert_eq!(axes.edge_ns(0), 100);
        assert!((axes.edge_ns(1) - 1_000).abs() <= 1);
        assert_eq!(axes.edge_ns(4), 1_000_000);
        // Each of the two runs fills one of the two columns. The last sample of a run starts after
        // 4 ms and takes 1 ms, so both runs together take 10 ms.
        let map = axes.map(&group, "m");
        assert!((map.span_ns - 10_000_000).abs() < 10);
        assert_eq!(map.counts, [[1, 1, 1, 2], [1, 1, 1, 2]]);
        let axes = HeatAxes::around(std::slice::from_ref(&group), HeatScale::Linear, 1, 2);
        assert_eq!(axes.map(&group, "m").counts, [[8, 2]]);
    }

    #[test]
    fn each_map_has_the_length_of_its_runs() {
        let (short, mut long) = (runs(&[100; 5]), runs(&[100; 5]));
        for sample in long.iter_mut().flat_map(|run| &mut run.samples) {
            sample.start_ns *= 30;
        }
        let groups = [group(&short), group(&long)];
        let axes = HeatAxes::around(&groups, HeatScale::Linear, 10, 1);
        let maps = groups.each_ref().map(|group| axes.map(group, "m"));
        assert!(maps[1].span_ns > 29 * maps[0].span_ns);
        // The samples are equally spaced in both maps, so both maps fill the ten columns in the same way.
        assert_eq!(maps[0].counts, maps[1].counts);
        assert!(maps[0].counts.iter().filter(|column| column[0] > 0).count() > 8);
    }

    #[test]
    fn simultaneous_samples_determine_the_length() {
        let mut series = runs(&[999; 5]);
        for sample in series.iter_mut().flat_map(|run| &mut run.samples) {
            sample.start_ns = 7;
        }
        let group = group(&series);
        let axes = HeatAxes::around(std::slice::from_ref(&group), HeatScale::Linear, 10, 1);
        let map = axes.map(&group, "m");
        assert_eq!(map.span_ns, 2 * 1_000);
        let filled: Vec<u64> = map.counts.iter().map(|column| column[0]).collect();
        assert_eq!(filled, [5, 0, 0, 0, 0, 5, 0, 0, 0, 0]);
    }

    #[test]
    fn early_and_unknown_samples_are_placed() {
        let series = runs(&[-5, 0, 1]);
        let group = group(&series);
        let axes = HeatAxes::around(std::slice::from_ref(&group), HeatScale::Logarithmic, 1, 8);
        let map = axes.map(&group, "m");
        assert_eq!(map.unknown, 2, "the clock went back");
        assert_eq!(map.counts[0].iter().sum::<u64>(), 4);
        let none: [Series; 0] = [];
        let axes = HeatAxes::around(&[], HeatScale::Logarithmic, 3, 3);
        assert_eq!(axes.rows(), 3);
        assert!(none.is_empty());
    }
}
