//! Search for changes in the history of a measurement, by energy distances (E-divisive).
//!
//! Two kinds of changes are searched for at the same time: a split into two parts, and a stretch that differs from the
//! values before and after it (circular binary segmentation). Without stretches, a regression that was repaired would
//! stay hidden, because no single split separates it.

use std::ops::Range;

use crate::random::Random;

/// Minimum number of values between two changes. It prevents a single odd value from counting as a change.
const LEAST_SEGMENT: usize = 5;

/// Best position at which a history can be split into two parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// Index of the first value after the change.
    pub at: usize,
    /// Energy distance between both parts, weighted by the sizes of the parts.
    pub strength: f64,
}

/// Stretch of a history that differs from the values before and after it.
#[derive(Clone, Debug, PartialEq)]
struct Stretch {
    /// Indexes of the values of the stretch.
    range: Range<usize>,
    /// Energy distance between the stretch and all other values, weighted by the numbers of values in both.
    strength: f64,
}

/// Value, with the sum of its distances to all values. The sum does not depend on the order of the values.
#[derive(Clone, Copy)]
struct Point {
    value: f64,
    apart: f64,
}

/// Strengths of all segments of one length, as a linear function of two sums of distances.
#[derive(Clone, Copy, Default)]
struct Weights {
    /// Weight of the distances from the values of the segment to all values.
    all: f64,
    /// Weight of the distances between two values of the segment.
    within: f64,
    /// Part of the strength that depends only on the sum of all distances.
    constant: f64,
}

/// Search for the strongest changes in a series of values. A prepared search can be repeated for other orders of the
/// same values.
struct Search {
    /// Weights for each length of a segment.
    weights: Vec<Weights>,
    /// For each start of a segment, the sum of the distances between all pairs of values in the segment. The segments
    /// have a common end.
    within: Vec<f64>,
    /// For each place, the sum of the field `apart` over all earlier points.
    earlier: Vec<f64>,
}

impl Search {
    /// Prepares the search. Also returns the points, in the order of the values.
    fn new(values: &[f64]) -> (Search, Vec<Point>) {
        let count = values.len();
        let points = values.iter().map(|value| Point {
            value: *value,
            apart: values.iter().map(|other| (value - other).abs()).sum(),
        });
        let points: Vec<Point> = points.collect();
        let total = points.iter().map(|point| point.apart).sum::<f64>() / 2.0;
        let weights = |length: usize| {
            if length < 2 || count < length + 2 {
                return Weights::default();
            }
            // W is the sum of the distances between pairs of values in the segment. A is the sum of the distances from
            // the values of the segment to all values. T is the sum over all pairs of values (`total`). It follows that
            // the distances from the segment to the other values sum up to A - 2 W, and the distances between pairs of
            // other values to T - A + W.
            let (n, m) = (length as f64, (count - length) as f64);
            let size = n * m / (n + m);
            let (between, inside) = (2.0 / (n * m), 2.0 / (n * (n - 1.0)));
            let outside = 2.0 / (m * (m - 1.0));
            Weights {
                all: size * (between + outside),
                within: -size * (2.0 * between + inside + outside),
                constant: -size * outside * total,
            }
        };
        let search = Search {
            weights: (0..count).map(weights).collect(),
            within: vec![0.0; count],
            earlier: vec![0.0; count + 1],
        };
        (search, points)
    }

