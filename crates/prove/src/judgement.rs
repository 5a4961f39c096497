//! Comparison of runs before and after a change, and its verdict.

use std::collections::HashSet;

use serde::Serialize;
use statistics::counts::{Count, RateRatio, differ, rates};
use statistics::dependence::autocorrelation;
use statistics::modes::{Bars, Move, moves};
use statistics::{
    Basis, Comparison, Design, Estimate, Incomparable, Margin, Order, Scale, Verdict, clusters,
    compare, compare_with_looks, estimate, multiple, order, planning, unpaired,
};

use crate::sessions::Sessions;
use crate::sides::{are_neighbours, take_turns};
use crate::summary::{RunSummary, Side, in_waves, median};
use crate::{Error, Group, Run, Sides, Summary, Unit};

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

impl Line {
    /// Returns the scale of the change. `None` if there is no estimate of the change.
    pub fn scale(&self) -> Option<Scale> {
        let compared = self.comparison.map(|comparison| comparison.scale);
        compared.or(self.estimate.map(|estimate| estimate.scale))
    }
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
    /// Name of the column of the values, if a user named it.
    pub column: Option<String>,
    /// Unit of the values.
    pub unit: Unit,
    /// Relation between the runs of both sides: paired or unpaired.
    pub design: Design,
    /// True if the runs of each pair were measured next to each other. `None` if the order is unknown, or if there are
    /// fewer than two pairs.
    pub alternated: Option<bool>,
    /// True if the measurement could end as soon as its result was sure. Such a measurement tests its data several
    /// times, so its intervals are wider.
    pub has_looks: bool,
    /// Number of runs before the change.
    pub runs_before: usize,
    /// Number of runs after the change.
    pub runs_after: usize,
    /// Number of sessions (files) before and after the change, if each session counts as one value. Sessions count if
    /// the files of a side differ by more than their runs explain. `None` if each run counts as one value.
    pub sessions: Option<[usize; 2]>,
    /// Number of samples with a value before the change.
    pub samples_before: u64,
    /// Number of samples with a value after the change.
    pub samples_after: u64,
    /// Number of samples without a value on both sides together.
    pub unknown: u64,
    /// Comparison of each metric.
    pub lines: Vec<Line>,
    /// Stalls on both sides. `None` if there are too few samples to choose a threshold, or if there are no stalls.
    /// Also `None` if more than a tenth of the samples after the change are above the threshold, because stalls are
    /// then not separate.
    pub stalls: Option<Stalls>,
    /// Changes of the shares of the modes. Empty unless the distribution has several modes.
    pub modes: Vec<Move>,
    /// Samples that moved from one mode to another mode. `None` if chance may explain the changes of the
    /// shares.
    pub moved: Option<ModeShift>,
    /// Maximum over all runs of the number of consecutive samples that count as one independent sample. `None` if each
    /// run has one value.
    pub samples_per_independent: Option<f64>,
    /// Reasons to doubt the comparison, one sentence each.
    pub doubts: Vec<String>,
}

/// Comparison of one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// Metric that turns each run into one number.
    pub metric: Metric,
    /// Median over the runs before the change, or over the sessions if sessions count as values. `None` if a run has
    /// too few samples for the metric.
    pub before: Option<f64>,
    /// Median over the runs after the change, or over the sessions if sessions count as values. `None` if a run has too
    /// few samples for the metric.
    pub after: Option<f64>,
    /// Change of the metric. `None` if the runs do not allow a comparison.
    pub comparison: Option<Comparison>,
    /// Estimated change of the metric. Present only if there are too few runs for a comparison.
    pub estimate: Option<Estimate>,
    /// Probability that chance alone makes such a change, corrected for the number of metrics (Holm). `None`
    /// if the runs do not allow a comparison.
    pub adjusted_p: Option<f64>,
    /// Conclusion about the change. It is unknown if there are too few runs for a comparison. `None` if more runs would
    /// not allow a comparison either.
    pub verdict: Option<Verdict>,
    /// Number of additional pairs or runs with which a change as large as the margin would probably be found. If there
    /// are too few runs for a comparison, the number of additional pairs or runs that a comparison needs. Present only
    /// if the verdict is unknown.
    pub more: Option<u64>,
    /// True if no result of so few runs could be certain. The reason is that several metrics are compared at once
    /// (Holm's correction).
    pub is_too_many: bool,
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
    /// Ratio of the rates of stalls: the rate after the change divided by the rate before it. A rate is the number of
    /// stalls per sample. `None` if the ratio has no bounds.
    pub rates: Option<RateRatio>,
    /// Reason why the ratio of the rates has no bounds. `None` if it has bounds.
    pub no_rates: Option<NoRates>,
}

