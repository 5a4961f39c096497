//! Distribution of latencies.

use serde::Serialize;
use statistics::{CONFIDENCE, quantile};

use crate::Sample;

/// Number of bits of a latency that are kept after its leading 1 bit. They keep 3 decimal digits: the relative error
/// is at most 1/2,048.
const BITS: u32 = 10;

/// Distribution of latencies, and number of samples without a latency. The latencies are exact to 3 digits.
/// Outliers are kept, because the measurement is mainly about the tail of the distribution.
#[derive(Clone, Debug)]
pub struct Percentiles {
    values: views::Percentiles<BITS>,
    count: u64,
    early: u64,
    unknown: u64,
    min_ns: Option<i64>,
    max_ns: Option<i64>,
    sum_ns: i128,
}

/// Usual statistics of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Number of samples with a latency.
    pub count: u64,
    /// Number of samples without a latency, because they were lost or failed, or because the clock
    /// went back.
    pub unknown: u64,
    /// Number of samples with a negative latency, because they ended early.
    pub early: u64,
    /// Minimum latency in nanoseconds.
    pub min_ns: Option<i64>,
    /// Median latency in nanoseconds.
    pub p50_ns: Option<i64>,
    /// 90 % quantile of the latencies in nanoseconds.
    pub p90_ns: Option<i64>,
    /// 99 % quantile in nanoseconds. `None` if there are fewer than 368 independent samples, because the quantile
    /// then has no upper bound.
    pub p99_ns: Option<i64>,
    /// Lower and upper bound of the 99 % quantile in nanoseconds, with 95 % confidence.
    pub p99_bounds_ns: Option<[i64; 2]>,
    /// 99.9 % quantile in nanoseconds. `None` if there are fewer than 3,688 independent samples.
    pub p99_9_ns: Option<i64>,
    /// Lower and upper bound of the 99.9 % quantile in nanoseconds, with 95 % confidence.
    pub p99_9_bounds_ns: Option<[i64; 2]>,
    /// 99.99 % quantile in nanoseconds. `None` if there are fewer than 36,887 independent samples.
    pub p99_99_ns: Option<i64>,
    /// Lower and upper bound of the 99.99 % quantile in nanoseconds, with 95 % confidence.
    pub p99_99_bounds_ns: Option<[i64; 2]>,
    /// Maximum latency in nanoseconds.
    pub max_ns: Option<i64>,
    /// Mean latency in nanoseconds.
    pub mean_ns: Option<f64>,
}

impl Percentiles {
    /// Collects latencies. A value of `None` stands for a sample without a latency.
    pub fn from_latencies(latencies_ns: impl IntoIterator<Item = Option<i64>>) -> Percentiles {
        let mut all = Percentiles {
            values: views::Percentiles::EMPTY,
            count: 0,
            early: 0,
            unknown: 0,
            min_ns: None,
            max_ns: None,
            sum_ns: 0,
        };
        for latency_ns in latencies_ns {
            let Some(ns) = latency_ns else {
                all.unknown += 1;
                continue;
            };
            all.values.add(ns);
            all.count += 1;
            all.early += u64::from(ns < 0);
            all.min_ns = Some(all.min_ns.map_or(ns, |min| min.min(ns)));
            all.max_ns = Some(all.max_ns.map_or(ns, |max| max.max(ns)));
            all.sum_ns += i128::from(ns);
        }
        all.values.sort();
        all
    }

    /// Returns the number of latencies.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the latency that the given fraction of the samples does not exceed, exact to 3 digits. For
    /// example, the fraction 0.5 gives the median. Returns `None` if there are no latencies.
    pub fn quantile(&self, fraction: f64) -> Option<i64> {
        self.values.at(fraction)
    }

    /// Returns the median.
    pub fn median(&self) -> Option<i64> {
        self.quantile(0.5)
    }

