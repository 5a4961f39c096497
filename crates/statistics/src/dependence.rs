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
    summed(values.len(), sums, |lag| products(&centred, lag))
}

/// Sums the autocorrelations of a series by Geyer's rule. `product` returns the sum of the products of centred
/// values at a lag; it is called for 0, 1, 2, ….
fn summed(count: usize, sums: Sums, mut product: impl FnMut(usize) -> f64) -> f64 {
    let square = product(0);
    // Equal values tell nothing about dependence.
    if square <= 0.0 {
        return 1.0;
    }
    let (mut tau, mut last) = (-1.0, f64::INFINITY);
    let mut of_lag = square;
    for lag in (0..count.min(LAGS)).step_by(2) {
        if lag > 0 {
            of_lag = product(lag);
        }
        let pair = (of_lag + product(lag + 1)) / square;
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
    // One bit per sample: 64 products are one operation.
    let bits: Vec<u64> = (values.chunks(64))
        .map(|some| {
            let places = some.iter().enumerate();
            places.fold(0, |bits, (n, value)| {
                bits | u64::from(*value > quantile) << n
            })
        })
        .collect();
    let is_set = |place: usize| bits[place / 64] >> (place % 64) & 1 == 1;
    let count = values.len();
    let ones: u32 = bits.iter().map(|bits| bits.count_ones()).sum();
    let mean = f64::from(ones) / count.max(1) as f64;
    // Numbers of ones without the last and without the first samples, which have no partner at a lag.
    let (mut firsts, mut lasts) = (ones, ones);
    let both = |lag: usize| -> u32 {
        let (words, shift) = (lag / 64, lag % 64);
        let later = bits.get(words..).unwrap_or_default();
        let products = later.iter().enumerate().map(|(n, low)| {
            let high = later.get(n + 1).copied().unwrap_or(0);
            let later = match shift {
                0 => *low,
                _ => low >> shift | high << (64 - shift),
            };
            (bits[n] & later).count_ones()
        });
        products.sum()
    };
    summed(count, Sums::Positive, |lag| {
        if lag > 0 && lag <= count {
            firsts -= u32::from(is_set(count - lag));
            lasts -= u32::from(is_set(lag - 1));
        }
        let pairs = count.saturating_sub(lag) as f64;
        f64::from(both(lag)) - mean * f64::from(firsts + lasts) + pairs * mean * mean
    })
}

/// Returns the same by the variance of the means of batches of this size; `None` with fewer than two
/// batches.
pub fn by_batches(values: &[f64], size: usize) -> Option<f64> {
    let means: Vec<f64> = values.chunks_exact(size.max(1)).map(mean).collect();
    (means.len() > 1).then(|| size as f64 * variance(&means) / variance(values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    #[test]
    fn bits_give_the_dependence_of_the_question() {
        let mut rng = Rng(4);
        for count in [0, 1, 2, 63, 64, 65, 500, 5_000] {
            for stays in [0, 8, 99] {
                let mut level = 0.0;
                let next = |_| {
                    if rng.below(100) >= stays {
                        level = rng.below(1_000) as f64;
                    }
                    level
                };
                let values: Vec<f64> = (0..count).map(next).collect();
                for quantile in [-1.0, 100.0, 500.0, 990.0, 1_000.0] {
                    let beyond: Vec<f64> = (values.iter())
                        .map(|value| f64::from(u8::from(*value > quantile)))
                        .collect();
                    let expected = samples_per_independent(&beyond, Sums::Positive);
                    let found = samples_per_independent_at(&values, quantile);
                    let is_near = (found / expected - 1.0).abs() < 1e-9;
                    assert!(is_near, "{found}, not {expected}: {count}, {stays}");
                }
            }
        }
    }
}
