//! Comparison of runs before and after a change, and its verdict.

use serde::Serialize;
use statistics::counts::{Count, RateRatio, rates};
use statistics::modes::{Bars, Move, moves};
use statistics::{
    Comparison, Design, Incomparable, Margin, Order, Scale, Verdict, clusters, compare, multiple,
    order, planning,
};

use crate::summary::{Side, in_waves, median};
use crate::{Error, Group, Sides, Summary, Unit};

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

impl Metric {
    /// Returns the share of the quantile. One value is each of its quantiles.
    pub(crate) fn share(self) -> f64 {
        match self {
            Metric::Value => 0.5,
            Metric::Quantile(share) => share,
        }
    }
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
    /// Part of the samples that moved from one mode to another one.
    pub moved: Option<Moved>,
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
    /// Effect of the order within pairs; `None` if the order is unknown, or if a side began too rarely.
    pub order: Option<OrderEffect>,
    /// Reason why the runs do not allow a comparison.
    pub not_compared: Option<String>,
}

/// Effect of the order within pairs, and its conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OrderEffect {
    /// The effect.
    #[serde(flatten)]
    pub order: Order,
    /// Probability of such an effect by chance, corrected for the number of metrics (Holm).
    pub adjusted_p: f64,
    /// True if chance hardly explains the effect.
    pub matters: bool,
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

/// Samples that moved from one mode to another one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// Peak of the mode that lost most samples.
    pub from: f64,
    /// Peak of the mode that gained most samples.
    pub to: f64,
    /// Share of all samples that moved.
    pub share: f64,
}

impl Moved {
    /// Finds the modes that lost and gained most. Returns `None` if chance explains the change of one of them.
    fn of(modes: &[Move]) -> Option<Moved> {
        let all_p: Vec<f64> = modes.iter().map(|of| of.odds.p).collect();
        let adjusted = multiple::holm(&all_p);
        let sure = modes.iter().zip(adjusted).filter(|(_, p)| *p <= ALPHA);
        let gain = |of: &Move| of.after - of.before;
        let sure = sure.map(|(of, _)| of);
        let by_gain = |a: &&Move, b: &&Move| gain(a).total_cmp(&gain(b));
        let (from, to) = (sure.clone().min_by(by_gain)?, sure.max_by(by_gain)?);
        (gain(from) < 0.0 && gain(to) > 0.0).then(|| Moved {
            from: from.mode.peak,
            to: to.mode.peak,
            share: gain(to).min(-gain(from)),
        })
    }
}

/// Quantiles that are compared.
pub(crate) const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Probability of an error that a verdict allows.
const ALPHA: f64 = 0.05;

/// Compares both sides, of which `summary` is the summary.
///
/// # Errors
/// If a file cannot be read.
pub fn judge(sides: &Sides, summary: &Summary, question: Question) -> Result<Judgement, Error> {
    let [before, after] = &summary.sides;
    let is_single = summary.has_one_value_per_run();
    let metrics: &[Metric] = match is_single {
        true => &[Metric::Value],
        false => &QUANTILES.map(Metric::Quantile),
    };
    let lines = metrics
        .iter()
        .filter_map(|metric| line(*metric, before, after, sides.design));
    let mut lines: Vec<Line> = lines.collect();
    conclude(&mut lines, question);
    let began = before_began(sides);
    if let Some(began) = &began {
        add_orders(&mut lines, before, after, began);
    }
    let runs = || before.runs.iter().chain(&after.runs);
    let dependence = runs().map(|run| run.samples_per_independent);
    let bars =
        |side: &Side| -> Vec<Bars> { side.runs.iter().map(|run| run.bars.clone()).collect() };
    let modes = match is_single {
        true => Vec::new(),
        false => moves(&bars(before), &bars(after), sides.design).unwrap_or_default(),
    };
    Ok(Judgement {
        name: sides.name.clone(),
        unit: sides.before.unit,
        design: sides.design,
        runs_before: before.runs.len(),
        runs_after: after.runs.len(),
        samples_before: before.samples() as u64,
        samples_after: after.samples() as u64,
        unknown: runs().map(|run| run.unknown).sum(),
        stalls: stalls(sides, before, after)?,
        moved: Moved::of(&modes),
        modes: if modes.len() > 1 { modes } else { Vec::new() },
        samples_per_independent: (!is_single).then(|| dependence.fold(1.0, f64::max)),
        doubts: doubts(sides.design, before, after, began.as_deref()),
        lines,
    })
}

/// Compares one metric, without its verdict. Returns `None` if no run has a value.
fn line(metric: Metric, before: &Side, after: &Side, design: Design) -> Option<Line> {
    let share = metric.share();
    let of = |side: &Side| -> Vec<f64> {
        let each = side.runs.iter().map(|run| run.quantiles.at(share));
        each.flatten().collect()
    };
    let (firsts, seconds) = (of(before), of(after));
    let (middle_before, middle_after) = (median(&firsts)?, median(&seconds)?);
    let runs = before.runs.iter().chain(&after.runs);
    let shortest = runs.map(|run| run.quantiles.samples).min().unwrap_or(0);
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
        order: None,
        not_compared: compared.err().map(|reason| reason.to_string()),
    })
}

