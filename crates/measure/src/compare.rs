//! Statistical comparison of two methods.
//!
//! The runs of both methods alternate, so that disturbances of the machine affect both. Each pair
//! of runs yields a ratio of medians. The estimate is the Hodges–Lehmann centre of the logarithms
//! of these ratios (the median of all pairwise means). Its confidence interval follows from the
//! critical value of Wilcoxon's signed-rank statistic. This comparison assumes no distribution of
//! latencies, and a single disturbed run has little influence. The samples of a run depend on each
//! other, so they count as one value.

use serde::Serialize;

/// Minimum probability that a confidence interval contains the true value.
const CONFIDENCE: f64 = 0.95;

/// An estimate with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Estimate.
    pub centre: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

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

/// Error of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    /// There are too few pairs of runs.
    #[error(
        "too few pairs of runs: {found}; 95 % confidence needs {}",
        Comparison::MIN_PAIRS
    )]
    TooFew {
        /// Number of pairs.
        found: usize,
    },
    /// There are too many pairs of runs.
    #[error(
        "too many pairs of runs: {found}; the maximum is {}",
        Comparison::MAX_PAIRS
    )]
    TooMany {
        /// Number of pairs.
        found: usize,
    },
    /// A median is zero or negative.
    #[error("a median is zero or negative, so there is no ratio")]
    NotPositive,
}

impl Comparison {
    /// Minimum number of pairs. With five pairs, no interval has 95 % confidence, because the
    /// probability of an error is at least 2 · 2⁻⁵, which exceeds 5 %.
    pub const MIN_PAIRS: usize = 6;

    /// Maximum number of pairs. It limits the memory for all pairwise means.
    pub const MAX_PAIRS: usize = 4_096;

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
    let ratio = positive_interval(pairs.iter().map(of_pair))?;
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
) -> Result<Interval, Incomparable> {
    let logs: Vec<f64> = values.map(f64::ln).collect();
    let found = logs.len();
    if found < Comparison::MIN_PAIRS {
        return Err(Incomparable::TooFew { found });
    }
    if found > Comparison::MAX_PAIRS {
        return Err(Incomparable::TooMany { found });
    }
    if !logs.iter().all(|log| log.is_finite()) {
        return Err(Incomparable::NotPositive);
    }
    let mut means = Vec::with_capacity(found * (found + 1) / 2);
    for (n, first) in logs.iter().enumerate() {
        means.extend(logs[n..].iter().map(|second| (first + second) / 2.0));
    }
    means.sort_unstable_by(f64::total_cmp);
    let rank = critical_rank(found);
    let middle = means.len() / 2;
    let centre = match means.len() % 2 {
        0 => (means[middle - 1] + means[middle]) / 2.0,
        _ => means[middle],
    };
    Ok(Interval {
        centre: centre.exp(),
        low: means[rank - 1].exp(),
        high: means[means.len() - rank].exp(),
    })
}

/// Returns the largest k with this property: the signed-rank statistic of `count` values with
/// random signs is below k with a probability of at most (1 − `CONFIDENCE`) / 2.
fn critical_rank(count: usize) -> usize {
    /// Maximum count for which the exact distribution is computed. For higher counts, the error of
    /// the normal approximation is less than one rank in thousands.
    const EXACT: usize = 64;

    let tail = (1.0 - CONFIDENCE) / 2.0;
    let n = count as f64;
    if count > EXACT {
        const QUANTILE: f64 = 1.959_964; // 0.975 quantile of the standard normal distribution
        let mean = n * (n + 1.0) / 4.0;
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        return (mean - QUANTILE * deviation).floor().max(1.0) as usize;
    }
    // `chances[sum]` is the probability that a random subset of the ranks 1..=n has this sum.
    let mut chances = vec![0.0; count * (count + 1) / 2 + 1];
    chances[0] = 1.0;
    for rank in 1..=count {
        for sum in (0..chances.len()).rev() {
            let with = if sum >= rank {
                chances[sum - rank]
            } else {
                0.0
            };
            chances[sum] = (chances[sum] + with) / 2.0;
        }
    }
    let mut below = 0.0;
    let fits = |chance: &&f64| {
        below += **chance;
        below <= tail
    };
    chances.iter().take_while(fits).count().max(1)
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
    fn critical_values_match_published_tables() {
        // Published critical values of Wilcoxon's signed-rank test (two-sided, 5 %) for n = 6, 7,
        // 8, 9, 10, 12, 15, 20, 25, 30. A statistic up to this value is significant;
        // `critical_rank` returns this value plus 1.
        let published = [
            (6, 0),
            (7, 2),
            (8, 3),
            (9, 5),
            (10, 8),
            (12, 13),
            (15, 25),
            (20, 52),
            (25, 89),
            (30, 137),
        ];
        for (count, value) in published {
            assert_eq!(critical_rank(count), value + 1, "{count}");
        }
        // The normal approximation, which is used from 65 values on, continues the exact values.
        let (exact, next) = (critical_rank(64), critical_rank(65));
        assert!((1..=40).contains(&(next - exact)), "{exact}, {next}");
    }

    #[test]
    fn too_few_or_invalid_pairs_are_errors() {
        let few = [(1.0, 2.0); 5];
        assert_eq!(compare(&few), Err(Incomparable::TooFew { found: 5 }));
        let mut zero = [(1.0, 2.0); 6];
        let comparison = compare(&zero).unwrap();
        assert_eq!(comparison.ratio.centre, 0.5);
        assert_eq!(comparison.verdict(), Verdict::Lower);
        for odd in [(0.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0), (-1.0, 1.0)] {
            zero[3] = odd;
            assert_eq!(compare(&zero), Err(Incomparable::NotPositive), "{odd:?}");
        }
        let many = vec![(1.0, 1.0); 5_000];
        assert_eq!(compare(&many), Err(Incomparable::TooMany { found: 5_000 }));
    }
}
