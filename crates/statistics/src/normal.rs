//! Normal distribution and Student's t.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

fn standard() -> Normal {
    Normal::standard()
}

/// Returns the probability that a standard normal value is at most `z`.
pub(crate) fn below(z: f64) -> f64 {
    standard().cdf(z)
}

/// Returns the value that a standard normal value does not exceed with this probability.
pub(crate) fn quantile(probability: f64) -> f64 {
    standard().inverse_cdf(probability)
}

/// Returns the value that Student's t does not exceed with this probability. `freedom` is the number
/// of degrees of freedom, which must be positive; otherwise there is no bound.
pub fn student(probability: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| t.inverse_cdf(probability))
}

/// Returns the probability that Student's t is at most `t`; 1 without degrees of freedom.
pub(crate) fn student_below(t: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |law| law.cdf(t))
}
