//! Comparison of runs before and after a change, and its verdict.

use serde::Serialize;
use statistics::clusters::Clusters;
use statistics::counts::{Count, RateRatio, rates};
use statistics::modes::{Bars, Move, moves};
use statistics::{
    Comparison, Design, Incomparable, Margin, Order, Scale, Verdict, batches, clusters, compare,
    multiple, order, planning,
};

use crate::summary::{Side, in_waves, median};
use crate::{Error, Group, Sides, Summary, Unit};

/// Question that the measurements must answer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Question {
    /// Minimum change that matters, as a share of the value before the change, such as 0.02.
    pub margin: f64,
}

/// Metric that turns each run into one number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// The only value of the run.
    Value,
    /// Quantile of the samples of the run. The number is the share of samples that do not exceed the
    /// quantile.
    Quantile(f64),
}

impl Metric {
    /// Returns the share of samples that do not exceed the metric. For `Metric::Value`, any share is valid:
    /// each quantile of a single value is the value itself.
    pub(crate) fn share(self) -> f64 {
        match self {
            Metric::Value => 0.5,
            Metric::Quantile(share) => share,
        }
    }
}

/// Comparison of one measured thing before and after a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// Name of the measured thing.
    pub name: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Relation between the runs of both sides: paired or unpaired.
    pub design: Design,
    /// Number of runs before the change.
    pub runs_before: usize,
    /// Number of runs after the change.
    pub runs_after: usize,
    /// Number of samples with a value before the change.
    pub samples_before: u64,
    /// Number of samples with a value after the change.
    pub samples_after: u64,
    /// Number of samples without a value on both sides together.
    pub unknown: u64,
    /// Comparison of each metric.
    pub lines: Vec<Line>,
    /// Stalls on both sides. `None` if there are too few samples to choose a threshold, or if there are no
    /// stalls.
    pub stalls: Option<Stalls>,
    /// Changes of the shares of the modes. Empty unless the distribution has several modes.
    pub modes: Vec<Move>,
    /// Samples that moved from one mode to another mode. `None` if chance may explain the changes of the
    /// shares.
    pub moved: Option<Moved>,
    /// Number of consecutive samples that count as one independent sample. It is computed for each run, and
    /// this is the maximum over all runs. `None` if each run has one value.
    pub samples_per_independent: Option<f64>,
    /// Reasons to doubt the comparison, one sentence each.
    pub doubts: Vec<String>,
}

/// Comparison of one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// Metric that turns each run into one number.
    pub metric: Metric,
    /// Median of the values of the runs before the change. `None` if a run has too few samples for the
    /// metric.
    pub before: Option<f64>,
    /// Median of the values of the runs after the change. `None` if a run has too few samples for the metric.
    pub after: Option<f64>,
    /// Change of the metric. `None` if the runs do not allow a comparison.
    pub comparison: Option<Comparison>,
    /// Probability that chance alone makes such a change, corrected for the number of metrics (Holm). `None`
    /// if the runs do not allow a comparison.
    pub adjusted_p: Option<f64>,
    /// Conclusion about the change. `None` if the runs do not allow a comparison.
    pub verdict: Option<Verdict>,
    /// Number of additional pairs or runs with which a change as large as the margin would probably be found.
    /// Present only if the verdict is unknown.
    pub more: Option<u64>,
    /// Effect of the order within pairs. `None` if the order is unknown, or if one side began in too few
    /// pairs.
    pub order: Option<OrderEffect>,
    /// Reason why the runs do not allow a comparison. `None` if they do.
    pub not_compared: Option<String>,
}

/// Effect of the order within pairs, with its probability by chance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OrderEffect {
    /// Size of the effect.
    #[serde(flatten)]
    pub order: Order,
    /// Probability that chance alone makes such an effect, corrected for the number of metrics (Holm).
    pub adjusted_p: f64,
    /// True if chance is unlikely to explain the effect.
    pub matters: bool,
}

/// Comparison of stalls. A stall is a group of neighbouring samples above a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stalls {
    /// Threshold. It is a quantile of the samples before the change.
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
    /// Ratio of the rates of stalls after and before the change. A rate is the number of stalls per sample.
    pub rates: RateRatio,
}

/// Samples that moved from one mode to another mode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moved {
    /// Peak of the mode whose share decreased most.
    pub from: f64,
    /// Peak of the mode whose share increased most.
    pub to: f64,
    /// Share of all samples that moved.
    pub share: f64,
}

impl Moved {
    /// Finds the mode whose share decreased most and the mode whose share increased most. Modes whose change
    /// chance may explain are ignored. Returns `None` if no mode decreased or no mode increased.
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

/// Maximum probability of a wrong verdict.
const ALPHA: f64 = 0.05;

/// Compares both sides. `summary` must be the summary of `sides`.
///
/// # Errors
/// Returns an error if a file cannot be read.
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
        doubts: doubts(sides, before, after, began.as_deref()),
        lines,
    })
}

