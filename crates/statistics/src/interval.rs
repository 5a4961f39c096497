//! Estimates with confidence intervals, and the median, mean and variance of values.

use serde::Serialize;

/// Default confidence: the probability that a confidence interval contains the true value.
pub const CONFIDENCE: f64 = 0.95;

/// An estimate with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Estimated value.
    pub centre: f64,
    /// Lower bound of the confidence interval.
    pub low: f64,
    /// Upper bound of the confidence interval.
    pub high: f64,
}

impl Interval {
    /// Returns true if the value is within the bounds, inclusive.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Applies a function to the estimate and to both bounds. The function must be ascending.
    #[must_use]
    pub fn map(self, ascending: impl Fn(f64) -> f64) -> Interval {
        Interval {
            centre: ascending(self.centre),
            low: ascending(self.low),
            high: ascending(self.high),
        }
    }

    /// Returns the smallest interval that contains the bounds of both intervals. Its estimate is that of `self`.
    pub(crate) fn hull(self, other: Interval) -> Interval {
        Interval {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            ..self
        }
    }

    /// Sorts the values. Returns an interval whose estimate is the median. Its bounds are the `rank`-th value
    /// from the start and the `rank`-th value from the end. `rank` counts from 1, and is at most the number
    /// of values.
    pub(crate) fn of_ranks(mut values: Vec<f64>, rank: usize) -> Interval {
        values.sort_unstable_by(f64::total_cmp);
        Interval {
            centre: median(&values),
            low: values[rank - 1],
            high: values[values.len() - rank],
        }
    }
}

/// Returns the median of sorted values. There must be at least one value.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

/// Returns the arithmetic mean of the values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the unbiased variance of the values. There must be at least two values.
pub fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares = values.iter().map(|value| (value - mean).powi(2));
    squares.sum::<f64>() / (values.len() as f64 - 1.0)
}
