//! Comparison with results of other programs (SciPy, statsmodels, pragmastat). `reference/make.py` computes
//! the table of these results and states the versions of the programs.
//!
//! Methods that laglab does not use have no reference values here:
//!
//! - the anytime-valid bounds of `confseq`: comparisons have planned looks instead, which are more powerful,
//! - the block lengths of `arch`: no method bootstraps blocks, because bootstrap intervals of a few runs are wrong
//!   too often,
//! - the t-test of pairs and the test of Kolmogorov and Smirnov: signed ranks and the shift function assume no
//!   distribution of the values.

use serde_json::Value;
use statistics::counts::{Count, fisher, rates};
use statistics::planning::Forecast;
use statistics::{CONFIDENCE, multiple, paired, quantile, student, unpaired};

/// Returns the reference cases of one kind.
fn cases(kind: &str) -> Vec<Value> {
    let table: Value = serde_json::from_str(include_str!("reference/reference.json")).unwrap();
    let cases = table[kind].as_array().unwrap().clone();
    assert!(!cases.is_empty());
    cases
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(number).collect()
}

#[track_caller]
fn near(found: f64, expected: &Value) {
    let expected = number(expected);
    let is_near = (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
    assert!(is_near, "{found}, not {expected}");
}

#[test]
fn signed_ranks() {
    for case in cases("signed_ranks") {
        near(paired::signed_rank_p(&numbers(&case["values"])), &case["p"]);
    }
}

#[test]
fn rank_sums() {
    for case in cases("rank_sums") {
        let (before, after) = (numbers(&case["before"]), numbers(&case["after"]));
        let found = unpaired::unpaired(&before, &after, CONFIDENCE).unwrap();
        near(found.u, &case["u"]);
        near(found.p, &case["p"]);
    }
}

#[test]
fn centres_shifts_and_spreads() {
    for case in cases("centres") {
        let found = paired::centre(&numbers(&case["values"]), CONFIDENCE);
        near(found.unwrap().centre, &case["centre"]);
    }
    for case in cases("shifts") {
        let (before, after) = (numbers(&case["before"]), numbers(&case["after"]));
        let found = unpaired::unpaired(&before, &after, CONFIDENCE).unwrap();
        near(found.shift.centre, &case["shift"]);
    }
    for case in cases("spreads") {
        let values = numbers(&case["values"]);
        let scatter = Forecast::from_pilot(&vec![0.0; values.len()], &values)
            .unwrap()
            .scatter;
        // The table contains the median distance, not the standard deviation. The median distance of two standard
        // normal numbers is `√2 · 0.67449`.
        near(scatter * 0.953_872_552_417_610_7, &case["spread"]);
    }
}

#[test]
fn corrections() {
    for case in cases("corrections") {
        let p = numbers(&case["p"]);
        for (found, expected) in [
            (multiple::holm(&p), &case["holm"]),
            (
                multiple::benjamini_hochberg(&p),
                &case["benjamini_hochberg"],
            ),
        ] {
            let expected = expected.as_array().unwrap();
            assert_eq!(found.len(), expected.len());
            found
                .iter()
                .zip(expected)
                .for_each(|(found, expected)| near(*found, expected));
        }
    }
}

#[test]
fn quantile_ranks() {
    for case in cases("quantile_ranks") {
        let (count, share) = (case["count"].as_u64().unwrap(), number(&case["share"]));
        let found = quantile::bounds(count, share, CONFIDENCE);
        let ranks = [found.low, found.high].map(|rank| rank.unwrap() as f64);
        near(ranks[0], &case["low"]);
        near(ranks[1], &case["high"]);
    }
}

#[test]
fn rates_of_counts() {
    let count = |case: &Value| Count {
        events: case.as_u64().unwrap(),
        exposure: 1.0,
    };
    for case in cases("shares") {
        let found = rates(count(&case["before"]), count(&case["after"]), CONFIDENCE);
        near(found.p, &case["p"]);
        near(found.low, &case["low"]);
        assert_eq!(found.high.is_none(), case["high"].is_null());
        if let Some(high) = found.high {
            near(high, &case["high"]);
        }
    }
    for case in cases("fisher") {
        let row = |side: &str| [0, 1].map(|at| case[side][at].as_u64().unwrap());
        near(fisher(row("before"), row("after")), &case["p"]);
    }
}

#[test]
fn students_t() {
    for case in cases("student") {
        near(
            student(number(&case["share"]), number(&case["freedom"])),
            &case["quantile"],
        );
    }
}
