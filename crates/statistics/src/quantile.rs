//! Confidence bounds of a quantile of independent samples. Each bound is one of the samples. The binomial
//! distribution determines which sample it is.

use serde::Serialize;

use crate::binomial::{at_least, at_most};

/// Ranks of the two samples that bound a quantile. Ranks count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ranks {
    /// Rank of the lower bound. `None` if there are too few samples for a lower bound.
    pub low: Option<u64>,
    /// Rank of the upper bound. `None` if there are too few samples for an upper bound.
    pub high: Option<u64>,
    /// Probability that the quantile is within the bounds.
    pub coverage: f64,
}

/// Returns the ranks of the samples that bound a quantile of `count` independent samples. `share` identifies
/// the quantile: it is the probability that a sample is below the quantile, with `0 < share < 1`.
pub fn bounds(count: u64, share: f64, confidence: f64) -> Ranks {
    let tail = (1.0 - confidence) / 2.0;
    // `low` is the largest rank for which `P(X < low) <= tail`, where `X` is the number of samples below the
    // quantile.
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

/// Returns the smallest number for which `fits` is true, or `most` if there is none below `most`. If `fits`
/// is true for a number, it must be true for all larger numbers.
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

/// Returns the minimum number of independent samples with which a quantile has both bounds. It is 368 for p99
/// and 3,688 for p99.9, at 95 % confidence.
pub fn least_samples(share: f64, confidence: f64) -> u64 {
    let tail = (1.0 - confidence) / 2.0;
    (tail.ln() / share.max(1.0 - share).ln() - 1e-9).ceil() as u64
}

/// Returns the rank of a quantile among `count` values, by the nearest-rank method. Ranks count from 1.
pub fn rank(count: usize, share: f64) -> usize {
    // The tolerance of 1e-6 is needed because of rounding errors: in floating point, 100 × 0.07 is slightly
    // greater than 7.
    let rank = (share * count as f64 - 1e-6).ceil().max(1.0) as usize;
    rank.min(count)
}

/// Returns the quantile of sorted values, by the nearest-rank method. Returns `None` if there are no values.
pub fn of_sorted<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    sorted
        .get(rank(sorted.len(), share).checked_sub(1)?)
        .copied()
}
