//! Numbers of pairs and samples that a claim needs.

use serde::Serialize;

use crate::interval::median;
use crate::paired::{LEAST, MOST};
use crate::{Incomparable, Interval, Scale, normal};

/// Returns the number of pairs with which a change is found with this probability, at 95 % confidence
/// (Noether). `change` is in standard deviations of the differences of pairs; `None` if it is 0 or not
/// a number.
pub fn pairs(change: f64, power: f64) -> Option<u64> {
    let apart = normal::below(std::f64::consts::SQRT_2 * change.abs()) - 0.5;
    let deviates = normal::quantile(0.975) + normal::quantile(power);
    let count = (deviates / apart).powi(2) / 3.0;
    (count.is_finite()).then(|| (count.ceil() as u64).max(LEAST as u64))
}

/// Returns the least number of samples in each run with which a quantile can be compared: ten beyond
/// it.
pub fn samples_per_run(share: f64) -> usize {
    (10.0 / (1.0 - share) - 1e-6).ceil() as usize
}

/// Returns the half width, in logarithms, of the 95 % interval that a number of pairs will have if
/// their differences have this standard deviation.
pub fn half_width(deviation: f64, pairs: u64) -> f64 {
    // The signed-rank interval has 3/π of the efficiency of the mean for a normal distribution.
    let count = pairs.max(2) as f64;
    let t = crate::student(0.975, count - 1.0);
    t * deviation / (count * 3.0 / std::f64::consts::PI).sqrt()
}

/// Returns the least change, in standard deviations of the differences of pairs, that this number of pairs finds
/// with this probability, at 95 % confidence (Noether). `None` if there are too few pairs for any.
pub fn detectable(pairs: u64, power: f64) -> Option<f64> {
    let deviates = normal::quantile(0.975) + normal::quantile(power);
    let share = 0.5 + deviates / (3.0 * pairs as f64).sqrt();
    let change = normal::quantile(share.min(1.0)) / std::f64::consts::SQRT_2;
    (pairs >= LEAST as u64 && change.is_finite()).then_some(change)
}

/// Forecast of a comparison from a pilot: a few pairs of runs that alternated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Number of pairs of the pilot.
    pub pilot: usize,
    /// Unit of changes: logarithms of ratios, or differences.
    pub scale: Scale,
    /// Standard deviation of the differences of pairs, on this scale. It is estimated by the median distance of two
    /// differences (Shamos), which a few disturbed runs hardly change.
    pub scatter: f64,
}

impl Forecast {
    /// Learns from the numbers of the pilot's runs, in the order of the pairs.
    ///
    /// # Errors
    /// Returns an error if there are too few pairs, if the numbers of runs differ, or if a number is not finite.
    pub fn of(before: &[f64], after: &[f64]) -> Result<Forecast, Incomparable> {
        /// Median distance of two standard normal numbers: √2 times the third quartile.
        const MEDIAN_DISTANCE: f64 = 0.953_872_552_417_610_7;

        let (pilot, others) = (before.len(), after.len());
        if pilot != others {
            return Err(Incomparable::Unequal {
                before: pilot,
                after: others,
            });
        }
        if !(LEAST..=MOST).contains(&pilot) {
            return Err(match pilot < LEAST {
                true => Incomparable::TooFewPairs {
                    found: pilot,
                    needed: LEAST,
                },
                false => Incomparable::TooMany {
                    found: pilot,
                    most: MOST,
                },
            });
        }
        if !before.iter().chain(after).all(|value| value.is_finite()) {
            return Err(Incomparable::NotFinite);
        }
        let scale = Scale::of(before, after);
        let pairs = scale.apply(after).into_iter().zip(scale.apply(before));
        let differences: Vec<f64> = pairs.map(|(after, before)| after - before).collect();
        let mut distances = Vec::with_capacity(pilot * (pilot - 1) / 2);
        for (n, first) in differences.iter().enumerate() {
            distances.extend(differences[..n].iter().map(|other| (first - other).abs()));
        }
        distances.sort_unstable_by(f64::total_cmp);
        Ok(Forecast {
            pilot,
            scale,
            scatter: median(&distances) / MEDIAN_DISTANCE,
        })
    }

    /// Returns the half width of the 95 % interval of a number of pairs, on the scale, with the range that contains
    /// it in 90 % of cases if the differences have a normal law. A small pilot makes the range wide.
    pub fn half_width(&self, pairs: u64) -> Interval {
        // Variance of the logarithm of the actual half width by the forecast, fitted to simulations of pilots of 6 to
        // 32 pairs and of 16 to 64 pairs afterwards. The logarithm is nearly normal.
        let variance = 0.636 / (self.pilot as f64 - 2.0) + 0.564 / (pairs.max(2) as f64 - 1.0);
        let factor = (normal::quantile(0.95) * variance.sqrt()).exp();
        let centre = half_width(self.scatter, pairs);
        Interval {
            centre,
            low: centre / factor,
            high: centre * factor,
        }
    }

    /// Returns the number of pairs with which a change, on the scale, is found with this probability.
    pub fn pairs(&self, change: f64, power: f64) -> Option<u64> {
        pairs(change / self.scatter, power)
    }

    /// Returns the least change, on the scale, that a number of pairs finds with this probability.
    pub fn detectable(&self, pairs: u64, power: f64) -> Option<f64> {
        Some(detectable(pairs, power)? * self.scatter)
    }
}
