//! Runs that were measured in several batches, such as the files of several sessions.

use crate::paired::doubled_ranks;
use crate::random::Random;

/// Returns the probability that chance alone makes the values differ at least as much from batch to batch. The
/// difference is measured by the statistic of Kruskal and Wallis. The probability is estimated from 9,999 random orders
/// of the values, with a fixed seed. Returns `None` if fewer than two batches have several values.
pub fn difference_p(batches: &[Vec<f64>]) -> Option<f64> {
    const DRAWS: usize = 9_999;

    let several = batches.iter().filter(|batch| batch.len() > 1).count();
    if several < 2 {
        return None;
    }
    let all: Vec<f64> = batches.concat();
    let mut ranks = doubled_ranks(&all);
    // Sum of squares between the batches, without the terms that are equal for all orders of the values.
    let between = |ranks: &[usize]| {
        let mut rest = ranks;
        let each = batches.iter().map(|batch| {
            let (own, others) = rest.split_at(batch.len());
            rest = others;
            let sum: usize = own.iter().sum();
            (sum as f64).powi(2) / batch.len().max(1) as f64
        });
        each.sum::<f64>()
    };
    let seen = between(&ranks) * (1.0 - 1e-12);
    let mut random = Random::new(1);
    let mut extreme = 0;
    for _ in 0..DRAWS {
        random.shuffle(&mut ranks);
        extreme += usize::from(between(&ranks) >= seen);
    }
    Some((1 + extreme) as f64 / (1 + DRAWS) as f64)
}
