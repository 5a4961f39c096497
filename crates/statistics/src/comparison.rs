//! Comparison of two variants. Each run of a variant is one number.

use serde::Serialize;

use crate::interval::median;
use crate::looks::Looks;
use crate::planning::scatter;
use crate::welch::{self, Neighbours, Welch};
use crate::{CONFIDENCE, Incomparable, Interval, paired, unpaired};

/// Relation between the runs of both variants: paired or unpaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// Runs with the same index form a pair. The runs of a pair were measured one after the other.
    Paired,
    /// The runs form no pairs.
    Unpaired,
}

/// Scale of a change: ratio or difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Ratio: the value after the change divided by the value before it.
    Ratio,
    /// Difference: the value after the change minus the value before it. It is used if a value is 0 or
    /// negative.
    Difference,
}

impl Scale {
    /// Returns the scale for a comparison. It is a ratio if all numbers are positive, and otherwise a
    /// difference.
    pub(crate) fn of(before: &[f64], after: &[f64]) -> Scale {
        if before.iter().chain(after).all(|value| *value > 0.0) {
            Scale::Ratio
        } else {
            Scale::Difference
        }
    }

    /// Converts numbers so that a change is a difference of two converted numbers. For a ratio, the converted numbers
    /// are logarithms. For a difference, they are the numbers themselves.
    pub(crate) fn apply(self, values: &[f64]) -> Vec<f64> {
        let on_scale = values.iter().map(|value| match self {
            Scale::Ratio => value.ln(),
            Scale::Difference => *value,
        });
        on_scale.collect()
    }

    /// Reverses [`Scale::apply`] for a difference of two converted numbers. Returns the ratio (e to the power of the
    /// difference of logarithms) or the difference itself.
    pub(crate) fn undo(self, difference: Interval) -> Interval {
        match self {
            Scale::Ratio => difference.map(f64::exp),
            Scale::Difference => difference,
        }
    }
}

/// Result of comparing two variants, with one number per run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Relation between the runs of both variants.
    pub design: Design,
    /// Number of pairs. If runs are unpaired, the number of runs of the side with fewer runs.
    pub runs: usize,
    /// Scale of `change`.
    pub scale: Scale,
    /// Change from before to after, with its 95 % confidence interval.
    pub change: Interval,
    /// Probability that chance alone makes a change that is at least as large.
    pub p: f64,
    /// Methods of `change` and `p`.
    pub basis: Basis,
    /// Standard deviation of the difference between a run after and a run before the change. If `scale` is a
    /// ratio, the difference is a difference of logarithms. As in a forecast, a few disturbed runs hardly change this
    /// estimate (Shamos).
    pub deviation: f64,
}

/// Estimate of a change without a confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Number of pairs. If runs are unpaired, the number of runs of the side with fewer runs.
    pub runs: usize,
    /// Scale of `change`.
    pub scale: Scale,
    /// Estimated change from before to after.
    pub change: f64,
}

/// Estimates a change from any number of runs, even if they are too few for [`compare`]. Returns `None` if a side has
/// no runs, if the numbers of paired runs differ, or if a number is not finite.
pub fn estimate(before: &[f64], after: &[f64], design: Design) -> Option<Estimate> {
    let scale = Scale::of(before, after);
    let (before, after) = (scale.apply(before), scale.apply(after));
    let mut changes = match design {
        Design::Paired if before.len() != after.len() => return None,
        Design::Paired => {
            let pairs = after.iter().zip(&before);
            let differences: Vec<f64> = pairs.map(|(after, before)| after - before).collect();
            paired::walsh_averages(&differences)
        }
        Design::Unpaired => unpaired::differences(&before, &after).collect(),
    };
    if changes.is_empty() || !changes.iter().all(|change| change.is_finite()) {
        return None;
    }
    changes.sort_unstable_by(f64::total_cmp);
    let centre = median(&changes);
    let change = Interval {
        centre,
        low: centre,
        high: centre,
    };
    Some(Estimate {
        runs: before.len().min(after.len()),
        scale,
        change: scale.undo(change).centre,
    })
}

/// Methods of the interval and the probability of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Ranks.
    Ranks,
    /// Means; means of logarithms if the scale is a ratio. Used if most values are equal, so that the interval of ranks
    /// has no width.
    Means,
    /// Ranks and means: the interval contains both intervals, and the probability is the higher one. Used if one side
    /// scatters so much more than the other that the bounds of ranks are too narrow.
    Both,
}