/// Returns the change of a line that matters.
pub(crate) fn margin(question: Question, line: &Line, scale: Scale) -> Margin {
    match scale {
        Scale::Ratio => Margin::Share(question.margin),
        Scale::Difference => {
            Margin::Difference(question.margin * line.before.unwrap_or_default().abs())
        }
    }
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
        let margin = margin(question, line, comparison.scale);
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
pub(crate) fn more(comparison: &Comparison, margin: Margin, have: u64) -> Option<u64> {
    let size = match margin {
        Margin::Share(share) => share.ln_1p(),
        Margin::Difference(size) => size,
    };
    let needed = planning::pairs(size / comparison.deviation, 0.9)?;
    Some(needed.saturating_sub(have).max(1))
}

/// Counts the stalls. The threshold is the greatest of p99.9 and p99 that has at least ten samples above it.
fn stalls(sides: &Sides, before: &Side, after: &Side) -> Result<Option<Stalls>, Error> {
    let is_enough = |share: &f64| before.samples() >= planning::samples_per_run(*share);
    let share = [0.999, 0.99].into_iter().find(is_enough);
    let Some((share, above)) = share.and_then(|share| Some((share, before.high(share)?))) else {
        return Ok(None);
    };
    let count = |group: &Group| {
        let mut sum = (0, 0);
        let found = in_waves(
            &group.runs,
            |run| Ok(clusters::beyond(&run.values()?.known, above)),
            |found| {
                let found = found?;
                sum = (sum.0 + found.stalls as u64, sum.1 + found.late as u64);
                Ok(())
            },
        );
        found.map(|()| sum)
    };
    let (before_stalls, late_before) = count(&sides.before)?;
    let (after_stalls, late_after) = count(&sides.after)?;
    if after.samples() == 0 || before_stalls + after_stalls == 0 {
        return Ok(None);
    }
    let of = |events, side: &Side| Count {
        events,
        exposure: side.samples() as f64,
    };
    Ok(Some(Stalls {
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
    }))
}

/// Number of pairs from which on it is a doubt if the same side always began.
const MIN_ALWAYS: usize = 3;

/// Returns for each pair whether the run before the change began; `None` if a pair has no known order.
fn before_began(sides: &Sides) -> Option<Vec<bool>> {
    if sides.design == Design::Unpaired {
        return None;
    }
    let pairs = sides.before.runs.iter().zip(&sides.after.runs);
    let began = pairs.map(|(before, after)| {
        let (before, after) = (before.began?, after.began?);
        (before != after).then_some(before < after)
    });
    began.collect()
}

/// Adds the effects of the order within pairs.
fn add_orders(lines: &mut [Line], before: &Side, after: &Side, began: &[bool]) {
    let effect = |line: &Line| {
        let of = |side: &Side| -> Option<Vec<f64>> {
            let runs = side.runs.iter();
            runs.map(|run| run.quantiles.at(line.metric.share()))
                .collect()
        };
        line.comparison?;
        order(&of(before)?, &of(after)?, began).ok()
    };
    let orders: Vec<Option<Order>> = lines.iter().map(effect).collect();
    let all_p: Vec<f64> = orders.iter().flatten().map(|order| order.p).collect();
    let mut adjusted = multiple::holm(&all_p).into_iter();
    for (line, order) in lines.iter_mut().zip(orders) {
        line.order = order.map(|order| {
            let adjusted_p = adjusted.next().unwrap_or(1.0);
            OrderEffect {
                order,
                adjusted_p,
                matters: adjusted_p <= ALPHA,
            }
        });
    }
}

/// Returns reasons to doubt the comparison.
fn doubts(design: Design, before: &Side, after: &Side, began: Option<&[bool]>) -> Vec<String> {
    let mut doubts = Vec::new();
    if design == Design::Unpaired {
        doubts.push(
            "The runs of both sides did not alternate: whatever else changed on the machine between them \
             looks like an effect of the change."
                .to_owned(),
        );
    }
    if let Some(began) = began
        && began.len() >= MIN_ALWAYS
        && let [first, ..] = began
        && began.iter().all(|one| one == first)
    {
        doubts.push(format!(
            "The run {} the change began in every pair: an effect of the order looks like an effect of the change.",
            if *first { "before" } else { "after" }
        ));
    }
    let unknown = |side: &Side| side.runs.iter().map(|run| run.unknown).sum::<u64>();
    if unknown(before) + unknown(after) > 0 {
        doubts.push(format!(
            "{} before the change and {} after it have no value, and are left out.",
            wording::counted(unknown(before), "sample", "samples"),
            unknown(after)
        ));
    }
    let runs = before.runs.iter().chain(&after.runs);
    let empty = runs.filter(|run| run.quantiles.samples == 0).count() as u64;
    if empty > 0 {
        doubts.push(format!(
            "{} without any value.",
            wording::counted(empty, "run is", "runs are")
        ));
    }
    doubts
}
