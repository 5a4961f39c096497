//! Tests of the detection of changes: histories are simulated with known changes, which must be found.

use statistics::change_points::changes;
use statistics::counts::{Count, differ};
use statistics::dependence::beside_changes;
use testdata::Rng;

/// Returns a number with nearly a normal distribution, with a standard deviation of 1.
fn normal(rng: &mut Rng) -> f64 {
    let uniform = |rng: &mut Rng| rng.below(1 << 20) as f64 / f64::from(1 << 20);
    (0..12).map(|_| uniform(rng)).sum::<f64>() - 6.0
}

/// Returns a history in milliseconds. `parts` contains the number of points and the mean of each part. Points have a
/// standard deviation of 0.2 ms.
fn history(rng: &mut Rng, parts: &[(usize, f64)]) -> Vec<f64> {
    let points = parts.iter().flat_map(|(points, mean)| vec![*mean; *points]);
    points.map(|mean| mean + 0.2 * normal(rng)).collect()
}

/// Checks that both ends of a regression that was repaired are found. The standard deviation is at least 20 times
/// smaller than the regression, so no other order of the points gives a clearer separation.
#[test]
fn a_repaired_regression_has_two_ends() {
    let mut rng = Rng(1);
    for parts in [
        [(6, 16.0), (6, 160.0), (6, 16.0)],
        [(7, 16.0), (6, 20.0), (7, 16.0)],
        [(10, 16.0), (10, 32.0), (10, 16.0)],
        [(5, 16.0), (5, 20.0), (5, 16.0)],
        [(40, 16.0), (5, 20.0), (15, 16.0)],
        [(40, 20.0), (5, 16.0), (15, 20.0)],
    ] {
        let ends = [parts[0].0, parts[0].0 + parts[1].0];
        // If four metrics are tested at once, each metric gets a quarter of the allowed error of 5 %.
        for alpha in [0.05, 0.0125] {
            let found = (0..50).filter(|_| changes(&history(&mut rng, &parts), alpha) == ends);
            let found = found.count();
            // In each of the three parts, chance may show a change in at most 5 % of cases. Together, this is at most
            // 15 %.
            assert!(found >= 40, "{parts:?} at {alpha}: {found} of 50");
        }
    }
}

/// Checks that a single change is not reported as a stretch.
#[test]
fn a_single_change_has_one_place() {
    let mut rng = Rng(2);
    for parts in [[(10, 16.0), (10, 17.0)], [(5, 16.0), (45, 17.0)]] {
        let found = (0..100).filter(|_| changes(&history(&mut rng, &parts), 0.05) == [parts[0].0]);
        let found = found.count();
        assert!(found >= 85, "{parts:?}: {found} of 100");
    }
}

/// Checks the stated error rate: if nothing changes, a change is found in at most 5 % of the histories.
#[test]
fn unchanged_histories_seem_to_change_as_rarely_as_stated() {
    const ROUNDS: u32 = 2_000;
    type Draw = fn(f64) -> f64;

    let mut rng = Rng(3);
    // The values of the second distribution have a long tail. The third distribution has many equal values.
    let draws: [(&str, Draw); 3] = [
        ("normal", |value| value),
        ("long tail", |value| (2.0 * value).exp()),
        ("whole", f64::round),
    ];
    for points in [10, 20, 40] {
        for (name, draw) in draws {
            let wrong = (0..ROUNDS).filter(|_| {
                let values: Vec<f64> = (0..points).map(|_| draw(normal(&mut rng))).collect();
                !changes(&values, 0.05).is_empty()
            });
            let share = 100.0 * wrong.count() as f64 / f64::from(ROUNDS);
            // Three standard errors are 1.5 %.
            assert!(share <= 6.5, "{points} points, {name}: {share} %");
        }
    }
}

/// Checks two things about histories with a step: the correlation of neighbouring points is found in spite of the step,
/// and a step alone does not look like a correlation.
#[test]
fn the_correlation_of_neighbours_is_found_beside_a_step() {
    const POINTS: usize = 100;
    let mut rng = Rng(7);
    let mut share = |memory: f64, size: f64| {
        let is_found = |_: &i32| {
            let mut last = 0.0;
            let points = (0..POINTS).map(|point| {
                last = memory * last + normal(&mut rng);
                last + if point < POINTS / 2 { 0.0 } else { size }
            });
            let found = beside_changes(&points.collect::<Vec<_>>()).unwrap();
            found > 2.8 / (POINTS as f64).sqrt()
        };
        (0..200).filter(is_found).count()
    };
    for size in [0.0, 5.0, 50.0] {
        let (dependent, independent) = (share(0.6, size), share(0.0, size));
        assert!(dependent >= 160, "{size}: {dependent} of 200");
        assert!(independent <= 15, "{size}: {independent} of 200");
    }
    assert_eq!(beside_changes(&[1.0; 20]), None);
    assert_eq!(beside_changes(&[1.0, 2.0, 1.0]), None);
}

/// Checks counts of several runs. If all runs have one rate, they seem to differ in at most 5 % of the cases (plus
/// three standard errors of 400 rounds). If their rates differ, this is found.
#[test]
fn counts_that_differ_from_run_to_run_are_found() {
    let mut rng = Rng(8);
    let mut share = |rates: &[usize]| {
        let is_found = |_: &i32| {
            let runs = rates.iter().map(|rate| Count {
                events: (0..10_000).filter(|_| rng.below(10_000) < *rate).count() as u64,
                exposure: 10_000.0,
            });
            differ(&runs.collect::<Vec<_>>())
        };
        (0..400).filter(is_found).count()
    };
    let equal = share(&[12; 8]);
    assert!(equal <= 400 * 5 / 100 + 13, "{equal} of 400");
    let different = share(&[2, 30, 12, 5, 1, 25, 12, 9]);
    assert!(different >= 390, "{different} of 400");
    assert!(
        !differ(&[])
            && !differ(
                &[Count {
                    events: 0,
                    exposure: 9.0
                }; 3]
            )
    );
}
