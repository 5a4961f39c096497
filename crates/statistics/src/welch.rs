//! Difference of two means of blocks of time.

use serde::Serialize;

use crate::dependence::{Sums, samples_per_independent};
use crate::interval::{mean, variance};
use crate::normal::{student, student_below};
use crate::{CONFIDENCE, Interval};

/// Difference of two means.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Welch {
    /// Mean after minus mean before, with its 95 % interval.
    pub difference: Interval,
    /// Probability of such a difference by chance.
    pub p: f64,
}

/// Compares the means of blocks with Welch's t. Dependence of neighbouring blocks reduces their number. Returns
/// `None` if a side has fewer than two independent blocks, or if a value is not finite.
pub fn compare(before: &[f64], after: &[f64]) -> Option<Welch> {
    if !before.iter().chain(after).all(|value| value.is_finite()) {
        return None;
    }
    let [
        (old, old_square, old_freedom),
        (new, new_square, new_freedom),
    ] = [side(before)?, side(after)?];
    let centre = new - old;
    let square = old_square + new_square;
    if square <= 0.0 {
        let difference = Interval {
            centre,
            low: centre,
            high: centre,
        };
        let p = if centre == 0.0 { 1.0 } else { 0.0 };
        return Some(Welch { difference, p });
    }
    let freedom =
        square * square / (old_square.powi(2) / old_freedom + new_square.powi(2) / new_freedom);
    let half = student(f64::midpoint(1.0, CONFIDENCE), freedom) * square.sqrt();
    Some(Welch {
        difference: Interval {
            centre,
            low: centre - half,
            high: centre + half,
        },
        p: 2.0 * student_below(-(centre / square.sqrt()).abs(), freedom),
    })
}

/// Returns the mean, the square of its standard error, and the degrees of freedom.
fn side(values: &[f64]) -> Option<(f64, f64, f64)> {
    let independent = values.len() as f64 / samples_per_independent(values, Sums::Positive);
    (independent >= 2.0).then(|| {
        (
            mean(values),
            variance(values) / independent,
            independent - 1.0,
        )
    })
}
