//! Change of each quantile. It shows what a median hides: a tail that grew, or two modes that moved
//! apart.

use serde::Serialize;

use crate::{Comparison, Design, Incomparable, compare, multiple, planning, quantile};

/// Shares of the quantiles that are compared.
pub const SHARES: [f64; 11] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 0.999];

/// Change of one quantile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shift {
    /// Share of samples that the quantile is not below.
    pub share: f64,
    /// Comparison of the quantiles of the runs.
    pub comparison: Comparison,
    /// Probability of such a change by chance, corrected for the number of quantiles (Holm).
    pub adjusted_p: f64,
}

/// Compares the quantiles of runs, whose values are sorted. Quantiles for which a run is too short have
/// the reason instead.
pub fn shifts(
    before: &[Vec<f64>],
    after: &[Vec<f64>],
    shares: &[f64],
    design: Design,
) -> Vec<Result<Shift, Incomparable>> {
    let shortest = before.iter().chain(after).map(Vec::len).min().unwrap_or(0);
    let compared = shares.iter().map(|share| {
        let needed = planning::samples_per_run(share.max(1.0 - share));
        if *share > 0.9 && shortest < needed {
            let found = shortest;
            return Err(Incomparable::TooShort { found, needed });
        }
        let of = |runs: &[Vec<f64>]| -> Option<Vec<f64>> {
            runs.iter()
                .map(|run| quantile::of_sorted(run, *share))
                .collect()
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
    let with_share = shares.iter().zip(compared);
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
