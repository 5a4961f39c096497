//! Prediction of a change: the record, its replay, and its replay with the change.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;
use sim::replay::{ProcessorUse, RunError, Workload};

use crate::change::{Change, ChangeError, processes_of};
use crate::recorded_workload::{Lack, RecordedWorkload};
use crate::summary::{Spread, Summary};
use crate::variants::Variant;

/// Difference of a wait that does not count, in nanoseconds. In the model, the time in which a processor wakes is only
/// approximate.
const SMALL_WAIT_NS: f64 = 50_000.0;
/// Difference of the mean wait that does not count, in nanoseconds.
const SMALL_MEAN_NS: f64 = 5_000.0;
/// Difference of processor time that does not count, in nanoseconds.
const SMALL_CPU_NS: f64 = 100_000.0;
/// Part of the distance from a prediction to the ends of its error bar that is always there, as a logarithm.
const NARROWEST: f64 = 0.02;
/// Factor of the width of error bars. It was chosen with odd seeds of `tests/study.rs`, which measures the share of bars
/// that hold the truth (`bench/runs/2026-11-27-predictions.md`).
const CALIBRATION: f64 = 0.75;
/// Part of the difference that does not count, by which error bars are wider.
const FLOOR_PART: f64 = 0.5;
/// Maximum error of the replay's processor time with which it is predicted, as a logarithm.
const MOST_CPU_ERROR: f64 = 0.02;
/// Maximum error of the replay's waits and responses with which they are predicted, as a logarithm.
const MOST_WAIT_ERROR: f64 = 0.10;
/// Limit of each prediction of a change.
const KNOWN_ROUGHLY: &str = "Processor time with a change is known only roughly: its error bar is nearly as wide as \
                             the predicted effect.";

/// Number that a prediction compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Processor time.
    Cpu,
    /// Sum of the waits for a processor.
    ReadyTotal,
    /// Median of the waits for a processor.
    ReadyMedian,
    /// Duration that 99 % of the waits for a processor do not exceed.
    ReadyP99,
    /// Median time from the end of a wait to the next wait.
    ResponseMedian,
    /// Duration that 99 % of the times from the end of a wait to the next wait do not exceed.
    ResponseP99,
}

impl Metric {
    /// All metrics, in the order of their definitions.
    pub const ALL: [Metric; 6] = [
        Metric::Cpu,
        Metric::ReadyTotal,
        Metric::ReadyMedian,
        Metric::ReadyP99,
        Metric::ResponseMedian,
        Metric::ResponseP99,
    ];

    /// Returns the metric of a summary in nanoseconds. Returns `None` if there are no such times, or too few for a
    /// quantile.
    pub fn value(self, summary: &Summary) -> Option<f64> {
        let (ready, response) = (&summary.ready, &summary.response);
        let quantile = |spread: &Spread, share: f64| {
            let expected_beyond = spread.count as f64 * (1.0 - share);
            spread.quantile_ns(share).filter(|_| expected_beyond >= 1.0)
        };
        match self {
            Metric::Cpu => Some(summary.cpu_ns as f64),
            Metric::ReadyTotal => Some(ready.sum_ns as f64),
            Metric::ReadyMedian => quantile(ready, 0.5),
            Metric::ReadyP99 => quantile(ready, 0.99),
            Metric::ResponseMedian => quantile(response, 0.5),
            Metric::ResponseP99 => quantile(response, 0.99),
        }
    }

    /// Returns the largest error of the replay with which the metric is predicted, as a logarithm.
    fn error_allowed(self) -> f64 {
        match self {
            Metric::Cpu => MOST_CPU_ERROR,
            _ => MOST_WAIT_ERROR,
        }
    }

    /// Returns the part of an error bar that the predicted effect causes, as a share of this effect on a logarithmic
    /// scale. A change moves work into conditions that the record does not show. The processor time that a program
    /// gains if it waits less is known only roughly, so its share is 1.
    fn part_of_effect(self) -> f64 {
        match self {
            Metric::Cpu => 1.0,
            _ => 0.1,
        }
    }

