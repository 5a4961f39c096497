//! Ratio of two means, for example of throughputs, with Fieller's bounds.

use crate::interval::{mean, variance};
use crate::{Incomparable, Interval, student};

/// Returns the mean after the change divided by the mean before it, with the bounds of this ratio.
///
/// # Errors
/// Returns an error if a side has fewer than two values, if a value is not finite, or if the mean before the
/// change may be 0.
pub fn fieller(before: &[f64], after: &[f64], confidence: f64) -> Result<Interval, Incomparable> {
    if before.len() < 2 || after.len() < 2 {
        return Err(Incomparable::TooFewRuns {
            before: before.len(),
            after: after.len(),
        });
    }
    if !before.iter().chain(after).all(|value| value.is_finite()) {
        return Err(Incomparable::NotFinite);
    }
    let half_square = |values: &[f64]| {
        let count = values.len() as f64;
        student(f64::midpoint(1.0, confidence), count - 1.0).powi(2) * variance(values) / count
    };
    let (old, new) = (mean(before), mean(after));
    let below = old * old - half_square(before);
    if below <= 0.0 {
        return Err(Incomparable::NoRatio);
    }
    let root = ((old * new).powi(2) - below * (new * new - half_square(after))).sqrt();
    Ok(Interval {
        centre: new / old,
        low: (old * new - root) / below,
        high: (old * new + root) / below,
    })
}
