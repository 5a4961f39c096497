//! Search for changes in the history of a measurement, by the E-divisive method.

use std::ops::Range;

use crate::random::Random;

/// Minimum number of values between two changes. It prevents that a single odd value counts as a change.
const LEAST_SEGMENT: usize = 5;

/// Best position at which a history can be split into two parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// Index of the first value after the change.
    pub at: usize,
    /// Energy distance between both parts, weighted by the sizes of the parts.
    pub strength: f64,
}

/// Returns the best split of the values. Returns `None` if there are too few values for two parts.
pub fn best_split(values: &[f64]) -> Option<Split> {
    let count = values.len();
    let distance = |a: usize, b: usize| (values[a] - values[b]).abs();
    // Sums of the distances between two values: both in the left part, both in the right part, or one in each
    // part.
    let (mut left, mut between) = (0.0, 0.0);
    let mut right: f64 = (0..count)
        .map(|a| (0..a).map(|b| distance(a, b)).sum::<f64>())
        .sum();
    let mut best: Option<Split> = None;
    for at in 1..count {
        // The value `at - 1` moves from the right part to the left part.
        let to_left: f64 = (0..at - 1).map(|other| distance(at - 1, other)).sum();
        let to_right: f64 = (at..count).map(|other| distance(at - 1, other)).sum();
        left += to_left;
        right -= to_right;
        between += to_right - to_left;
        if at < LEAST_SEGMENT || count - at < LEAST_SEGMENT {
            continue;
        }
        let (n, m) = (at as f64, (count - at) as f64);
        let within = |sum: f64, n: f64| 2.0 * sum / (n * (n - 1.0));
        let apart = 2.0 * between / (n * m) - within(left, n) - within(right, m);
        let strength = n * m / (n + m) * apart;
        if best.is_none_or(|best| strength > best.strength) {
            best = Some(Split { at, strength });
        }
    }
    best
}

/// Returns the indexes at which the values change, in ascending order. A split counts as a change if at most
/// the share `alpha` of random orders of the values has a split that is as strong.
pub fn changes(values: &[f64], alpha: f64) -> Vec<usize> {
    let mut found = Vec::new();
    let mut open: Vec<Range<usize>> = std::iter::once(0..values.len()).collect();
    let mut random = Random::new(1);
    while let Some(range) = open.pop() {
        let part = &values[range.clone()];
        let Some(split) = best_split(part) else {
            continue;
        };
        if p_of(part, split, &mut random) <= alpha {
            let at = range.start + split.at;
            found.push(at);
            open.extend([range.start..at, at..range.end]);
        }
    }
    found.sort_unstable();
    found
}

/// Returns the share of orders whose best split is at least as strong as `split`. The orders are 999 random
/// orders and the actual order.
fn p_of(values: &[f64], split: Split, random: &mut Random) -> f64 {
    const ORDERS: u32 = 999;
    let mut shuffled = values.to_vec();
    let is_as_strong = |_: &u32| {
        random.shuffle(&mut shuffled);
        best_split(&shuffled).is_some_and(|other| other.strength >= split.strength)
    };
    let strong = (0..ORDERS).filter(is_as_strong).count() as f64;
    (1.0 + strong) / (1.0 + f64::from(ORDERS))
}
