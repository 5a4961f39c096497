//! Plans with the cheapest length of a run, from the costs of runs and samples in a pilot.

use crate::written;

use prove::{Pairing, Question, Summary, measured, plan, sides};
use testdata::Rng;
use written::WrittenRun;

/// Number of pairs in the pilot.
const PAIRS: u32 = 32;

/// Number of samples of a run.
const SAMPLES: usize = 1_000;

/// Standard deviation of the logarithm of a sample within its run.
const OF_SAMPLES: f64 = 0.5;

/// Standard deviation of the logarithm of a run.
const OF_RUNS: f64 = 0.05;

/// Returns a number with nearly a normal distribution.
fn normal(rng: &mut Rng) -> f64 {
    (0..12)
        .map(|_| rng.below(1_000_000) as f64 / 1e6)
        .sum::<f64>()
        - 6.0
}

#[test]
fn a_pilot_shows_the_cheapest_length_of_a_run() {
    // A sample takes 1 ms, and a run takes 4 s in addition to its samples.
    let (sample_ns, run_ns) = (1_000_000_i64, 4_000_000_000_i64);
    let mut rng = Rng(41);
    let runs: Vec<Vec<f64>> = (0..2 * PAIRS)
        .map(|_| {
            let of_run = OF_RUNS * normal(&mut rng);
            let samples =
                (0..SAMPLES).map(|_| 1e6 * (of_run + OF_SAMPLES * normal(&mut rng)).exp());
            samples.collect()
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pilot.parquet");
    let written = (0_u32..).zip(&runs).map(|(place, values)| WrittenRun {
        // The method that begins changes from pair to pair.
        method: ["first", "second"][((place + place / 2) % 2) as usize],
        number: place / 2,
        start_ns: i64::from(place) * (run_ns + sample_ns * SAMPLES as i64),
        interval_ns: sample_ns,
        values,
    });
    written::write(&file, written, None);
    let both = sides::within(
        measured::read(&file).unwrap(),
        Some("first"),
        Some("second"),
        Pairing::Found,
    )
    .unwrap();
    let question = Question { margin: 0.02 };
    let plan = plan(&both, &Summary::read(&both).unwrap(), question).unwrap();
    let found = plan.lines[0].cheapest.unwrap();
    // The median of n normal numbers has 1.2533 times the standard deviation of their mean. By Kalibera and Jones, the
    // cheapest number of samples is the product of two factors: √(cost of a run / cost of a sample), and the standard
    // deviation of samples divided by the standard deviation of runs.
    let of_median = 1.2533 * OF_SAMPLES;
    let best = (run_ns as f64 / sample_ns as f64).sqrt() * of_median / OF_RUNS;
    assert!(
        (0.7..1.4).contains(&(found.samples as f64 / best)),
        "{found:?}, not {best}"
    );
    // Computes the costs from the true values of the machine. A pair has the variance of two runs, and a run has the
    // variance of its median.
    let cost = |samples: f64| {
        let variance = 2.0 * (OF_RUNS.powi(2) + of_median.powi(2) / samples);
        variance * (run_ns as f64 + samples * sample_ns as f64)
    };
    let own = cost(found.samples as f64);
    assert!(own < 1.05 * cost(best) && own < cost(best / 4.0) && own < cost(best * 4.0));
}

/// Checks a pilot whose runs have nearly the same samples. The runs differ by less than chance within them explains.
/// Longer runs then always take less time in total, so no length is the cheapest.
#[test]
fn without_differences_of_runs_the_cheapest_length_has_no_limit() {
    let mut rng = Rng(42);
    let values: Vec<f64> = (0..SAMPLES)
        .map(|_| 1e6 * (OF_SAMPLES * normal(&mut rng)).exp())
        .collect();
    // Each run is scaled slightly. If the runs of all pairs were equal, the scatter of the pairs would be unknown.
    let scaled = |place: u32| -> Vec<f64> {
        let factor = 1.0 + 1e-5 * f64::from(place * 7 % 5);
        values.iter().map(|value| value * factor).collect()
    };
    let runs: Vec<Vec<f64>> = (0..2 * PAIRS).map(scaled).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pilot.parquet");
    let written = (0..2 * PAIRS).map(|place| WrittenRun {
        method: ["first", "second"][(place % 2) as usize],
        number: place / 2,
        start_ns: i64::from(place) * 2_000_000_000,
        interval_ns: 1_000_000,
        values: &runs[place as usize],
    });
    written::write(&file, written, None);
    let groups = measured::read(&file).unwrap();
    let both = sides::within(groups, Some("first"), Some("second"), Pairing::Found).unwrap();
    let question = Question { margin: 0.02 };
    let plan = plan(&both, &Summary::read(&both).unwrap(), question).unwrap();
    let line = &plan.lines[0];
    assert_eq!(line.cheapest, None);
    let reason = line.no_cheapest.unwrap();
    assert!(reason.starts_with("longer than in the pilot"), "{reason}");
    assert!(!reason.contains("unknown"), "{reason}");
}
