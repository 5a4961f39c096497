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
    let is_positive = before.iter().chain(after).all(|value| *value > 0.0);
    let scale = match is_positive {
        true => Scale::Ratio,
        false => Scale::Difference,
    };
    let on_scale = |values: &[f64]| -> Vec<f64> {
        let on_scale = values.iter().map(|value| match scale {
            Scale::Ratio => value.ln(),
            Scale::Difference => *value,
        });
        on_scale.collect()
    };
    let runs = before.len().min(after.len());
    let (before, after) = (on_scale(before), on_scale(after));
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
        change: match scale {
            Scale::Ratio => change.map(f64::exp),
            Scale::Difference => change,
        },
        p,
        deviation,
    })
}
