//! Percentiles in bounded memory.

use crate::distribution::nearest_rank;

/// Maximum number of values that are stored unchanged. A greater number of values is counted in classes.
const EXACT: usize = 2048;

/// Default number of bits that a class keeps of a value after its leading 1 bit.
const DEFAULT_BITS: u32 = 6;

/// Percentiles of a group of values.
///
/// Percentiles of up to 2,048 values are exact. If there are more values, they are counted in classes. A
/// class keeps the leading 1 bit of a value and the next `BITS` bits. This limits the relative error to
/// 2^-(`BITS` + 1), which is 0.8 % with the default of 6 bits. A group with classes takes at most 60 kB and
/// usually less than 16 kB. Each further bit doubles these sizes.
#[derive(Clone, Debug)]
pub struct Percentiles<const BITS: u32 = DEFAULT_BITS>(Values<BITS>);

#[derive(Clone, Debug)]
enum Values<const BITS: u32> {
    Exact(Vec<i64>),
    Classes(Classes<BITS>),
}

/// Number of values in each class of magnitudes, and the minimum and the maximum of all values.
#[derive(Clone, Debug)]
struct Classes<const BITS: u32> {
    count: u64,
    min: i64,
    max: i64,
    negative: Vec<u64>,
    /// Counts of positive values and zero.
    positive: Vec<u64>,
}

impl<const BITS: u32> Default for Percentiles<BITS> {
    fn default() -> Percentiles<BITS> {
        Percentiles::EMPTY
    }
}

impl<const BITS: u32> Percentiles<BITS> {
    /// Group without values.
    pub const EMPTY: Percentiles<BITS> = Percentiles(Values::Exact(Vec::new()));

    /// Adds a value.
    pub fn add(&mut self, value: i64) {
        match &mut self.0 {
            Values::Exact(values) if values.len() < EXACT => values.push(value),
            _ => self.classes().add(value),
        }
    }

    /// Adds all values of another group.
    pub(crate) fn merge(&mut self, other: &Percentiles<BITS>) {
        match &other.0 {
            Values::Exact(values) => values.iter().for_each(|value| self.add(*value)),
            Values::Classes(classes) => self.classes().merge(classes),
        }
    }

    /// Sorts the values. Call this function after the last value was added and before
    /// [`at`](Percentiles::at).
    pub fn sort(&mut self) {
        if let Values::Exact(values) = &mut self.0 {
            values.sort_unstable();
        }
    }

    /// Returns the smallest value `v` for which at least the share `share` of the values is less than or
    /// equal to `v`. A share of 0.5 gives the median. Returns `None` if there are no values.
    pub fn at(&self, share: f64) -> Option<i64> {
        let count = match &self.0 {
            Values::Exact(values) => values.len() as u64,
            Values::Classes(classes) => classes.count,
        };
        let rank = nearest_rank(share, count);
        match &self.0 {
            Values::Exact(values) => values.get(rank as usize - 1).copied(),
            Values::Classes(classes) => Some(classes.at(rank)),
        }
    }

    /// Returns true if the result of [`at`](Percentiles::at) is exact.
    pub fn is_exact(&self) -> bool {
        matches!(self.0, Values::Exact(_))
    }

    /// Returns the classes. If the values are still stored unchanged, moves them into classes first.
    fn classes(&mut self) -> &mut Classes<BITS> {
        if let Values::Exact(values) = &self.0 {
            let mut classes = Classes {
                count: 0,
                min: i64::MAX,
                max: i64::MIN,
                negative: Vec::new(),
                positive: Vec::new(),
            };
            values.iter().for_each(|value| classes.add(*value));
            self.0 = Values::Classes(classes);
        }
        match &mut self.0 {
            Values::Classes(classes) => classes,
            Values::Exact(_) => unreachable!("made into classes above"),
        }
    }
}

impl<const BITS: u32> Classes<BITS> {
    fn add(&mut self, value: i64) {
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let counts = if value < 0 {
            &mut self.negative
        } else {
            &mut self.positive
        };
        let class = class::<BITS>(value.unsigned_abs());
        if counts.len() <= class {
            counts.resize(class + 1, 0);
        }
        counts[class] += 1;
    }

    fn merge(&mut self, other: &Classes<BITS>) {
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        let sides = [
            (&mut self.negative, &other.negative),
            (&mut self.positive, &other.positive),
        ];
        for (counts, other) in sides {
            counts.resize(counts.len().max(other.len()), 0);
            for (count, other) in counts.iter_mut().zip(other) {
                *count += other;
            }
        }
    }

