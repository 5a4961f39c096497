//! Comparison of one number per run between two variants.

use serde::Serialize;

use crate::interval::variance;
use crate::{CONFIDENCE, Incomparable, Interval, paired, unpaired};

/// Relation between the runs of both variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// The runs with the same place are neighbours in time.
    Paired,
    /// The runs have no pairs.
    Unpaired,
}

/// Unit of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Value after divided by value before.
    Ratio,
    /// Value after minus value before, because a value is 0 or negative.
    Difference,
}

impl Scale {
    /// Returns the scale on which numbers are compared: ratios if all are positive.
    pub(crate) fn of(before: &[f64], after: &[f64]) -> Scale {
        match before.iter().chain(after).all(|value| *value > 0.0) {
            true => Scale::Ratio,
            false => Scale::Difference,
        }
    }

    /// Returns numbers whose differences are the changes.
    pub(crate) fn apply(self, values: &[f64]) -> Vec<f64> {
        let on_scale = values.iter().map(|value| match self {
            Scale::Ratio => value.ln(),
            Scale::Difference => *value,
        });
        on_scale.collect()
    }

    /// Returns the change that a difference on this scale means.
    pub(crate) fn undo(self, difference: Interval) -> Interval {
        match self {
            Scale::Ratio => difference.map(f64::exp),
            Scale::Difference => difference,
        }
    }
}

/// Comparison of one number per run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Relation between the runs.
    pub design: Design,
    /// Number of pairs or, without pairs, of runs of the side that has fewer.
    pub runs: usize,
    /// Unit of the change.
    pub scale: Scale,
    /// Change from before to after.
    pub change: Interval,
    /// Probability of such a change by chance.
    pub p: f64,
    /// Standard deviation of the differences of pairs; logarithms for ratios.
    pub deviation: f64,
}

/// Compares one number per run, in order of the runs. Numbers that are all positive are compared by
/// their ratio, others by their difference.
///
/// # Errors
/// Returns an error if there are too few or too many runs, if paired numbers are not equally many, or
/// if a number is not finite.
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
