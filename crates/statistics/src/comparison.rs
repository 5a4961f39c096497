//! Comparison of two variants. Each run of a variant is one number.

use serde::Serialize;

use crate::interval::variance;
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
        match before.iter().chain(after).all(|value| *value > 0.0) {
            true => Scale::Ratio,
            false => Scale::Difference,
        }
    }

    /// Converts the numbers so that the difference of two converted numbers is their change. For ratios, the
    /// converted numbers are logarithms.
    pub(crate) fn apply(self, values: &[f64]) -> Vec<f64> {
        let on_scale = values.iter().map(|value| match self {
            Scale::Ratio => value.ln(),
            Scale::Difference => *value,
        });
        on_scale.collect()
    }

    /// Converts a difference of converted numbers to the change on this scale.
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
    /// Standard deviation of the difference between a run after and a run before the change. If `scale` is a
    /// ratio, the difference is a difference of logarithms.
    pub deviation: f64,
}

/// Compares two variants. `before` and `after` contain one number for each run, in the order of the runs. If
/// all numbers are positive, the change is a ratio. Otherwise, the change is a difference.
///
/// # Errors
/// Returns an error if there are too few or too many runs, if the numbers of paired runs differ, or if a
/// number is not finite.
pub fn compare(before: &[f64], after: &[f64], design: Design) -> Result<Comparison, Incomparable> {
    if !before.iter().chain(after).all(|value| value.is_finite()) {
        return Err(Incomparable::NotFinite);
    }
    let scale = Scale::of(before, after);
    let runs = before.len().min(after.len());
    let (before, after) = (scale.apply(before), scale.apply(after));
    let (change, p, deviation) = match design {
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
            let p = paired::signed_rank_p(&differences);
            (change, p, variance(&differences).sqrt())
        }
        Design::Unpaired => {
            let it = unpaired::unpaired(&before, &after, CONFIDENCE)?;
            let both = variance(&before) + variance(&after);
            (it.shift, it.p, both.sqrt())
        }
    };
    Ok(Comparison {
        design,
        runs,
        scale,
        change: scale.undo(change),
        p,
        deviation,
    })
}
