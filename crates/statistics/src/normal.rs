//! Standard normal distribution and Student's t distribution.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

fn standard() -> Normal {
    Normal::standard()
}

/// Returns the probability that a standard normal number is at most `z`.
pub(crate) fn below(z: f64) -> f64 {
    standard().cdf(z)
}

/// Returns the quantile of the standard normal distribution. A standard normal number is at most this
/// quantile with the probability `probability`.
pub(crate) fn quantile(probability: f64) -> f64 {
    standard().inverse_cdf(probability)
}

/// Returns the quantile of Student's t distribution. A number with this distribution is at most this quantile
/// with the probability `probability`. `freedom` is the number of degrees of freedom. If `freedom` is not
/// positive, returns infinity.
pub fn student(probability: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(probability))
}

/// Returns the probability that a number with Student's t distribution is at most `t`. `freedom` is the
/// number of degrees of freedom. If `freedom` is not positive, returns 1.
pub(crate) fn student_below(t: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |law| law.cdf(t))
}