    /// Returns the middle of the class that contains the value with this rank. Ranks count from 1.
    fn at(&self, rank: u64) -> i64 {
        let negative = self.negative.iter().enumerate().rev();
        let ascending = negative.map(|(class, count)| (-1, class, count)).chain(
            self.positive
                .iter()
                .enumerate()
                .map(|(class, count)| (1, class, count)),
        );
        let mut below = 0;
        for (sign, class, count) in ascending {
            below += count;
            if below >= rank {
                return (sign * middle::<BITS>(class)).clamp(self.min, self.max);
            }
        }
        self.max
    }
}

/// Returns the class of a magnitude. A magnitude below 2^(`BITS` + 1) has a class that contains only this
/// value. Above this limit, each power of two has 2^`BITS` classes.
fn class<const BITS: u32>(magnitude: u64) -> usize {
    let shift = (magnitude | 1).ilog2().saturating_sub(BITS);
    ((shift as usize) << BITS) + (magnitude >> shift) as usize
}

/// Returns the middle of a class.
fn middle<const BITS: u32>(class: usize) -> i64 {
    let shift = (class >> BITS).saturating_sub(1);
    let leading = class - (shift << BITS);
    let middle = ((leading as u64) << shift) + ((1 << shift) - 1) / 2;
    i64::try_from(middle).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    /// Computes a percentile from all values by its definition.
    fn exact(values: &[i64], share: f64) -> i64 {
        let mut values = values.to_vec();
        values.sort_unstable();
        let reached = |at: &usize| (at + 1) as f64 >= share * values.len() as f64;
        values[(0..values.len())
            .find(reached)
            .expect("the share is at most 1")]
    }

    fn from_values(values: &[i64]) -> Percentiles {
        let mut percentiles = Percentiles::EMPTY;
        values.iter().for_each(|value| percentiles.add(*value));
        percentiles.sort();
        percentiles
    }

    const SHARES: [f64; 7] = [0.0, 0.01, 0.5, 0.9, 0.95, 0.99, 1.0];

    #[test]
    fn few_values_are_exact_and_many_within_the_bound() {
        let mut rng = Rng(11);
        for case in 0..60 {
            let len = 1 + rng.below(if case % 2 == 0 { EXACT } else { 6 * EXACT });
            let values: Vec<i64> = (0..len)
                .map(|_| {
                    let value = (rng.bits() >> (1 + rng.below(63))) as i64;
                    if case % 3 == 0 && rng.below(2) == 0 {
                        -value
                    } else {
                        value
                    }
                })
                .collect();
            let whole = from_values(&values);
            let (left, right) = values.split_at(rng.below(len));
            let mut merged = from_values(left);
            merged.merge(&from_values(right));
            merged.sort();
            assert_eq!(whole.is_exact(), len <= EXACT);
            for share in SHARES {
                let expected = exact(&values, share);
                let got = whole.at(share).expect("values");
                let bound = if whole.is_exact() {
                    0
                } else {
                    expected.unsigned_abs() / 128
                };
                assert!(
                    got.abs_diff(expected) <= bound,
                    "{share} of {len}: {got}, exactly {expected}"
                );
                assert_eq!(merged.at(share), whole.at(share));
            }
        }
    }

    #[test]
    fn every_magnitude_is_near_the_middle_of_its_class() {
        let mut rng = Rng(5);
        let edges = (0..63).flat_map(|power| [(1u64 << power) - 1, 1 << power, (1 << power) + 1]);
        let random = (0..10_000).map(|_| rng.bits() >> (1 + rng.below(63)));
        for magnitude in edges
            .chain(random.collect::<Vec<_>>())
            .chain([i64::MAX as u64])
        {
            let middle = middle::<6>(class::<6>(magnitude)) as u64;
            assert!(middle.abs_diff(magnitude) <= magnitude / 128, "{magnitude}");
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        let values = [vec![-i64::MAX; EXACT], vec![i64::MAX; EXACT + 1]].concat();
        let percentiles = from_values(&values);
        assert!(
            percentiles
                .at(0.25)
                .is_some_and(|low| low < -(i64::MAX / 128 * 127))
        );
        assert!(
            percentiles
                .at(0.75)
                .is_some_and(|high| high > i64::MAX / 128 * 127)
        );
        assert_eq!(Percentiles::<6>::EMPTY.at(0.5), None);
        assert!(from_values(&[1, 2]).at(f64::NAN).is_some());
    }
}
