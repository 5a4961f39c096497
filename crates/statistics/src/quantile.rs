//! Bounds of a quantile of independent samples: two of the samples themselves, by the exact binomial
//! law.

use serde::Serialize;

use crate::binomial::{at_least, at_most};

/// Ranks of the samples that bound a quantile, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ranks {
    /// Rank of the lower bound; `None` if there are too few samples for one.
    pub low: Option<u64>,
    /// Rank of the upper bound; `None` if there are too few samples for one.
    pub high: Option<u64>,
    /// Probability that the bounds hold the quantile.
    pub coverage: f64,
}

/// Returns the ranks that bound the quantile of `count` independent samples. `share` is between 0 and
/// 1, exclusive.
pub fn bounds(count: u64, share: f64, confidence: f64) -> Ranks {
    let tail = (1.0 - confidence) / 2.0;
    // The greatest l for which fewer than l samples are below the quantile with at most this chance.
    let low = first(count, |rank| at_most(rank, count, share) > tail);
    let high = first(count + 1, |rank| at_least(rank, count, share) <= tail);
    let (low, high) = ((low > 0).then_some(low), (high <= count).then_some(high));
    let below = low.map_or(0.0, |rank| at_most(rank - 1, count, share));
    let above = high.map_or(0.0, |rank| at_least(rank, count, share));
    Ranks {
        low,
        high,
        coverage: 1.0 - below - above,
    }
}

/// Returns the first number up to `most` that fits, or `most`. If a number fits, so do all above it.
fn first(most: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low.midpoint(high);
        if fits(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Returns the least number of independent samples with which a quantile has both bounds: 368 for p99,
/// 3,688 for p99.9.
pub fn least_samples(share: f64, confidence: f64) -> u64 {
    let tail = (1.0 - confidence) / 2.0;
    (tail.ln() / share.max(1.0 - share).ln() - 1e-9).ceil() as u64
}

/// Returns the nearest rank of a quantile among this number of values, counted from 1.
pub fn rank(count: usize, share: f64) -> usize {
    // 100 × 0.07 is slightly greater than 7 in floating point.
    let rank = (share * count as f64 - 1e-6).ceil().max(1.0) as usize;
    rank.min(count)
}

/// Returns the quantile of sorted values by its nearest rank; `None` without values.
pub fn of_sorted<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    sorted
        .get(rank(sorted.len(), share).checked_sub(1)?)
        .copied()
}