    /// Returns the strongest split and the strongest stretch of the points. Returns `None` for a kind if there are too
    /// few points for it.
    fn strongest(&mut self, points: &[Point]) -> (Option<Split>, Option<Stretch>) {
        let (mut split, mut stretch): (Option<Split>, Option<Stretch>) = (None, None);
        let mut sum = 0.0;
        for (earlier, point) in self.earlier[1..].iter_mut().zip(points) {
            sum += point.apart;
            *earlier = sum;
        }
        self.within.fill(0.0);
        for end in 1..=points.len().saturating_sub(LEAST_SEGMENT) {
            let (last, before) = (points[end - 1].value, &points[..end - 1]);
            let mut to_last = 0.0;
            for (within, point) in self.within[..end - 1].iter_mut().zip(before).rev() {
                to_last += (point.value - last).abs();
                *within += to_last;
            }
            if end < LEAST_SEGMENT {
                continue;
            }
            let strength = |start: usize| {
                let Weights {
                    all,
                    within,
                    constant,
                } = self.weights[end - start];
                all * (self.earlier[end] - self.earlier[start])
                    + within * self.within[start]
                    + constant
            };
            let of_split = strength(0);
            if split.is_none_or(|best| of_split > best.strength) {
                split = Some(Split {
                    at: end,
                    strength: of_split,
                });
            }
            for start in LEAST_SEGMENT..(end + 1).saturating_sub(LEAST_SEGMENT) {
                let strength = strength(start);
                if stretch.as_ref().is_none_or(|best| strength > best.strength) {
                    stretch = Some(Stretch {
                        range: start..end,
                        strength,
                    });
                }
            }
        }
        (split, stretch)
    }
}

/// Returns the best split of the values. Returns `None` if there are too few values for two parts.
pub fn best_split(values: &[f64]) -> Option<Split> {
    let (mut search, points) = Search::new(values);
    search.strongest(&points).0
}

/// Returns the indexes at which the values change, in ascending order. A split or stretch counts as a change if only a
/// small share of random orders of the values (at most `alpha`) has a split or stretch that is at least as strong. If
/// nothing changes, the probability of finding any change is at most `alpha`.
pub fn changes(values: &[f64], alpha: f64) -> Vec<usize> {
    let mut change_points = Vec::new();
    let mut open: Vec<Range<usize>> = std::iter::once(0..values.len()).collect();
    let mut random = Random::new(1);
    while let Some(range) = open.pop() {
        let mut start = range.start;
        for end in ends(&values[range.clone()], alpha, &mut random) {
            let at = range.start + end;
            change_points.push(at);
            open.push(start..at);
            start = at;
        }
        if start > range.start {
            open.push(start..range.end);
        }
    }
    change_points.sort_unstable();
    change_points
}

/// Returns the indexes of the strongest change: one index for a split, two for a stretch. Returns no indexes if chance
/// may explain both kinds of changes. If chance explains neither of them, returns the split; the caller finds the
/// stretch when it searches the two parts of the split.
fn ends(values: &[f64], alpha: f64, random: &mut Random) -> Vec<usize> {
    let (mut search, mut points) = Search::new(values);
    let (Some(split), stretch) = search.strongest(&points) else {
        return Vec::new();
    };
    let strongest = (stretch.as_ref()).map_or(split.strength, |it| it.strength.max(split.strength));
    // The tolerance is needed because sums in another order have other rounding errors.
    let reaches = |strength: f64, other: f64| strength >= other - 1e-9 * other.abs();
    // Maximum number of random orders that may be at least as strong as the actual order, so that the probability is at
    // most `alpha`. The actual order counts, too, so 1 is subtracted.
    let most = (alpha * f64::from(1 + ORDERS) + 1e-9).floor() - 1.0;
    let (mut like_split, mut like_strongest) = (0.0, 0.0);
    for _ in 0..ORDERS {
        random.shuffle(&mut points);
        let (other, another) = search.strongest(&points);
        let other = other.map_or(f64::NEG_INFINITY, |it| it.strength);
        let strength = another.map_or(other, |it| it.strength.max(other));
        like_split += f64::from(u8::from(reaches(strength, split.strength)));
        like_strongest += f64::from(u8::from(reaches(strength, strongest)));
        // Too many random orders are at least as strong. Further orders cannot change this result.
        if like_strongest > most {
            return Vec::new();
        }
    }
    match stretch {
        Some(stretch) if like_split > most => vec![stretch.range.start, stretch.range.end],
        _ => vec![split.at],
    }
}

