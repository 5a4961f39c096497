//! Dependence of neighbouring samples, and the number of independent samples that they are worth.

use crate::interval::{mean, variance};

/// Greatest number of lags that are summed. A series that depends on itself over more samples counts
/// as too short.
const LAGS: usize = 5_000;

/// Number of independent samples below which a run is too short for bounds of a quantile.
pub const LEAST_EFFECTIVE: f64 = 50.0;

/// Returns the autocorrelation of a series at a lag below its length.
pub fn autocorrelation(values: &[f64], lag: usize) -> f64 {
    let mean = mean(values);
    let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    products(&centred, lag) / products(&centred, 0)
}

fn products(centred: &[f64], lag: usize) -> f64 {
    let later = centred.get(lag..).unwrap_or_default();
    centred.iter().zip(later).map(|(a, b)| a * b).sum()
}

/// Rule by which Geyer's sums of two neighbouring autocorrelations end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// The sums end before the first that is not positive.
    Positive,
    /// In addition, no sum exceeds the one before it.
    Monotone,
}

/// Returns how many samples are worth one independent sample: at least 1.
pub fn samples_per_independent(values: &[f64], sums: Sums) -> f64 {
    if values.len() < 2 {
        return 1.0;
    }
    let mean = mean(values);
    let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let square = products(&centred, 0);
    // Equal values tell nothing about dependence.
    if square <= 0.0 {
        return 1.0;
    }
    let (mut tau, mut last) = (-1.0, f64::INFINITY);
    for lag in (0..values.len().min(LAGS)).step_by(2) {
        let pair = (products(&centred, lag) + products(&centred, lag + 1)) / square;
        if pair <= 0.0 {
            break;
        }
        last = match sums {
            Sums::Positive => pair,
            Sums::Monotone => pair.min(last),
        };
        tau += 2.0 * last;
    }
    tau.max(1.0)
}

/// Returns how many samples are worth one independent sample for a quantile: computed of the question
/// whether a sample exceeds the quantile.
pub fn samples_per_independent_at(values: &[f64], quantile: f64) -> f64 {
    let beyond: Vec<f64> = values
        .iter()
        .map(|value| f64::from(u8::from(*value > quantile)))
        .collect();
    samples_per_independent(&beyond, Sums::Positive)
}

/// Returns the same by the variance of the means of batches of this size; `None` with fewer than two
/// batches.
pub fn by_batches(values: &[f64], size: usize) -> Option<f64> {
    let means: Vec<f64> = values.chunks_exact(size.max(1)).map(mean).collect();
    (means.len() > 1).then(|| size as f64 * variance(&means) / variance(values))
}
