//! Slow or not: a yes or no of repeated measurements.

use serde::{Deserialize, Serialize};

/// How often answers may be wrong, each above 0 and below one half.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorRates {
    /// How often what is fast may be called slow.
    pub false_alarm: f64,
    /// How often what is slow may be called fast.
    pub miss: f64,
}

/// A yes or no.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Whether it is slow.
    pub slow: bool,
    /// How often such answers are wrong.
    pub rates: ErrorRates,
}

/// What was measured without any setting and with all of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct References {
    /// The mean without any.
    pub fast: f64,
    /// The mean with all.
    pub slow: f64,
    /// By how much measurements of one state differ: the pooled standard deviation.
    pub deviation: f64,
    /// How many standard errors both means are apart; positive if all settings make it worse.
    pub apart: f64,
    /// How many they must be apart so that chance does it once in 1,000 cases at most.
    pub needed: f64,
    /// How many measurements each mean is of.
    pub count: usize,
}

/// One case in so many is the normal deviate 3.0902: the one-sided 0.1 %.
const DEVIATE_OF_ONE_IN_1000: f64 = 3.090_232_306_167_813;

impl References {
    /// Of measurements without any setting and with all of them, at least 2 of each.
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
            apart: match worse == 0.0 {
                true => 0.0,
                false => worse / error,
            },
            needed: student(DEVIATE_OF_ONE_IN_1000, freedom),
            count: fast.len().min(slow.len()),
        }
    }

    /// Whether all settings together make it slower beyond what chance explains.
    pub fn differ(&self) -> bool {
        self.apart > self.needed
    }

    /// What share of the difference a mean shows: 0 as without any setting, 1 as with all.
    pub fn share(&self, mean: f64) -> f64 {
        (mean - self.fast) / (self.slow - self.fast)
    }
}

/// The deviate of Student's t that is as improbable as a normal deviate: the expansion of Cornish and
/// Fisher (Abramowitz and Stegun 26.7.5).
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

/// Wald's sequential probability ratio test between the fast state and one that is slower by a share
/// of what all settings cost.
///
/// Measurements are taken to be spread normally, as the references were, whose own error counts too: of
/// few references, no number of measurements makes an answer sure. One measurement never decides: what
/// it weighs is bounded so that it takes two, and one hiccup of the machine is not enough.
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
    /// A test that calls slow what costs at least `effect` (above 0, at most 1) of what all settings
    /// cost, and decides after `at_most` measurements whatever they say.
    pub fn new(references: &References, effect: f64, rates: ErrorRates, at_most: u32) -> Self {
        let step = effect * (references.slow - references.fast);
        // Of what does not vary at all, a difference of a thousandth of the step counts as noise.
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

    /// Learns a measurement; an answer once there is one.
    pub fn add(&mut self, value: f64) -> Option<Answer> {
        let ErrorRates { false_alarm, miss } = self.rates;
        let slow = ((1.0 - miss) / false_alarm).ln();
        let fast = (miss / (1.0 - false_alarm)).ln();
        // The mean of n measurements and that of the references err by 1/n + 1/references together.
        let shrunk_by = |count: f64| 1.0 + count / self.references;
        let half = shrunk_by(2.0) / 2.0;
        let weight = (value - self.fast - self.step / 2.0) * self.step / self.variance;
        self.weights += weight.clamp(fast * half, slow * half);
        self.count += 1;
        let evidence = self.weights / shrunk_by(f64::from(self.count));
        // What two halves come to may miss the whole by a rounding.
        let decides = |bound: f64| evidence / bound > 1.0 - 1e-9;
        let answer = |rates| Answer {
            slow: evidence > 0.0,
            rates,
        };
        if decides(slow) || decides(fast) {
            return (self.count > 1).then(|| answer(self.rates));
        }
        (self.count >= self.at_most).then(|| {
            // What the measurements leave open is what the answer is worth.
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

    /// Deviates of a one-sided 0.1 %, as tables of Student's t have them.
    #[test]
    fn deviates_are_those_of_published_tables() {
        for (freedom, published) in [(8.0, 4.501), (10.0, 4.144), (18.0, 3.610), (120.0, 3.160)] {
            let deviate = student(DEVIATE_OF_ONE_IN_1000, freedom);
            assert!((deviate - published).abs() < 0.006, "{freedom}: {deviate}");
        }
    }

    /// A value spread normally (Box and Muller).
    pub(in crate::bisect) fn normal(mean: f64, deviation: f64, rng: &mut Rng) -> f64 {
        let mut unit = || (rng.bits() >> 11) as f64 / (1u64 << 53) as f64;
        let (radius, angle) = (
            (-2.0 * (1.0 - unit()).ln()).sqrt(),
            std::f64::consts::TAU * unit(),
        );
        mean + deviation * radius * angle.cos()
    }

    /// How often answers are wrong, and how many measurements they take, for a noise of so much.
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

    /// The noise is a twentieth and a fifth of the speed; what costs half of what all settings cost (240)
    /// is slow.
    #[test]
    fn answers_are_wrong_no_more_often_than_was_asked_for() {
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

    /// Halfway between fast and slow enough, measurements tell nothing: the answer is worth nothing.
    #[test]
    fn an_answer_that_was_forced_says_how_little_it_is_worth() {
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

    /// By hand: means 2 and 5, deviation 1, standard error √(1/3 + 1/3), 3.674 of them apart; the
    /// deviate for 4 degrees of freedom is 7.173 in published tables, and 5.208 for 6.
    #[test]
    fn references_differ_beyond_chance_or_not() {
        let references = References::new(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], true);
        assert_eq!(
            (references.fast, references.slow, references.deviation),
            (2.0, 5.0, 1.0)
        );
        assert!((references.apart - 3.674_234_6).abs() < 1e-6);
        assert!(
            (references.needed / 7.173 - 1.0).abs() < 0.02,
            "{references:?}"
        );
        assert!(!references.differ());
        assert!((references.share(3.5) - 0.5).abs() < 1e-12);
        // More is better: what all settings make is no worse.
        assert!(!References::new(&[1.0, 1.01], &[9.0, 9.01], false).differ());
        assert!(References::new(&[1.0, 1.0], &[9.0, 9.0], true).differ());
        assert!(!References::new(&[1.0, 1.0], &[1.0, 1.0], true).differ());
    }
}
