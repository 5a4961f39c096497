//! Fast version of the study of error rates. It checks that the methods are not wrong more often than they
//! state.

mod study;

use statistics::looks::Spending;
use study::{MACHINES, errors, errors_of_counts, errors_of_looks, forecasts, power};

/// Maximum percentage of wrong results. The true percentage may be up to 6.5 %. The rest allows for three
/// standard errors of 600 rounds.
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
        // This error is rarer, because of Holm's correction and because ten pairs allow only some
        // probabilities.
        assert!(errors.shifts <= MOST, "{}: {errors:?}", machine.name);
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

/// A pilot of 6 pairs estimates the scatter with an error of a third at best. So its forecast is a wide
/// range. With pilots of 32 or more pairs, the actual half width is within 30 % of the forecast in 90 % of
/// plans.
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
