//! Tail probabilities of the binomial distribution, as sums of exact terms. The normal approximation would be wrong
//! mainly for shares near 1, which occur for high quantiles.

use statrs::function::gamma::ln_gamma;

/// Returns the probability of exactly `k` successes in `n` trials. `share` is the probability of a success.
fn exactly(k: u64, n: u64, share: f64) -> f64 {
    let (k, n) = (k as f64, n as f64);
    let ways = ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0);
    (ways + k * share.ln() + (n - k) * (-share).ln_1p()).exp()
}

/// Returns the probability of at most `k` successes in `n` trials. `share` is the probability of a success,
/// with `0 < share < 1`.
pub(crate) fn at_most(k: u64, n: u64, share: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    if k as f64 > n as f64 * share {
        return 1.0 - at_least(k + 1, n, share);
    }
    let odds = (1.0 - share) / share;
    let (mut term, mut sum) = (exactly(k, n, share), 0.0);
    for k in (0..=k).rev() {
        sum += term;
        term *= k as f64 / (n - k + 1) as f64 * odds;
        if term < sum * 1e-17 {
            break;
        }
    }
    sum
}

/// Returns the probability of at least `k` successes in `n` trials. `share` is the probability of a success,
/// with `0 < share < 1`.
pub(crate) fn at_least(k: u64, n: u64, share: f64) -> f64 {
    match k {
        0 => 1.0,
        k if k > n => 0.0,
        k if k as f64 <= n as f64 * share => 1.0 - at_most(k - 1, n, share),
        // Sum the terms from `k` upwards.
        k => {
            let odds = share / (1.0 - share);
            let (mut term, mut sum) = (exactly(k, n, share), 0.0);
            for k in k..=n {
                sum += term;
                term *= (n - k) as f64 / (k + 1) as f64 * odds;
                if term < sum * 1e-17 {
                    break;
                }
            }
            sum
        }
    }
}

/// Returns the share for which `tail(share) == probability`. `tail` must be a monotone function.
pub(crate) fn share_where(probability: f64, tail: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    let is_ascending = tail(0.999_999) > tail(0.000_001);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if (tail(middle) < probability) == is_ascending {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}
