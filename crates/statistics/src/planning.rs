//! Numbers of pairs and samples that a claim needs.

use crate::normal;
use crate::paired::LEAST;

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