/// Reason why the ratio of two rates of stalls has no bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoRates {
    /// A side has fewer than 4 runs, so that the difference from run to run is unknown.
    TooFewRuns,
    /// The rates of the runs of a side differ by more than chance explains.
    RunsDiffer,
}

/// Samples that moved from one mode to another mode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ModeShift {
    /// Peak of the mode whose share decreased most.
    pub from: f64,
    /// Peak of the mode whose share increased most.
    pub to: f64,
    /// Share of all samples that moved.
    pub share: f64,
}

impl ModeShift {
    /// Finds the mode whose share decreased most and the mode whose share increased most. Modes whose change
    /// chance may explain are ignored. Returns `None` if no mode decreased or no mode increased.
    fn from_moves(modes: &[Move]) -> Option<ModeShift> {
        let all_p: Vec<f64> = modes.iter().map(|mode| mode.odds.p).collect();
        let adjusted = multiple::holm(&all_p);
        let sure = modes.iter().zip(adjusted).filter(|(_, p)| *p <= ALPHA);
        let gain = |mode: &Move| mode.after - mode.before;
        let sure = sure.map(|(mode, _)| mode);
        let by_gain = |a: &&Move, b: &&Move| gain(a).total_cmp(&gain(b));
        let (from, to) = (sure.clone().min_by(by_gain)?, sure.max_by(by_gain)?);
        (gain(from) < 0.0 && gain(to) > 0.0).then(|| ModeShift {
            from: from.mode.peak,
            to: to.mode.peak,
            share: gain(to).min(-gain(from)),
        })
    }
}

/// Quantiles that are compared.
pub(crate) const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Maximum probability of a wrong verdict.
pub(crate) const ALPHA: f64 = 0.05;

/// Returns the minimum number of sessions on each side, if each session counts as one value.
pub(crate) fn least_sessions() -> u64 {
    planning::least_runs(ALPHA, Design::Unpaired)
}

/// Compares both sides. `summary` must be the summary of `sides`. If runs have no value, they and their partners are
/// left out, and the judgement has a doubt about this.
///
/// # Errors
/// Returns an error if a file cannot be read, or if a side has no run with a value.
pub fn judge(sides: &Sides, summary: &Summary, question: Question) -> Result<Judgement, Error> {
    if let Some(kept) = summary.without_empty(sides)? {
        let mut judgement = judge(&kept.sides, &kept.summary, question)?;
        judgement.doubts.push(kept.doubt);
        return Ok(judgement);
    }
    let [before, after] = &summary.sides;
    for (side, when) in [(before, "before"), (after, "after")] {
        if side.samples() == 0 {
            return Err(Error::NoValues {
                name: wording::Printable(&sides.name).to_string(),
                when,
            });
        }
    }
    let is_single = summary.has_one_value_per_run();
    let metrics: &[Metric] = if is_single {
        &[Metric::Value]
    } else {
        &QUANTILES.map(Metric::Quantile)
    };
    let sessions = Sessions::new(sides, summary);
    let lines = metrics
        .iter()
        .filter_map(|metric| line(*metric, sides, [before, after], &sessions));
    let mut lines: Vec<Line> = lines.collect();
    conclude(&mut lines, sides.design, question);
    let began = before_began(sides);
    if let Some(began) = &began {
        add_orders(&mut lines, before, after, began);
    }
    let alternated = alternated(sides);
    let runs = || before.runs.iter().chain(&after.runs);
    let dependence = runs().map(|run| run.samples_per_independent);
    let bases: Vec<Basis> = (lines.iter())
        .filter_map(|line| Some(line.comparison?.basis))
        .collect();
    let bars =
        |side: &Side| -> Vec<Bars> { side.runs.iter().map(|run| run.bars.clone()).collect() };
    let modes = if is_single {
        Vec::new()
    } else {
        moves(&bars(before), &bars(after), sides.design).unwrap_or_default()
    };
    Ok(Judgement {
        name: sides.name.clone(),
        column: sides.before.column.clone(),
        unit: sides.before.unit,
        design: sides.design,
        alternated,
        has_looks: sides.has_looks,
        runs_before: before.runs.len(),
        runs_after: after.runs.len(),
        sessions: (sessions.count).then(|| [&sides.before, &sides.after].map(Group::sessions)),
        samples_before: before.samples() as u64,
        samples_after: after.samples() as u64,
        unknown: runs().map(|run| run.unknown).sum(),
        stalls: stalls(sides, [before, after], &sessions)?,
        // If sessions count as values, the shares of runs of different sessions differ by more than chance within a
        // session explains, so no move is reported.
        moved: ModeShift::from_moves(&modes).filter(|_| !sessions.count),
        modes: if modes.len() > 1 { modes } else { Vec::new() },
        samples_per_independent: (!is_single).then(|| dependence.fold(1.0, f64::max)),
        doubts: [
            doubts_of_methods(&bases),
            doubts(
                sides,
                [before, after],
                &sessions,
                alternated,
                began.as_deref(),
            ),
        ]
        .concat(),
        lines,
    })
}

