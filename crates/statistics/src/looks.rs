//! Repeated tests of a comparison while it runs. Each of these tests is called a look.
//!
//! If a comparison is tested after every pair and stops at the first difference, it is wrong in a quarter of all cases.
//! So the looks are planned, and the allowed error is divided among them. Each look flips the signs of all differences
//! so far in many patterns. Patterns that an earlier look rejected are left out. Of the other patterns, the look
//! rejects the most extreme ones, as many as the allowed error permits. The only assumption is the symmetry of a pair:
//! swapping its variants changes only the sign of its difference.

use statrs::function::gamma::ln_gamma;

use crate::interval::median;
use crate::normal;
use crate::paired::{doubled_ranks, walsh_averages};
use crate::random::Random;
use crate::{Incomparable, Interval};

/// Numbers of pairs after which a running comparison has a look.
pub const LOOKS: [usize; 8] = [6, 8, 12, 16, 24, 32, 48, 64];

/// Returns true if a running comparison has a look after this number of pairs. A number above the last number
/// of [`LOOKS`] has a look if it is `2ⁿ` or `3 · 2ⁿ`.
pub fn is_look(pairs: usize) -> bool {
    LOOKS.contains(&pairs)
        || pairs > 64
            && (pairs.is_power_of_two() || pairs.is_multiple_of(3) && (pairs / 3).is_power_of_two())
}

/// Rule that divides the allowed error among the looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spending {
    /// Allows little error at the early looks (O'Brien and Fleming), so the last look is nearly as powerful as a test
    /// without earlier looks.
    Late,
    /// Allows a similar error at each look (Pocock). A comparison can end earlier, but the last look is less powerful.
    Even,
}

impl Spending {
    /// Returns the error that all looks so far may have together. `share` is the share of all planned pairs
    /// that are measured, and `alpha` is the error that all looks may have.
    pub fn spent(self, share: f64, alpha: f64) -> f64 {
        match self {
            Spending::Late => {
                2.0 - 2.0 * normal::below(normal::quantile(1.0 - alpha / 2.0) / share.sqrt())
            }
            Spending::Even => alpha * (1.0 + (std::f64::consts::E - 1.0) * share).ln(),
        }
    }
}

/// Plan of the looks of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Looks {
    /// Numbers of pairs at the looks, in ascending order. The last number is at most 64.
    pub at: Vec<usize>,
    /// Rule that divides the allowed error among the looks.
    pub spending: Spending,
    /// Allowed probability of an error, for all looks together.
    pub alpha: f64,
    /// Number of random patterns of signs. If there are at most 14 pairs, all patterns are used instead.
    pub draws: usize,
}

/// Result of one look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Number of pairs at this look.
    pub pairs: usize,
    /// Probability of an error that this look and all earlier looks may have together.
    pub may_spend: f64,
    /// Probability of an error that this look and all earlier looks actually have together.
    pub spent: f64,
    /// Minimum magnitude of the signed-rank sum that this look rejects. `None` if this look rejects nothing.
    pub critical: Option<f64>,
    /// Signed-rank sum of the actual differences.
    pub seen: f64,
    /// True if this look shows a difference between the variants.
    pub differs: bool,
}

impl Looks {
    /// Creates a plan with the looks of [`LOOKS`], an allowed error of 5 % and 100,000 random patterns.
    pub fn usual(spending: Spending) -> Looks {
        Looks {
            at: LOOKS.to_vec(),
            spending,
            alpha: 0.05,
            draws: 100_000,
        }
    }

    /// Creates the plan of a measurement that ends as soon as its result is sure. It has fewer random patterns than the
    /// usual plan, because it is evaluated many times. The test is exact for any number of patterns.
    pub fn running() -> Looks {
        Looks {
            draws: 10_000,
            ..Looks::usual(Spending::Even)
        }
    }

