//! Comparison of runs without pairs.
//!
//! The shift is the median of all differences between a run after and a run before the change. The bounds of
//! the shift follow from the critical value of the Mann-Whitney statistic.

use serde::Serialize;

use crate::paired::{doubled_ranks, ranks_within};
use crate::{Incomparable, Interval, normal};

/// Minimum number of runs on each side. With fewer runs on one side, a single disturbed run decides the result, and
/// the scatter of this side is unknown. The ranks alone would allow 3 runs against 5, or 2 against 8.
pub const LEAST: usize = 4;

/// Maximum product of the two numbers of runs for the exact distribution if there are no ties.
const EXACT: usize = 10_000;

/// Maximum product of the two numbers of runs for the exact distribution if there are ties.
const EXACT_TIES: usize = 2_500;

/// Maximum product of the two numbers of runs. It limits the memory for all differences.
const MOST: usize = 1 << 24;

/// Comparison of unpaired runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Unpaired {
    /// Mann-Whitney statistic: number of pairs (one run before and one run after the change) in which the
    /// value after the change is greater. Pairs with equal values count one half.
    pub u: f64,
    /// Share of the pairs that `u` counts: `u` divided by the number of all pairs.
    pub dominance: f64,
    /// Probability that the ranks are at least as extreme if nothing changed.
    pub p: f64,
    /// Median of the differences (value after minus value before), with its confidence interval.
    pub shift: Interval,
}

/// Compares unpaired runs. `before` and `after` contain one number for each run.
///
/// # Errors
/// Returns an error if there are too few or too many runs, or if a value is not finite.
pub fn unpaired(before: &[f64], after: &[f64], confidence: f64) -> Result<Unpaired, Incomparable> {
    let product = before.len() * after.len();
    if product > MOST {
        return Err(Incomparable::TooMany {
            found: product,
            most: MOST,
        });
    }
    if !before.iter().chain(after).all(|value| value.is_finite()) {
        return Err(Incomparable::NotFinite);
    }
    let smaller = before.len().min(after.len());
    let rank = if smaller < LEAST {
        0
    } else {
        critical_rank(before.len(), after.len(), confidence)
    };
    if rank == 0 {
        return Err(Incomparable::TooFewRuns {
            before: before.len(),
            after: after.len(),
        });
    }
    let all: Vec<f64> = after.iter().chain(before).copied().collect();
    let ranks = doubled_ranks(&all);
    let own: usize = ranks[..after.len()].iter().sum();
    let n = after.len();
    let u = (own - n * (n + 1)) as f64 / 2.0;
    Ok(Unpaired {
        u,
        dominance: u / product as f64,
        p: p_of(&ranks, n, own),
        shift: Interval::of_ranks(differences(before, after).collect(), rank),
    })
}

/// Returns the differences between each run after and each run before the change.
pub(crate) fn differences<'v>(
    before: &'v [f64],
    after: &'v [f64],
) -> impl Iterator<Item = f64> + 'v {
    after
        .iter()
        .flat_map(move |a| before.iter().map(move |b| a - b))
}

/// Returns the rank of both bounds among all sorted differences. The lower bound has this rank from the
/// start, and the upper bound has this rank from the end. Returns 0 if there are too few runs.
fn critical_rank(before: usize, after: usize, confidence: f64) -> usize {
    let tail = (1.0 - confidence) / 2.0;
    if before * after > EXACT {
        let (n, m) = (before as f64, after as f64);
        let deviation = (n * m * (n + m + 1.0) / 12.0).sqrt();
        return (n * m / 2.0 + normal::quantile(tail) * deviation)
            .floor()
            .max(0.0) as usize;
    }
    ranks_within(&law(before, after), tail)
}

/// Returns the probability of each value of the Mann-Whitney statistic if there are no ties. The recursion
/// distinguishes two cases: the greatest value is on one side or on the other side.
fn law(n: usize, m: usize) -> Vec<f64> {
    // The distribution is the same if both sides are swapped. `laws` has `m + 1` entries, so `m` is the
    // smaller number.
    let (n, m) = (n.max(m), n.min(m));
    // `laws[j]` is the distribution for `i` runs on one side and `j` runs on the other side.
    let mut laws: Vec<Vec<f64>> = vec![vec![1.0]; m + 1];
    for i in 1..=n {
        let mut next: Vec<Vec<f64>> = vec![vec![1.0]];
        for j in 1..=m {
            let both = (i + j) as f64;
            let (first, second) = (i as f64 / both, j as f64 / both);
            let mut chances = vec![0.0; i * j + 1];
            for (u, chance) in laws[j].iter().enumerate() {
                chances[u + j] += first * chance;
            }
            for (u, chance) in next[j - 1].iter().enumerate() {
                chances[u] += second * chance;
            }
            next.push(chances);
        }
        laws = next;
    }
    laws.swap_remove(m)
}

/// Returns the probability that the sum of `n` random ranks is at least as extreme as `own`. All ranks are
/// doubled.
fn p_of(ranks: &[usize], n: usize, own: usize) -> f64 {
    let total = ranks.len();
    let all: usize = ranks.iter().sum();
    // The sum of the ranks of the other side is equally extreme. The smaller side is used, because it needs less
    // memory.
    let (n, own) = if 2 * n > total {
        (total - n, all - own)
    } else {
        (n, own)
    };
    // Distance of a sum from the mean sum `n * all / total`, multiplied by `total` to avoid fractions.
    let distance = |sum: usize| (sum * total).abs_diff(n * all);
    let m = total - n;
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    let has_ties = sorted.windows(2).any(|two| two[0] == two[1]);
    if !has_ties && n * m <= EXACT {
        let least = n * (n + 1);
        let far = |(u, _): &(usize, f64)| distance(least + 2 * u) >= distance(own);
        let law = law(n, m).into_iter().enumerate().filter(far);
        return law.map(|(_, chance)| chance).sum::<f64>().min(1.0);
    }
    if n * m > EXACT_TIES {
        let mean = all as f64 / total as f64;
        let squares: f64 = ranks.iter().map(|rank| (*rank as f64 - mean).powi(2)).sum();
        let share = n as f64 * m as f64 / (total as f64 * (total as f64 - 1.0));
        let z =
            (own as f64 - n as f64 * mean).abs() / (squares * share).sqrt().max(f64::MIN_POSITIVE);
        return (2.0 * normal::below(-z)).min(1.0);
    }
    // `ways[k][s]` is the number of ways to draw `k` ranks with the sum `s` from the ranks so far.
    let most: usize = sorted[m..].iter().sum();
    let mut ways = vec![vec![0.0_f64; most + 1]; n + 1];
    ways[0][0] = 1.0;
    for (seen, rank) in sorted.iter().enumerate() {
        for k in (1..=n.min(seen + 1)).rev() {
            let (fewer, more) = ways.split_at_mut(k);
            let fewer = &fewer[k - 1];
            for sum in *rank..=most {
                more[0][sum] += fewer[sum - rank];
            }
        }
    }
    let counts = ways[n].iter().enumerate();
    let (mut extreme, mut every) = (0.0, 0.0);
    for (sum, count) in counts {
        every += count;
        extreme += if distance(sum) >= distance(own) {
            *count
        } else {
            0.0
        };
    }
    extreme / every
}