/// Compares one metric. The verdict is added later. Returns `None` if a side has no run with a value. If sessions count
/// as values, each session has one value.
fn line(
    metric: Metric,
    sides: &Sides,
    [before, after]: [&Side; 2],
    sessions: &Sessions,
) -> Option<Line> {
    let share = metric.share();
    let values_of = |group: &Group, side: &Side| -> Vec<f64> {
        let values = sessions.values(group, side);
        values.iter().filter_map(|it| it.at(share)).collect()
    };
    let (firsts, seconds) = (
        values_of(&sides.before, before),
        values_of(&sides.after, after),
    );
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
        false if sides.has_looks => compare_with_looks(&firsts, &seconds),
        false => compare(&firsts, &seconds, sides.design),
    };
    // A few more runs would allow a comparison.
    let missing = match compared {
        Err(Incomparable::TooFewPairs { needed, .. }) => Some(needed),
        Err(Incomparable::TooFewRuns { .. }) => Some(unpaired::LEAST),
        _ => None,
    };
    let estimated = missing.and_then(|needed| {
        let estimate = estimate(&firsts, &seconds, sides.design)?;
        Some((estimate, needed.saturating_sub(estimate.runs) as u64))
    });
    let not_compared = compared.err().map(|reason| match reason {
        Incomparable::TooFewRuns { before, after } if sessions.count => format!(
            "too few sessions ({before} before, {after} after; 95 % confidence needs {} on each side)",
            least_sessions()
        ),
        Incomparable::TooMany { .. } => {
            format!("{reason}; join rows to runs with --run, or give fewer files")
        }
        _ => reason.to_string(),
    });
    Some(Line {
        metric,
        before: Some(middle_before).filter(|_| !is_too_short),
        after: Some(middle_after).filter(|_| !is_too_short),
        comparison: compared.ok(),
        estimate: estimated.map(|(found, _)| found),
        adjusted_p: None,
        verdict: estimated.map(|_| Verdict::Unknown),
        more: estimated.map(|(_, more)| more),
        is_too_many: false,
        order: None,
        not_compared,
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
fn conclude(lines: &mut [Line], design: Design, question: Question) {
    let all_p = lines.iter().filter_map(|line| Some(line.comparison?.p));
    let all_p: Vec<f64> = all_p.collect();
    let mut adjusted = multiple::holm(&all_p).into_iter();
    let estimates = lines.iter().filter(|line| line.estimate.is_some()).count();
    for line in lines {
        if let Some(estimate) = line.estimate {
            let least = planning::least_runs(ALPHA / estimates as f64, design);
            let more = Some(least.saturating_sub(estimate.runs as u64));
            line.is_too_many = more > line.more;
            line.more = line.more.max(more);
        }
        let Some(comparison) = line.comparison else {
            continue;
        };
        let margin = margin(question, line, comparison.scale);
        let p = adjusted.next().unwrap_or(1.0);
        let alone = Verdict::from_interval(comparison.change, comparison.scale, margin);
        let verdict = match alone {
            Verdict::Same => Verdict::Same,
            _ if p > ALPHA => Verdict::Unknown,
            verdict => verdict,
        };
        line.adjusted_p = Some(p);
        line.verdict = Some(verdict);
        if verdict == Verdict::Unknown {
            let have = comparison.runs as u64;
            // If the interval of this metric alone gives a verdict, the verdict is unknown only because of the
            // correction for several metrics. If `have` runs are too few for the corrected level, whatever their
            // values are, `least` states how many runs are missing.
            let share = match alone {
                Verdict::Unknown => ALPHA,
                _ => ALPHA / all_p.len() as f64,
            };
            let least = planning::least_runs(share, comparison.design);
            line.is_too_many = alone != Verdict::Unknown && least > have;
            line.more = if line.is_too_many {
                Some(least - have)
            } else {
                more(share, &comparison, margin, have)
            };
        }
    }
}

/// Returns the number of additional pairs, or of additional runs on each side. With these runs, the test finds a change
/// as large as the margin with a probability of 90 %. `share` is the significance level of the test.
pub(crate) fn more(share: f64, comparison: &Comparison, margin: Margin, have: u64) -> Option<u64> {
    let size = match margin {
        Margin::Share(margin) => margin.ln_1p(),
        Margin::Difference(size) => size,
    };
    // If the deviation is 0, most runs are equal, and the real scatter is unknown.
    let deviation = Some(comparison.deviation).filter(|it| *it > 0.0)?;
    let needed = planning::pairs_at(share, size / deviation, 0.9)?;
    Some(needed.saturating_sub(have).max(1))
}

/// Greatest number of pairs or runs that is printed. Greater estimates are too rough to print.
pub const MOST_NEEDED: u64 = 10_000;

/// Returns the number of pairs or runs that are needed, in words: "about 30 pairs" or "more than 10,000 pairs".
/// `one` and `many` are the singular and the plural of the counted thing.
pub fn needed_text(count: u64, one: &str, many: &str) -> String {
    if count > MOST_NEEDED {
        format!("more than {}", wording::counted(MOST_NEEDED, one, many))
    } else {
        format!("about {}", wording::counted(count, one, many))
    }
}

/// Maximum share of the samples after the change that may be above the threshold of stalls. If more are above it,
/// neighbouring stalls merge and cannot be counted.
const MOST_LATE: f64 = 0.1;

/// Minimum number of runs on each side. With fewer runs, the rates of stalls are not compared.
const RATED_RUNS: usize = 4;

/// Counts the stalls. The threshold is p99.9 of the samples before the change. If fewer than ten samples
/// would exceed p99.9, the threshold is p99, which also needs at least ten samples above it.
fn stalls(
    sides: &Sides,
    [before, after]: [&Side; 2],
    sessions: &Sessions,
) -> Result<Option<Stalls>, Error> {
    let is_enough = |share: &f64| before.samples() >= planning::samples_per_run(*share);
    let share = [0.999, 0.99].into_iter().find(is_enough);
    let Some((share, above)) = share.and_then(|share| Some((share, before.high(share)?))) else {
        return Ok(None);
    };
    let (before_runs, late_before) = count_stalls(&sides.before, before, above)?;
    let (after_runs, late_after) = count_stalls(&sides.after, after, above)?;
    let sum = |runs: &[Count]| Count {
        events: runs.iter().map(|run| run.events).sum(),
        exposure: runs.iter().map(|run| run.exposure).sum(),
    };
    let sums = [sum(&before_runs), sum(&after_runs)];
    let is_apart = |late: u64, side: &Side| late as f64 <= MOST_LATE * side.samples() as f64;
    if sums[0].events + sums[1].events == 0 || !is_apart(late_after, after) {
        return Ok(None);
    }
    let no_rates = if before.runs.len().min(after.runs.len()) < RATED_RUNS {
        Some(NoRates::TooFewRuns)
    } else if sessions.count || differ(&before_runs) || differ(&after_runs) {
        Some(NoRates::RunsDiffer)
    } else {
        None
    };
    Ok(Some(Stalls {
        above,
        share,
        before: sums[0].events,
        after: sums[1].events,
        late_before,
        late_after,
        rates: (no_rates.is_none()).then(|| rates(sums[0], sums[1], statistics::CONFIDENCE)),
        no_rates,
    }))
}

/// Returns the number of stalls of each run of a side, and the number of the side's samples above the threshold
/// `above`. If the summary of a run lacks samples above the threshold, reads the run again.
fn count_stalls(group: &Group, side: &Side, above: f64) -> Result<(Vec<Count>, u64), Error> {
    let in_summary = |run: &RunSummary| run.late.as_ref().and_then(|late| late.beyond(above));
    let known: Vec<Option<clusters::Late>> = side.runs.iter().map(in_summary).collect();
    let unread = group
        .runs
        .iter()
        .zip(&known)
        .filter(|(_, known)| known.is_none());
    let unread: Vec<Run> = unread.map(|(run, _)| run.clone()).collect();
    let mut read = Vec::with_capacity(unread.len());
    in_waves(
        &unread,
        |run| Ok(clusters::Late::beyond(&run.values()?.known, above)),
        |found| {
            read.push(found?);
            Ok(())
        },
    )?;
    let mut read = read.into_iter();
    // Only the runs without known late samples were read again, in the same order.
    let known = known.into_iter();
    let late: Vec<clusters::Late> = known
        .filter_map(|known| known.or_else(|| read.next()))
        .collect();
    let all = late.iter().map(|late| late.count).sum();
    let apart = clusters::apart(all, side.samples());
    let runs = late.iter().zip(&side.runs).map(|(late, run)| Count {
        events: late.stalls(apart) as u64,
        exposure: run.quantiles.samples as f64,
    });
    Ok((runs.collect(), all as u64))
}

/// Minimum number of pairs for a doubt about the order. The doubt is reported if the run of the same side began first
/// in every pair.
const MIN_ALWAYS: usize = 3;

/// Returns true if the runs of each pair were measured next to each other. Returns `None` if this is unknown, or if
/// there are no pairs.
fn alternated(sides: &Sides) -> Option<bool> {
    if sides.design == Design::Unpaired {
        return None;
    }
    are_neighbours(sides.before.runs.iter().zip(&sides.after.runs))
}

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
        let values_of = |side: &Side| -> Option<Vec<f64>> {
            let runs = side.runs.iter();
            runs.map(|run| run.quantiles.at(line.metric.share()))
                .collect()
        };
        line.comparison?;
        order(&values_of(before)?, &values_of(after)?, began).ok()
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

/// Returns the doubts that follow from the methods of the comparisons.
fn doubts_of_methods(bases: &[Basis]) -> Vec<String> {
    let texts = [
        (
            Basis::Means,
            "Most runs have equal values, so the change is that of the mean (of the logarithms, for ratios), not that of a \
             typical run: see which values became more frequent.",
        ),
        (
            Basis::Both,
            "The runs of one side scatter more than twice as much as those of the other, so the interval is the wider \
             one of ranks and means.",
        ),
    ];
    let chosen = texts.into_iter().filter(|(basis, _)| bases.contains(basis));
    chosen.map(|(_, text)| text.to_owned()).collect()
}

/// Returns reasons to doubt the comparison.
fn doubts(
    sides: &Sides,
    [before, after]: [&Side; 2],
    sessions: &Sessions,
    alternated: Option<bool>,
    began: Option<&[bool]>,
) -> Vec<String> {
    let mut doubts = Vec::new();
    if sides.design == Design::Unpaired && !take_turns(&sides.before.runs, &sides.after.runs) {
        doubts.push(
            "The runs of both sides did not alternate: other changes of the machine between them look like effects \
             of the change."
                .to_owned(),
        );
    }
    if sides.same_names > 0 {
        doubts.push(format!(
            "{} before the change {} the name of a run after it, but not all runs have a partner that was measured next \
             to them, so the runs count as unpaired. --paired compares pairs of runs with the same name, --unpaired says \
             that there are none.",
            wording::counted(sides.same_names as u64, "run", "runs"),
            if sides.same_names == 1 { "has" } else { "have" }
        ));
    }
    if alternated == Some(false) {
        doubts.push(
            "The runs of a pair were not measured next to each other, by their order in the file: other changes of \
             the machine between them look like effects of the change."
                .to_owned(),
        );
    } else if let Some(began) = began
        && began.len() >= MIN_ALWAYS
        && let [first, ..] = began
        && began.iter().all(|one| one == first)
    {
        doubts.push(format!(
            "The run {} the change began in every pair: an effect of the order looks like an effect of the change.",
            if *first { "before" } else { "after" }
        ));
    }
    let effect = if sessions.count {
        "Each file therefore counts as one session, whatever the number of its runs is"
    } else {
        "Differences of sessions then look like effects of the change, and the intervals are too narrow"
    };
    for (differ, when) in sessions.differ.into_iter().zip(["before", "after"]) {
        if differ {
            doubts.push(format!(
                "The files {when} the change differ by more than the runs of a file do. {effect}: alternate both \
                 sides within a session (`laglab measure --vs`), or measure more sessions in alternation."
            ));
        }
    }
    if sides.alone != [0, 0] {
        let [before, after] = sides.alone;
        doubts.push(format!(
            "{} before the change and {after} after it have no partner with the same name, and are left out.",
            wording::counted(before as u64, "run", "runs")
        ));
    }
    let copies = copies(sides, [before, after]);
    if copies > 0 {
        doubts.push(format!(
            "{} the same samples as another run: the copy of a run is no second run.",
            wording::counted(copies as u64, "run has", "runs have")
        ));
    }
    let of_sides = [(&sides.before, before), (&sides.after, after)];
    let correlation = of_sides
        .iter()
        .filter_map(|(group, side)| neighbours_depend(group, side));
    if let Some(correlation) = correlation.reduce(f64::max) {
        doubts.push(format!(
            "Neighbouring rows resemble each other (correlation {correlation:.2}), but each row counts as an independent \
             run: the intervals are too narrow. If the rows are samples of runs, name the column of the run with --run."
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

/// Minimum number of samples of a run, or of runs with one value in a file, for the search for copies. With fewer
/// values, two runs or files may be equal by chance.
const COMPARED: usize = 100;
const COMPARED_RUNS: usize = 5;

/// Returns the number of copies: runs that have the same samples as an earlier run. If each run has one value, returns
/// the number of runs in files that have the same values as another file.
fn copies(sides: &Sides, summaries: [&Side; 2]) -> usize {
    let mut known = HashSet::new();
    let runs = summaries.iter().flat_map(|side| &side.runs);
    let long =
        runs.filter(|run| run.quantiles.samples >= COMPARED && run.least < run.quantiles.at(0.999));
    let long = long.filter(|run| !known.insert(run.hash)).count();
    let mut files = HashSet::new();
    let mut short = 0;
    for (group, side) in [&sides.before, &sides.after].into_iter().zip(summaries) {
        let runs: Vec<_> = group.runs.iter().zip(&side.runs).collect();
        for file in runs.chunk_by(|(one, _), (other, _)| one.file == other.file) {
            let are_single = file
                .iter()
                .all(|(_, summary)| summary.quantiles.samples == 1);
            let hashes: Vec<u64> = file.iter().map(|(_, summary)| summary.hash).collect();
            let vary = hashes.iter().any(|hash| *hash != hashes[0]);
            let count = hashes.len();
            if are_single && vary && count >= COMPARED_RUNS && !files.insert(hashes) {
                short += count;
            }
        }
    }
    long + short
}

/// Returns the correlation of neighbouring runs of a side, if chance hardly explains it. Each run must have one value.
/// Neighbours are runs that follow each other in the file.
fn neighbours_depend(group: &Group, side: &Side) -> Option<f64> {
    /// Correlation of neighbouring runs, in standard errors. Above this limit, chance hardly explains it.
    const SURE: f64 = 3.0;
    let is_in_order = group.runs.iter().all(|run| run.file == group.runs[0].file);
    let values: Vec<f64> = side
        .runs
        .iter()
        .filter_map(|run| run.quantiles.at(0.5))
        .collect();
    let are_single = side.runs.iter().all(|run| run.quantiles.samples == 1);
    if !is_in_order || !are_single || values.len() < 2 * COMPARED_RUNS {
        return None;
    }
    let correlation = autocorrelation(&values, 1);
    (correlation > SURE / (values.len() as f64).sqrt()).then_some(correlation)
}