/// Number of random orders of the values.
const ORDERS: u32 = 999;

/// Returns the minimum probability by chance that [`changes`] can find for a change in `count` values. Even the
/// strongest possible split has an equally strong mirror image. The minimum is therefore 2 divided by the number of
/// ways to choose half of the values. It is at least 1/1,000, because there are only 999 random orders. Stretches do
/// not change the minimum: they need 15 values, and from 14 values on, the number of random orders determines the
/// minimum.
pub fn least_p(count: usize) -> f64 {
    let half = count / 2;
    // Number of ways to choose half of the values.
    let ways: f64 = (1..=half)
        .map(|k| (count - half + k) as f64 / k as f64)
        .product();
    (2.0 / ways).max(1.0 / (1.0 + f64::from(ORDERS)))
}

#[cfg(test)]
mod tests {
    use testdata::Rng;

    use super::*;

    /// Lists all orders of values of which half are 0 and half are 1. Counts the orders whose best split or stretch is
    /// at least as strong as in the sorted order.
    #[test]
    fn the_least_probability_is_that_of_all_orders() {
        for count in [10_usize, 11, 12, 15, 16] {
            let values = |ones: u32| -> Vec<f64> {
                let bits = (0..count).map(|at| f64::from(ones >> at & 1));
                bits.collect()
            };
            let strength = |ones: u32| {
                let (mut search, points) = Search::new(&values(ones));
                let (split, stretch) = search.strongest(&points);
                let split = split.map_or(0.0, |it| it.strength);
                stretch.map_or(split, |it| it.strength.max(split))
            };
            let half = count / 2;
            let orders = (0..1_u32 << count).filter(|ones| ones.count_ones() as usize == half);
            let (strongest, all) = (strength((1 << half) - 1), orders.clone().count());
            let strong = orders.filter(|ones| strength(*ones) >= strongest - 1e-9);
            let p = strong.count() as f64 / all as f64;
            assert!((least_p(count) - p.max(0.001)).abs() < 1e-9, "{count}: {p}");
        }
    }

    /// Compares the strengths with the definition of the energy distance, which sums over all pairs of values.
    #[test]
    fn strengths_are_energy_distances() {
        let mut rng = Rng(7);
        let values: Vec<f64> = (0..23).map(|_| rng.below(1_000) as f64).collect();
        let by_definition = |range: Range<usize>| {
            let (inside, outside): (Vec<usize>, Vec<usize>) =
                (0..values.len()).partition(|at| range.contains(at));
            let mean = |first: &[usize], second: &[usize]| {
                let pairs = first
                    .iter()
                    .flat_map(|a| second.iter().map(move |b| (*a, *b)));
                let pairs: Vec<(usize, usize)> = pairs.filter(|(a, b)| a != b).collect();
                let sum: f64 = pairs
                    .iter()
                    .map(|(a, b)| (values[*a] - values[*b]).abs())
                    .sum();
                sum / pairs.len() as f64
            };
            let (n, m) = (inside.len() as f64, outside.len() as f64);
            let apart =
                2.0 * mean(&inside, &outside) - mean(&inside, &inside) - mean(&outside, &outside);
            n * m / (n + m) * apart
        };
        let best = |ranges: &mut dyn Iterator<Item = Range<usize>>| {
            let strongest = ranges.map(by_definition).reduce(f64::max);
            strongest.unwrap()
        };
        let (mut search, points) = Search::new(&values);
        let (split, stretch) = search.strongest(&points);
        let expected = best(&mut (5..=18).map(|end| 0..end));
        assert!((split.unwrap().strength - expected).abs() < 1e-6);
        let mut stretches = (5..=13).flat_map(|start| (start + 5..=18).map(move |end| start..end));
        assert!((stretch.unwrap().strength - best(&mut stretches)).abs() < 1e-6);
    }
}
