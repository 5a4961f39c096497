//! Counts of rare independent events (stalls, faults) in a known time, and Fisher's test of shares.

use serde::Serialize;
use statrs::function::gamma::ln_gamma;

use crate::binomial::{at_least, at_most, share_where};

/// Number of events in a time or among a number of opportunities.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// Number of events.
    pub events: u64,
    /// Time or opportunities, above 0.
    pub exposure: f64,
}

/// Ratio of two rates. Without events before the change it is unbounded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RateRatio {
    /// Rate after divided by rate before; `None` without events before the change.
    pub ratio: Option<f64>,
    /// Lower bound.
    pub low: f64,
    /// Upper bound; `None` without events before the change.
    pub high: Option<f64>,
    /// Probability of counts as unequal as these if nothing changed.
    pub p: f64,
}

/// Compares two rates. Given the sum of both counts, one of them has a binomial law.
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

/// Returns the probability of a table as unequal as this one if both rows have the same share
/// (Fisher's exact test). It holds for independent samples only. Each row has the numbers of samples
/// with and without the event.
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
