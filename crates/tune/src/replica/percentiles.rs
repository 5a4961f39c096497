//! How values are spread.

use serde::Serialize;

/// Values of which a share is no greater (nearest rank).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// Half of them are no greater.
    pub p50: i64,
    /// 90 of 100 are not.
    pub p90: i64,
    /// 99 of 100.
    pub p99: i64,
    /// 999 of 1,000.
    pub p99_9: i64,
    /// All.
    pub max: i64,
}

/// So many steps of two spreads are added up in pairs; of more values, so many quantiles stand for them.
const STEPS: u64 = 1_000;

impl Percentiles {
    /// Of values and how often each occurs, of which there must be one.
    pub(super) fn of(mut values: Vec<(i64, u64)>) -> Self {
        values.sort_unstable_by_key(|(value, _)| *value);
        let sorted = Sorted::new(&values);
        Percentiles {
            p50: sorted.at(0.5),
            p90: sorted.at(0.9),
            p99: sorted.at(0.99),
            p99_9: sorted.at(0.999),
            max: values.last().map_or(0, |(value, _)| *value),
        }
    }

    /// Of the sums of two values that have nothing to do with each other.
    pub(super) fn of_sums(a: Vec<(i64, u64)>, b: Vec<(i64, u64)>) -> Self {
        let (a, b) = (few(a), few(b));
        let sums = a.iter().flat_map(|(a, count)| {
            let add = move |(b, other): &(i64, u64)| (a.saturating_add(*b), count * other);
            b.iter().map(add)
        });
        Self::of(sums.collect())
    }
}

/// The same spread in few values: itself, or quantiles of it and its greatest value.
fn few(mut values: Vec<(i64, u64)>) -> Vec<(i64, u64)> {
    values.sort_unstable_by_key(|(value, _)| *value);
    values.dedup_by(|next, before| {
        let same = next.0 == before.0;
        if same {
            before.1 = before.1.saturating_add(next.1);
        }
        same
    });
    let total = values
        .iter()
        .fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
    // Counts must not overflow where two of them are multiplied and added up.
    if values.len() as u64 <= STEPS && total <= 1 << 24 {
        return values;
    }
    let sorted = Sorted::new(&values);
    (1..=STEPS)
        .map(|step| (sorted.at(step as f64 / STEPS as f64), 1))
        .collect()
}

/// Values in order, with how many are up to each.
struct Sorted<'a> {
    values: &'a [(i64, u64)],
    up_to: Vec<u64>,
}

impl<'a> Sorted<'a> {
    fn new(values: &'a [(i64, u64)]) -> Self {
        let up_to = values.iter().scan(0u64, |sum, (_, count)| {
            *sum = sum.saturating_add(*count);
            Some(*sum)
        });
        Sorted {
            values,
            up_to: up_to.collect(),
        }
    }

    /// The least value that such a share is no greater than.
    fn at(&self, share: f64) -> i64 {
        let total = self.up_to.last().copied().unwrap_or(0);
        // Shares such as 0.9 are not exact, and a rank must not be one too high for it.
        let rank = (total as f64 * share - 1e-6).ceil() as u64;
        let place = self.up_to.partition_point(|up_to| *up_to < rank.max(1));
        self.values
            .get(place.min(self.values.len().saturating_sub(1)))
            .map_or(0, |(value, _)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    /// Nearest ranks of 1 to 1000 are the ranks themselves.
    #[test]
    fn ranks_are_the_nearest() {
        let values = (1..=1_000).rev().map(|value| (value, 1)).collect();
        let expected = Percentiles {
            p50: 500,
            p90: 900,
            p99: 990,
            p99_9: 999,
            max: 1_000,
        };
        assert_eq!(Percentiles::of(values), expected);
        let seldom = Percentiles::of(vec![(7, 1), (3, 99)]);
        assert_eq!((seldom.p50, seldom.p99, seldom.p99_9), (3, 3, 7));
    }

    /// Against every pair, added up and sorted plainly.
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
            values
                .iter()
                .flat_map(|(value, count)| vec![*value; *count as usize])
                .collect()
        };
        let mut sums: Vec<i64> = plain(&a)
            .iter()
            .flat_map(|a| plain(&b).into_iter().map(move |b| a + b))
            .collect();
        sums.sort_unstable();
        let at = |of_1000: usize| sums[(sums.len() * of_1000).div_ceil(1_000) - 1];
        let expected = Percentiles {
            p50: at(500),
            p90: at(900),
            p99: at(990),
            p99_9: at(999),
            max: at(1_000),
        };
        assert_eq!(Percentiles::of_sums(a, b), expected);
    }

    #[test]
    fn many_values_are_stood_for_by_quantiles() {
        let many: Vec<(i64, u64)> = (1..=100_000).map(|value| (value, 1)).collect();
        let sums = Percentiles::of_sums(many, vec![(0, u64::MAX)]);
        assert_eq!((sums.p50, sums.p99_9, sums.max), (50_000, 99_900, 100_000));
    }
}
