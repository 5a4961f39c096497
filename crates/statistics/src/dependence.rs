//! Dependence of neighbouring samples, and the equivalent number of independent samples.

use crate::counts::{Count, differ};
use crate::interval::{mean, median, variance};

/// Maximum number of lags whose autocorrelations are summed. If samples depend on each other over more lags,
/// the series counts as too short.
const LAGS: usize = 5_000;

/// Minimum number of independent samples in a run. With fewer, the run is too short for bounds of a quantile.
pub const LEAST_EFFECTIVE: f64 = 50.0;

/// Returns the autocorrelation of a series at a lag. `lag` must be less than the length of the series.
pub fn autocorrelation(values: &[f64], lag: usize) -> f64 {
    let mean = mean(values);
    let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    products(&centred, lag) / products(&centred, 0)
}

/// Returns the correlation of neighbouring values without the effect of sudden changes of the level. It is computed
/// from the differences of neighbours: if values have the correlation r, neighbouring differences have the correlation
/// −(1 − r)/2, which is −1/2 for independent values. Large differences are left out, because they may be sudden
/// changes. Returns `None` if there are too few values or if all are equal. [`beside_changes_error`] returns the
/// standard error.
pub fn beside_changes(values: &[f64]) -> Option<f64> {
    /// Largest difference that counts, as a multiple of the median of the absolute differences. For independent values
    /// with a normal distribution, one difference in 1,300 is larger.
    const CUT: f64 = 5.0;
    let differences: Vec<f64> = values.windows(2).map(|two| two[1] - two[0]).collect();
    let mut sizes: Vec<f64> = differences.iter().map(|it| it.abs()).collect();
    if sizes.len() < 8 {
        return None;
    }
    sizes.sort_unstable_by(f64::total_cmp);
    let most = CUT * median(&sizes);
    let counts = |difference: &f64| difference.abs() <= most;
    let squares: Vec<f64> = (differences.iter().filter(|it| counts(it)))
        .map(|it| it * it)
        .collect();
    let pairs = differences.windows(2).filter(|two| two.iter().all(counts));
    let products: Vec<f64> = pairs.map(|two| two[0] * two[1]).collect();
    let square = mean(&squares);
    (square > 0.0 && !products.is_empty()).then(|| 1.0 + 2.0 * mean(&products) / square)
}

/// Returns the standard error of [`beside_changes`] for `count` independent values. It is computed from the variance of
/// the autocorrelation of differences: (1 − 3/4 + 4/16) / `count` (Bartlett's formula).
pub fn beside_changes_error(count: usize) -> f64 {
    2.0 * (0.5 / count as f64).sqrt()
}

fn products(centred: &[f64], lag: usize) -> f64 {
    let later = centred.get(lag..).unwrap_or_default();
    centred.iter().zip(later).map(|(a, b)| a * b).sum()
}

/// Rule for the end of Geyer's sums. Each sum adds two neighbouring autocorrelations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    /// The sums end before the first sum that is not positive.
    Positive,
    /// The sums end as with `Positive`. In addition, a sum that exceeds the previous sum is reduced to the
    /// previous sum.
    Monotone,
}

/// Returns the number of samples that have as much information about the mean as one independent sample. It
/// is at least 1.
pub fn samples_per_independent(values: &[f64], sums: Sums) -> f64 {
    if values.len() < 2 {
        return 1.0;
    }
    let mean = mean(values);
    let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    summed(values.len(), sums, |lag| products(&centred, lag))
}

/// Sums the autocorrelations of a series by Geyer's rule, and returns the number of samples per independent
/// sample. `product(lag)` returns the sum of the products of all pairs of centred values at this lag. It is
/// called with 0, 1, 2, … in this order.
fn summed(count: usize, sums: Sums, mut product: impl FnMut(usize) -> f64) -> f64 {
    let square = product(0);
    // If all values are equal, they show nothing about dependence.
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

/// Returns the number of samples that have as much information about the quantile as one independent sample.
/// It is computed from a series of bits: a bit is 1 if the sample exceeds `quantile`.
pub fn samples_per_independent_at(values: &[f64], quantile: f64) -> f64 {
    // Each sample is one bit, so one operation computes 64 products.
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
    // Number of ones in the series without its last `lag` samples, and number of ones in the series without its first
    // `lag` samples. The samples that are left out have no partner at this lag.
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

/// Returns the number of samples per independent sample of the mean, computed from the variance of the means of batches
/// of `size` samples. Returns `None` if there are fewer than two batches.
pub fn by_batches(values: &[f64], size: usize) -> Option<f64> {
    let means: Vec<f64> = values.chunks_exact(size.max(1)).map(mean).collect();
    (means.len() > 1).then(|| size as f64 * variance(&means) / variance(values))
}

/// Returns the number of independent samples that would estimate a share as well as these runs do, computed from the
/// differences of the shares between runs. Each count is the number of samples of a run with a property, and the number
/// of all its samples. Returns `None` if chance explains the differences.
pub fn independent_by_runs(runs: &[Count]) -> Option<f64> {
    if !differ(runs) {
        return None;
    }
    let shares = runs.iter().map(|run| run.events as f64 / run.exposure);
    let shares: Vec<f64> = shares.collect();
    let share = mean(&shares);
    Some(share * (1.0 - share) * runs.len() as f64 / variance(&shares))
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
                    let estimate = samples_per_independent_at(&values, quantile);
                    let is_near = (estimate / expected - 1.0).abs() < 1e-9;
                    assert!(is_near, "{estimate}, not {expected}: {count}, {stays}");
                }
            }
        }
    }
}