/// Compares one metric. The verdict is added later. Returns `None` if a side has no run with a value.
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

/// Returns the minimum change of a line that matters, on the scale of its comparison.
pub(crate) fn margin(question: Question, line: &Line, scale: Scale) -> Margin {
    match scale {
        Scale::Ratio => Margin::Share(question.margin),
        Scale::Difference => {
            Margin::Difference(question.margin * line.before.unwrap_or_default().abs())
        }
    }
}

/// Adds the verdicts. The metrics are compared at the same time, which increases the probability of a chance
/// difference. If chance may explain a difference, the verdict is unknown.
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
        let alone = Verdict::of(comparison.change, comparison.scale, margin);
        let verdict = match alone {
            Verdict::Same => Verdict::Same,
            _ if p > ALPHA => Verdict::Unknown,
            verdict => verdict,
        };
        line.adjusted_p = Some(p);
        line.verdict = Some(verdict);
        if verdict == Verdict::Unknown {
            let have = comparison.runs as u64;
            line.more = match alone {
                Verdict::Unknown => more(&comparison, margin, have),
                // The interval tells the change. Only several comparisons at once need more runs.
                _ => {
                    let share = ALPHA / all_p.len() as f64;
                    let needed = planning::least_runs(share, comparison.design);
                    Some(needed.saturating_sub(have).max(1))
                }
            };
        }
    }
}

/// Returns the number of additional pairs, or of additional runs on each side. With them, a change as large
/// as the margin is found with a probability of 90 %.
pub(crate) fn more(comparison: &Comparison, margin: Margin, have: u64) -> Option<u64> {
    let size = match margin {
        Margin::Share(share) => share.ln_1p(),
        Margin::Difference(size) => size,
    };
    let needed = planning::pairs(size / comparison.deviation, 0.9)?;
    Some(needed.saturating_sub(have).max(1))
}

/// Counts the stalls. The threshold is p99.9 of the samples before the change. If fewer than ten samples
/// would exceed p99.9, the threshold is p99, which also needs at least ten samples above it.
fn stalls(sides: &Sides, before: &Side, after: &Side) -> Result<Option<Stalls>, Error> {
    let is_enough = |share: &f64| before.samples() >= planning::samples_per_run(*share);
    let share = [0.999, 0.99].into_iter().find(is_enough);
    let Some((share, above)) = share.and_then(|share| Some((share, before.high(share)?))) else {
        return Ok(None);
    };
    let (before_stalls, late_before) = count_stalls(&sides.before, before, above)?;
    let (after_stalls, late_after) = count_stalls(&sides.after, after, above)?;
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

/// Returns the numbers of stalls and of late samples of a side. Runs are read again if their late samples are not
/// known.
fn count_stalls(group: &Group, side: &Side, above: f64) -> Result<(u64, u64), Error> {
    let mut sum = (0, 0);
    let mut add = |found: Clusters| {
        sum = (sum.0 + found.stalls as u64, sum.1 + found.late as u64);
    };
    let mut unread = Vec::new();
    for (run, summary) in group.runs.iter().zip(&side.runs) {
        match summary.late.as_ref().and_then(|late| late.stalls(above)) {
            Some(found) => add(found),
            None => unread.push(run.clone()),
        }
    }
    in_waves(
        &unread,
        |run| Ok(clusters::beyond(&run.values()?.known, above)),
        |found| {
            add(found?);
            Ok(())
        },
    )?;
    Ok(sum)
}

/// Number of pairs from which on it is a doubt if the same side always began.
const MIN_ALWAYS: usize = 3;

/// Returns a flag for each pair: true if the run before the change began first. Returns `None` if the order
/// of a pair is unknown.
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

/// Adds the effect of the order within pairs to each line.
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
fn doubts(sides: &Sides, before: &Side, after: &Side, began: Option<&[bool]>) -> Vec<String> {
    let mut doubts = Vec::new();
    if sides.design == Design::Unpaired {
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
    for (group, side, when) in [
        (&sides.before, before, "before"),
        (&sides.after, after, "after"),
    ] {
        if differ_by_file(group, side) {
            doubts.push(format!(
                "The files {when} the change differ by more than the runs of a file do. Differences of \
                 sessions then look like effects of the change, and the intervals are too narrow: alternate both \
                 sides within a session (`laglab measure --vs`), or measure more sessions in alternation."
            ));
        }
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

/// Returns true if chance hardly explains how much the medians of the runs differ from file to file.
fn differ_by_file(group: &Group, side: &Side) -> bool {
    let files = group.runs.iter().map(|run| run.file).max().unwrap_or(0) + 1;
    let mut medians = vec![Vec::new(); files];
    for (run, summary) in group.runs.iter().zip(&side.runs) {
        medians[run.file].extend(summary.quantiles.at(0.5));
    }
    // One of two sides errs in 5 % of cases.
    batches::difference_p(&medians).is_some_and(|p| p <= ALPHA / 2.0)
}
