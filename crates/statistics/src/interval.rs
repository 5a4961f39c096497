//! Estimates with bounds.

use serde::Serialize;

/// Usual probability that an interval contains the true value.
pub const CONFIDENCE: f64 = 0.95;

/// An estimate with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Estimate.
    pub centre: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl Interval {
    /// Returns true if the value is within the bounds.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Applies an ascending function to the estimate and its bounds.
    #[must_use]
    pub fn map(self, ascending: impl Fn(f64) -> f64) -> Interval {
        Interval {
            centre: ascending(self.centre),
            low: ascending(self.low),
            high: ascending(self.high),
        }
    }

    /// Returns the interval between the `rank`-th value from each end, around the median. The
    /// values are sorted here. `rank` counts from 1 and is at most the number of values.
    pub(crate) fn of_ranks(mut values: Vec<f64>, rank: usize) -> Interval {
        values.sort_unstable_by(f64::total_cmp);
        Interval {
            centre: median(&values),
            low: values[rank - 1],
            high: values[values.len() - rank],
        }
    }
}

/// Returns the median of sorted values, of which there is at least one.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

/// Returns the mean of values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the variance of at least two values around their mean, unbiased.
pub fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares = values.iter().map(|value| (value - mean).powi(2));
    squares.sum::<f64>() / (values.len() as f64 - 1.0)
}