    /// Evaluates the looks for which there are enough differences, and returns their results. A comparison
    /// may stop at the first look that shows a difference.
    pub fn evaluate(&self, differences: &[f64]) -> Vec<Look> {
        let last = self.at.last().copied().unwrap_or(0).clamp(1, 64);
        let now = self
            .at
            .iter()
            .filter(|at| **at <= differences.len().min(last));
        let now: Vec<usize> = now.copied().collect();
        let most = now.last().copied().unwrap_or(0);
        let mut alive = self.patterns(differences, most);
        let all = alive.len() as f64;
        let own = bits(differences, most);
        let mut looks = Vec::new();
        for pairs in now {
            let seen = &differences[..pairs];
            let magnitudes: Vec<f64> = seen.iter().map(|d| d.abs()).collect();
            let mut ranks = doubled_ranks(&magnitudes);
            // A difference of 0 has no sign, so its rank must not change the sum.
            for (rank, _) in ranks.iter_mut().zip(seen).filter(|(_, d)| **d == 0.0) {
                *rank = 0;
            }
            let may_spend = self.spending.spent(pairs as f64 / last as f64, self.alpha);
            let budget = (may_spend * all + 1e-9).floor() as usize;
            let allowed = budget.saturating_sub(all as usize - alive.len());
            let signed = SignedSums::from_ranks(&ranks);
            let sums: Vec<i64> = alive.iter().map(|it| signed.sum(*it).abs()).collect();
            let critical = critical(sums.clone(), allowed);
            let own_sum = signed.sum(own);
            let differs = critical.is_some_and(|critical| own_sum.abs() >= critical);
            let mut sums = sums.into_iter();
            alive.retain(|_| sums.next() < critical.or(Some(i64::MAX)));
            looks.push(Look {
                pairs,
                may_spend,
                spent: 1.0 - alive.len() as f64 / all,
                critical: critical.map(|doubled| doubled as f64 / 2.0),
                seen: own_sum as f64 / 2.0,
                differs,
            });
        }
        looks
    }

    /// Returns the centre of the differences and its confidence interval. The interval contains the values that no look
    /// so far rejects. The allowed error covers all looks together, so a comparison may end as soon as its interval is
    /// sufficiently narrow. Differences after the last look are ignored.
    ///
    /// # Errors
    /// Returns an error if the looks so far do not bound the interval, or if a difference is not finite.
    pub fn interval(&self, differences: &[f64]) -> Result<Interval, Incomparable> {
        let pairs = differences.len();
        let too_few = |seen: usize| Incomparable::TooFewPairs {
            found: pairs,
            needed: self
                .at
                .iter()
                .copied()
                .find(|at| *at > seen)
                .unwrap_or(seen + 1),
        };
        let seen = self.at.iter().copied().rfind(|at| *at <= pairs);
        let seen = seen.ok_or_else(|| too_few(0))?;
        let differences = &differences[..seen];
        if !differences.iter().all(|difference| difference.is_finite()) {
            return Err(Incomparable::NotFinite);
        }
        let mut means = walsh_averages(differences);
        means.sort_unstable_by(f64::total_cmp);
        let is_rejected = |shift: f64| {
            let shifted: Vec<f64> = differences.iter().map(|d| d - shift).collect();
            self.evaluate(&shifted).iter().any(|look| look.differs)
        };
        let (least, greatest) = (means[0], means[means.len() - 1]);
        let outside = 1.0 + least.abs() + greatest.abs();
        if !is_rejected(least - outside) || !is_rejected(greatest + outside) {
            return Err(too_few(seen));
        }
        // The result of the test changes only if `shift` passes the mean of two differences. So one test between two
        // neighbouring means is enough.
        let gaps: Vec<f64> = (means.windows(2))
            .map(|two| f64::midpoint(two[0], two[1]))
            .collect();
        let (below, above) = gaps.split_at(gaps.len() / 2);
        let low = below.partition_point(|shift| is_rejected(*shift));
        let high = below.len() + above.partition_point(|shift| !is_rejected(*shift));
        Ok(Interval {
            centre: median(&means),
            low: means[low],
            high: means[high],
        })
    }

