//! Distributions of durations before and after the change. Both distributions have the same classes.

use std::sync::atomic::AtomicBool;

use explore::{ExploreError, HistogramAnswer, HistogramRequest};
use serde::Serialize;
use statistics::distance::wasserstein;
use statistics::shift_function::{RunQuantiles, shifts};
use statistics::{Design, Interval, Scale, quantile};
use ts_rs::TS;

use crate::Kind;
use crate::compare::FALSE_SHARE;
use crate::distribution::Distribution;
use crate::picture::{Source, is_dpc, is_recorded, of_runs};

/// Distribution of durations on both sides. The bounds of the classes increase by a constant factor.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct BackToBack {
    /// Kind of the durations.
    pub durations: Durations,
    /// Bounds of the classes, in nanoseconds. Class `i` contains the durations `d` with
    /// `bounds[i] < d <= bounds[i + 1]`.
    pub bounds: Vec<i64>,
    /// Number of durations in each class before the change.
    pub before: Vec<u64>,
    /// Number of durations in each class after the change.
    pub after: Vec<u64>,
    /// Wasserstein distance of the two distributions, in nanoseconds: the mean distance by which durations of one side
    /// must be moved to get the distribution of the other side. The numbers of durations are scaled to be equal.
    pub moved_ns: f64,
    /// Changes of quantiles (shift function). Only quantiles that are positive in all units are included. Empty if
    /// there are too few units of evidence.
    pub shifts: Vec<QuantileShift>,
    /// Units of evidence of the shift function.
    pub shift_unit: ShiftUnit,
    /// Number of units before the change.
    pub units_before: usize,
    /// Number of units after the change.
    pub units_after: usize,
}

/// Change of one quantile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, TS)]
pub struct QuantileShift {
    /// Share of the durations that are at most as long as the quantile.
    pub share: f64,
    /// Quantile before the change: the median over the units of evidence, in nanoseconds.
    pub before_ns: f64,
    /// Quantile after the change: the median over the units of evidence, in nanoseconds.
    pub after_ns: f64,
    /// Quantile after the change divided by the quantile before the change.
    pub ratio: f64,
    /// Lower bound of the ratio, with 95 % confidence.
    pub low: f64,
    /// Upper bound of the ratio, with 95 % confidence.
    pub high: f64,
    /// True if chance hardly explains the change of this quantile.
    pub differs: bool,
}

/// Unit of evidence of a shift function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ShiftUnit {
    /// Blocks of time with at least 20 durations. They show that two traces differ, but the change of the machine may
    /// not be the reason.
    Blocks,
    /// Traces.
    Traces,
}

/// Durations whose distribution is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Durations {
    /// DPCs, from their start to their end.
    Dpc,
    /// Waits of ready threads for a CPU.
    Ready,
}

/// Range of the durations that have a class, in nanoseconds. Durations of 0 are excluded, because they are no
/// waits. Durations longer than 1,000 s are added to the last class.
const VALUES: [i64; 2] = [1, 1_000_000_000_000];

/// Maximum number of classes. There are 12 classes for each factor of ten.
const MOST_CLASSES: u32 = 144;

/// Durations that a histogram always shows, in nanoseconds. This range contains the limits of 25 and 100 µs, which are
/// marked.
const ALWAYS: [i64; 2] = [10_000, 200_000];

