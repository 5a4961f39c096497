//! Looking at a comparison while it runs.
//!
//! A comparison that is looked at after every pair, and stops at the first difference, errs in a quarter
//! of all cases. Here the allowed error is spent over planned looks. At each look, the signs of all differences so far
//! are flipped; of the patterns that no earlier look rejected, the most extreme are rejected, up to
//! what may be spent. This needs no assumption but the symmetry of a pair.

use statrs::function::gamma::ln_gamma;

use crate::interval::median;
use crate::normal;
use crate::paired::{doubled_ranks, walsh_averages};
use crate::random::Random;
use crate::{Incomparable, Interval};

/// Numbers of pairs at which a running comparison is looked at.
pub const LOOKS: [usize; 8] = [6, 8, 12, 16, 24, 32, 48, 64];

/// Returns true if a running comparison is looked at after this number of pairs. Beyond the last of
/// [`LOOKS`], that is after each doubling and each half of one.
pub fn is_look(pairs: usize) -> bool {
    LOOKS.contains(&pairs)
        || pairs > 64
            && (pairs.is_power_of_two() || pairs.is_multiple_of(3) && (pairs / 3).is_power_of_two())
}

/// Rule by which the allowed error is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spending {
    /// Little at first (O'Brien and Fleming): the last look is almost as strong as without looks.
    Late,
    /// Evenly (Pocock): ends earlier, weaker at the end.
    Even,
}

impl Spending {
    /// Returns the error that may be spent when this share of all pairs is done.
    pub fn spent(self, share: f64, alpha: f64) -> f64 {
        match self {
            Spending::Late => {
                2.0 - 2.0 * normal::below(normal::quantile(1.0 - alpha / 2.0) / share.sqrt())
            }
            Spending::Even => alpha * (1.0 + (std::f64::consts::E - 1.0) * share).ln(),
        }
    }
}

/// Plan of the looks at a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Looks {
    /// Numbers of pairs at the looks, ascending; the last is at most 64.
    pub at: Vec<usize>,
    /// Rule of spending.
    pub spending: Spending,
    /// Allowed probability of an error.
    pub alpha: f64,
    /// Number of random patterns of signs. With up to 14 pairs, all patterns are used.
    pub draws: usize,
}

/// Result of one look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Number of pairs.
    pub pairs: usize,
    /// Error that may be spent up to here.
    pub may_spend: f64,
    /// Error that is spent up to here.
    pub spent: f64,
    /// Least magnitude of the signed-rank sum that is rejected; `None` if this look rejects nothing.
    pub critical: Option<f64>,
    /// Signed-rank sum of the differences.
    pub seen: f64,
    /// True if the look shows a difference.
    pub differs: bool,
}

impl Looks {
    /// Plan with the looks of [`LOOKS`], an error of 5 % and 100,000 patterns.
    pub fn usual(spending: Spending) -> Looks {
        Looks {
            at: LOOKS.to_vec(),
            spending,
            alpha: 0.05,
            draws: 100_000,
        }
    }

    /// Returns the looks that the differences so far allow. A comparison may stop at the first that
    /// shows a difference.
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
            // A difference of 0 has no sign.
            for (rank, _) in ranks.iter_mut().zip(seen).filter(|(_, d)| **d == 0.0) {
                *rank = 0;
            }
            let may_spend = self.spending.spent(pairs as f64 / last as f64, self.alpha);
            let budget = (may_spend * all + 1e-9).floor() as usize;
            let allowed = budget.saturating_sub(all as usize - alive.len());
            let signed = SignedSums::of(&ranks);
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

    /// Returns the centre of the differences and the values that no look so far rejects. The allowed error
    /// covers all looks together, so a comparison may end as soon as its interval tells enough. Differences
    /// after the last look are ignored.
    ///
    /// # Errors
    /// Returns an error if no look bounds the interval yet, or if a difference is not finite.
    pub fn interval(&self, differences: &[f64]) -> Result<Interval, Incomparable> {
        let found = differences.len();
        let too_few = |seen: usize| Incomparable::TooFewPairs {
            found,
            needed: self
                .at
                .iter()
                .copied()
                .find(|at| *at > seen)
                .unwrap_or(seen + 1),
        };
        let seen = self.at.iter().copied().rfind(|at| *at <= found);
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
        // The result of the test changes only where the shift is a mean of two differences.
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

    /// Returns patterns of signs: all of them, or random ones and the actual one.
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

/// Returns the signs of the first differences as bits; 1 is negative.
fn bits(differences: &[f64], pairs: usize) -> u64 {
    let signs = differences.iter().take(pairs).enumerate();
    signs.fold(0, |bits, (n, d)| bits | u64::from(*d < 0.0) << n)
}

/// Sums of signed ranks, for each byte of a pattern of signs.
struct SignedSums(Vec<[i64; 256]>);

impl SignedSums {
    /// Prepares the sums of at most 64 doubled ranks.
    fn of(ranks: &[usize]) -> SignedSums {
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

    /// Returns the sum of the ranks with the signs of a pattern.
    fn sum(&self, pattern: u64) -> i64 {
        let bytes = self.0.iter().zip(pattern.to_le_bytes());
        bytes.map(|(sums, byte)| sums[usize::from(byte)]).sum()
    }
}

/// Returns the least value that at most `allowed` of the values reach; `None` if the greatest is too
/// frequent.
fn critical(mut values: Vec<i64>, allowed: usize) -> Option<i64> {
    if allowed >= values.len() {
        return values.into_iter().min();
    }
    let (greater, first_kept, _) = values.select_nth_unstable_by(allowed, |a, b| b.cmp(a));
    let greater = greater.iter().filter(|value| *value > first_kept);
    greater.copied().min()
}

/// Returns the evidence against chance in the signs of `count` differences, of which `positive` are
/// above 0. It may be looked at whenever one likes: stop at 20 for an error of 5 %.
pub fn sign_evidence(count: u32, positive: u32) -> f64 {
    let (n, s) = (f64::from(count), f64::from(positive.min(count)));
    let ln_beta = ln_gamma(s + 0.5) + ln_gamma(n - s + 0.5) - ln_gamma(n + 1.0);
    (n * 2.0_f64.ln() + ln_beta).exp() / std::f64::consts::PI
}
