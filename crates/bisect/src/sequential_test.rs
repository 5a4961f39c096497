//! Sequential statistical test: decides from repeated measurements whether the machine is slow or fast.

use serde::{Deserialize, Serialize};

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
    /// Difference of the two means in standard errors. It is positive if the measurements are worse with
    /// all settings.
    #[serde(rename = "apart")]
    pub distance: f64,
    /// Minimum distance for a real difference. Without a real difference, a distance above it has a
    /// probability of at most 1 in 1,000.
    pub needed: f64,
    /// Number of measurements for each mean.
    pub count: usize,
}

/// Deviate of the normal distribution with a one-sided probability of 0.1 %.
const DEVIATE_OF_ONE_IN_1000: f64 = 3.090_232_306_167_813;

impl References {
    /// Evaluates the measurements without any setting (`fast`) and with all settings (`slow`), at least 2
    /// of each.
    pub fn new(fast: &[f64], slow: &[f64], lower_is_better: bool) -> Self {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let squares = |values: &[f64], mean: f64| -> f64 {
            values.iter().map(|value| (value - mean).powi(2)).sum()
        };
        let (fast_mean, slow_mean) = (mean(fast), mean(slow));
        let freedom = (fast.len() + slow.len()).saturating_sub(2).max(1) as f64;
        let variance = (squares(fast, fast_mean) + squares(slow, slow_mean)) / freedom;
        let worse = match lower_is_better {
            true => slow_mean - fast_mean,
            false => fast_mean - slow_mean,
        };
        let error = (variance / fast.len() as f64 + variance / slow.len() as f64).sqrt();
        References {
            fast: fast_mean,
            slow: slow_mean,
            deviation: variance.sqrt(),
            distance: match worse == 0.0 {
                true => 0.0,
                false => worse / error,
            },
            needed: student(DEVIATE_OF_ONE_IN_1000, freedom),
            count: fast.len().min(slow.len()),
        }
    }

    /// Returns true if all settings together make the machine slower, and the difference is too large to be
    /// chance.
    pub fn differ(&self) -> bool {
        self.distance > self.needed
    }

    /// Returns the position of a mean between the references: 0 is the mean without any setting, 1 the mean
    /// with all settings.
    pub fn share(&self, mean: f64) -> f64 {
        (mean - self.fast) / (self.slow - self.fast)
    }
}

/// Returns the deviate of Student's t distribution that has the same probability as a normal deviate. It is
/// computed with the Cornish-Fisher expansion (Abramowitz and Stegun 26.7.5). `freedom` is the number of
/// degrees of freedom.
fn student(normal: f64, freedom: f64) -> f64 {
    let x = normal;
    let terms = [
        (x.powi(3) + x) / 4.0,
        (5.0 * x.powi(5) + 16.0 * x.powi(3) + 3.0 * x) / 96.0,
        (3.0 * x.powi(7) + 19.0 * x.powi(5) + 17.0 * x.powi(3) - 15.0 * x) / 384.0,
        (79.0 * x.powi(9) + 776.0 * x.powi(7) + 1482.0 * x.powi(5)
            - 1920.0 * x.powi(3)
            - 945.0 * x)
            / 92160.0,
    ];
    let mut power = 1.0;
    terms.iter().fold(x, |sum, term| {
        power *= freedom;
        sum + term / power
    })
}

/// Wald's sequential probability ratio test. It decides between the fast state and a state that is slower
/// by a given share of the total slowdown.
///
/// The test assumes that measurements have a normal distribution with the deviation of the references. It
/// also includes the error of the references: with few references, even many measurements cannot make an
/// answer certain. The weight of a single measurement is limited so that at least two are needed for an
/// answer. So one outlier is not enough.
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
        // If the references do not vary, the deviation is 0.1 % of the step.
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
        // The mean of n measurements and the mean of the references together have an error variance
        // proportional to 1/n + 1/references.
        let shrunk_by = |count: f64| 1.0 + count / self.references;
        let half = shrunk_by(2.0) / 2.0;
        let weight = (value - self.fast - self.step / 2.0) * self.step / self.variance;
        self.weights += weight.clamp(fast * half, slow * half);
        self.count += 1;
        let evidence = self.weights / shrunk_by(f64::from(self.count));
        // Two measurements with the maximum weight must be enough. The tolerance is needed because of
        // rounding errors.
        let decides = |bound: f64| evidence / bound > 1.0 - 1e-9;
        let answer = |rates| Answer {
            slow: evidence > 0.0,
            rates,
        };
        if decides(slow) || decides(fast) {
            return (self.count > 1).then(|| answer(self.rates));
        }
        (self.count >= self.at_most).then(|| {
            // The maximum number of measurements forces an answer here. Its error rate is computed from the
            // measurements.
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

    /// Checks the one-sided limits of 0.1 % against published tables of Student's t.
    #[test]
    fn deviates_match_published_tables() {
        for (freedom, published) in [(8.0, 4.501), (10.0, 4.144), (18.0, 3.610), (120.0, 3.160)] {
            let deviate = student(DEVIATE_OF_ONE_IN_1000, freedom);
            assert!((deviate - published).abs() < 0.006, "{freedom}: {deviate}");
        }
    }

    /// Returns a random value with a normal distribution (Box-Muller method).
    pub(crate) fn normal(mean: f64, deviation: f64, rng: &mut Rng) -> f64 {
        let mut unit = || (rng.bits() >> 11) as f64 / (1u64 << 53) as f64;
        let (radius, angle) = (
            (-2.0 * (1.0 - unit()).ln()).sqrt(),
            std::f64::consts::TAU * unit(),
        );
        mean + deviation * radius * angle.cos()
    }

    /// Returns the error rate of the answers and the average number of measurements. `truth` is the true
    /// mean of the measurements.
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

    /// Checks two deviations: 1/20 and 1/5 of the fast speed, 400. A speed of 240, which is half of the
    /// total slowdown, counts as slow.
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

    /// The expected values are computed by hand. The means are 2 and 5, the deviation is 1, the standard
    /// error √(1/3 + 1/3), and the distance 3.674. The deviate in published tables is 7.173 for 4 degrees
    /// of freedom, and 5.208 for 6.
    #[test]
    fn references_differ_beyond_chance_or_not() {
        let references = References::new(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], true);
        assert_eq!(
            (references.fast, references.slow, references.deviation),
            (2.0, 5.0, 1.0)
        );
        assert!((references.distance - 3.674_234_6).abs() < 1e-6);
        assert!(
            (references.needed / 7.173 - 1.0).abs() < 0.02,
            "{references:?}"
        );
        assert!(!references.differ());
        assert!((references.share(3.5) - 0.5).abs() < 1e-12);
        // Here higher values are better, so all settings do not make the machine worse.
        assert!(!References::new(&[1.0, 1.01], &[9.0, 9.01], false).differ());
        assert!(References::new(&[1.0, 1.0], &[9.0, 9.0], true).differ());
        assert!(!References::new(&[1.0, 1.0], &[1.0, 1.0], true).differ());
    }
}
