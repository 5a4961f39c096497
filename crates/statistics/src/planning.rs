//! Numbers of pairs and samples that a conclusion needs.

use serde::Serialize;

use crate::interval::median;
use crate::paired::{LEAST, MOST};
use crate::{CONFIDENCE, Design, Incomparable, Interval, Scale, normal};

/// Returns the number of pairs with which a change is found with the probability `power`, at 95 % confidence
/// (Noether). `change` is a multiple of the standard deviation of the differences of pairs. Returns `None` if
/// `change` is 0 or not a number.
pub fn pairs(change: f64, power: f64) -> Option<u64> {
    pairs_at(1.0 - CONFIDENCE, change, power)
}

/// Returns the number of pairs like [`pairs`], but for a test with significance level `share` instead of 5 %.
pub fn pairs_at(share: f64, change: f64, power: f64) -> Option<u64> {
    let apart = normal::below(std::f64::consts::SQRT_2 * change.abs()) - 0.5;
    let deviates = normal::quantile(1.0 - share / 2.0) + normal::quantile(power);
    let count = (deviates / apart).powi(2) / 3.0;
    (count.is_finite()).then(|| (count.ceil() as u64).max(LEAST as u64))
}

/// Returns the minimum number of pairs with which a test can show a difference at the significance level `share`. If
/// the runs are unpaired, returns the minimum number of runs on each side.
pub fn least_runs(share: f64, design: Design) -> u64 {
    // The most extreme result can occur in two directions, so its probability has the factor 2.
    let mut p = 2.0;
    let mut runs = 0.0;
    while p > share && runs < 1_000.0 {
        runs += 1.0;
        p *= match design {
            Design::Paired => 0.5,
            // The most extreme result is one of C(2n, n) equally likely orders. The factor is
            // C(2n - 2, n - 1) / C(2n, n).
            Design::Unpaired => runs / (2.0 * (2.0 * runs - 1.0)),
        };
    }
    runs as u64
}

/// Returns the minimum number of samples in each run for a comparison of a quantile. With this number, ten
/// samples are above the quantile.
pub fn samples_per_run(share: f64) -> usize {
    (10.0 / (1.0 - share) - 1e-6).ceil() as usize
}

/// Returns the expected half width of the 95 % confidence interval, in logarithms. `deviation` is the
/// standard deviation of the differences of pairs, and `pairs` is the number of pairs.
pub fn half_width(deviation: f64, pairs: u64) -> f64 {
    // For a normal distribution, the efficiency of the signed-rank interval is 3/π of the efficiency of the mean, so
    // `count` pairs count as `count * 3 / π` pairs.
    let count = pairs.max(2) as f64;
    let t = crate::student(0.975, count - 1.0);
    t * deviation / (count * 3.0 / std::f64::consts::PI).sqrt()
}

/// Returns the minimum change that this number of pairs finds with the probability `power`, at 95 %
/// confidence (Noether). The change is a multiple of the standard deviation of the differences of pairs.
/// Returns `None` if there are too few pairs to find any change.
pub fn detectable(pairs: u64, power: f64) -> Option<f64> {
    let deviates = normal::quantile(0.975) + normal::quantile(power);
    let share = 0.5 + deviates / (3.0 * pairs as f64).sqrt();
    let change = normal::quantile(share.min(1.0)) / std::f64::consts::SQRT_2;
    (pairs >= LEAST as u64 && change.is_finite()).then_some(change)
}

/// Returns the standard deviation of values, estimated from the median distance between two values (Shamos). A few
/// disturbed values hardly change this estimate. There must be at least two values. If there are more than 1,000
/// values, only 1,000 evenly spaced values are used: the error is then about 3 %, and the estimate takes only
/// milliseconds.
pub(crate) fn scatter(values: &[f64]) -> f64 {
    /// Median distance between two standard normal numbers. It is √2 times the third quartile of the standard
    /// normal distribution.
    const MEDIAN_DISTANCE: f64 = 0.953_872_552_417_610_7;

    const MOST_VALUES: usize = 1_000;

    let count = values.len().min(MOST_VALUES);
    let values: Vec<f64> = (0..count)
        .map(|n| values[n * values.len() / count])
        .collect();
    let mut distances = Vec::with_capacity(values.len() * (values.len() - 1) / 2);
    for (n, first) in values.iter().enumerate() {
        distances.extend(values[..n].iter().map(|other| (first - other).abs()));
    }
    distances.sort_unstable_by(f64::total_cmp);
    median(&distances) / MEDIAN_DISTANCE
}

/// Forecast of a comparison, computed from a pilot. A pilot is a small number of pairs of runs that
/// alternated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Number of pairs in the pilot.
    pub pilot: usize,
    /// Scale of the changes. For ratios, the changes are differences of logarithms.
    pub scale: Scale,
    /// Standard deviation of the differences of pairs, on the scale `scale`. It is estimated from the median
    /// distance between two differences (Shamos). A few disturbed runs hardly change this estimate.
    pub scatter: f64,
}

impl Forecast {
    /// Computes a forecast from the runs of a pilot. `before` and `after` contain one number for each run, in
    /// the order of the pairs.
    ///
    /// # Errors
    /// Returns an error if there are too few or too many pairs, if the numbers of runs differ, or if a number
    /// is not finite.
    pub fn of(before: &[f64], after: &[f64]) -> Result<Forecast, Incomparable> {
        let (pilot, others) = (before.len(), after.len());
        if pilot != others {
            return Err(Incomparable::Unequal {
                before: pilot,
                after: others,
            });
        }
        if !(LEAST..=MOST).contains(&pilot) {
            return Err(if pilot < LEAST {
                Incomparable::TooFewPairs {
                    found: pilot,
                    needed: LEAST,
                }
            } else {
                Incomparable::TooMany {
                    found: pilot,
                    most: MOST,
                }
            });
        }
        if !before.iter().chain(after).all(|value| value.is_finite()) {
            return Err(Incomparable::NotFinite);
        }
        let scale = Scale::of(before, after);
        let pairs = scale.apply(after).into_iter().zip(scale.apply(before));
        let differences: Vec<f64> = pairs.map(|(after, before)| after - before).collect();
        Ok(Forecast {
            pilot,
            scale,
            scatter: scatter(&differences),
        })
    }

    /// Returns the expected half width of the 95 % confidence interval with `pairs` pairs, on the scale
    /// `scale`. Also returns a range that contains the actual half width in 90 % of cases, if the differences
    /// have a normal distribution. If the pilot is small, the range is wide.
    pub fn half_width(&self, pairs: u64) -> Interval {
        // Variance of `ln(actual half width / forecast)`. The formula was fitted to simulations: pilots had 6
        // to 32 pairs, and the comparisons after them had 16 to 64 pairs. The logarithm has nearly a normal
        // distribution.
        let variance = 0.636 / (self.pilot as f64 - 2.0) + 0.564 / (pairs.max(2) as f64 - 1.0);
        let factor = (normal::quantile(0.95) * variance.sqrt()).exp();
        let centre = half_width(self.scatter, pairs);
        Interval {
            centre,
            low: centre / factor,
            high: centre * factor,
        }
    }

    /// Returns the number of pairs with which a change is found with the probability `power`. `change` is on
    /// the scale `scale`.
    pub fn pairs(&self, change: f64, power: f64) -> Option<u64> {
        pairs(change / self.scatter, power)
    }

    /// Returns the minimum change that a number of pairs finds with the probability `power`. The change is on
    /// the scale `scale`.
    pub fn detectable(&self, pairs: u64, power: f64) -> Option<f64> {
        Some(detectable(pairs, power)? * self.scatter)
    }
}
