//! Distributions of durations before and after the change. Both distributions have the same classes.

use std::sync::atomic::AtomicBool;

use explore::{ExploreError, HistogramAnswer, HistogramRequest};
use serde::Serialize;
use ts_rs::TS;

use crate::Kind;
use crate::picture::{Source, is_dpc, is_recorded, of_runs};

/// Distribution of durations on both sides. The bounds of the classes increase by a constant factor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, TS)]
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

/// Durations in nanoseconds that a histogram always shows. They surround the marked limits of 25 and 100 µs.
const ALWAYS: [i64; 2] = [10_000, 200_000];

/// Returns the histograms of the durations that all traces recorded.
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
        histograms.extend(BackToBack::new(durations, bounds, counts));
    }
    Ok(histograms)
}

fn ask(
    of: Source<'_>,
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
        range: of.recording.part_ns(),
        filter,
        classes: Some(MOST_CLASSES),
        first: Some(1),
        values: Some(VALUES),
    };
    of.explorer.histogram(&request, cancel)
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
        let of = |ns: i64| bounds.partition_point(|bound| *bound < ns).max(1) - 1;
        let first = first.min(of(ALWAYS[0]));
        let last = last.max(of(ALWAYS[1])).min(before.len() - 1);
        Some(BackToBack {
            durations,
            before: before[first..=last].to_vec(),
            after: after[first..=last].to_vec(),
            bounds: bounds.get(first..=last + 1)?.to_vec(),
        })
    }
}
