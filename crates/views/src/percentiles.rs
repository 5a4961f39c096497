//! Percentiles in bounded memory.

/// Values kept as they are; beyond, they are counted in classes.
const EXACT: usize = 2048;

/// Bits of a value that its class keeps after the leading one.
const BITS: u32 = 6;

/// The percentiles of a group's values.
///
/// Of up to 2,048 values they are exact. Of more they are within 1/128 (0.8 %) of the exact one,
/// since values are then counted in classes of a 64th of a power of two (below 128, every value has
/// its own). Either way a group takes at most some 60 kB, and commonly much less than 16.
#[derive(Clone, Debug)]
pub struct Percentiles(Values);

#[derive(Clone, Debug)]
enum Values {
    Exact(Vec<i64>),
    Classes(Classes),
}

/// Counts by class of magnitude, with the extremes.
#[derive(Clone, Debug)]
struct Classes {
    count: u64,
    min: i64,
    max: i64,
    negative: Vec<u64>,
    /// And zero.
    positive: Vec<u64>,
}

impl Percentiles {
    pub(crate) const EMPTY: Percentiles = Percentiles(Values::Exact(Vec::new()));

    /// Takes a known value.
    pub(crate) fn add(&mut self, value: i64) {
        match &mut self.0 {
            Values::Exact(values) if values.len() < EXACT => values.push(value),
            _ => self.classes().add(value),
        }
    }

    /// Takes all values of another.
    pub(crate) fn merge(&mut self, other: &Percentiles) {
        match &other.0 {
            Values::Exact(values) => values.iter().for_each(|value| self.add(*value)),
            Values::Classes(classes) => self.classes().merge(classes),
        }
    }

    /// Makes ready for [`at`](Percentiles::at).
    pub(crate) fn sort(&mut self) {
        if let Values::Exact(values) = &mut self.0 {
            values.sort_unstable();
        }
    }

    /// The least value that is not exceeded by at least this share of the values: 0.5 gives the
    /// median. None of no value.
    pub fn at(&self, share: f64) -> Option<i64> {
        let count = match &self.0 {
            Values::Exact(values) => values.len() as u64,
            Values::Classes(classes) => classes.count,
        };
        let rank = ((share * count as f64).ceil() as u64).clamp(1, count.max(1));
        match &self.0 {
            Values::Exact(values) => values.get(rank as usize - 1).copied(),
            Values::Classes(classes) => Some(classes.at(rank)),
        }
    }

    /// Whether [`at`](Percentiles::at) is exact.
    pub fn is_exact(&self) -> bool {
        matches!(self.0, Values::Exact(_))
    }

    /// The classes, into which values that were kept as they are now go.
    fn classes(&mut self) -> &mut Classes {
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

impl Classes {
    fn add(&mut self, value: i64) {
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let counts = if value < 0 {
            &mut self.negative
        } else {
            &mut self.positive
        };
        let class = class(value.unsigned_abs());
        if counts.len() <= class {
            counts.resize(class + 1, 0);
        }
        counts[class] += 1;
    }

    fn merge(&mut self, other: &Classes) {
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

    /// The middle of the class of the value of this rank, counted from 1.
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
                return (sign * middle(class)).clamp(self.min, self.max);
            }
        }
        self.max
    }
}

/// The class of a magnitude: itself below 128, then 64 to each power of two.
fn class(magnitude: u64) -> usize {
    let shift = (magnitude | 1).ilog2().saturating_sub(BITS);
    ((shift as usize) << BITS) + (magnitude >> shift) as usize
}

/// The middle of a class.
fn middle(class: usize) -> i64 {
    let shift = (class >> BITS).saturating_sub(1);
    let leading = class - (shift << BITS);
    let middle = ((leading as u64) << shift) + ((1 << shift) - 1) / 2;
    i64::try_from(middle).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    /// By definition, from all values.
    fn exact(values: &[i64], share: f64) -> i64 {
        let mut values = values.to_vec();
        values.sort_unstable();
        let reached = |at: &usize| (at + 1) as f64 >= share * values.len() as f64;
        values[(0..values.len()).find(reached).expect("a share up to 1")]
    }

    fn of(values: &[i64]) -> Percentiles {
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
            let whole = of(&values);
            let (left, right) = values.split_at(rng.below(len));
            let mut merged = of(left);
            merged.merge(&of(right));
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
            let middle = middle(class(magnitude)) as u64;
            assert!(middle.abs_diff(magnitude) <= magnitude / 128, "{magnitude}");
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        let values = [vec![-i64::MAX; EXACT], vec![i64::MAX; EXACT + 1]].concat();
        let percentiles = of(&values);
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
        assert_eq!(Percentiles::EMPTY.at(0.5), None);
        assert!(of(&[1, 2]).at(f64::NAN).is_some());
    }
}
