//! Comparison of pairs of neighbouring runs.
//!
//! The centre of the differences is the Hodges–Lehmann estimate: the median of the means of all pairs of
//! differences. The bounds of the centre follow from the critical value of Wilcoxon's signed-rank statistic.
//! The only assumption is that swapping the variants of a pair would change only the sign of its difference.
//! A single disturbed run has little influence.

use crate::random::Random;
use crate::{Incomparable, Interval, normal};

/// Minimum number of pairs. With five pairs, no interval has 95 % confidence: the probability of an error is
/// at least 2 · 2⁻⁵, which exceeds 5 %.
pub const LEAST: usize = 6;

/// Maximum number of pairs. It limits the memory for the means of all pairs of differences.
pub const MOST: usize = 4_096;

/// Returns the centre of the differences and its confidence interval. The interval contains the true centre
/// with a probability of at least `confidence`.
///
/// # Errors
/// Returns an error if there are too few or too many pairs, or if a difference is not finite.
pub fn centre(differences: &[f64], confidence: f64) -> Result<Interval, Incomparable> {
    let pairs = differences.len();
    if pairs > MOST {
        return Err(Incomparable::TooMany {
            found: pairs,
            most: MOST,
        });
    }
    let rank = critical_rank(pairs, confidence);
    if pairs < LEAST || rank == 0 {
        let least_error = (1.0 - confidence) / 2.0;
        let needed = LEAST.max((-least_error.log2()).ceil() as usize);
        return Err(Incomparable::TooFewPairs {
            found: pairs,
            needed,
        });
    }
    if !differences.iter().all(|difference| difference.is_finite()) {
        return Err(Incomparable::NotFinite);
    }
    Ok(Interval::of_ranks(walsh_averages(differences), rank))
}

/// Returns the means of all pairs of values (Walsh averages). The pairs include each value with itself.
pub(crate) fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let mut means = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (n, first) in values.iter().enumerate() {
        let others = values[n..].iter();
        means.extend(others.map(|second| f64::midpoint(*first, *second)));
    }
    means
}

/// Returns the largest `k` with `P(W < k) <= (1 - confidence) / 2`. `W` is the signed-rank statistic of
/// `count` values with random signs.
pub fn critical_rank(count: usize, confidence: f64) -> usize {
    /// Maximum count for which the exact distribution is computed. For larger counts, the error of the normal
    /// approximation is less than one rank in thousands of ranks.
    const EXACT: usize = 64;

    let tail = (1.0 - confidence) / 2.0;
    if count > EXACT {
        let n = count as f64;
        let mean = n * (n + 1.0) / 4.0;
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        return (mean + normal::quantile(tail) * deviation).floor().max(1.0) as usize;
    }
    let ranks: Vec<usize> = (1..=count).collect();
    ranks_within(&sums_of_subsets(&ranks), tail)
}

/// Returns the largest `k` for which the first `k` probabilities of a distribution have a sum of at most
/// `tail`.
pub(crate) fn ranks_within(law: &[f64], tail: f64) -> usize {
    // Each probability is a sum of many terms. Rounding errors may make a sum larger than `tail` although both should
    // be equal, so the comparison has a tolerance.
    let mut below = 0.0;
    let fits = |chance: &&f64| {
        below += **chance;
        below <= tail + 1e-12
    };
    law.iter().take_while(fits).count()
}

/// Returns for each sum the probability that the ranks of a random subset have this sum.
fn sums_of_subsets(ranks: &[usize]) -> Vec<f64> {
    let mut chances = vec![0.0; ranks.iter().sum::<usize>() + 1];
    chances[0] = 1.0;
    let mut reached = 0;
    for rank in ranks {
        reached += rank;
        for sum in (0..=reached).rev() {
            let with = sum
                .checked_sub(*rank)
                .map_or(0.0, |without| chances[without]);
            chances[sum] = (chances[sum] + with) / 2.0;
        }
    }
    chances
}

/// Returns twice the rank of each magnitude. Equal magnitudes share their mean rank, which may be a fraction such as
/// 2.5. Doubled ranks are integers.
pub(crate) fn doubled_ranks(magnitudes: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..magnitudes.len()).collect();
    order.sort_unstable_by(|a, b| magnitudes[*a].total_cmp(&magnitudes[*b]));
    let mut ranks = vec![0; magnitudes.len()];
    let mut start = 0;
    for equal in order.chunk_by(|a, b| magnitudes[*a] == magnitudes[*b]) {
        let end = start + equal.len();
        // Twice the mean of the ranks from `start + 1` to `end`.
        equal
            .iter()
            .for_each(|place| ranks[*place] = start + 1 + end);
        start = end;
    }
    ranks
}

/// Returns the probability that the signed ranks are at least as extreme if nothing changed. It is computed
/// from the distribution over all flips of the signs. Equal magnitudes share their mean rank. A difference of
/// 0 has no sign that could be flipped.
pub fn signed_rank_p(differences: &[f64]) -> f64 {
    /// Maximum number of pairs for which the exact distribution is computed.
    const EXACT: usize = 200;

    let magnitudes: Vec<f64> = differences.iter().map(|d| d.abs()).collect();
    let ranks = doubled_ranks(&magnitudes);
    let (mut flipped, mut positive) = (Vec::new(), 0);
    for (difference, rank) in differences.iter().zip(ranks) {
        if *difference != 0.0 {
            flipped.push(rank);
            positive += if *difference > 0.0 { rank } else { 0 };
        }
    }
    let all: usize = flipped.iter().sum();
    let seen = (2 * positive).abs_diff(all);
    if differences.len() > EXACT {
        let squares: f64 = flipped.iter().map(|rank| (*rank as f64).powi(2)).sum();
        return (2.0 * normal::below(-(seen as f64) / squares.sqrt())).min(1.0);
    }
    let law = sums_of_subsets(&flipped);
    let extreme = law.iter().enumerate();
    let extreme = extreme.filter(|(sum, _)| (2 * sum).abs_diff(all) >= seen);
    extreme.map(|(_, chance)| chance).sum::<f64>().min(1.0)
}

/// Returns the probability that the mean is at least as extreme if nothing changed. For at most 20 pairs, the
/// probability is exact. For more pairs, it is estimated from 100,000 random flips of the signs with a fixed
/// seed.
pub fn mean_p(differences: &[f64]) -> f64 {
    const EXACT: usize = 20;
    const DRAWS: u64 = 100_000;

    let sizes: f64 = differences.iter().map(|d| d.abs()).sum();
    let seen = differences.iter().sum::<f64>().abs() - 1e-12 * sizes;
    let is_extreme = |flip: &mut dyn FnMut(usize) -> bool| {
        let signed = differences.iter().enumerate();
        let sum: f64 = signed.map(|(n, d)| if flip(n) { -d } else { *d }).sum();
        sum.abs() >= seen
    };
    if differences.len() <= EXACT {
        let patterns = 1_u64 << differences.len();
        let extreme = (0..patterns).filter(|flips| is_extreme(&mut |n| flips >> n & 1 == 1));
        return extreme.count() as f64 / patterns as f64;
    }
    let mut random = Random::new(1);
    let mut word = 0;
    let mut flip = |n: usize| {
        if n.is_multiple_of(64) {
            word = random.bits();
        }
        word >> (n % 64) & 1 == 1
    };
    let extreme = (0..DRAWS).filter(|_| is_extreme(&mut flip)).count() as f64;
    (1.0 + extreme) / (1.0 + DRAWS as f64)
}