    /// Returns the difference below which two numbers count as equal, in nanoseconds.
    pub fn floor_ns(self, was: &Summary) -> f64 {
        match self {
            Metric::Cpu => SMALL_CPU_NS,
            Metric::ReadyTotal => (SMALL_MEAN_NS * was.ready.count as f64).max(SMALL_WAIT_NS),
            _ => SMALL_WAIT_NS,
        }
    }
}

/// Metrics that must be reproduced. If the replay of one of them errs by too much, nothing is predicted for the thread
/// or process. Each other metric is left out alone.
const DECIDING: [Metric; 2] = [Metric::Cpu, Metric::ReadyTotal];

/// Threads and processes that the user asks about. Empty for all.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Ids of threads.
    pub threads: Vec<u32>,
    /// Names or ids of processes.
    pub processes: Vec<String>,
}

/// Error bar of a predicted number. If the prediction is a bound, the true number is within the bar, or between the bar
/// and the recorded number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bar {
    /// Lower end in nanoseconds.
    pub low_ns: f64,
    /// Upper end in nanoseconds.
    pub high_ns: f64,
    /// Part because of chance: replays with other times of arrivals. Like the other parts, it is a share of the
    /// predicted number. `None` if there are no such replays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
    /// Part because of the model: the replay without the change against the record.
    pub model: f64,
    /// Part because of assumptions that the record does not decide. `None` if no assumption was varied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structure: Option<f64>,
    /// Part because of the size of the effect.
    pub effect: f64,
}

/// Metric of a row, as recorded and as replayed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PredictedMetric {
    /// Metric.
    pub metric: Metric,
    /// Recorded number in nanoseconds.
    pub recorded_ns: f64,
    /// Number of the replay without the change.
    pub replayed_ns: f64,
    /// Number of the replay with the change.
    pub changed_ns: f64,
    /// Prediction: the recorded number times the ratio of the two replays.
    pub predicted_ns: f64,
    /// Error bar of the prediction.
    pub bar: Bar,
    /// Far end of the error bar, if the prediction is a bound and differs from the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_ns: Option<f64>,
    /// Difference that does not count, in nanoseconds.
    #[serde(skip)]
    pub floor_ns: f64,
}

impl PredictedMetric {
    /// Returns true if the prediction differs from the record by more than the error bar and by more than the difference
    /// that does not count.
    pub fn differs(&self) -> bool {
        let Bar {
            low_ns, high_ns, ..
        } = self.bar;
        !(low_ns..=high_ns).contains(&self.recorded_ns)
            && (self.predicted_ns - self.recorded_ns).abs() > self.floor_ns
    }
}

/// Error of the replay without the change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReplayError {
    /// Metric.
    pub metric: Metric,
    /// Error as a share: 0.02 if the larger number is 2 % above the smaller one.
    pub share: f64,
}

/// Thread or process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of the process, if it is known.
    pub process: Option<String>,
    /// Id of the process.
    pub process_id: u32,
    /// Id of the thread; `None` for the process as a whole.
    pub thread_id: Option<u32>,
    /// Name of the thread, if it is known.
    pub thread: Option<String>,
    /// True if the prediction was asked for this thread or process.
    #[serde(skip)]
    pub is_asked: bool,
    /// Largest error of the replay without the change.
    pub replay_error: ReplayError,
    /// Metrics. Empty if the prediction is refused.
    pub metrics: Vec<PredictedMetric>,
    /// Metrics that are not predicted, because the replay of the record errs by too much.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<Metric>,
    /// Metrics that are not predicted, because too few waits remain in a replay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub too_few: Vec<Metric>,
    /// Reason why nothing is predicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Recorded use of the processors.
    #[serde(skip)]
    recorded: Summary,
    #[serde(skip)]
    threads: Vec<usize>,
}

