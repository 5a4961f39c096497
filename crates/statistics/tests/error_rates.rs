//! Fast version of the study of error rates. It checks that the methods are not wrong more often than they
//! state.

use crate::study;

use statistics::looks::Spending;
use statistics::{Design, compare};
use study::{MACHINES, Random, errors, errors_of_counts, errors_of_looks, forecasts, power};

/// Maximum percentage of wrong results. The true percentage may be up to 6.5 %, and 3 % are added for three standard
/// errors of 600 rounds.
const MOST: f64 = 6.5 + 3.0 * 1.0;

#[test]
fn methods_err_as_rarely_as_they_state() {
    for machine in &MACHINES {
        let errors = errors(machine, 600, 1);
        for share in [
            errors.pairs,
            errors.pairs_missed,
            errors.unpaired,
            errors.unpaired_missed,
        ] {
            assert!(share <= MOST, "{}: {errors:?}", machine.name);
        }
        // Shift functions are wrong less often than the other methods, because of Holm's correction and because ten
        // pairs allow only some probabilities.
        assert!(errors.shifts <= MOST, "{}: {errors:?}", machine.name);
    }
}

/// Checks sides with different scatters. One side scatters up to 20 times as much as the other, and has fewer runs.
/// Ranks alone would be wrong in up to a third of the comparisons.
#[test]
fn sides_that_scatter_differently_err_as_rarely_as_stated() {
    let mut random = Random::new(5);
    for ((few, wide), (many, narrow)) in [
        ((5, 0.4), (40, 0.02)),
        ((8, 0.1), (30, 0.02)),
        ((10, 0.1), (10, 0.02)),
    ] {
        let mut side = |count: usize, scatter: f64| -> Vec<f64> {
            (0..count)
                .map(|_| (scatter * random.normal()).exp())
                .collect()
        };
        let rounds = (0..600).filter(|_| {
            let found = compare(&side(few, wide), &side(many, narrow), Design::Unpaired).unwrap();
            !found.change.contains(1.0) || found.p <= 0.05
        });
        let share = rounds.count() as f64 / 6.0;
        assert!(share <= MOST, "{few} and {many} runs: {share} %");
    }
}

#[test]
fn looking_early_errs_as_rarely_as_stated() {
    for spending in [Spending::Late, Spending::Even] {
        let shares = errors_of_looks(spending, 300, 2);
        assert!(
            shares.iter().all(|share| *share <= 6.5 + 3.0 * 1.4),
            "{spending:?}: {shares:?}"
        );
    }
}

#[test]
fn equal_counts_rarely_seem_to_differ() {
    let share = errors_of_counts(2_000, 3);
    assert!((1.0..=6.5).contains(&share), "{share} %");
}

#[test]
fn a_change_of_ten_percent_is_found_with_twelve_pairs() {
    let share = power(2_000, 4);
    assert!(share >= 95.0, "{share} %");
}

/// Checks forecasts. A pilot of 6 pairs estimates the scatter with an error of a third at best, so its forecast is a
/// wide range. With pilots of 32 or more pairs, the actual half width is within 30 % of the forecast in 90 % of plans.
#[test]
fn forecasts_hold_as_often_as_stated() {
    // With 600 rounds, three standard errors are 3.7 %.
    for pilot in [6, 12, 32] {
        let found = forecasts(pilot, 600, 5);
        assert!(
            (86.3..=96.0).contains(&found.in_range),
            "{pilot}: {found:?}"
        );
    }
    let near = forecasts(32, 600, 6).near;
    assert!(near >= 86.3, "{near} %");
}
