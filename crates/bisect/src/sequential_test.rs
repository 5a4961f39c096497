//! Sequential statistical test: decides from repeated measurements whether the machine is slow or fast.

use serde::{Deserialize, Serialize};
use statistics::unpaired::unpaired;
use statistics::{mean, variance};

/// Error rates of answers. Each is above 0 and below 0.5.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorRates {
    /// Probability that a fast machine gets the answer "slow".
    pub false_alarm: f64,
    /// Probability that a slow machine gets the answer "fast".
    pub miss: f64,
}

/// Answer of a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// True if the machine is slow.
    pub slow: bool,
    /// Error rates of this answer.
    pub rates: ErrorRates,
}

/// Statistics of the reference measurements: without any setting ("fast") and with all settings ("slow").
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct References {
    /// Mean of the measurements without any setting.
    pub fast: f64,
    /// Mean of the measurements with all settings.
    pub slow: f64,
    /// Pooled standard deviation of measurements in the same state.
    pub deviation: f64,
    /// One-sided p-value of the Mann-Whitney test. It is the probability that chance alone makes the
    /// measurements with all settings worse by at least the observed amount. The test assumes no particular
    /// distribution of the measurements. The value is 1 if there are too few measurements.
    pub chance: f64,
    /// Number of measurements for each mean.
    pub count: usize,
}

impl References {
    /// Maximum value of `chance` at which the difference counts as real.
    pub const MAX_CHANCE: f64 = 0.001;

    /// Minimum number of measurements in each state. With 6 measurements in each state, chance alone
    /// separates the two states completely in 1 of 924 cases, which is too often.
    pub const MIN_COUNT: u32 = 7;

    /// Evaluates the measurements without any setting (`fast`) and with all settings (`slow`). Each slice has
    /// at least 2 measurements.
    pub fn new(fast: &[f64], slow: &[f64], lower_is_better: bool) -> Self {
        let freedom = |values: &[f64]| values.len().saturating_sub(1) as f64;
        let squares = |values: &[f64]| variance(values) * freedom(values);
        let pooled = (squares(fast) + squares(slow)) / (freedom(fast) + freedom(slow));
        let (better, worse) = if lower_is_better {
            (fast, slow)
        } else {
            (slow, fast)
        };
        let compared = unpaired(better, worse, 1.0 - 2.0 * Self::MAX_CHANCE);
        References {
            fast: mean(fast),
            slow: mean(slow),
            deviation: pooled.sqrt(),
            // Both states have the same number of measurements, so the distribution of the ranks is
            // symmetric. The one-sided p-value is therefore half of the two-sided p-value `p`.
            chance: compared.map_or(1.0, |it| {
                if it.dominance > 0.5 {
                    it.p / 2.0
                } else {
                    1.0 - it.p / 2.0
                }
            }),
            count: fast.len().min(slow.len()),
        }
    }

    /// Returns true if all settings together make the machine slower, and chance cannot explain the
    /// difference.
    pub fn differ(&self) -> bool {
        self.chance <= Self::MAX_CHANCE
    }

    /// Returns the position of a mean between the references: 0 is the mean without any setting, and 1 is the
    /// mean with all settings.
    pub fn share(&self, mean: f64) -> f64 {
        (mean - self.fast) / (self.slow - self.fast)
    }
}

/// Wald's sequential probability ratio test. It decides between the fast state and a state that is slower by
/// a given share of the total slowdown.
///
/// The test assumes that measurements have a normal distribution with the deviation of the references. It
/// also takes into account the error of the references: with few references, even many measurements cannot
/// make an answer certain. The weight of a single measurement is limited, so an answer needs at least two
/// measurements. One outlier is not enough.
#[derive(Clone, Debug)]
pub struct SequentialTest {
    fast: f64,
    step: f64,
    variance: f64,
    references: f64,
    rates: ErrorRates,
    at_most: u32,
    weights: f64,
    count: u32,
}