impl Row {
    /// Returns a recorded number in nanoseconds, even if nothing is predicted.
    pub fn recorded(&self, metric: Metric) -> Option<f64> {
        metric.value(&self.recorded)
    }

    /// Returns the difference below which two numbers of a metric count as equal, in nanoseconds.
    pub fn floor_ns(&self, metric: Metric) -> f64 {
        metric.floor_ns(&self.recorded)
    }

    /// Returns a metric of the row.
    pub fn get(&self, metric: Metric) -> Option<&PredictedMetric> {
        self.metrics
            .iter()
            .find(|candidate| candidate.metric == metric)
    }
}

/// Prediction of changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Changes as the user wrote them.
    pub changes: Vec<String>,
    /// True if the true number is between the recorded one and the far end of the bar.
    pub is_bound: bool,
    /// Processes and threads: those that the user asked about first, then by processor time.
    pub rows: Vec<Row>,
    /// Assumptions of the changes, and limits of the recording.
    pub limits: Vec<String>,
    /// Number of replays of each kind for the part of the error bar because of chance.
    pub replays: usize,
    /// Assumptions that were varied for the structural part of the error bar.
    pub varied: Vec<&'static str>,
}

/// Error of a prediction.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    /// A change does not fit the trace.
    #[error("cannot predict `{change}`: {error}")]
    Change {
        /// Change as the user wrote it.
        change: String,
        /// Reason.
        error: ChangeError,
    },
    /// A process of the scope is absent.
    #[error(
        "cannot predict for {0}: no process has this name or id; laglab process lists programs"
    )]
    Process(String),
    /// A thread of the scope is absent.
    #[error("cannot predict for thread {0}: it did not run; laglab cswitch lists threads")]
    Thread(u32),
    /// Refusal of a search: the first row of its scope is not predicted.
    #[error("cannot predict for {row}: {why}")]
    Refused {
        /// Name of the thread or process.
        row: String,
        /// Reason.
        why: String,
    },
    /// The replay failed or was cancelled.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Numbers of each row in a replay, in the order of [`Metric::ALL`].
type Numbers = Vec<[Option<f64>; Metric::ALL.len()]>;

/// Predicts changes. `replays` is the number of pairs of replays with varied arrivals. Without a change, the record is
/// replayed once. Calls `go_on` often; if it returns false, the prediction is cancelled.
///
/// # Errors
/// Returns an error if a change or the scope does not fit the trace, or if the replay is cancelled.
pub fn predict(
    recorded: &RecordedWorkload,
    changes: &[Change],
    scope: &Scope,
    replays: usize,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Prediction, PredictError> {
    // A wrong change is reported before the replays, which take long.
    let after = edited(recorded, changes)?;
    let variants = if changes.is_empty() {
        vec![Variant::default()]
    } else {
        Variant::all(recorded, replays)
    };
    let baseline = Baseline::new(recorded, scope, variants, go_on)?;
    baseline.predict(changes, &after, go_on)
}

/// Returns the workload with changes.
pub(crate) fn edited(
    recorded: &RecordedWorkload,
    changes: &[Change],
) -> Result<Arc<Workload>, PredictError> {
    let mut workload = recorded.workload.clone();
    for change in changes {
        (change.check(&recorded.notes))
            .and_then(|()| change.apply(&mut workload))
            .map_err(|error| PredictError::Change {
                change: change.to_string(),
                error,
            })?;
    }
    Ok(Arc::new(workload))
}

/// Replays without a change. The predictions of several changes share them.
pub(crate) struct Baseline<'r> {
    recorded: &'r RecordedWorkload,
    /// Rows without metrics.
    pub(crate) rows: Vec<Row>,
    variants: Vec<Variant>,
    /// Number of variants before the first one that differs only by chance.
    structures: usize,
    /// Numbers of each variant.
    runs: Vec<Numbers>,
}

