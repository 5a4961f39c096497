//! Simulated measurements with known true values, and the error rates of each method.

use statistics::counts::{Count, rates};
use statistics::looks::{Looks, Spending};
use statistics::planning::Forecast;
use statistics::shift_function::{RunQuantiles, shifts};
use statistics::{CONFIDENCE, Design, compare};
use testdata::Rng;

/// Simulated machine on which two variants are measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine {
    /// Name in reports.
    pub(crate) name: &'static str,
    /// Correlation of neighbouring samples in a run.
    dependence: f64,
    /// True if the level of the samples differs from run to run: by 3 % within a pair, and by 10 % from pair
    /// to pair.
    runs_differ: bool,
    /// Number of runs of each variant.
    runs: usize,
    /// Change of the machine's speed from the first to the last pair, as a share.
    drift: f64,
    /// Share of runs that are stalled. A stalled run takes three times as long.
    stalled: f64,
    /// Step of the clock, as a share of the median. It is 0 if the clock has no steps.
    step: f64,
}

const PLAIN: Machine = Machine {
    name: "independent samples",
    dependence: 0.0,
    runs_differ: false,
    runs: 10,
    drift: 0.0,
    stalled: 0.0,
    step: 0.0,
};

/// Machines of the study.
pub(crate) const MACHINES: [Machine; 8] = [
    PLAIN,
    Machine {
        name: "dependent samples",
        dependence: 0.9,
        ..PLAIN
    },
    Machine {
        name: "dependent samples, runs differ",
        dependence: 0.9,
        runs_differ: true,
        ..PLAIN
    },
    Machine {
        name: "runs differ",
        runs_differ: true,
        ..PLAIN
    },
    Machine {
        name: "dependent samples, runs differ, 20 runs",
        dependence: 0.9,
        runs_differ: true,
        runs: 20,
        ..PLAIN
    },
    Machine {
        name: "drift of 30 %",
        runs_differ: true,
        drift: 0.3,
        ..PLAIN
    },
    Machine {
        name: "one run in ten stalled",
        runs_differ: true,
        stalled: 0.1,
        ..PLAIN
    },
    Machine {
        name: "clock with steps of 1 %",
        step: 0.01,
        ..PLAIN
    },
];

/// Number of samples of a run.
const SAMPLES: usize = 200;

/// Standard deviation of the logarithms of the samples in a run.
const SIGMA: f64 = 0.5;