impl SequentialTest {
    /// Creates a test for a slowdown of at least the share `effect` (above 0, at most 1) of the total
    /// slowdown. The test always gives an answer after `at_most` measurements.
    pub fn new(references: &References, effect: f64, rates: ErrorRates, at_most: u32) -> Self {
        let step = effect * (references.slow - references.fast);
        // If the references do not vary, the deviation is set to 0.1 % of `step`.
        let deviation = references.deviation.max(step.abs() / 1_000.0);
        SequentialTest {
            fast: references.fast,
            step,
            variance: deviation * deviation,
            references: references.count as f64,
            rates,
            at_most,
            weights: 0.0,
            count: 0,
        }
    }

    /// Adds a measurement. Returns the answer as soon as the measurements are sufficient.
    pub fn add(&mut self, value: f64) -> Option<Answer> {
        let ErrorRates { false_alarm, miss } = self.rates;
        let slow = ((1.0 - miss) / false_alarm).ln();
        let fast = (miss / (1.0 - false_alarm)).ln();
        // The references also have an error. For n measurements, this error increases the variance of the
        // comparison from 1/n to 1/n + 1/references. The ratio of the two is 1 + n/references.
        let shrunk_by = |count: f64| 1.0 + count / self.references;
        let half = shrunk_by(2.0) / 2.0;
        let weight = (value - self.fast - self.step / 2.0) * self.step / self.variance;
        self.weights += weight.clamp(fast * half, slow * half);
        self.count += 1;
        let evidence = self.weights / shrunk_by(f64::from(self.count));
        // Two measurements with the maximum weight must be enough for an answer. The tolerance of 1e-9 allows
        // for rounding errors.
        let decides = |bound: f64| evidence / bound > 1.0 - 1e-9;
        let answer = |rates| Answer {
            slow: evidence > 0.0,
            rates,
        };
        if decides(slow) || decides(fast) {
            return (self.count > 1).then(|| answer(self.rates));
        }
        (self.count >= self.at_most).then(|| {
            // After the maximum number of measurements, the test must give an answer. The error rate of this
            // answer is computed from the measurements.
            let open = 1.0 / (1.0 + evidence.abs().exp());
            answer(ErrorRates {
                false_alarm: false_alarm.max(open),
                miss: miss.max(open),
            })
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use testdata::Rng;

    /// Returns a random value with a normal distribution (Box-Muller method).
    pub(crate) fn normal(mean: f64, deviation: f64, rng: &mut Rng) -> f64 {
        let mut unit = || (rng.bits() >> 11) as f64 / (1u64 << 53) as f64;
        let (radius, angle) = (
            (-2.0 * (1.0 - unit()).ln()).sqrt(),
            std::f64::consts::TAU * unit(),
        );
        mean + deviation * radius * angle.cos()
    }

    /// Runs many tests of measurements whose true mean is `truth`. Returns the error rate of the answers and
    /// the average number of measurements.
    fn trials(deviation: f64, truth: f64, rng: &mut Rng) -> (f64, f64) {
        let rates = ErrorRates {
            false_alarm: 0.05,
            miss: 0.05,
        };
        let (mut wrong, mut measured) = (0, 0);
        for _ in 0..4_000 {
            let mut measure = |mean| normal(mean, deviation, rng);
            let fast: Vec<f64> = (0..8).map(|_| measure(400.0)).collect();
            let slow: Vec<f64> = (0..8).map(|_| measure(80.0)).collect();
            let references = References::new(&fast, &slow, false);
            let mut test = SequentialTest::new(&references, 0.5, rates, 200);
            let answer = loop {
                measured += 1;
                if let Some(answer) = test.add(measure(truth)) {
                    break answer;
                }
            };
            wrong += i32::from(answer.slow == (truth == 400.0));
        }
        (f64::from(wrong) / 4_000.0, f64::from(measured) / 4_000.0)
    }

    /// Checks that at most 5 % of the answers are wrong, for two standard deviations: 1/20 and 1/5 of the
    /// fast speed, which is 400. A speed of 240 counts as slow, because it is half of the total slowdown.
    #[test]
    fn answers_keep_the_error_rates() {
        let mut rng = Rng(1);
        for deviation in [20.0, 80.0] {
            for truth in [400.0, 240.0, 80.0] {
                let (wrong, measured) = trials(deviation, truth, &mut rng);
                assert!(wrong <= 0.05, "{deviation}, {truth}: {wrong} wrong");
                assert!(measured <= 8.0, "{deviation}, {truth}: {measured} each");
            }
        }
    }

    #[test]
    fn one_measurement_never_decides() {
        let references = References::new(&[400.0; 3], &[80.0; 3], false);
        let rates = ErrorRates {
            false_alarm: 0.01,
            miss: 0.01,
        };
        let test = SequentialTest::new(&references, 0.5, rates, 20);
        for (value, slow) in [(80.0, true), (400.0, false), (1e9, false), (-1e9, true)] {
            let mut test = test.clone();
            assert_eq!(test.add(value), None);
            assert_eq!(test.add(value), Some(Answer { slow, rates }));
        }
    }

    /// Checks that an answer has an error rate of one half if the measurements have no information, because
    /// they are exactly between the two states.
    #[test]
    fn a_forced_answer_has_a_high_error_rate() {
        let references = References::new(&[410.0, 390.0], &[90.0, 70.0], false);
        let rates = ErrorRates {
            false_alarm: 0.01,
            miss: 0.01,
        };
        let mut test = SequentialTest::new(&references, 0.5, rates, 2);
        assert_eq!(test.add(320.0), None);
        let answer = test.add(320.0).unwrap();
        assert!((answer.rates.miss - 0.5).abs() < 1e-6, "{answer:?}");
    }

    /// The expected probabilities come from other sources. The two-sided probability 0.0018648 is from SciPy
    /// 1.17 (`mannwhitneyu`, exact). If 7 of 14 measurements are drawn at random, they have the 7 lowest
    /// ranks in 1 of 3,432 cases.
    #[test]
    fn references_differ_beyond_chance_or_not() {
        let high = [12.1, 11.4, 13.0, 12.7, 11.9, 12.3, 15.8, 12.0];
        let low = [10.9, 11.2, 10.4, 12.2, 11.0, 10.7, 11.1, 10.8];
        let references = References::new(&high, &low, false);
        assert!((references.chance - 0.001_864_8 / 2.0).abs() < 1e-7);
        assert!(references.differ());
        // Here, lower values are better. So all settings together make the machine faster.
        let reversed = References::new(&high, &low, true);
        assert!((reversed.chance + references.chance - 1.0).abs() < 1e-12);
        assert!(!reversed.differ());

        let ascending = |from: u32| -> Vec<f64> { (from..from + 7).map(f64::from).collect() };
        let apart = References::new(&ascending(1), &ascending(8), true);
        assert_eq!((apart.fast, apart.slow), (4.0, 11.0));
        // The variance of seven consecutive integers is 28/6.
        assert!((apart.deviation - (28.0_f64 / 6.0).sqrt()).abs() < 1e-12);
        assert!((apart.share(7.5) - 0.5).abs() < 1e-12);
        assert!((apart.chance - 1.0 / 3432.0).abs() < 1e-12);
        assert!(apart.differ());
        assert!(!References::new(&ascending(1)[..6], &ascending(8)[..6], true).differ());
        assert!(!References::new(&[1.0; 7], &[1.0; 7], true).differ());
    }

    /// Checks two kinds of measurements: measurements that are rounded to whole seconds, and measurements of
    /// which one in ten is disturbed. For rounded measurements, a comparison of means would find too many
    /// differences.
    #[test]
    fn equal_states_differ_as_rarely_as_stated() {
        let mut rng = Rng(3);
        let rounded = |rng: &mut Rng| 3.0 + rng.below(2) as f64;
        let disturbed = |rng: &mut Rng| match rng.below(10) {
            0 => 100.0 * normal(1.0, 0.1, rng),
            _ => normal(1.0, 0.1, rng),
        };
        let kinds: [&dyn Fn(&mut Rng) -> f64; 2] = [&rounded, &disturbed];
        for measure in kinds {
            for count in [7, 10] {
                let mut wrong = 0;
                for _ in 0..10_000 {
                    let mut state =
                        || -> Vec<f64> { (0..count).map(|_| measure(&mut rng)).collect() };
                    let (fast, slow) = (state(), state());
                    wrong += u32::from(References::new(&fast, &slow, true).differ());
                }
                // The expected number of wrong answers is at most 10 of 10,000. The expected number plus
                // three standard deviations is 19.5.
                assert!(wrong <= 19, "{wrong} of 10,000 with {count}");
            }
        }
    }
}
