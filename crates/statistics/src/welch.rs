//! Comparison of two means.

use serde::Serialize;

use crate::dependence::{Sums, samples_per_independent};
use crate::interval::{mean, variance};
use crate::normal::{student, student_below};
use crate::{CONFIDENCE, Interval};

/// Difference of two means, with its probability by chance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Welch {
    /// Mean after the change minus mean before it, with its 95 % confidence interval.
    pub difference: Interval,
    /// Probability that chance alone makes a difference that is at least as large.
    pub p: f64,
}

/// Relation between neighbouring values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// The values are independent of each other.
    Independent,
    /// Neighbouring values may depend on each other, for example the values of neighbouring blocks of time.
    /// They count as fewer independent values.
    Dependent,
}

/// Compares two means with Welch's t test. Returns `None` if a side has fewer than two independent values, or
/// if a value is not finite.
pub fn compare(before: &[f64], after: &[f64], neighbours: Neighbours) -> Option<Welch> {
    if !before.iter().chain(after).all(|value| value.is_finite()) {
        return None;
    }
    let [
        (old, old_square, old_freedom),
        (new, new_square, new_freedom),
    ] = [side(before, neighbours)?, side(after, neighbours)?];
    let square = old_square + new_square;
    let freedom =
        square * square / (old_square.powi(2) / old_freedom + new_square.powi(2) / new_freedom);
    Some(tested(new - old, square, freedom))
}

/// Returns the mean of independent differences, compared with 0 (Student's t test). Returns `None` if there are fewer
/// than two differences.
pub(crate) fn mean_of(differences: &[f64]) -> Option<Welch> {
    let (mean, square, freedom) = side(differences, Neighbours::Independent)?;
    Some(tested(mean, square, freedom))
}

/// Compares an estimate with 0. `square` is the square of its standard error.
fn tested(centre: f64, square: f64, freedom: f64) -> Welch {
    let error = square.sqrt();
    let (half, p) = match (error > 0.0, centre == 0.0) {
        (true, _) => (
            student(f64::midpoint(1.0, CONFIDENCE), freedom) * error,
            2.0 * student_below(-(centre / error).abs(), freedom),
        ),
        (false, true) => (0.0, 1.0),
        (false, false) => (0.0, 0.0),
    };
    Welch {
        difference: Interval {
            centre,
            low: centre - half,
            high: centre + half,
        },
        p,
    }
}

/// Returns the mean of one side, the square of the mean's standard error, and the degrees of freedom. Returns
/// `None` if there are fewer than two independent values.
fn side(values: &[f64], neighbours: Neighbours) -> Option<(f64, f64, f64)> {
    let worth_one = match neighbours {
        Neighbours::Independent => 1.0,
        Neighbours::Dependent => samples_per_independent(values, Sums::Positive),
    };
    let independent = values.len() as f64 / worth_one;
    (independent >= 2.0).then(|| {
        (
            mean(values),
            variance(values) / independent,
            independent - 1.0,
        )
    })
}