/// Random numbers.
pub(crate) struct Random(Rng);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(Rng(seed))
    }

    /// Returns a random number above 0 and at most 1.
    fn uniform(&mut self) -> f64 {
        ((self.0.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a random number with the standard normal distribution (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

impl Machine {
    /// Returns the sorted samples of all runs of both variants. The second variant takes `factor` times as
    /// long.
    fn measure(&self, random: &mut Random, factor: f64) -> [Vec<Vec<f64>>; 2] {
        let mut both = [Vec::new(), Vec::new()];
        for pair in 0..self.runs {
            let spread = if self.runs_differ { 1.0 } else { 0.0 };
            let shared =
                0.1 * spread * random.normal() + self.drift * pair as f64 / self.runs as f64;
            for (variant, runs) in both.iter_mut().enumerate() {
                let stall = if random.uniform() < self.stalled {
                    3.0_f64.ln()
                } else {
                    0.0
                };
                let change = if variant == 1 { factor.ln() } else { 0.0 };
                let level = shared + change + stall + 0.03 * spread * random.normal();
                runs.push(self.run(random, level));
            }
        }
        both
    }

    fn run(&self, random: &mut Random, level: f64) -> Vec<f64> {
        let mut state = random.normal();
        let fresh = (1.0 - self.dependence * self.dependence).sqrt();
        let sample = |_| {
            state = self.dependence * state + fresh * random.normal();
            let value = (level + SIGMA * state).exp();
            if self.step > 0.0 {
                (value / self.step).ceil() * self.step
            } else {
                value
            }
        };
        let mut samples: Vec<f64> = (0..SAMPLES).map(sample).collect();
        samples.sort_unstable_by(f64::total_cmp);
        samples
    }
}

fn medians(runs: &[Vec<f64>]) -> Vec<f64> {
    runs.iter()
        .map(|run| f64::midpoint(run[SAMPLES / 2 - 1], run[SAMPLES / 2]))
        .collect()
}

/// Errors of each method on one machine, in percent of the rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Errors {
    /// Percentage of wrong changes: the variants are equal, but the interval of the paired runs shows a
    /// change.
    pub(crate) pairs: f64,
    /// Percentage of intervals of paired runs that do not contain the true change of 5 %.
    pub(crate) pairs_missed: f64,
    /// Percentage of wrong changes: the variants are equal, but the interval of the unpaired runs shows a
    /// change.
    pub(crate) unpaired: f64,
    /// Percentage of intervals of unpaired runs that do not contain the true change of 5 %.
    pub(crate) unpaired_missed: f64,
    /// Percentage of wrong shift functions: the variants are equal, but at least one quantile shows a change.
    pub(crate) shifts: f64,
}

/// Simulates `rounds` comparisons on a machine.
pub(crate) fn errors(machine: &Machine, rounds: u32, seed: u64) -> Errors {
    const CHANGE: f64 = 1.05;
    let mut random = Random::new(seed);
    let mut wrong = [0_u32; 5];
    for _ in 0..rounds {
        for (factor, places) in [(1.0, [0, 2]), (CHANGE, [1, 3])] {
            let [before, after] = machine.measure(&mut random, factor);
            let (old, new) = (medians(&before), medians(&after));
            for (design, place) in [Design::Paired, Design::Unpaired].into_iter().zip(places) {
                let change = compare(&old, &new, design).expect("enough runs").change;
                wrong[place] += u32::from(!change.contains(factor));
            }
            if factor == 1.0 {
                // These runs are too short for p99 and p99.9.
                let [old, new] = [before, after].map(|mut runs| -> Vec<RunQuantiles> {
                    runs.iter_mut().map(|run| RunQuantiles::of(run)).collect()
                });
                let shown = shifts(&old, &new, Design::Paired);
                let is_wrong = shown.iter().flatten().any(|shift| shift.adjusted_p <= 0.05);
                wrong[4] += u32::from(is_wrong);
            }
        }
    }
    let [pairs, pairs_missed, unpaired, unpaired_missed, shifts] =
        wrong.map(|wrong| 100.0 * f64::from(wrong) / f64::from(rounds));
    Errors {
        pairs,
        pairs_missed,
        unpaired,
        unpaired_missed,
        shifts,
    }
}

/// Returns two percentages for comparisons of equal variants: the comparisons in which a look shows a difference, and
/// the comparisons whose last interval does not contain the true value. One difference in ten has a standard deviation
/// that is eight times as large as usual.
pub(crate) fn errors_of_looks(spending: Spending, rounds: u32, seed: u64) -> [f64; 2] {
    let looks = Looks {
        draws: 2_000,
        ..Looks::usual(spending)
    };
    let mut random = Random::new(seed);
    let (mut ended, mut missed) = (0, 0);
    for _ in 0..rounds {
        let differences: Vec<f64> = (0..64)
            .map(|_| {
                let size = if random.uniform() < 0.1 { 8.0 } else { 1.0 };
                size * random.normal()
            })
            .collect();
        ended += u32::from(looks.evaluate(&differences).iter().any(|look| look.differs));
        missed += u32::from(
            !looks
                .interval(&differences)
                .expect("all looks")
                .contains(0.0),
        );
    }
    [ended, missed].map(|wrong| 100.0 * f64::from(wrong) / f64::from(rounds))
}

/// Returns the percentage of wrong results for two equal rates: the interval does not contain a ratio of 1.
/// The counts have Poisson distributions with a mean of 20.
pub(crate) fn errors_of_counts(rounds: u32, seed: u64) -> f64 {
    let mut random = Random::new(seed);
    let mut poisson = || {
        let (mut events, mut product) = (0, random.uniform());
        while product > (-20.0_f64).exp() {
            events += 1;
            product *= random.uniform();
        }
        Count {
            events,
            exposure: 1.0,
        }
    };
    let wrong = (0..rounds).filter(|_| {
        let ratio = rates(poisson(), poisson(), CONFIDENCE);
        ratio.low > 1.0 || ratio.high.is_some_and(|high| high < 1.0)
    });
    100.0 * wrong.count() as f64 / f64::from(rounds)
}

/// Returns the percentage of comparisons of 12 pairs that find a change of 10 %. The differences of pairs
/// have a standard deviation of 5 %.
pub(crate) fn power(rounds: u32, seed: u64) -> f64 {
    let mut random = Random::new(seed);
    let found = (0..rounds).filter(|_| {
        let before = vec![1.0; 12];
        let after: Vec<f64> = (0..12)
            .map(|_| 1.1 * (0.05 * random.normal()).exp())
            .collect();
        compare(&before, &after, Design::Paired)
            .expect("enough pairs")
            .change
            .low
            > 1.0
    });
    100.0 * found.count() as f64 / f64::from(rounds)
}

/// Accuracy of forecasts of the half width of a confidence interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forecasts {
    /// Percentage of actual half widths that are within 30 % of the forecast.
    pub(crate) near: f64,
    /// Percentage of actual half widths that are in the range of the forecast. It should be 90 %.
    pub(crate) in_range: f64,
}

/// Forecasts the half width for 48 pairs from pilots with `pilot` pairs. Compares the forecasts with the
/// actual half widths of 48 simulated pairs.
pub(crate) fn forecasts(pilot: usize, rounds: u32, seed: u64) -> Forecasts {
    const PAIRS: usize = 48;
    let mut random = Random::new(seed);
    let (mut near, mut in_range) = (0, 0);
    for _ in 0..rounds {
        let mut measure = |pairs: usize| -> [Vec<f64>; 2] {
            let after = (0..pairs).map(|_| (0.05 * random.normal()).exp());
            [vec![1.0; pairs], after.collect()]
        };
        let [before, after] = measure(pilot);
        let forecast = Forecast::of(&before, &after).expect("enough pairs");
        let forecast = forecast.half_width(PAIRS as u64);
        let [before, after] = measure(PAIRS);
        let change = compare(&before, &after, Design::Paired).expect("enough pairs");
        let came = (change.change.high / change.change.low).ln() / 2.0;
        near += u32::from((came / forecast.centre - 1.0).abs() <= 0.3);
        in_range += u32::from((forecast.low..=forecast.high).contains(&came));
    }
    let percent = |count: u32| 100.0 * f64::from(count) / f64::from(rounds);
    Forecasts {
        near: percent(near),
        in_range: percent(in_range),
    }
}
