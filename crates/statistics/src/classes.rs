//! Quantiles, histogram and greatest values of a long run from three passes over its samples. Selecting and sorting
//! take several times as long.

use crate::modes::Bars;
use crate::quantile;
use crate::shift_function::{RunQuantiles, SHARES};

/// Number of bits of a value that its class does not keep. A class keeps the exponent and the first seven binary
/// digits of positive values, so it is at most 0.8 % wide.
const BITS_BELOW: u32 = 45;

/// Least number of samples for which classes are faster.
const LEAST: usize = 10_000;

/// Maximum number of classes.
const MOST: u64 = 1 << 15;

/// Marks of a class in the last pass. The lower bits number the classes of quantiles from 1.
const SLOT: u8 = 0x0f;
const HAS_EDGE: u8 = 0x10;
const IS_GREAT: u8 = 0x20;

/// Numbers about one long run.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Quantiles.
    pub quantiles: RunQuantiles,
    /// Histogram.
    pub bars: Bars,
    /// Least sample.
    pub least: f64,
    /// Places and values of the greatest samples, in order of their places. All samples from the least of them on
    /// are there.
    pub great: Vec<(u32, f64)>,
}

impl Shape {
    /// Looks at the samples of a run. `great` holds at least the `most` greatest samples, or all.
    /// Returns `None` if the run is short, if it has samples that are not positive, or if they differ too much.
    pub fn of(samples: &[f64], most: usize) -> Option<Shape> {
        if samples.len() < LEAST || u32::try_from(samples.len()).is_err() {
            return None;
        }
        let bounds = (f64::INFINITY, f64::NEG_INFINITY);
        let (least, greatest) = samples
            .iter()
            .fold(bounds, |(low, high), it| (low.min(*it), high.max(*it)));
        if !(least > 0.0 && greatest.is_finite()) {
            return None;
        }
        // The bits of positive numbers have the order of the numbers.
        let class = |value: f64| value.to_bits() >> BITS_BELOW;
        let first = class(least);
        let span = class(greatest) - first + 1;
        if span > MOST {
            return None;
        }
        let mut counts = vec![0_u32; span as usize];
        for value in samples {
            // A sample that is not a number has no class.
            *counts.get_mut(class(*value).wrapping_sub(first) as usize)? += 1;
        }
        let start = |place: usize| f64::from_bits((first + place as u64) << BITS_BELOW);
        let mut marks = vec![0_u8; counts.len()];
        // Classes of the quantiles, with the number of lesser samples.
        let mut wanted: Vec<(usize, usize)> = Vec::new();
        let ranks = SHARES.map(|share| quantile::rank(samples.len(), share));
        let mut of_rank = [0; SHARES.len()];
        let mut reached = 0;
        for (place, count) in counts.iter().enumerate() {
            let end = reached + *count as usize;
            for (rank, slot) in ranks.iter().zip(&mut of_rank) {
                if (reached + 1..=end).contains(rank) {
                    if wanted.last().is_none_or(|(known, _)| *known != place) {
                        wanted.push((place, reached));
                    }
                    *slot = wanted.len();
                    marks[place] = wanted.len() as u8;
                }
            }
            reached = end;
        }
        let mut left = most;
        for (mark, count) in marks.iter_mut().zip(&counts).rev() {
            if left == 0 {
                break;
            }
            *mark |= IS_GREAT;
            left = left.saturating_sub(*count as usize);
        }
        let mut bars = Bars::between(least, greatest, samples.len());
        for (place, (mark, count)) in marks.iter_mut().zip(&counts).enumerate() {
            match bars.is_same(start(place), start(place + 1)) {
                true => bars.add(start(place), u64::from(*count)),
                false => *mark |= HAS_EDGE,
            }
        }
        let mut gathered: Vec<Vec<f64>> = vec![Vec::new(); wanted.len()];
        let mut great = Vec::with_capacity(most + most / 8);
        for (place, value) in samples.iter().enumerate() {
            let mark = marks[(class(*value) - first) as usize];
            if mark == 0 {
                continue;
            }
            if let Some(slot) = usize::from(mark & SLOT).checked_sub(1) {
                gathered[slot].push(*value);
            }
            if mark & HAS_EDGE != 0 {
                bars.add(*value, 1);
            }
            if mark & IS_GREAT != 0 {
                great.push((place as u32, *value));
            }
        }
        let mut at = [0.0; SHARES.len()];
        for ((value, rank), slot) in at.iter_mut().zip(ranks).zip(of_rank) {
            let (_, lesser) = wanted[slot - 1];
            let values = &mut gathered[slot - 1];
            *value = *values
                .select_nth_unstable_by(rank - 1 - lesser, f64::total_cmp)
                .1;
        }
        Some(Shape {
            quantiles: RunQuantiles::at_shares(samples.len(), at),
            bars,
            least,
            great,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    #[test]
    fn classes_give_what_sorting_gives() {
        let mut rng = Rng(8);
        for (count, digits) in [(10_000, 3), (40_000, 20), (25_000, 50)] {
            let sample = |rng: &mut Rng| {
                let scale = f64::from(rng.below(1 << 16) as u32 + 1).powi(2);
                scale * (rng.below(1 << digits) + 1) as f64 * 0.1
            };
            let samples: Vec<f64> = (0..count).map(|_| sample(&mut rng)).collect();
            let shape = Shape::of(&samples, 100).unwrap();
            let quantiles = RunQuantiles::of(&mut samples.clone());
            assert_eq!(shape.quantiles, quantiles);
            assert_eq!(shape.bars, Bars::of(&samples));
            let mut sorted = samples.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            assert_eq!(shape.least, sorted[0]);
            let mut great: Vec<f64> = shape.great.iter().map(|(_, value)| *value).collect();
            great.sort_unstable_by(f64::total_cmp);
            assert!(great.len() >= 100);
            assert_eq!(great, sorted[sorted.len() - great.len()..]);
            let is_there = |(place, value): &(u32, f64)| samples[*place as usize] == *value;
            assert!(shape.great.iter().all(is_there));
            assert!(shape.great.is_sorted_by_key(|(place, _)| *place));
        }
        // Few different values, all in one class.
        let equal = vec![5.0; 20_000];
        let shape = Shape::of(&equal, 10).unwrap();
        assert_eq!(shape.quantiles, RunQuantiles::of(&mut equal.clone()));
        for odd in [0.0, -1.0, f64::INFINITY, f64::NAN] {
            let mut samples = vec![1.0; 20_000];
            samples[7] = odd;
            assert!(Shape::of(&samples, 10).is_none(), "{odd}");
        }
        let mut far = vec![1e-300; 20_000];
        far[3] = 1e300;
        assert!(Shape::of(&far, 10).is_none());
        assert!(Shape::of(&[1.0; 100], 10).is_none());
    }
}
