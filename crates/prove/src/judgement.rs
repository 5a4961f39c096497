//! Comparison of runs before and after a change, and its verdict.

use serde::Serialize;
use statistics::counts::{Count, RateRatio, rates};
use statistics::dependence::samples_per_independent_at;
use statistics::modes::{Move, moves};
use statistics::{
    Comparison, Design, Incomparable, Margin, Scale, Verdict, clusters, compare, multiple,
    planning, quantile,
};

use crate::runs::sorted;
use crate::{Run, Sides, Unit};

/// Question to the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Question {
    /// Smallest change that matters, as a share of the value before the change, such as 0.02.
    pub margin: f64,
}

/// Number that a run counts as.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// The only value of the run.
    Value,
    /// Quantile of the samples of the run, as the share of samples that do not exceed it.
    Quantile(f64),
}

/// Comparison of one thing before and after a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// Name of the measured thing.
    pub name: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Relation between the runs.
    pub design: Design,
    /// Number of runs before the change.
    pub runs_before: usize,
    /// Number of runs after the change.
    pub runs_after: usize,
    /// Number of samples with a value before the change.
    pub samples_before: u64,
    /// Number of samples with a value after the change.
    pub samples_after: u64,
    /// Number of samples without a value, on both sides.
    pub unknown: u64,
    /// Comparison of each metric.
    pub lines: Vec<Line>,
    /// Stalls on both sides; `None` if there are too few samples for a threshold.
    pub stalls: Option<Stalls>,
    /// Changes of the shares of the modes, if the distribution has several.
    pub modes: Vec<Move>,
    /// Number of neighbouring samples that count as one independent sample, of the run with the strongest
    /// dependence. `None` if runs have one value.
    pub samples_per_independent: Option<f64>,
    /// Reasons to doubt the comparison, one sentence each.
    pub doubts: Vec<String>,
}

/// Comparison of one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// Number that each run counts as.
    pub metric: Metric,
    /// Median of the runs before the change; `None` if a run has too few samples for the metric.
    pub before: Option<f64>,
    /// Median of the runs after the change; `None` if a run has too few samples for the metric.
    pub after: Option<f64>,
    /// Change; `None` if the runs do not allow a comparison.
    pub comparison: Option<Comparison>,
    /// Probability of such a change by chance, corrected for the number of metrics (Holm).
    pub adjusted_p: Option<f64>,
    /// Conclusion; `None` if the runs do not allow a comparison.
    pub verdict: Option<Verdict>,
    /// Number of further pairs or runs that would probably tell a change of the margin, if the verdict is
    /// unknown.
    pub more: Option<u64>,
    /// Reason why the runs do not allow a comparison.
    pub not_compared: Option<String>,
}

/// Stalls: groups of neighbouring samples above a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stalls {
    /// Threshold: a quantile of the samples before the change.
    pub above: f64,
    /// Share of samples before the change that do not exceed the threshold.
    pub share: f64,
    /// Number of stalls before the change.
    pub before: u64,
    /// Number of stalls after the change.
    pub after: u64,
    /// Number of samples in stalls before the change.
    pub late_before: u64,
    /// Number of samples in stalls after the change.
    pub late_after: u64,
    /// Change of the number of stalls per sample.
    pub rates: RateRatio,
}

/// Quantiles that are compared.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Probability of an error that a verdict allows.
const ALPHA: f64 = 0.05;

/// Maximum number of samples of a run in which dependence is searched. The search takes time that grows with
/// the square of the number of samples in the worst case.
const SEARCHED: usize = 50_000;

/// Compares both sides.
pub fn judge(sides: &Sides, question: Question) -> Judgement {
    let (before, after) = (&sides.before.runs, &sides.after.runs);
    let is_single = sides.before.has_one_value_per_run() && sides.after.has_one_value_per_run();
    let (sorted_before, sorted_after) = (sorted(before), sorted(after));
    let metrics: &[Metric] = match is_single {
        true => &[Metric::Value],
        false => &QUANTILES.map(Metric::Quantile),
    };
    let lines = metrics
        .iter()
        .filter_map(|metric| line(*metric, &sorted_before, &sorted_after, sides.design));
    let mut lines: Vec<Line> = lines.collect();
    conclude(&mut lines, question);
    let samples = |runs: &[Run]| runs.iter().map(|run| run.values.len() as u64).sum();
    let dependences = before.iter().chain(after).map(|run| {
        let some = &run.values[..run.values.len().min(SEARCHED)];
        let mut sorted = some.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let median = quantile::of_sorted(&sorted, 0.5);
        median.map_or(1.0, |median| samples_per_independent_at(some, median))
    });
    let modes = match is_single {
        true => Vec::new(),
        false => moves(&sorted_before, &sorted_after, sides.design).unwrap_or_default(),
    };
    Judgement {
        name: sides.name.clone(),
        unit: sides.before.unit,
        design: sides.design,
        runs_before: before.len(),
        runs_after: after.len(),
        samples_before: samples(before),
        samples_after: samples(after),
        unknown: before.iter().chain(after).map(|run| run.unknown).sum(),
        stalls: stalls(before, after, &sorted_before),
        modes: if modes.len() > 1 { modes } else { Vec::new() },
        samples_per_independent: (!is_single).then(|| dependences.fold(1.0, f64::max)),
        doubts: doubts(sides),
        lines,
    }
}

