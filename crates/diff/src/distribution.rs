//! Distribution of durations in a recording: quantiles of each block of time, and classes of all durations.

use std::collections::BTreeMap;

use statistics::shift_function::RunQuantiles;

/// Minimum number of durations in a block. The quantiles of blocks with fewer durations are not compared.
const LEAST: usize = 20;

/// Number of low bits of an `f32` that do not count for its class. Durations are in the same class if their remaining
/// bits are equal: sign, exponent and the first six bits of the fraction. A class is therefore at most 1.6 % wide.
const BITS_BELOW: u32 = 17;

/// Durations that are collected, by block of time.
pub(crate) struct DurationCollector {
    // An `f32` needs half the memory of an `f64`, and is more precise than a clock.
    blocks: Vec<Vec<f32>>,
}

/// Distribution of the durations in a recording.
#[derive(Debug, Default)]
pub(crate) struct Distribution {
    /// Quantiles of each block that has enough durations.
    pub(crate) blocks: Vec<RunQuantiles>,
    /// Quantiles of all durations.
    pub(crate) whole: RunQuantiles,
    /// Number of durations by class.
    classes: BTreeMap<u32, u64>,
}

impl DurationCollector {
    pub(crate) fn new(blocks: usize) -> DurationCollector {
        DurationCollector {
            blocks: vec![Vec::new(); blocks],
        }
    }

    /// Adds a duration in nanoseconds. Durations of 0 or less are ignored.
    pub(crate) fn add(&mut self, block: usize, ns: i64) {
        if ns > 0 {
            self.blocks[block].push(ns as f32);
        }
    }

    pub(crate) fn finish(self) -> Distribution {
        let mut distribution = Distribution::default();
        let mut all = Vec::with_capacity(self.blocks.iter().map(Vec::len).sum());
        for block in self.blocks {
            for ns in &block {
                *distribution
                    .classes
                    .entry(ns.to_bits() >> BITS_BELOW)
                    .or_default() += 1;
            }
            let start = all.len();
            all.extend(block.into_iter().map(f64::from));
            if all.len() - start >= LEAST {
                distribution
                    .blocks
                    .push(RunQuantiles::from_samples(&mut all[start..]));
            }
        }
        distribution.whole = RunQuantiles::from_samples(&mut all);
        distribution
    }
}

impl Distribution {
    /// Returns pairs of a duration in nanoseconds and a count, one pair for each class, in ascending order. The
    /// duration is the middle of the class. The count is the number of durations in the class, in all recordings.
    pub(crate) fn weighted<'d>(all: impl Iterator<Item = &'d Distribution>) -> Vec<(f64, f64)> {
        let mut classes: BTreeMap<u32, u64> = BTreeMap::new();
        for (class, count) in all.flat_map(|distribution| &distribution.classes) {
            *classes.entry(*class).or_default() += count;
        }
        let middle = |class: u32| f32::from_bits(class << BITS_BELOW | 1 << (BITS_BELOW - 1));
        let classes = classes.into_iter();
        classes
            .map(|(class, count)| (f64::from(middle(class)), count as f64))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_keep_durations_to_one_percent() {
        let mut collected = DurationCollector::new(2);
        let durations = [1, 7, 100, 12_345, 1_000_000_007, 987_654_321_000];
        for (place, ns) in durations.into_iter().enumerate() {
            collected.add(place % 2, ns);
            collected.add(0, -ns);
        }
        collected.add(1, 0);
        let distribution = collected.finish();
        assert_eq!(
            (distribution.whole.samples, distribution.blocks.len()),
            (6, 0)
        );
        let weighted = Distribution::weighted([&distribution, &distribution].into_iter());
        assert_eq!(weighted.len(), durations.len());
        for ((ns, count), truth) in weighted.into_iter().zip(durations) {
            assert_eq!(count, 2.0);
            assert!((ns / truth as f64 - 1.0).abs() < 0.008, "{ns}, not {truth}");
        }
    }
}
