//! Changes of many quantiles (shift function). They show changes that the median does not show, such as a
//! longer tail, or two modes that moved apart.

use serde::Serialize;

use crate::{Comparison, Design, Incomparable, compare, multiple, planning, quantile};

/// Quantiles that are compared. Each number is the share of samples that do not exceed the quantile.
pub const SHARES: [f64; 11] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 0.999];

/// Change of one quantile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shift {
    /// Share of samples that do not exceed the quantile.
    pub share: f64,
    /// Comparison of this quantile between the runs of both sides.
    pub comparison: Comparison,
    /// Probability that chance alone makes a change that is at least as large, corrected for the number of
    /// quantiles (Holm).
    pub adjusted_p: f64,
}

/// Quantiles of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunQuantiles {
    /// Number of samples of the run.
    pub samples: usize,
    /// Quantiles for the shares in [`SHARES`]. `None` if the run has no samples.
    at: Option<[f64; SHARES.len()]>,
}

impl RunQuantiles {
    /// Computes the quantiles of a run. Reorders the samples.
    pub fn of(samples: &mut [f64]) -> RunQuantiles {
        let mut at = [0.0; SHARES.len()];
        let ranks = SHARES.map(|share| quantile::rank(samples.len(), share));
        if !samples.is_empty() {
            select(samples, 0, &ranks, &mut at);
        }
        RunQuantiles {
            samples: samples.len(),
            at: (!samples.is_empty()).then_some(at),
        }
    }

    /// Creates the quantiles of a run with samples from their values at [`SHARES`].
    pub(crate) fn at_shares(samples: usize, at: [f64; SHARES.len()]) -> RunQuantiles {
        let at = Some(at);
        RunQuantiles { samples, at }
    }

    /// Returns the quantile for a share of [`SHARES`]. Returns `None` for other shares, or if the run has no
    /// samples.
    pub fn at(&self, share: f64) -> Option<f64> {
        let place = SHARES.iter().position(|known| *known == share)?;
        Some(self.at?[place])
    }
}

/// Finds the values with the given ranks and writes them to `found`. There must be at least one rank, and
/// ranks must be ascending. `values` contains only a part of all values, and `start` is the number of smaller
/// values that are not in it.
fn select(values: &mut [f64], start: usize, ranks: &[usize], found: &mut [f64]) {
    let middle = ranks.len() / 2;
    let place = ranks[middle] - 1 - start;
    let (less, value, greater) = values.select_nth_unstable_by(place, f64::total_cmp);
    let value = *value;
    // All ranks that are equal to the middle rank get its value. So they belong to neither part.
    let low = ranks.partition_point(|rank| *rank < ranks[middle]);
    let high = ranks.partition_point(|rank| *rank <= ranks[middle]);
    found[low..high].fill(value);
    if low > 0 {
        select(less, start, &ranks[..low], &mut found[..low]);
    }
    if high < ranks.len() {
        let start = ranks[middle];
        select(greater, start, &ranks[high..], &mut found[high..]);
    }
}

/// Compares the quantiles of runs for all shares in [`SHARES`]. If a run is too short for a quantile, the
/// result of this quantile is the reason.
pub fn shifts(
    before: &[RunQuantiles],
    after: &[RunQuantiles],
    design: Design,
) -> Vec<Result<Shift, Incomparable>> {
    let shortest = before.iter().chain(after).map(|run| run.samples).min();
    let found = shortest.unwrap_or(0);
    let compared = SHARES.iter().map(|share| {
        let needed = planning::samples_per_run(share.max(1.0 - share));
        if *share > 0.9 && found < needed {
            return Err(Incomparable::TooShort { found, needed });
        }
        let of = |runs: &[RunQuantiles]| -> Option<Vec<f64>> {
            runs.iter().map(|run| run.at(*share)).collect()
        };
        match (of(before), of(after)) {
            (Some(before), Some(after)) => compare(&before, &after, design),
            _ => Err(Incomparable::TooShort {
                found: 0,
                needed: 1,
            }),
        }
    });
    let compared: Vec<Result<Comparison, Incomparable>> = compared.collect();
    let shown: Vec<f64> = compared.iter().flatten().map(|it| it.p).collect();
    let mut adjusted = multiple::holm(&shown).into_iter();
    let with_share = SHARES.iter().zip(compared);
    with_share
        .map(|(share, comparison)| {
            comparison.map(|comparison| Shift {
                share: *share,
                comparison,
                adjusted_p: adjusted.next().unwrap_or(1.0),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    #[test]
    fn quantiles_are_those_of_sorted_samples() {
        let mut rng = Rng(3);
        for count in [1, 2, 3, 7, 10, 100, 1_001, 20_000] {
            // With few distinct values, many ranks have equal values.
            for distinct in [1, 3, 1 << 30] {
                let mut samples: Vec<f64> =
                    (0..count).map(|_| rng.below(distinct) as f64).collect();
                let mut sorted = samples.clone();
                sorted.sort_unstable_by(f64::total_cmp);
                let run = RunQuantiles::of(&mut samples);
                for share in SHARES {
                    assert_eq!(run.at(share), quantile::of_sorted(&sorted, share));
                }
            }
        }
        assert_eq!(RunQuantiles::of(&mut []).at(0.5), None);
    }
}