/// Compares two variants. `before` and `after` contain one number for each run, in the order of the runs. If
/// all numbers are positive, the change is a ratio. Otherwise, the change is a difference.
///
/// # Errors
/// Returns an error if there are too few or too many runs, if the numbers of paired runs differ, or if a
/// number is not finite.
pub fn compare(before: &[f64], after: &[f64], design: Design) -> Result<Comparison, Incomparable> {
    compare_on(Scale::of(before, after), before, after, design)
}

/// Compares pairs of a measurement that could end early, at one of the [looks](crate::looks::LOOKS). The measurement
/// ended as soon as its result was sure. The interval and the probability allow for the repeated looks, so the interval
/// is usually wider than that of [`compare`], and the probability higher. Pairs after the last look that took place are
/// ignored.
///
/// # Errors
/// Returns the errors of [`compare`]. At least 8 pairs are needed.
pub fn compare_with_looks(before: &[f64], after: &[f64]) -> Result<Comparison, Incomparable> {
    if before.len() != after.len() {
        return Err(Incomparable::Unequal {
            before: before.len(),
            after: after.len(),
        });
    }
    let looks = Looks::running();
    let scale = Scale::of(before, after);
    let pairs = scale.apply(after).into_iter().zip(scale.apply(before));
    let differences: Vec<f64> = pairs.map(|(after, before)| after - before).collect();
    let of_looks = scale.undo(looks.interval(&differences)?);
    let seen = looks.at.iter().rfind(|at| **at <= before.len());
    let seen = seen.copied().unwrap_or(0);
    let alone = compare_on(scale, &before[..seen], &after[..seen], Design::Paired)?;
    let p = looks.probability(&differences);
    // Looks use ranks. If most values are equal, ranks are unreliable, with looks and without.
    let (change, p) = match alone.basis {
        Basis::Ranks => (of_looks, p),
        Basis::Means | Basis::Both => (alone.change.hull(of_looks), p.max(alone.p)),
    };
    Ok(Comparison { change, p, ..alone })
}

/// Compares two variants on a given scale. [`compare`] describes the arguments and errors. For a ratio, all numbers
/// must be positive.
pub(crate) fn compare_on(
    scale: Scale,
    before: &[f64],
    after: &[f64],
    design: Design,
) -> Result<Comparison, Incomparable> {
    if !before.iter().chain(after).all(|value| value.is_finite()) {
        return Err(Incomparable::NotFinite);
    }
    let runs = before.len().min(after.len());
    let (before, after) = (scale.apply(before), scale.apply(after));
    let (of_ranks, of_means, deviation, is_unequal) = match design {
        Design::Paired if before.len() != after.len() => {
            return Err(Incomparable::Unequal {
                before: before.len(),
                after: after.len(),
            });
        }
        Design::Paired => {
            let pairs = after.iter().zip(&before);
            let differences: Vec<f64> = pairs.map(|(after, before)| after - before).collect();
            let change = paired::centre(&differences, CONFIDENCE)?;
            let of_ranks = (change, paired::signed_rank_p(&differences));
            (
                of_ranks,
                welch::mean_of(&differences),
                scatter(&differences),
                false,
            )
        }
        Design::Unpaired => {
            let it = unpaired::unpaired(&before, &after, CONFIDENCE)?;
            let scatters = [scatter(&before), scatter(&after)];
            let (least, most) = (scatters[0].min(scatters[1]), scatters[0].max(scatters[1]));
            (
                (it.shift, it.p),
                welch::compare(&before, &after, Neighbours::Independent),
                least.hypot(most),
                most > UNEQUAL * least,
            )
        }
    };
    let (change, p, basis) = joined(of_ranks, of_means, is_unequal);
    Ok(Comparison {
        design,
        runs,
        scale,
        change: scale.undo(change),
        p,
        basis,
        deviation,
    })
}

/// Ratio of the scatters of two sides. From this ratio on, ranks alone are not reliable, because ranks assume that a
/// change moves all runs alike. If the side with fewer runs scatters several times as much, bounds of ranks miss the
/// true value in a fifth of all comparisons.
const UNEQUAL: f64 = 2.0;

/// Chooses the interval and the probability of a comparison: those of ranks, those of means, or both.
fn joined(
    (ranks, p): (Interval, f64),
    means: Option<Welch>,
    is_unequal: bool,
) -> (Interval, f64, Basis) {
    match means {
        // An interval without width is correct only if all values are equal.
        Some(means) if ranks.low == ranks.high && means.difference.low < means.difference.high => {
            (means.difference, p.max(means.p), Basis::Means)
        }
        Some(means) if is_unequal => {
            let wider = ranks.hull(means.difference);
            (wider, p.max(means.p), Basis::Both)
        }
        _ => (ranks, p, Basis::Ranks),
    }
}
