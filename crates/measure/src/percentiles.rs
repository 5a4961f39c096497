//! How latencies are spread.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::Sample;

/// Counts of latencies, exact to 3 digits, and of samples without one.
///
/// Nothing is left out as an outlier: what is seldom and late is what is looked for.
#[derive(Clone, Debug)]
pub struct Percentiles {
    /// Latencies of 0 and more.
    late: Histogram<u64>,
    /// How early the others were.
    early: Histogram<u64>,
    least_ns: Option<i64>,
    most_ns: Option<i64>,
    sum_ns: i128,
    unknown: u64,
}

/// What is usually said of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Samples with a latency.
    pub count: u64,
    /// Samples without one: lost, failed, or the clock went back.
    pub unknown: u64,
    /// Samples that ended before they should have.
    pub early: u64,
    /// The least.
    pub min_ns: Option<i64>,
    /// Half of them are at most that long.
    pub p50_ns: Option<i64>,
    /// 90 of 100 are.
    pub p90_ns: Option<i64>,
    /// 99 of 100 are; unknown of fewer samples.
    pub p99_ns: Option<i64>,
    /// 999 of 1,000 are; unknown of fewer samples.
    pub p99_9_ns: Option<i64>,
    /// 9,999 of 10,000 are; unknown of fewer samples.
    pub p99_99_ns: Option<i64>,
    /// The longest.
    pub max_ns: Option<i64>,
    /// The mean.
    pub mean_ns: Option<f64>,
}

impl Default for Percentiles {
    fn default() -> Self {
        // Only a number of digits above 5 is refused.
        let histogram = || Histogram::new(3).expect("3 digits are allowed");
        Percentiles {
            late: histogram(),
            early: histogram(),
            least_ns: None,
            most_ns: None,
            sum_ns: 0,
            unknown: 0,
        }
    }
}

impl Percentiles {
    /// Counts a latency, or that there is none.
    pub fn add(&mut self, latency_ns: Option<i64>) {
        let Some(ns) = latency_ns else {
            self.unknown += 1;
            return;
        };
        let histogram = match ns {
            0.. => &mut self.late,
            _ => &mut self.early,
        };
        // It grows as it must, to half a megabyte for the greatest value of all.
        histogram
            .record(ns.unsigned_abs())
            .expect("there is room for any u64");
        self.least_ns = Some(self.least_ns.map_or(ns, |least| least.min(ns)));
        self.most_ns = Some(self.most_ns.map_or(ns, |most| most.max(ns)));
        self.sum_ns += i128::from(ns);
    }

    /// Latencies counted.
    pub fn count(&self) -> u64 {
        self.late.len() + self.early.len()
    }

    /// The latency that a share of the samples does not exceed (0.5: the median), to 3 digits.
    /// Unknown if there are none.
    pub fn quantile(&self, share: f64) -> Option<i64> {
        let (least, most) = (self.least_ns?, self.most_ns?);
        let count = self.count();
        let rank = ((share.clamp(0.0, 1.0) * count as f64).ceil() as u64).clamp(1, count);
        let of = |histogram: &Histogram<u64>, rank: u64| {
            // Between two ranks, so that rounding leads to neither neighbour.
            let share = (rank as f64 - 0.5) / histogram.len() as f64;
            histogram.value_at_quantile(share)
        };
        let early = self.early.len();
        let ns = match rank <= early {
            true => 0i64.saturating_sub_unsigned(of(&self.early, early - rank + 1)),
            false => 0i64.saturating_add_unsigned(of(&self.late, rank - early)),
        };
        Some(ns.clamp(least, most))
    }

    /// The median.
    pub fn median(&self) -> Option<i64> {
        self.quantile(0.5)
    }

    /// What is usually said.
    pub fn summary(&self) -> Summary {
        let count = self.count();
        let of_enough =
            |least: u64, share| (count >= least).then(|| self.quantile(share)).flatten();
        Summary {
            count,
            unknown: self.unknown,
            early: self.early.len(),
            min_ns: self.least_ns,
            p50_ns: self.median(),
            p90_ns: self.quantile(0.9),
            p99_ns: of_enough(100, 0.99),
            p99_9_ns: of_enough(1_000, 0.999),
            p99_99_ns: of_enough(10_000, 0.9999),
            max_ns: self.most_ns,
            mean_ns: (count > 0).then(|| self.sum_ns as f64 / count as f64),
        }
    }
}

impl<'s> FromIterator<&'s Sample> for Percentiles {
    fn from_iter<I: IntoIterator<Item = &'s Sample>>(samples: I) -> Self {
        let mut percentiles = Percentiles::default();
        for sample in samples {
            percentiles.add(sample.latency_ns);
        }
        percentiles
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    #[test]
    fn quantiles_are_those_of_the_sorted_values() {
        let mut rng = Rng(7);
        for round in 0..40 {
            let count = 1 + rng.below(5_000);
            // Spread over many powers of ten; in every other round some are early.
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
            let mut percentiles = Percentiles::default();
            values.iter().for_each(|ns| percentiles.add(Some(*ns)));
            values.sort_unstable();
            for share in [0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0] {
                let rank = ((share * count as f64).ceil() as usize).clamp(1, count);
                let exact = values[rank - 1];
                let found = percentiles.quantile(share).unwrap();
                let error = (found - exact).unsigned_abs();
                assert!(
                    error * 1_000 <= exact.unsigned_abs(),
                    "{share}: {found}, not {exact}"
                );
            }
            let summary = percentiles.summary();
            assert_eq!(summary.min_ns, values.first().copied());
            assert_eq!(summary.max_ns, values.last().copied());
            assert_eq!(
                summary.early as usize,
                values.iter().filter(|v| **v < 0).count()
            );
            assert_eq!(summary.p99_ns.is_some(), count >= 100);
            assert_eq!(summary.p99_9_ns.is_some(), count >= 1_000);
        }
    }

    #[test]
    fn of_nothing_nothing_is_known() {
        let mut percentiles = Percentiles::default();
        percentiles.add(None);
        let summary = percentiles.summary();
        assert_eq!((summary.count, summary.unknown), (0, 1));
        assert_eq!((summary.p50_ns, summary.mean_ns), (None, None));
        percentiles.add(Some(i64::MAX));
        percentiles.add(Some(i64::MIN));
        assert_eq!(percentiles.quantile(0.0), Some(i64::MIN));
        assert_eq!(percentiles.quantile(1.0), Some(i64::MAX));
    }
}
