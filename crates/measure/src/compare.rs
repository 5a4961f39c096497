//! Statistical comparison of two methods.
//!
//! The runs of both methods alternate, so that disturbances of the machine affect both. Each pair of runs
//! yields a ratio of medians, which the crate `statistics` compares.

use serde::Serialize;
use statistics::{CONFIDENCE, Incomparable, Interval, paired};

/// Comparison of a method with another one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Number of pairs of runs.
    pub pairs: usize,
    /// Latency of the method divided by the latency of the other method.
    pub ratio: Interval,
}

/// Conclusion of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The method has a lower latency than the other method.
    Lower,
    /// The method has a higher latency than the other method.
    Higher,
    /// No difference is shown, because the interval contains 1. A smaller difference is possible.
    NoneShown,
}

impl Comparison {
    /// Minimum number of pairs.
    pub const MIN_PAIRS: usize = paired::LEAST;

    /// Maximum number of pairs.
    pub const MAX_PAIRS: usize = paired::MOST;

    /// Returns the conclusion from the interval.
    pub fn verdict(&self) -> Verdict {
        if self.ratio.high < 1.0 {
            Verdict::Lower
        } else if self.ratio.low > 1.0 {
            Verdict::Higher
        } else {
            Verdict::NoneShown
        }
    }
}

/// Compares two methods by the medians of paired runs. Each pair contains the median of the method
/// and the median of the other method.
///
/// # Errors
/// Returns an error if there are too few or too many pairs, or if a median is not positive.
pub fn compare(pairs: &[(f64, f64)]) -> Result<Comparison, Incomparable> {
    let of_pair = |(method, other): &(f64, f64)| method / other;
    let ratio = positive_interval(pairs.iter().map(of_pair), CONFIDENCE)?;
    Ok(Comparison {
        pairs: pairs.len(),
        ratio,
    })
}

/// Estimates the centre of positive values whose logarithms scatter symmetrically.
///
/// # Errors
/// Returns the errors of [`compare`].
pub(crate) fn positive_interval(
    values: impl Iterator<Item = f64>,
    confidence: f64,
) -> Result<Interval, Incomparable> {
    let logs: Vec<f64> = values.map(f64::ln).collect();
    let centre = paired::centre(&logs, confidence).map_err(|error| match error {
        Incomparable::NotFinite => Incomparable::NotPositive,
        other => other,
    })?;
    Ok(centre.map(f64::exp))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    /// Returns pairs of values in which the first value is `factor` times the second, with noise.
    /// Both values of a pair share the noise of the machine, and each value has the noise of its
    /// method. One in ten noise values is a large disturbance.
    fn pairs(rng: &mut Rng, count: usize, factor: f64) -> Vec<(f64, f64)> {
        let noise = |rng: &mut Rng, size: f64| {
            let uniform = rng.below(1_000_000) as f64 / 1e6 - 0.5;
            (uniform
                * if rng.below(10) == 0 {
                    10.0 * size
                } else {
                    size
                })
            .exp()
        };
        (0..count)
            .map(|_| {
                let shared = 1_000.0 * noise(rng, 2.0);
                (shared * factor * noise(rng, 0.1), shared * noise(rng, 0.1))
            })
            .collect()
    }

    #[test]
    fn false_differences_are_as_rare_as_stated() {
        let mut rng = Rng(11);
        for count in [6, 10, 30, 100] {
            let rounds = 1_000;
            let wrong = (0..rounds)
                .filter(|_| {
                    let comparison = compare(&pairs(&mut rng, count, 1.0)).unwrap();
                    comparison.verdict() != Verdict::NoneShown
                })
                .count();
            // The expected number of wrong results is 5 % of 1,000, which is 50. Three standard
            // deviations more are 71.
            assert!(wrong <= 71, "{wrong} of {rounds} with {count} pairs");
        }
    }

    #[test]
    fn a_difference_of_ten_percent_is_found() {
        let mut rng = Rng(12);
        for (factor, verdict) in [(1.1, Verdict::Higher), (1.0 / 1.1, Verdict::Lower)] {
            let found = (0..200)
                .filter(|_| {
                    let comparison = compare(&pairs(&mut rng, 30, factor)).unwrap();
                    let Interval { low, high, centre } = comparison.ratio;
                    assert!(low <= centre && centre <= high);
                    comparison.verdict() == verdict
                })
                .count();
            assert!(found >= 180, "{found} of 200");
        }
    }

    #[test]
    fn too_few_or_invalid_pairs_are_errors() {
        let few = [(1.0, 2.0); 5];
        assert_eq!(
            compare(&few),
            Err(Incomparable::TooFewPairs {
                found: 5,
                needed: 6
            })
        );
        let mut zero = [(1.0, 2.0); 6];
        let comparison = compare(&zero).unwrap();
        assert_eq!(comparison.ratio.centre, 0.5);
        assert_eq!(comparison.verdict(), Verdict::Lower);
        for odd in [(0.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0), (-1.0, 1.0)] {
            zero[3] = odd;
            assert_eq!(compare(&zero), Err(Incomparable::NotPositive), "{odd:?}");
        }
        let many = vec![(1.0, 1.0); 5_000];
        assert_eq!(
            compare(&many),
            Err(Incomparable::TooMany {
                found: 5_000,
                most: 4_096
            })
        );
    }
}
