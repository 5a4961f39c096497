//! Variance at each level of repetition (build, run, sample), and the cheapest numbers of repetitions
//! (Kalibera and Jones).

use crate::interval::{mean, variance};
use crate::{Interval, student};

/// Variance of one level of repetition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Observed variance of this level. In each group of the next higher level, the means of this level have
    /// a variance. `seen` is the mean of these variances.
    pub seen: f64,
    /// Part of `seen` that this level itself causes. If it is negative, the level adds no variance.
    pub own: f64,
}

/// Returns the variances of all levels, beginning with the samples, which are the lowest level. `shape`
/// contains the number of repetitions of each level, beginning with the highest level. Returns `None` if the
/// product of these numbers is not the number of values, or if a number is below 2.
pub fn variances(values: &[f64], shape: &[usize]) -> Option<Vec<Level>> {
    let fits =
        shape.iter().all(|size| *size > 1) && shape.iter().product::<usize>() == values.len();
    if !fits {
        return None;
    }
    let mut means = values.to_vec();
    let mut levels: Vec<Level> = Vec::new();
    let mut below = None;
    for size in shape.iter().rev() {
        let groups: Vec<f64> = means.chunks_exact(*size).map(variance).collect();
        let seen = mean(&groups);
        let from_below = below.map_or(0.0, |(seen, size): (f64, usize)| seen / size as f64);
        levels.push(Level {
            seen,
            own: seen - from_below,
        });
        below = Some((seen, *size));
        means = means.chunks_exact(*size).map(mean).collect();
    }
    Some(levels)
}

/// Returns the cheapest number of repetitions of each level except the highest, beginning with the samples.
/// `costs` contains the cost of one repetition of each level. If a level adds no variance, it needs only one
/// repetition.
pub fn repetitions(levels: &[Level], costs: &[f64]) -> Vec<f64> {
    let pairs = levels.windows(2).zip(costs.windows(2));
    pairs
        .map(|(level, cost)| {
            let share = level[0].own / level[1].own;
            match level[0].own > 0.0 {
                true if level[1].own > 0.0 => (cost[1] / cost[0] * share).sqrt().max(1.0),
                true => f64::INFINITY,
                false => 1.0,
            }
        })
        .collect()
}

/// Returns the mean of all values with its confidence interval. The interval is computed from the variance of
/// the highest level. Returns `None` if `shape` does not match the values.
pub fn grand_mean(values: &[f64], shape: &[usize], confidence: f64) -> Option<Interval> {
    let top = variances(values, shape)?.last()?.seen;
    let count = *shape.first()? as f64;
    let half = student(f64::midpoint(1.0, confidence), count - 1.0) * (top / count).sqrt();
    let centre = mean(values);
    Some(Interval {
        centre,
        low: centre - half,
        high: centre + half,
    })
}
