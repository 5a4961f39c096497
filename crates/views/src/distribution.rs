//! Exact quantiles of weighted values, for data that fits in memory.

/// Maximum number of values of each distribution in `plus`. `plus` adds each value of one distribution to each value
/// of the other. If a distribution has more values, 1,000 quantiles represent it.
const STEPS: u64 = 1_000;

/// Weighted values in ascending order. Quantiles are exact. They use the nearest-rank method.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Different values with their counts.
    values: Vec<(i64, u64)>,
    /// Number of values up to and including each entry of `values`.
    up_to: Vec<u64>,
}

impl Distribution {
    /// Creates the distribution of values with their counts, which may be in any order. Totals are limited to
    /// the maximum of `u64`.
    pub fn new(mut values: Vec<(i64, u64)>) -> Self {
        values.sort_unstable_by_key(|(value, _)| *value);
        values.dedup_by(|next, before| {
            let same = next.0 == before.0;
            if same {
                before.1 = before.1.saturating_add(next.1);
            }
            same
        });
        let up_to = values.iter().scan(0_u64, |sum, (_, count)| {
            *sum = sum.saturating_add(*count);
            Some(*sum)
        });
        let up_to = up_to.collect();
        Self { values, up_to }
    }

    /// Returns the smallest value `v` for which at least the share `share` of the values is less than or
    /// equal to `v`. A share of 0.5 gives the median, and a share of 1 gives the maximum. Returns `None` if
    /// there are no values.
    pub fn quantile(&self, share: f64) -> Option<i64> {
        let (max, _) = self.values.last()?;
        if share >= 1.0 {
            return Some(*max);
        }
        let rank = nearest_rank(share, *self.up_to.last()?);
        let place = self.up_to.partition_point(|up_to| *up_to < rank);
        self.values.get(place).map(|(value, _)| *value)
    }

    /// Returns the distribution of the sum of two independent values. If a distribution has more than 1,000 different
    /// values or more than 2^24 values in total, 1,000 quantiles represent it.
    pub fn plus(&self, other: &Self) -> Self {
        let (a, b) = (self.steps(), other.steps());
        let sums = a.iter().flat_map(|(a, count)| {
            let add = move |(b, other): &(i64, u64)| (a.saturating_add(*b), count * other);
            b.iter().map(add)
        });
        Self::new(sums.collect())
    }

    /// Returns the values with their counts. Returns 1,000 quantiles instead if there are more than 1,000 values, or
    /// if the counts are so large that products of two counts could overflow.
    fn steps(&self) -> Vec<(i64, u64)> {
        let total = self.up_to.last().copied().unwrap_or(0);
        if self.values.len() as u64 <= STEPS && total <= 1 << 24 {
            return self.values.clone();
        }
        (1..=STEPS)
            .filter_map(|step| Some((self.quantile(step as f64 / STEPS as f64)?, 1)))
            .collect()
    }
}

/// Returns the rank of a quantile among `count` values, counted from 1.
pub(crate) fn nearest_rank(share: f64, count: u64) -> u64 {
    // Shares such as 0.07 are not exact in floating point: 100 × 0.07 is slightly greater than 7. Without the
    // subtraction, this result would be rounded up to 8.
    let rank = (share * count as f64 - 1e-6).ceil() as u64;
    rank.clamp(1, count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    const SHARES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];

    fn quantiles(distribution: &Distribution) -> [i64; 5] {
        SHARES.map(|share| distribution.quantile(share).expect("values"))
    }

    /// Tests the values 1 to 1000. For these values, the value at a rank is equal to the rank.
    #[test]
    fn quantiles_are_nearest_ranks() {
        let values = (1..=1_000).rev().map(|value| (value, 1)).collect();
        let expected = [500, 900, 990, 999, 1_000];
        assert_eq!(quantiles(&Distribution::new(values)), expected);
        let rare = Distribution::new(vec![(7, 1), (3, 99)]);
        assert_eq!(quantiles(&rare), [3, 3, 3, 7, 7]);
        assert_eq!(Distribution::new(Vec::new()).quantile(0.5), None);
        let hundred = Distribution::new((1..=100).map(|value| (value, 1)).collect());
        for percent in 1..=100 {
            let share = percent as f64 / 100.0;
            assert_eq!(hundred.quantile(share), Some(percent), "{share}");
        }
    }

    /// Compares the quantiles of a sum with the sorted sums of all pairs of values.
    #[test]
    fn sums_are_those_of_all_pairs() {
        let mut rng = Rng(3);
        let mut some = |count| -> Vec<(i64, u64)> {
            (0..count)
                .map(|_| (rng.below(50) as i64, 1 + rng.below(3) as u64))
                .collect()
        };
        let (a, b) = (some(40), some(30));
        let plain = |values: &[(i64, u64)]| -> Vec<i64> {
            let repeated = |(value, count): &(i64, u64)| vec![*value; *count as usize];
            values.iter().flat_map(repeated).collect()
        };
        let mut sums: Vec<i64> = plain(&a)
            .iter()
            .flat_map(|a| plain(&b).into_iter().map(move |b| a + b))
            .collect();
        sums.sort_unstable();
        let at = |of_1000: usize| sums[(sums.len() * of_1000).div_ceil(1_000) - 1];
        let expected = [at(500), at(900), at(990), at(999), at(1_000)];
        let sum = Distribution::new(a).plus(&Distribution::new(b));
        assert_eq!(quantiles(&sum), expected);
    }

    #[test]
    fn quantiles_represent_many_values_in_a_sum() {
        let many = Distribution::new((1..=100_000).map(|value| (value, 1)).collect());
        let sum = many.plus(&Distribution::new(vec![(0, u64::MAX)]));
        assert_eq!(quantiles(&sum), [50_000, 90_000, 99_000, 99_900, 100_000]);
    }
}