    /// Returns the usual statistics. Samples may depend on each other and then count as fewer independent samples.
    /// `independent` returns this smaller number for a latency in nanoseconds: the number of independent samples that
    /// are equally good for an estimate of the share of samples above the latency. A high quantile is `None` if this
    /// number is too small for bounds of the quantile.
    pub fn summary(&self, independent: impl Fn(i64) -> u64) -> Summary {
        let count = self.count();
        let bounded = |fraction| {
            let value = self.quantile(fraction)?;
            let least = quantile::least_samples(fraction, CONFIDENCE);
            // With fewer than `least` samples, there are also too few independent samples, so `independent` is not
            // called. Most measurements are this short.
            let independent = (count >= least).then(|| independent(value).min(count))?;
            let ranks = quantile::bounds(independent, fraction, CONFIDENCE);
            let at = |rank: u64| self.quantile(rank as f64 / independent as f64);
            Some((value, [at(ranks.low?)?, at(ranks.high?)?]))
        };
        let [p99, p99_9, p99_99] = [0.99, 0.999, 0.9999].map(bounded);
        let value = |quantile: Option<(i64, [i64; 2])>| quantile.map(|(value, _)| value);
        let bounds = |quantile: Option<(i64, [i64; 2])>| quantile.map(|(_, bounds)| bounds);
        Summary {
            count,
            unknown: self.unknown,
            early: self.early,
            min_ns: self.min_ns,
            p50_ns: self.median(),
            p90_ns: self.quantile(0.9),
            p99_ns: value(p99),
            p99_bounds_ns: bounds(p99),
            p99_9_ns: value(p99_9),
            p99_9_bounds_ns: bounds(p99_9),
            p99_99_ns: value(p99_99),
            p99_99_bounds_ns: bounds(p99_99),
            max_ns: self.max_ns,
            mean_ns: (count > 0).then(|| self.sum_ns as f64 / count as f64),
        }
    }
}

impl<'s> FromIterator<&'s Sample> for Percentiles {
    fn from_iter<I: IntoIterator<Item = &'s Sample>>(samples: I) -> Self {
        Percentiles::from_latencies(samples.into_iter().map(|sample| sample.latency_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    #[test]
    fn quantiles_match_the_sorted_values() {
        let mut rng = Rng(7);
        for round in 0..40 {
            let count = 1 + rng.below(5_000);
            // The values are spread over many powers of ten. In every other round, some values are negative
            // (early samples).
            let mut values: Vec<i64> = (0..count)
                .map(|_| {
                    let digits = rng.below(40);
                    let ns = rng.below(1 << digits) as i64;
                    if round % 2 == 0 && rng.below(3) == 0 {
                        -ns
                    } else {
                        ns
                    }
                })
                .collect();
            let percentiles = Percentiles::from_latencies(values.iter().copied().map(Some));
            values.sort_unstable();
            for share in [0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0] {
                let rank = ((share * count as f64).ceil() as usize).clamp(1, count);
                let exact = values[rank - 1];
                let estimate = percentiles.quantile(share).unwrap();
                let error = (estimate - exact).unsigned_abs();
                assert!(
                    error * 1_000 <= exact.unsigned_abs(),
                    "{share}: {estimate}, not {exact}"
                );
            }
            let summary = percentiles.summary(|_| count as u64);
            assert_eq!(summary.min_ns, values.first().copied());
            assert_eq!(summary.max_ns, values.last().copied());
            assert_eq!(
                summary.early as usize,
                values.iter().filter(|v| **v < 0).count()
            );
            // An upper bound of the 99 % quantile with 97.5 % confidence needs at least 368
            // samples: 0.99^368 < 2.5 %.
            assert_eq!(summary.p99_ns.is_some(), count >= 368);
            assert_eq!(summary.p99_9_ns.is_some(), count >= 3_688);
            assert_eq!(summary.p99_bounds_ns.is_some(), count >= 368);
        }
    }

    /// Checks the bounds against published ranks: of 1,000 independent samples, the 983rd and the 997th bound p99.
    #[test]
    fn bounds_are_those_of_the_independent_samples() {
        let percentiles = Percentiles::from_latencies((1..=1_000).map(Some));
        let bounds = |independent| percentiles.summary(|_| independent).p99_bounds_ns;
        assert_eq!(bounds(1_000), Some([983, 997]));
        // Of 368 independent samples, the 360th and the last bound p99. As shares of all samples, these ranks are
        // .978 and 1.
        assert_eq!(bounds(368), Some([979, 1_000]));
        assert_eq!(bounds(367), None);
        assert_eq!(percentiles.summary(|_| 367).p99_ns, None);
    }

    #[test]
    fn without_samples_nothing_is_known() {
        let percentiles = Percentiles::from_latencies([None]);
        let summary = percentiles.summary(|_| 0);
        assert_eq!((summary.count, summary.unknown), (0, 1));
        assert_eq!((summary.p50_ns, summary.mean_ns), (None, None));
        let percentiles = Percentiles::from_latencies([Some(i64::MAX), Some(i64::MIN)]);
        assert_eq!(percentiles.quantile(0.0), Some(i64::MIN));
        assert_eq!(percentiles.quantile(1.0), Some(i64::MAX));
    }
}