/// Compares one metric, without its verdict. Returns `None` if no run has a value.
fn line(metric: Metric, before: &[Vec<f64>], after: &[Vec<f64>], design: Design) -> Option<Line> {
    let share = match metric {
        Metric::Value => 0.5,
        Metric::Quantile(share) => share,
    };
    let of = |runs: &[Vec<f64>]| -> Vec<f64> {
        let each = runs.iter().map(|run| quantile::of_sorted(run, share));
        each.flatten().collect()
    };
    let (firsts, seconds) = (of(before), of(after));
    let median = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_unstable_by(f64::total_cmp);
        quantile::of_sorted(&values, 0.5)
    };
    let (middle_before, middle_after) = (median(&firsts)?, median(&seconds)?);
    let shortest = before.iter().chain(after).map(Vec::len).min().unwrap_or(0);
    let needed = match metric {
        Metric::Value => 1,
        Metric::Quantile(share) => planning::samples_per_run(share),
    };
    let is_too_short = shortest < needed;
    let compared = match is_too_short {
        true => Err(Incomparable::TooShort {
            found: shortest,
            needed,
        }),
        false => compare(&firsts, &seconds, design),
    };
    Some(Line {
        metric,
        before: Some(middle_before).filter(|_| !is_too_short),
        after: Some(middle_after).filter(|_| !is_too_short),
        comparison: compared.ok(),
        adjusted_p: None,
        verdict: None,
        more: None,
        not_compared: compared.err().map(|reason| reason.to_string()),
    })
}

/// Adds the verdicts. A difference that several comparisons at once may show by chance is unknown.
fn conclude(lines: &mut [Line], question: Question) {
    let all_p = lines.iter().filter_map(|line| Some(line.comparison?.p));
    let all_p: Vec<f64> = all_p.collect();
    let mut adjusted = multiple::holm(&all_p).into_iter();
    for line in lines {
        let Some(comparison) = line.comparison else {
            continue;
        };
        let margin = match comparison.scale {
            Scale::Ratio => Margin::Share(question.margin),
            Scale::Difference => {
                Margin::Difference(question.margin * line.before.unwrap_or_default().abs())
            }
        };
        let p = adjusted.next().unwrap_or(1.0);
        let verdict = match Verdict::of(comparison.change, comparison.scale, margin) {
            Verdict::Same => Verdict::Same,
            _ if p > ALPHA => Verdict::Unknown,
            verdict => verdict,
        };
        line.adjusted_p = Some(p);
        line.verdict = Some(verdict);
        if verdict == Verdict::Unknown {
            line.more = more(&comparison, margin, comparison.runs as u64);
        }
    }
}

/// Returns the number of further pairs or runs of each side with which a change of the margin is found with a
/// probability of 90 %.
fn more(comparison: &Comparison, margin: Margin, have: u64) -> Option<u64> {
    let size = match margin {
        Margin::Share(share) => share.ln_1p(),
        Margin::Difference(size) => size,
    };
    let needed = planning::pairs(size / comparison.deviation, 0.9)?;
    Some(needed.saturating_sub(have).max(1))
}

/// Counts the stalls. The threshold is the greatest of p99.9 and p99 that has at least ten samples above it.
fn stalls(before: &[Run], after: &[Run], sorted_before: &[Vec<f64>]) -> Option<Stalls> {
    let mut all: Vec<f64> = sorted_before.iter().flatten().copied().collect();
    all.sort_unstable_by(f64::total_cmp);
    let is_enough = |share: &f64| all.len() >= planning::samples_per_run(*share);
    let share = [0.999, 0.99].into_iter().find(is_enough)?;
    let above = quantile::of_sorted(&all, share)?;
    let count = |runs: &[Run]| {
        let found = runs.iter().map(|run| clusters::beyond(&run.values, above));
        found.fold((0, 0), |(stalls, late), one| {
            (stalls + one.stalls as u64, late + one.late as u64)
        })
    };
    let exposure = |runs: &[Run]| runs.iter().map(|run| run.values.len()).sum::<usize>() as f64;
    let ((before_stalls, late_before), (after_stalls, late_after)) = (count(before), count(after));
    if exposure(after) == 0.0 || before_stalls + after_stalls == 0 {
        return None;
    }
    let of = |events, runs: &[Run]| Count {
        events,
        exposure: exposure(runs),
    };
    Some(Stalls {
        above,
        share,
        before: before_stalls,
        after: after_stalls,
        late_before,
        late_after,
        rates: rates(
            of(before_stalls, before),
            of(after_stalls, after),
            statistics::CONFIDENCE,
        ),
    })
}

/// Returns reasons to doubt the comparison.
fn doubts(sides: &Sides) -> Vec<String> {
    let mut doubts = Vec::new();
    if sides.design == Design::Unpaired {
        doubts.push(
            "The runs of both sides did not alternate: whatever else changed on the machine between them \
             looks like an effect of the change."
                .to_owned(),
        );
    }
    let lost = |runs: &[Run]| runs.iter().map(|run| run.unknown).sum::<u64>();
    let (before, after) = (lost(&sides.before.runs), lost(&sides.after.runs));
    if before + after > 0 {
        doubts.push(format!(
            "{} before the change and {after} after it have no value, and are left out.",
            wording::counted(before, "sample", "samples")
        ));
    }
    let empty = |runs: &[Run]| runs.iter().filter(|run| run.values.is_empty()).count() as u64;
    let runs = empty(&sides.before.runs) + empty(&sides.after.runs);
    if runs > 0 {
        doubts.push(format!(
            "{} without any value.",
            wording::counted(runs, "run is", "runs are")
        ));
    }
    doubts
}