impl<'r> Baseline<'r> {
    /// Replays the record with each variant. The first variant is the default one.
    pub(crate) fn new(
        recorded: &'r RecordedWorkload,
        scope: &Scope,
        variants: Vec<Variant>,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Baseline<'r>, PredictError> {
        let mut rows = rows(recorded, scope)?;
        let workload = Arc::new(recorded.workload.clone());
        let runs = runs(&variants, &workload, recorded.measured, &rows, go_on)?;
        for (row, replayed) in rows.iter_mut().zip(&runs[0]) {
            judge(row, recorded, replayed);
        }
        let assumptions = variants
            .iter()
            .filter(|variant| variant.assumption.is_some());
        Ok(Baseline {
            recorded,
            rows,
            structures: 1 + assumptions.count(),
            variants,
            runs,
        })
    }

    /// Predicts changes. `after` is the workload with them.
    pub(crate) fn predict(
        &self,
        changes: &[Change],
        after: &Arc<Workload>,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Prediction, PredictError> {
        let measured = self.recorded.measured;
        let with = if changes.is_empty() {
            None
        } else {
            Some(runs(&self.variants, after, measured, &self.rows, go_on)?)
        };
        let with = with.as_ref().unwrap_or(&self.runs);
        let is_bound = !changes.is_empty() && changes.iter().all(Change::is_bound);
        let mut rows = self.rows.clone();
        for (n, row) in rows.iter_mut().enumerate() {
            if row.refused.is_none() {
                self.add_metrics(n, row, with, is_bound);
            }
        }
        Ok(Prediction {
            changes: changes.iter().map(ToString::to_string).collect(),
            is_bound,
            rows,
            limits: limits(self.recorded, changes),
            replays: self.runs.len() - self.structures,
            varied: (self.variants.iter())
                .filter_map(|variant| variant.assumption)
                .collect(),
        })
    }

    /// Adds the metrics of row `n`. `with` has the numbers of each variant with the change.
    fn add_metrics(&self, n: usize, row: &mut Row, with: &[Numbers], is_bound: bool) {
        for metric in Metric::ALL {
            let at = metric as usize;
            let pair = |variant: usize| Some((self.runs[variant][n][at]?, with[variant][n][at]?));
            let Some(recorded_ns) = row.recorded(metric) else {
                continue;
            };
            let Some((replayed_ns, changed_ns)) = pair(0) else {
                row.too_few.push(metric);
                continue;
            };
            let floor_ns = row.floor_ns(metric);
            let model = distance(replayed_ns, recorded_ns, floor_ns);
            if model > metric.error_allowed() {
                row.left_out.push(metric);
                continue;
            }
            let predicted_ns = scaled(recorded_ns, replayed_ns, changed_ns, floor_ns);
            let off = |variant: usize| {
                let (before, after) = pair(variant)?;
                let other_ns = scaled(recorded_ns, before, after, floor_ns);
                Some(distance(other_ns, predicted_ns, floor_ns))
            };
            let structure = (1..self.structures).filter_map(off).reduce(f64::max);
            let mut by_chance: Vec<f64> =
                (self.structures..self.runs.len()).filter_map(off).collect();
            by_chance.sort_by(f64::total_cmp);
            let rank = (by_chance.len() * 9).div_ceil(10);
            let chance = rank.checked_sub(1).map(|rank| by_chance[rank]);
            let effect = metric.part_of_effect() * distance(predicted_ns, recorded_ns, floor_ns);
            let parts = [chance, structure, Some(model), Some(effect)];
            // The parts are independent of each other.
            let squares = parts.into_iter().flatten().map(|part| part * part);
            let width = CALIBRATION * (NARROWEST * NARROWEST + squares.sum::<f64>()).sqrt();
            let margin_ns = FLOOR_PART * floor_ns;
            let mut result = PredictedMetric {
                metric,
                recorded_ns,
                replayed_ns,
                changed_ns,
                predicted_ns,
                bar: Bar {
                    low_ns: (predicted_ns * (-width).exp() - margin_ns).max(0.0),
                    high_ns: predicted_ns * width.exp() + margin_ns,
                    chance: chance.map(f64::exp_m1),
                    model: model.exp_m1(),
                    structure: structure.map(f64::exp_m1),
                    effect: effect.exp_m1(),
                },
                bound_ns: None,
                floor_ns,
            };
            if is_bound && result.differs() {
                result.bound_ns = Some(if predicted_ns < recorded_ns {
                    result.bar.low_ns
                } else {
                    result.bar.high_ns
                });
            }
            row.metrics.push(result);
        }
    }
}

/// Replays a workload with each variant. Returns the numbers of each variant.
fn runs(
    variants: &[Variant],
    workload: &Arc<Workload>,
    measured: Option<(u64, u64)>,
    rows: &[Row],
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Numbers>, PredictError> {
    let run = |variant: &Variant| -> Result<Numbers, PredictError> {
        let used = variant.replay(workload, measured, go_on)?;
        Ok(numbers(used, rows))
    };
    variants.par_iter().map(run).collect()
}

/// Returns the assumptions of the changes, and the limits of the recording.
fn limits(recorded: &RecordedWorkload, changes: &[Change]) -> Vec<String> {
    let mut limits: Vec<String> = Vec::new();
    for text in changes.iter().map(|change| change.held_fixed().to_owned()) {
        if !limits.contains(&text) {
            limits.push(text);
        }
    }
    if !changes.is_empty() {
        limits.push(KNOWN_ROUGHLY.to_owned());
    }
    limits.extend(recorded.notes.iter().map(|note| note.text()));
    limits.push(
        "A wait that ended at once leaves no event: with more contention, waits appear that the record does not hold."
            .to_owned(),
    );
    limits
}

/// Returns the rows of a prediction, without metrics.
fn rows(recorded: &RecordedWorkload, scope: &Scope) -> Result<Vec<Row>, PredictError> {
    let workload = &recorded.workload;
    let mut chosen = BTreeSet::new();
    for name in &scope.processes {
        let processes = processes_of(workload, name);
        chosen.extend(processes.map_err(|_| PredictError::Process(name.clone()))?);
    }
    for id in &scope.threads {
        if !workload.threads.iter().any(|thread| thread.id == *id) {
            return Err(PredictError::Thread(*id));
        }
    }
    let row = |process: usize, thread: Option<usize>, threads: Vec<usize>| {
        let owner = &workload.processes[process];
        let own = thread.map(|n| &workload.threads[n]);
        Row {
            process: owner.name.clone(),
            process_id: owner.id,
            thread_id: own.map(|thread| thread.id),
            thread: own.and_then(|thread| thread.name.clone()),
            is_asked: false,
            replay_error: ReplayError {
                metric: Metric::Cpu,
                share: 0.0,
            },
            metrics: Vec::new(),
            left_out: Vec::new(),
            too_few: Vec::new(),
            refused: None,
            recorded: sum(threads.iter().map(|n| &recorded.threads[*n].summary)),
            threads,
        }
    };
    let mut by_process: Vec<Vec<usize>> = vec![Vec::new(); workload.processes.len()];
    for (n, thread) in workload.threads.iter().enumerate() {
        by_process[thread.process as usize].push(n);
    }
    let mut all = Vec::new();
    for (process, threads) in by_process.into_iter().enumerate() {
        all.extend(threads.iter().map(|n| row(process, Some(*n), vec![*n])));
        if !threads.is_empty() {
            all.push(row(process, None, threads));
        }
    }
    for row in &mut all {
        row.is_asked = match row.thread_id {
            Some(id) => scope.threads.contains(&id),
            None => (row.threads.iter()).any(|n| chosen.contains(&workload.threads[*n].process)),
        };
    }
    all.sort_by_cached_key(|row| {
        (
            !row.is_asked,
            row.thread_id.is_some(),
            Reverse(row.recorded.cpu_ns),
        )
    });
    Ok(all)
}

/// Sets the reason why nothing is predicted for a row, if there is one.
fn judge(row: &mut Row, recorded: &RecordedWorkload, replayed: &[Option<f64>; Metric::ALL.len()]) {
    let wait = |summary: &Summary| summary.cpu_ns.saturating_add(summary.ready.sum_ns);
    let all = wait(&row.recorded).max(1);
    let mut lacks: Vec<(Lack, usize)> = Vec::new();
    for n in &row.threads {
        let record = &recorded.threads[*n];
        let matters = row.thread_id.is_some() || wait(&record.summary) >= all / 100;
        lacks.extend(
            record
                .lacks
                .iter()
                .filter(|_| matters)
                .map(|lack| (*lack, *n)),
        );
    }
    let mut worst: Option<(Metric, f64, f64, f64)> = None;
    for metric in DECIDING {
        let (Some(before), Some(now)) = (row.recorded(metric), replayed[metric as usize]) else {
            continue;
        };
        let error = distance(now, before, row.floor_ns(metric));
        let share = error.exp_m1();
        if share > row.replay_error.share {
            row.replay_error = ReplayError { metric, share };
        }
        if error > metric.error_allowed() && worst.is_none_or(|(_, _, _, other)| error > other) {
            worst = Some((metric, before, now, error));
        }
    }
    if let Some((lack, n)) = lacks.first() {
        let thread = recorded.workload.threads[*n].id;
        row.refused = Some(match row.thread_id {
            Some(_) => format!("the replay lacks {}", lack.text()),
            None => format!("the replay of thread {thread} lacks {}", lack.text()),
        });
    } else if let Some((metric, before, now, _)) = worst {
        row.refused = Some(format!(
            "the replay of the record itself gives {} for the {}, but the record has {}: the replay lacks a mechanism, \
             or the recording does not show it",
            wording::duration(now as i64),
            metric.text(),
            wording::duration(before as i64)
        ));
    }
}

impl Metric {
    /// Returns the name of the metric.
    pub fn text(self) -> &'static str {
        match self {
            Metric::Cpu => "processor time",
            Metric::ReadyTotal => "sum of waits for a CPU",
            Metric::ReadyMedian => "median wait for a CPU",
            Metric::ReadyP99 => "99th percentile of waits for a CPU",
            Metric::ResponseMedian => "median response",
            Metric::ResponseP99 => "99th percentile of responses",
        }
    }
}

/// Returns the prediction: the recorded number times the ratio of the replays. Small numbers change by the difference.
fn scaled(recorded: f64, before: f64, after: f64, floor_ns: f64) -> f64 {
    if recorded.min(before) >= floor_ns {
        recorded * after / before
    } else {
        (recorded + after - before).max(0.0)
    }
}

/// Returns the distance of two durations as the logarithm of their ratio. Durations below the floor are equal to it.
fn distance(a: f64, b: f64, floor_ns: f64) -> f64 {
    if (a - b).abs() < floor_ns {
        0.0
    } else {
        (a.max(floor_ns) / b.max(floor_ns)).ln().abs()
    }
}

fn sum<'s>(summaries: impl Iterator<Item = &'s Summary>) -> Summary {
    let mut sum = Summary::default();
    summaries.for_each(|summary| sum.add(summary));
    sum
}

/// Returns the numbers of each row in a replay.
fn numbers(used: Vec<ProcessorUse>, rows: &[Row]) -> Numbers {
    let threads: Vec<Summary> = (used.into_iter())
        .map(|used| Summary::new(used.cpu_ns, used.ready_ns, used.response_ns))
        .collect();
    let row = |row: &Row| {
        let summary = sum(row.threads.iter().map(|n| &threads[*n]));
        Metric::ALL.map(|metric| metric.value(&summary))
    };
    rows.iter().map(row).collect()
}
