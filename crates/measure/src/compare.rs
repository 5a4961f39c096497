//! Whether one method is faster than another, and how sure that is.
//!
//! Methods are measured in runs next to each other, so that whatever else the machine does meets
//! all of them. Each pair of runs gives one ratio of their medians; of these ratios' logarithms the
//! centre and its confidence interval are those of Wilcoxon's signed-rank statistic (Hodges and
//! Lehmann): the median of all pairwise means, and the order statistics of these at the statistic's
//! critical value. A run that the machine disturbed moves it little, nothing is assumed about how
//! latencies are spread, and samples of one run, which are not independent, count as one.

use serde::Serialize;

/// The share of intervals that hold the true value, at least.
const CONFIDENCE: f64 = 0.95;

/// A value and between what bounds it lies, with 95 % confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// The best estimate.
    pub centre: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

/// How a method compares to another that was measured beside it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Pairs of runs.
    pub pairs: usize,
    /// The method's latency divided by the other's.
    pub ratio: Interval,
}

/// What may be said of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The method's latency is lower.
    Lower,
    /// It is higher.
    Higher,
    /// No difference is shown: the interval holds 1. There may be one that is smaller than it.
    NoneShown,
}

/// Nothing can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    /// Too few pairs.
    #[error(
        "{found} pairs of runs; it takes {} to say anything with 95 % confidence",
        Comparison::LEAST_PAIRS
    )]
    TooFew {
        /// How many there are.
        found: usize,
    },
    /// Too many pairs.
    #[error(
        "{found} pairs of runs; at most {} are compared",
        Comparison::MOST_PAIRS
    )]
    TooMany {
        /// How many there are.
        found: usize,
    },
    /// A ratio of such medians means nothing.
    #[error("a median is 0 or negative, and so has no ratio to another")]
    NotPositive,
}

impl Comparison {
    /// Of fewer pairs, no bounds hold with 95 % confidence: 2 · 2⁻⁵ is more than 5 %.
    pub const LEAST_PAIRS: usize = 6;

    /// Bounds the memory: all means of two are held.
    pub const MOST_PAIRS: usize = 4_096;

    /// What may be said.
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

/// Compares two methods by the medians of their runs, given as (method, other) of runs that were
/// next to each other.
///
/// # Errors
/// If there are too few or too many pairs, or one has no ratio.
pub fn compare(pairs: &[(f64, f64)]) -> Result<Comparison, Incomparable> {
    let of_pair = |(method, other): &(f64, f64)| method / other;
    let ratio = positive_interval(pairs.iter().map(of_pair))?;
    Ok(Comparison {
        pairs: pairs.len(),
        ratio,
    })
}

/// Where the centre of positive values lies, of which each is as likely to be some factor above it
/// as below.
///
/// # Errors
/// As of [`compare`].
pub(crate) fn positive_interval(
    values: impl Iterator<Item = f64>,
) -> Result<Interval, Incomparable> {
    let logs: Vec<f64> = values.map(f64::ln).collect();
    let found = logs.len();
    if found < Comparison::LEAST_PAIRS {
        return Err(Incomparable::TooFew { found });
    }
    if found > Comparison::MOST_PAIRS {
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

/// The greatest k such that the signed-rank statistic of so many values, all as likely positive as
/// negative, is below k in at most half of what the confidence leaves.
fn critical_rank(count: usize) -> usize {
    /// Above, the normal approximation errs by less than one rank in thousands.
    const EXACT: usize = 64;

    let tail = (1.0 - CONFIDENCE) / 2.0;
    let n = count as f64;
    if count > EXACT {
        const QUANTILE: f64 = 1.959_964; // of the standard normal distribution, at 0.975
        let mean = n * (n + 1.0) / 4.0;
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        return (mean - QUANTILE * deviation).floor().max(1.0) as usize;
    }
    // The distribution of the sum of the ranks 1..=n of which each counts or not.
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

    /// Pairs of which the first is `factor` times the second save for noise: the machine's, which
    /// both share, and each one's own, of which one in ten is a disturbance many times as large.
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
    fn equal_methods_are_told_apart_no_more_often_than_stated() {
        let mut rng = Rng(11);
        for count in [6, 10, 30, 100] {
            let rounds = 1_000;
            let wrong = (0..rounds)
                .filter(|_| {
                    let comparison = compare(&pairs(&mut rng, count, 1.0)).unwrap();
                    comparison.verdict() != Verdict::NoneShown
                })
                .count();
            // 5 % of 1,000 is 50; three standard deviations more are 71.
            assert!(wrong <= 71, "{wrong} of {rounds} with {count} pairs");
        }
    }

    #[test]
    fn ten_percent_are_found() {
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
    fn critical_values_are_those_of_published_tables() {
        // Two-sided 5 % (Wilcoxon's signed-rank test): the statistic at or below which equality is
        // rejected, for n = 6, 7, 8, 9, 10, 12, 15, 20, 25, 30. Ours is the next one.
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
        // Where the approximation begins, it goes on.
        let (exact, next) = (critical_rank(64), critical_rank(65));
        assert!((1..=40).contains(&(next - exact)), "{exact}, {next}");
    }

    #[test]
    fn nothing_is_said_of_too_little() {
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