    /// Returns the probability that chance alone makes a difference: the smallest allowed error with which one of the
    /// looks so far shows a difference. The probability covers all looks together. It is 1 if no look shows a
    /// difference with any error. [`Looks::alpha`] is not used.
    pub fn probability(&self, differences: &[f64]) -> f64 {
        let differs = |alpha: f64| {
            let looks = Looks {
                alpha,
                ..self.clone()
            };
            looks.evaluate(differences).iter().any(|look| look.differs)
        };
        let (mut too_low, mut enough) = (0.0, 1.0);
        if !differs(enough) {
            return 1.0;
        }
        // Each step halves the uncertainty. After 14 steps, it is below the share of one of 10,000 patterns.
        for _ in 0..14 {
            let middle = f64::midpoint(too_low, enough);
            if differs(middle) {
                enough = middle
            } else {
                too_low = middle
            }
        }
        enough
    }

    /// Returns patterns of signs. They are all patterns if there are few pairs. Otherwise, they are random
    /// patterns and the actual pattern.
    fn patterns(&self, differences: &[f64], pairs: usize) -> Vec<u64> {
        const EXACT: usize = 14;
        if pairs <= EXACT {
            return (0..1 << pairs).collect();
        }
        let mut random = Random::new(1);
        let drawn = (0..self.draws).map(|_| random.bits());
        drawn.chain([bits(differences, pairs)]).collect()
    }
}

/// Returns the signs of the first `pairs` differences as bits. A bit of 1 means a negative difference.
fn bits(differences: &[f64], pairs: usize) -> u64 {
    let signs = differences.iter().take(pairs).enumerate();
    signs.fold(0, |bits, (n, d)| bits | u64::from(*d < 0.0) << n)
}

/// Sums of signed ranks. Each entry has the sums for the 256 patterns of the signs of 8 ranks.
struct SignedSums(Vec<[i64; 256]>);

impl SignedSums {
    /// Prepares the sums for at most 64 doubled ranks.
    fn from_ranks(ranks: &[usize]) -> SignedSums {
        let of_byte = |ranks: &[usize]| {
            let mut sums = [0; 256];
            for (byte, sum) in sums.iter_mut().enumerate() {
                let signed = ranks.iter().enumerate().map(|(n, rank)| {
                    let rank = *rank as i64;
                    if byte >> n & 1 == 1 { -rank } else { rank }
                });
                *sum = signed.sum();
            }
            sums
        };
        SignedSums(ranks.chunks(8).map(of_byte).collect())
    }

    /// Returns the sum of all ranks with the signs of a pattern.
    fn sum(&self, pattern: u64) -> i64 {
        let bytes = self.0.iter().zip(pattern.to_le_bytes());
        bytes.map(|(sums, byte)| sums[usize::from(byte)]).sum()
    }
}

/// Returns the smallest `v` of the values for which at most `allowed` values are `v` or greater. Returns `None` if
/// there is no such value: more than `allowed` values are equal to the maximum.
fn critical(mut values: Vec<i64>, allowed: usize) -> Option<i64> {
    if allowed >= values.len() {
        return values.into_iter().min();
    }
    let (greater, first_kept, _) = values.select_nth_unstable_by(allowed, |a, b| b.cmp(a));
    let greater = greater.iter().filter(|value| *value > first_kept);
    greater.copied().min()
}

/// Returns the evidence that the signs of the differences are not random. `count` is the number of
/// differences, and `positive` is the number of positive differences. The evidence may be computed after each
/// difference. For an error of 5 %, stop when the evidence reaches 20.
pub fn sign_evidence(count: u32, positive: u32) -> f64 {
    let (n, s) = (f64::from(count), f64::from(positive.min(count)));
    let ln_beta = ln_gamma(s + 0.5) + ln_gamma(n - s + 0.5) - ln_gamma(n + 1.0);
    (n * 2.0_f64.ln() + ln_beta).exp() / std::f64::consts::PI
}
