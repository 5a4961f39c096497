//! Comparison of counts. It covers rates of rare independent events (stalls, faults) in a known time, and
//! shares (Fisher's exact test).

use serde::Serialize;
use statrs::function::gamma::ln_gamma;

use crate::binomial::{at_least, at_most, share_where};

/// Number of events in a given time, or among a given number of opportunities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// Number of events.
    pub events: u64,
    /// Time in which the events were counted, or number of opportunities for an event. It is above 0.
    pub exposure: f64,
}

/// Ratio of the rates after and before the change, with a confidence interval. If there are no events before
/// the change, the ratio is unbounded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateRatio {
    /// Rate after the change divided by the rate before it. `None` if there are no events before the change.
    pub ratio: Option<f64>,
    /// Lower bound of the ratio.
    pub low: f64,
    /// Upper bound of the ratio. `None` if there are no events before the change.
    pub high: Option<f64>,
    /// Probability that chance alone makes the counts at least as unequal, if both rates are the same.
    pub p: f64,
}

/// Compares two rates. The method uses the fact that each count has a binomial distribution if the sum of both counts
/// is fixed.
pub fn rates(before: Count, after: Count, confidence: f64) -> RateRatio {
    let (k, sum) = (after.events, before.events + after.events);
    let tail = (1.0 - confidence) / 2.0;
    let per = before.exposure / after.exposure;
    let odds = |share: f64| share / (1.0 - share) * per;
    let low = match k {
        0 => 0.0,
        _ => odds(share_where(tail, |share| at_least(k, sum, share))),
    };
    let is_bounded = before.events > 0;
    let equal = after.exposure / (before.exposure + after.exposure);
    let smaller = at_most(k, sum, equal).min(at_least(k, sum, equal));
    RateRatio {
        ratio: is_bounded.then(|| k as f64 / before.events as f64 * per),
        low,
        high: is_bounded.then(|| odds(share_where(tail, |share| at_most(k, sum, share)))),
        p: (2.0 * smaller).min(1.0),
    }
}

/// Returns true if the counts of several runs differ too much for independent events that have the same rate in all
/// runs. The test is the index of dispersion, with at most 5 % false alarms.
pub fn differ(runs: &[Count]) -> bool {
    let events: u64 = runs.iter().map(|run| run.events).sum();
    let exposure: f64 = runs.iter().map(|run| run.exposure).sum();
    if events == 0 || runs.len() < 2 {
        return false;
    }
    let rate = events as f64 / exposure;
    let square = |run: &Count| {
        let expected = rate * run.exposure;
        (run.events as f64 - expected).powi(2) / expected
    };
    let freedom = runs.len() as f64 - 1.0;
    // 95 % quantile of the chi-squared distribution (Wilson and Hilferty).
    let part = 2.0 / (9.0 * freedom);
    let critical = freedom * (1.0 - part + 1.644_854 * part.sqrt()).powi(3);
    runs.iter().map(square).sum::<f64>() > critical
}

/// Returns the probability that chance alone makes two rows at least as unequal, if both have the same share of events
/// (Fisher's exact test). The samples must be independent. Each row contains the number of samples with the event and
/// the number of samples without it.
pub fn fisher(before: [u64; 2], after: [u64; 2]) -> f64 {
    let ways = |n: u64, k: u64| {
        ln_gamma(n as f64 + 1.0) - ln_gamma(k as f64 + 1.0) - ln_gamma((n - k) as f64 + 1.0)
    };
    let (n, m) = (before[0] + before[1], after[0] + after[1]);
    let events = before[0] + after[0];
    let chance = |k: u64| (ways(n, k) + ways(m, events - k) - ways(n + m, events)).exp();
    let seen = chance(before[0]) * (1.0 + 1e-7);
    let tables = events.saturating_sub(m)..=events.min(n);
    tables
        .map(chance)
        .filter(|it| *it <= seen)
        .sum::<f64>()
        .min(1.0)
}