/// Returns a histogram for each kind of duration that all traces recorded: DPCs, and waits for a CPU.
pub(crate) fn histograms(
    sides: [&[Source<'_>]; 2],
    cancel: &AtomicBool,
) -> Result<Vec<BackToBack>, ExploreError> {
    let mut histograms = Vec::new();
    for (kind, durations) in [(Kind::Dpc, Durations::Dpc), (Kind::Ready, Durations::Ready)] {
        if !is_recorded(sides, kind) {
            continue;
        }
        let (mut bounds, mut counts) = (Vec::new(), [Vec::new(), Vec::new()]);
        for (side, counts) in sides.into_iter().zip(&mut counts) {
            for of in side {
                let answer = ask(*of, durations, cancel)?;
                add(counts, &answer);
                bounds = answer.bounds;
            }
        }
        if let Some(mut histogram) = BackToBack::new(durations, bounds, counts) {
            histogram.add_shifts(sides);
            histograms.push(histogram);
        }
    }
    Ok(histograms)
}

fn ask(
    source: Source<'_>,
    durations: Durations,
    cancel: &AtomicBool,
) -> Result<HistogramAnswer, ExploreError> {
    let (table, value, filter) = match durations {
        Durations::Dpc => ("interrupts", "duration_ns", vec![is_dpc()]),
        Durations::Ready => ("cpu_runs", "ready_ns", of_runs()),
    };
    let request = HistogramRequest {
        table: table.to_owned(),
        value: value.to_owned(),
        by: None,
        range: source.recording.part_ns(),
        filter,
        classes: Some(MOST_CLASSES),
        first: Some(1),
        values: Some(VALUES),
    };
    source.explorer.histogram(&request, cancel)
}

/// Adds the counts of a trace to `counts`. Durations above the last bound are added to the last class.
fn add(counts: &mut Vec<u64>, answer: &HistogramAnswer) {
    counts.resize(answer.bounds.len().saturating_sub(1), 0);
    for series in &answer.series {
        for (sum, count) in counts.iter_mut().zip(&series.counts) {
            *sum += count;
        }
        if let Some(last) = counts.last_mut() {
            *last += series.above;
        }
    }
}

impl BackToBack {
    /// Creates a histogram. Empty classes at both ends are left out. Returns `None` if there are no
    /// durations.
    fn new(durations: Durations, bounds: Vec<i64>, counts: [Vec<u64>; 2]) -> Option<BackToBack> {
        let [before, after] = &counts;
        let mut classes = before.iter().zip(after);
        let is_used = |(old, new): (&u64, &u64)| old + new > 0;
        let first = classes.clone().position(is_used)?;
        let last = classes.rposition(is_used)?;
        let class = |ns: i64| bounds.partition_point(|bound| *bound < ns).max(1) - 1;
        let first = first.min(class(ALWAYS[0]));
        let last = last.max(class(ALWAYS[1])).min(before.len() - 1);
        Some(BackToBack {
            durations,
            before: before[first..=last].to_vec(),
            after: after[first..=last].to_vec(),
            bounds: bounds.get(first..=last + 1)?.to_vec(),
            moved_ns: 0.0,
            shifts: Vec::new(),
            shift_unit: ShiftUnit::Blocks,
            units_before: 0,
            units_after: 0,
        })
    }

    /// Adds the changes of quantiles and the distance of the distributions.
    fn add_shifts(&mut self, sides: [&[Source<'_>]; 2]) {
        let durations = self.durations;
        let distribution_of = |source| distribution(durations, source);
        let [before, after] =
            sides.map(|side| Distribution::weighted(side.iter().map(distribution_of)));
        self.moved_ns = wasserstein(&before, &after).unwrap_or(0.0);
        let [before, after] = sides.map(|side| match sides {
            [[_], [_]] => side
                .iter()
                .flat_map(|source| distribution_of(source).blocks.clone())
                .collect(),
            _ => side
                .iter()
                .map(|source| distribution_of(source).whole)
                .collect::<Vec<RunQuantiles>>(),
        });
        self.shift_unit = match sides {
            [[_], [_]] => ShiftUnit::Blocks,
            _ => ShiftUnit::Traces,
        };
        (self.units_before, self.units_after) = (before.len(), after.len());
        let changes = shifts(&before, &after, Design::Unpaired)
            .into_iter()
            .flatten();
        // A quantile of 0 has no ratio.
        let changes = changes.filter(|it| it.comparison.scale == Scale::Ratio);
        let changes = changes.filter_map(|it| {
            let Interval { centre, low, high } = it.comparison.change;
            Some(QuantileShift {
                share: it.share,
                before_ns: middle(&before, it.share)?,
                after_ns: middle(&after, it.share)?,
                ratio: centre,
                low,
                high,
                differs: it.adjusted_p <= FALSE_SHARE,
            })
        });
        self.shifts = changes.collect();
    }
}

fn distribution<'s>(durations: Durations, source: &'s Source<'_>) -> &'s Distribution {
    match durations {
        Durations::Dpc => &source.recording.dpcs,
        Durations::Ready => &source.recording.ready,
    }
}

/// Returns the median over several units of evidence of the quantile `share`.
fn middle(units: &[RunQuantiles], share: f64) -> Option<f64> {
    let mut values: Vec<f64> = units.iter().filter_map(|unit| unit.at(share)).collect();
    values.sort_unstable_by(f64::total_cmp);
    quantile::of_sorted(&values, 0.5)
}
