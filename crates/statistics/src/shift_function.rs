//! Changes of many quantiles (shift function). They show changes that the median does not show, such as a
//! longer tail, or two modes that moved apart.

use serde::Serialize;

use crate::comparison::compare_on;
use crate::interval::median;
use crate::{Comparison, Design, Incomparable, Scale, compare, multiple, planning, quantile};

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
    pub fn from_samples(samples: &mut [f64]) -> RunQuantiles {
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

    /// Returns the median over several runs of each quantile. The result has the number of samples of the shortest run.
    pub fn middle(runs: &[RunQuantiles]) -> RunQuantiles {
        let known: Vec<[f64; SHARES.len()]> = runs.iter().filter_map(|run| run.at).collect();
        let mut at = [0.0; SHARES.len()];
        for (place, middle) in at.iter_mut().enumerate() {
            let mut values: Vec<f64> = known.iter().map(|run| run[place]).collect();
            values.sort_unstable_by(f64::total_cmp);
            if !values.is_empty() {
                *middle = median(&values);
            }
        }
        RunQuantiles {
            samples: runs.iter().map(|run| run.samples).min().unwrap_or(0),
            at: (!known.is_empty()).then_some(at),
        }
    }

    /// Creates the quantiles of a run from their values at the shares [`SHARES`] and the number of samples.
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
    // All ranks that are equal to the middle rank get its value, so they belong to neither part.
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
    let all = quantiles_of(before, after).into_iter();
    let compared =
        all.map(|both| both.and_then(|(before, after)| compare(&before, &after, design)));
    corrected(compared.collect())
}

/// Compares the quantiles of runs in the way of [`shifts`], but all changes have the same scale, so that one axis can
/// show all of them. If a quantile of a run is 0 or negative, all changes are differences.
pub fn shifts_on_one_scale(
    before: &[RunQuantiles],
    after: &[RunQuantiles],
    design: Design,
) -> Vec<Result<Shift, Incomparable>> {
    let all = quantiles_of(before, after);
    let mut scales = all.iter().flatten();
    let scale = if scales.all(|(before, after)| Scale::from_samples(before, after) == Scale::Ratio)
    {
        Scale::Ratio
    } else {
        Scale::Difference
    };
    let compared = all
        .into_iter()
        .map(|both| both.and_then(|(before, after)| compare_on(scale, &before, &after, design)));
    corrected(compared.collect())
}

/// Values of a quantile before and after the change, one for each run.
type Values = (Vec<f64>, Vec<f64>);

/// Returns the values of each quantile, for all shares in [`SHARES`].
fn quantiles_of(
    before: &[RunQuantiles],
    after: &[RunQuantiles],
) -> [Result<Values, Incomparable>; SHARES.len()] {
    let shortest = before.iter().chain(after).map(|run| run.samples).min();
    let samples = shortest.unwrap_or(0);
    SHARES.map(|share| {
        let needed = planning::samples_per_run(share.max(1.0 - share));
        if share > 0.9 && samples < needed {
            return Err(Incomparable::TooShort {
                found: samples,
                needed,
            });
        }
        let values_of = |runs: &[RunQuantiles]| -> Option<Vec<f64>> {
            runs.iter().map(|run| run.at(share)).collect()
        };
        values_of(before)
            .zip(values_of(after))
            .ok_or(Incomparable::TooShort {
                found: 0,
                needed: 1,
            })
    })
}

/// Corrects the probabilities for the number of compared quantiles.
fn corrected(compared: Vec<Result<Comparison, Incomparable>>) -> Vec<Result<Shift, Incomparable>> {
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
                let run = RunQuantiles::from_samples(&mut samples);
                for share in SHARES {
                    assert_eq!(run.at(share), quantile::of_sorted(&sorted, share));
                }
            }
        }
        assert_eq!(RunQuantiles::from_samples(&mut []).at(0.5), None);
    }

    /// Checks runs in which more than half of the samples are 0. The other samples double from 10 to 20, which is a
    /// difference of 10.
    #[test]
    fn all_changes_have_one_scale() {
        let runs = |zeros: usize, value: f64| {
            let samples = (0..100).map(|place| if place < zeros { 0.0 } else { value });
            vec![RunQuantiles::from_samples(&mut samples.collect::<Vec<f64>>()); 6]
        };
        for (zeros, scale, change) in [(55, Scale::Difference, 10.0), (0, Scale::Ratio, 2.0)] {
            let (before, after) = (runs(zeros, 10.0), runs(zeros, 20.0));
            let shifts = shifts_on_one_scale(&before, &after, Design::Paired);
            let known: Vec<Shift> = shifts.into_iter().flatten().collect();
            assert!(known.iter().all(|shift| shift.comparison.scale == scale));
            let p90 = known.iter().find(|shift| shift.share == 0.9).unwrap();
            assert!(
                (p90.comparison.change.centre - change).abs() < 1e-9,
                "{p90:?}"
            );
        }
    }
}
