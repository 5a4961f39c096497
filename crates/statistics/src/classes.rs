//! Quantiles, histogram and greatest values of a long run, from two passes over its samples. The samples are counted in
//! classes: narrow ranges of values with the same leading bits. Selecting or sorting samples would take several times
//! as long.

use crate::modes::Bars;
use crate::quantile;
use crate::shift_function::{RunQuantiles, SHARES};

/// Number of low bits that do not count for the class of a value. The values of a class have the same exponent and the
/// same first ten binary digits, so a class is at most 0.1 % wide. All values are positive.
const BITS_BELOW: u32 = 42;

/// Number of classes of all positive finite values.
const CLASSES: usize = 0x7ff << (52 - BITS_BELOW);

/// Minimum number of samples for which classes are faster than sorting.
const LEAST: usize = 10_000;

/// Maximum number of classes between the least and the greatest sample.
const MOST: usize = 1 << 17;

/// Mask of the lower bits of a class's mark. The last pass uses the marks. The lower bits number the classes that
/// contain a quantile, starting with 1. They are 0 for other classes.
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
    /// Greatest samples, each with its index in the run, by ascending index. Every sample outside
    /// the list is smaller than all samples in it.
    pub great: Vec<(u32, f64)>,
}

impl Shape {
    /// Computes the numbers of a run. The field `great` contains the `late` greatest samples. It also contains the
    /// `most` greatest samples, except samples below `floor`. Returns `None` if the run has fewer than 10,000 samples
    /// or more than 2³² - 1, if a sample is not a positive finite number, or if the range of the samples has more than
    /// 131,072 classes.
    pub fn from_samples(samples: &[f64], late: usize, most: usize, floor: f64) -> Option<Shape> {
        if samples.len() < LEAST || u32::try_from(samples.len()).is_err() {
            return None;
        }
        // Positive floating-point numbers have the same order as their bits.
        let class = |bits: u64| (bits >> BITS_BELOW) as usize;
        let (mut least, mut greatest) = (u64::MAX, 0);
        let mut counts = vec![0_u32; CLASSES];
        for value in samples {
            let bits = value.to_bits();
            least = least.min(bits);
            greatest = greatest.max(bits);
            // A sample that is negative, infinite or not a number has no class.
            *counts.get_mut(class(bits))? += 1;
        }
        let first = class(least);
        let counts = counts.get(first..=class(greatest))?;
        let (least, greatest) = (f64::from_bits(least), f64::from_bits(greatest));
        // Zero and subnormal numbers are refused, because their classes are wide.
        if !least.is_normal() || counts.len() > MOST {
            return None;
        }
        let start = |place: usize| f64::from_bits(((first + place) as u64) << BITS_BELOW);
        let mut marks = vec![0_u8; counts.len()];
        // Each class that contains a quantile, with the number of samples in the classes below it.
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
        let mut greater = 0;
        for (place, (mark, count)) in marks.iter_mut().zip(counts).enumerate().rev() {
            if greater >= late && (greater >= most || start(place + 1) <= floor) {
                break;
            }
            *mark |= IS_GREAT;
            greater += *count as usize;
        }
        let mut bars = Bars::between(least, greatest, samples.len());
        // For each class: the first value that belongs to the second bar in it, and the number of samples from this
        // value on. A class touches at most two bars, because a bar is wider than a class.
        let mut edges = vec![(f64::INFINITY, 0_u64); counts.len()];
        for (place, (mark, edge)) in marks.iter_mut().zip(&mut edges).enumerate() {
            if let Some(value) = bars.edge(start(place), start(place + 1)) {
                *mark |= HAS_EDGE;
                edge.0 = value;
            }
        }
        let mut gathered: Vec<Vec<f64>> = vec![Vec::new(); wanted.len()];
        let mut great = Vec::with_capacity(greater);
        for (at, value) in samples.iter().enumerate() {
            let place = class(value.to_bits()) - first;
            let mark = marks[place];
            if mark == 0 {
                continue;
            }
            if let Some(slot) = usize::from(mark & SLOT).checked_sub(1) {
                gathered[slot].push(*value);
            }
            if mark & HAS_EDGE != 0 {
                let (edge, beyond) = &mut edges[place];
                *beyond += u64::from(*value >= *edge);
            }
            if mark & IS_GREAT != 0 {
                great.push((at as u32, *value));
            }
        }
        for (place, (count, (edge, beyond))) in counts.iter().zip(edges).enumerate() {
            bars.add(start(place), u64::from(*count) - beyond);
            if beyond > 0 {
                bars.add(edge, beyond);
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
            let shape = Shape::from_samples(&samples, 100, 100, f64::NEG_INFINITY).unwrap();
            let quantiles = RunQuantiles::from_samples(&mut samples.clone());
            assert_eq!(shape.quantiles, quantiles);
            assert_eq!(shape.bars, Bars::from_values(&samples));
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
            // With this floor, fewer values are kept. But all values that are not below the floor are kept.
            let floor = sorted[sorted.len() - 400];
            let above = Shape::from_samples(&samples, 10, 1_000, floor)
                .unwrap()
                .great;
            let is_kept = |(_, value): &&(u32, f64)| *value >= floor;
            assert!(above.iter().filter(is_kept).count() >= 400 && above.len() < 1_000);
        }
        // All samples are equal, so there is only one class.
        let equal = vec![5.0; 20_000];
        let shape = Shape::from_samples(&equal, 10, 10, f64::NEG_INFINITY).unwrap();
        assert_eq!(
            shape.quantiles,
            RunQuantiles::from_samples(&mut equal.clone())
        );
        for odd in [0.0, -0.0, -1.0, 1e-310, f64::INFINITY, f64::NAN] {
            let mut samples = vec![1.0; 20_000];
            samples[7] = odd;
            assert!(
                Shape::from_samples(&samples, 10, 10, 0.0).is_none(),
                "{odd}"
            );
        }
        let mut far = vec![1e-300; 20_000];
        far[3] = 1e300;
        assert!(Shape::from_samples(&far, 10, 10, 0.0).is_none());
        assert!(Shape::from_samples(&[1.0; 100], 10, 10, 0.0).is_none());
    }
}
