//! Comparison with reference values. Other programs computed them (SciPy 1.17, statsmodels 0.15, pragmastat
//! 13.0, R's tables), or they were published with the methods.

#![allow(
    clippy::unreadable_literal,
    reason = "reference values are copied as printed"
)]

use statistics::counts::{Count, fisher, rates};
use statistics::dependence::{Sums, autocorrelation, by_batches, samples_per_independent};
use statistics::distance::wasserstein;
use statistics::looks::{Looks, Spending, sign_evidence};
use statistics::{
    Design, Incomparable, Interval, Scale, batches, change_points, clusters, compare,
    compare_with_looks, levels, mean, multiple, order, paired, planning, quantile, ratio_of_means,
    unpaired, variance,
};
use testdata::Rng;

const D: [f64; 10] = [
    0.031, -0.012, 0.045, 0.022, 0.058, 0.017, 0.009, 0.064, -0.004, 0.038,
];

#[track_caller]
fn near(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance,
        "{found}, not {expected}"
    );
}

#[track_caller]
fn interval(found: Interval, [centre, low, high]: [f64; 3], tolerance: f64) {
    near(found.centre, centre, tolerance);
    near(found.low, low, tolerance);
    near(found.high, high, tolerance);
}

#[test]
fn pairs() {
    let centre = paired::centre(&D, 0.95).unwrap();
    interval(centre, [0.027, 0.009, 0.045], 1e-12);
    interval(centre.map(f64::exp), [1.027368, 1.009041, 1.046028], 1e-6);
    assert_eq!(paired::signed_rank_p(&D), 14.0 / 1024.0);
    assert_eq!(paired::mean_p(&D), 12.0 / 1024.0);
}

/// Checks the ranks of the bounds for several numbers of pairs. The expected ranks are from published tables
/// of Wilcoxon's test.
#[test]
fn ranks_of_bounds() {
    let published = [
        (6, 1),
        (7, 3),
        (8, 4),
        (9, 6),
        (10, 9),
        (12, 14),
        (15, 26),
        (20, 53),
        (30, 138),
        (50, 435),
        (64, 748),
    ];
    for (pairs, rank) in published {
        assert_eq!(paired::critical_rank(pairs, 0.95), rank, "{pairs}");
    }
    let next = paired::critical_rank(65, 0.95);
    assert!((749..=788).contains(&next), "{next}");
}

#[test]
fn sides_of_very_different_sizes_need_little_memory() {
    // With equal values, the distribution for 625 runs against 4 runs would need 2 GB if the larger side were
    // used.
    let many: Vec<f64> = (0..625).map(|n| f64::from(n / 2)).collect();
    let few = [290.0, 300.0, 310.0, 312.0];
    let p = unpaired::unpaired(&many, &few, 0.95).unwrap().p;
    let swapped = unpaired::unpaired(&few, &many, 0.95).unwrap().p;
    near(p, swapped, 1e-12);
    // The shares of the 625 runs above each of the four runs are about .070, .038, .006 and .001. The sum of these
    // shares is called e here. If nothing changed, the shares are nearly uniform random numbers, and their sum is below
    // e with a probability of e⁴ / 24. The opposite extreme has the same probability.
    let expected = 2.0 * 0.116_f64.powi(4) / 24.0;
    assert!(
        (expected..1.5 * expected).contains(&p),
        "{p}, about {expected}"
    );
    // Compare four runs with 2,500 other runs, without equal values. Of the C(2504, 4) ways to choose four of all runs,
    // two are equally extreme.
    let many: Vec<f64> = (0..2_500).map(f64::from).collect();
    let p = unpaired::unpaired(&many, &[1e6, 2e6, 3e6, 4e6], 0.95);
    let ways = 2_504.0 * 2_503.0 * 2_502.0 * 2_501.0 / 24.0;
    near(p.unwrap().p * ways / 2.0, 1.0, 1e-6);
}

const A: [f64; 8] = [12.1, 11.4, 13.0, 12.7, 11.9, 12.3, 15.8, 12.0];
const B: [f64; 8] = [10.9, 11.2, 10.4, 12.2, 11.0, 10.7, 11.1, 10.8];

#[test]
fn runs_without_pairs() {
    let it = unpaired::unpaired(&B, &A, 0.95).unwrap();
    assert_eq!((it.u, it.dominance), (60.0, 0.9375));
    near(it.p, 0.0018648, 5e-8);
    interval(it.shift, [1.3, 0.8, 2.0], 1e-12);
    let ratio = compare(&B, &A, Design::Unpaired).unwrap();
    assert_eq!(ratio.scale, Scale::Ratio);
    // The bounds are the 14th ratio from each end, because the lowest 13 values of U have a probability of
    // .02494 (counted over all 12,870 ways). pragmastat uses the 15th ratio. Its interval misses the true
    // ratio in 6.5 % of cases.
    interval(ratio.change, [1.11928, 13.0 / 12.2, 12.7 / 10.7], 5e-6);
    // Reference values of pragmastat for its shift.
    let count = |from: i32| -> Vec<f64> { (from..from + 30).map(f64::from).collect() };
    let it = unpaired::unpaired(&count(21), &count(1), 0.95).unwrap();
    interval(it.shift, [-20.0, -25.0, -15.0], 0.0);
    // Reference values of benchstat. With fewer than 4 runs on a side, no difference can be found.
    let apart = |n: u32| -> (Vec<f64>, Vec<f64>) {
        (
            (0..n).map(f64::from).collect(),
            (n..2 * n).map(f64::from).collect(),
        )
    };
    for (n, p) in [(4, 0.028571), (5, 0.0079365)] {
        let (low, high) = apart(n);
        near(unpaired::unpaired(&low, &high, 0.95).unwrap().p, p, 1e-6);
    }
    // The expected probability was counted by hand. Eight ranks can be divided into four and four in 70 ways. The way
    // of the test and its mirror image are the most extreme. Equal values share their mean rank.
    let (low, high) = (vec![1.0, 2.0, 2.0, 0.5], vec![3.0, 3.0, 4.0, 9.0]);
    near(
        unpaired::unpaired(&low, &high, 0.95).unwrap().p,
        2.0 / 70.0,
        1e-12,
    );
    let refused = unpaired::unpaired(&low[..3], &high[..3], 0.95);
    assert_eq!(
        refused,
        Err(Incomparable::TooFewRuns {
            before: 3,
            after: 3
        })
    );
}

#[test]
fn ranks_that_bound_quantiles() {
    for (n, p, low, high, coverage) in [
        (10, 0.5, 2, 9, 0.978516),
        (100, 0.5, 40, 61, 0.964800),
        (100, 0.9, 84, 96, 0.955690),
        (368, 0.99, 360, 368, 0.962416),
        (1_000, 0.99, 983, 997, 0.976095),
        (10_000, 0.99, 9_880, 9_920, 0.955755),
        (10_000, 0.999, 9_983, 9_997, 0.975457),
        (100_000, 0.999, 99_880, 99_920, 0.954789),
    ] {
        let ranks = quantile::bounds(n, p, 0.95);
        assert_eq!((ranks.low, ranks.high), (Some(low), Some(high)), "{n}, {p}");
        near(ranks.coverage, coverage, 1e-6);
    }
    assert_eq!(quantile::bounds(100, 0.99, 0.95).high, None);
    assert_eq!(quantile::bounds(100, 0.99, 0.95).low, Some(97));
    for (share, least) in [
        (0.9, 36),
        (0.95, 72),
        (0.99, 368),
        (0.999, 3_688),
        (0.9999, 36_887),
    ] {
        assert_eq!(quantile::least_samples(share, 0.95), least);
        assert!(quantile::bounds(least, share, 0.95).high.is_some());
        assert!(quantile::bounds(least - 1, share, 0.95).high.is_none());
    }
}

/// Returns a first-order autoregressive series with φ = 0.8. The random numbers are from splitmix64 with seed
/// 42.
fn series() -> Vec<f64> {
    let mut rng = Rng(42);
    let mut y = 0.0;
    let next = |_| {
        y = 0.8 * y + (rng.bits() >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
        y
    };
    (0..1_000).map(next).collect()
}

#[test]
fn dependence_of_a_series() {
    let y = series();
    near(y[0], 0.24156488, 1e-8);
    near(y[999], -0.66456423, 1e-8);
    near(mean(&y), -0.04846833, 1e-8);
    near(variance(&y) * 0.999, 0.23825190, 1e-8);
    near(autocorrelation(&y, 1), 0.7974273, 1e-7);
    near(autocorrelation(&y, 2), 0.6289996, 1e-7);
    let positive = samples_per_independent(&y, Sums::Positive);
    near(positive, 8.854506, 1e-6);
    near(1_000.0 / positive, 112.937, 1e-3);
    near(samples_per_independent(&y, Sums::Monotone), 7.681210, 1e-6);
    for (size, tau) in [(10, 5.0752), (25, 6.4944), (50, 8.5647), (100, 16.018)] {
        near(by_batches(&y, size).unwrap(), tau, 5e-4);
    }
}

/// Counts three stalls in 12 runs of 1,000 samples. A stall is partly late: between its late samples are others.
#[test]
fn late_samples_near_each_other_are_one_stall() {
    let runs: [&[usize]; 3] = [&[945, 947, 964], &[285], &[817, 818, 822, 825, 829, 831]];
    let late = runs.map(|places| clusters::Late::of_places(places.iter().copied()));
    let apart = clusters::apart(late.iter().map(|late| late.count).sum(), 12_000);
    // Late samples have a mean distance of 1,200 samples.
    assert_eq!(apart, 120);
    assert_eq!(
        late.map(|late| (late.count, late.stalls(apart))),
        [(3, 1), (1, 1), (6, 1)]
    );
    let alone = clusters::Late::beyond(&[1.0, 9.0, 1.0, 9.0, 9.0], 5.0);
    assert_eq!((alone.count, alone.stalls(1), alone.stalls(2)), (3, 2, 1));
    assert_eq!(clusters::Late::default().stalls(1), 0);
}

/// Compares the variances with the results in examples of libkalibera.
#[test]
fn variances_of_levels() {
    let values = [
        9.0, 5.0, 8.0, 3.0, 10.0, 6.0, 7.0, 11.0, 1.0, 12.0, 2.0, 4.0,
    ];
    let of = |shape: &[usize]| levels::variances(&values, shape).unwrap();
    let three = of(&[3, 2, 2]);
    for (level, (seen, own)) in
        three
            .iter()
            .zip([(16.5, 16.5), (2.583333, -5.666667), (3.5625, 2.270833)])
    {
        near(level.seen, seen, 1e-6);
        near(level.own, own, 1e-6);
    }
    let two = of(&[3, 4]);
    near(two[0].seen, 12.722222, 1e-6);
    near(two[1].seen, 3.5625, 1e-12);
    near(two[1].own, 0.381944, 1e-6);
    let mean = levels::grand_mean(&values, &[3, 4], 0.95).unwrap();
    interval(mean, [6.5, 6.5 - 4.68871, 6.5 + 4.68871], 5e-6);
    let values = [3.0, 4.0, 3.0, 1.2, 3.1, 3.0, 0.2, 1.0, 1.5, 1.0, 2.0, 3.0];
    let found = levels::variances(&values, &[2, 2, 3]).unwrap();
    for (level, own) in found.iter().zip([0.7266667, 0.2627778, 0.7747222]) {
        near(level.own, own, 1e-7);
    }
    let repetitions = levels::repetitions(&found, &[3.0, 20.0, 100.0]);
    near(repetitions[0], 4.293660, 1e-6);
    near(repetitions[1], 1.302286, 1e-6);
}

#[test]
fn ratio_of_means() {
    let old = [102.1, 99.8, 101.4, 100.3, 103.0, 100.9];
    let new = [95.2, 97.1, 94.4, 96.0, 95.8, 96.9];
    let ratio = ratio_of_means::fieller(&old, &new, 0.95).unwrap();
    interval(ratio, [0.947160, 0.931635, 0.962969], 1e-6);
    let wild = [-1.0, 1.0, 2.0];
    assert_eq!(
        ratio_of_means::fieller(&wild, &new, 0.95),
        Err(Incomparable::NoRatio)
    );
}

#[test]
fn evidence_of_signs() {
    for (n, s, evidence, tolerance) in [
        (6, 6, 14.4375, 1e-9),
        (7, 7, 26.8125, 1e-9),
        (10, 10, 180.4258, 5e-5),
        (10, 9, 9.49609, 5e-6),
        (20, 18, 273.307, 5e-4),
        (20, 17, 39.0439, 5e-5),
        (50, 35, 6.86686, 5e-6),
        (50, 25, 0.112275, 5e-7),
    ] {
        near(sign_evidence(n, s), evidence, tolerance);
    }
}

#[test]
fn looks_at_a_running_comparison() {
    let plan = Looks {
        at: vec![6, 8, 10],
        ..Looks::usual(Spending::Late)
    };
    let looks = plan.evaluate(&D);
    assert_eq!(looks.len(), 3);
    near(looks[0].may_spend, 0.011396, 1e-6);
    assert_eq!(
        (looks[0].critical, looks[0].seen, looks[0].differs),
        (None, 19.0, false)
    );
    near(looks[1].may_spend, 0.028430, 1e-6);
    assert_eq!(looks[1].spent, 0.0234375);
    assert_eq!(
        (looks[1].critical, looks[1].seen, looks[1].differs),
        (Some(32.0), 32.0, true)
    );
    near(looks[2].may_spend, 0.05, 1e-8);
    assert_eq!((looks[2].critical, looks[2].seen), (Some(41.0), 47.0));
}

#[test]
fn corrections() {
    let p = [0.001, 0.008, 0.012, 0.021, 0.049, 0.2, 0.6];
    let holm = [0.007, 0.048, 0.06, 0.084, 0.147, 0.4, 0.6];
    for (found, expected) in multiple::holm(&p).into_iter().zip(holm) {
        near(found, expected, 1e-12);
    }
    let bh = [0.007, 0.028, 0.028, 0.03675, 0.0686, 0.233333, 0.6];
    for (found, expected) in multiple::benjamini_hochberg(&p).into_iter().zip(bh) {
        near(found, expected, 1e-6);
    }
}

#[test]
fn counts_of_stalls() {
    let count = |events| Count {
        events,
        exposure: 1.0,
    };
    let it = rates(count(3), count(18), 0.95);
    near(it.p, 0.0014896, 5e-8);
    near(it.ratio.unwrap(), 6.0, 1e-12);
    near(it.low, 1.7516, 5e-5);
    near(it.high.unwrap(), 31.799, 5e-4);
    near(fisher([3, 9_997], [18, 9_982]), 0.0014817, 5e-8);
    // If there are no stalls before the change, the ratio has no upper bound. Its lower bound follows from
    // the lower bound of the share by Clopper and Pearson: share = .025^(1/9).
    let it = rates(count(0), count(9), 0.95);
    let share = 0.025_f64.powf(1.0 / 9.0);
    near(it.low, share / (1.0 - share), 1e-9);
    assert_eq!((it.ratio, it.high), (None, None));
}

/// Checks that the change at index 10 is found. `ruptures` 1.1.10 finds the same split.
#[test]
fn changes_of_a_history() {
    let values = [
        10.1, 9.8, 10.3, 10.0, 9.9, 10.2, 10.1, 9.7, 10.0, 10.2, 11.0, 11.3, 10.9, 11.2, 11.1,
        10.8, 11.4, 11.0, 11.1, 11.2,
    ];
    let split = change_points::best_split(&values).unwrap();
    assert_eq!(split.at, 10);
    near(split.strength, 8.488889, 1e-6);
    assert_eq!(change_points::changes(&values, 0.05), [10]);
    // A single odd value must not count as a change.
    let mut odd = [10.0; 20];
    odd[9] = 30.0;
    assert_eq!(change_points::changes(&odd, 0.05), [0_usize; 0]);
}

/// Compares ten pairs, one of which is disturbed. The standard deviation of the other differences is 0.024. The
/// disturbed pair makes the plain standard deviation 29 times as large. Both the comparison and the forecast must use
/// the same robust estimate.
#[test]
fn one_disturbed_pair_hardly_changes_the_deviation() {
    let before = [10.0; 10];
    let mut after = D.map(|d| 10.0 * d.exp());
    after[4] *= 9.0;
    let of_others: Vec<f64> = (D.iter().enumerate().filter(|(pair, _)| *pair != 4))
        .map(|(_, d)| *d)
        .collect();
    let expected = variance(&of_others).sqrt();
    let deviation = |design| compare(&before, &after, design).unwrap().deviation;
    let forecast = planning::Forecast::from_pilot(&before, &after).unwrap();
    assert_eq!(deviation(Design::Paired), forecast.scatter);
    for design in [Design::Paired, Design::Unpaired] {
        let ratio = deviation(design) / expected;
        assert!((0.7..2.0).contains(&ratio), "{design:?}: {ratio}");
    }
    // A side with very many runs takes no more time and memory than other sides.
    let many: Vec<f64> = (0..4_000_000).map(|run| f64::from(run % 1_000)).collect();
    let found = compare(&[1.0, 2.0, 3.0, 4.0], &many, Design::Unpaired);
    assert!(found.unwrap().deviation.is_finite());
}

/// Compares the deviations of 1,000 and 1,001 differences. Every second difference is 0, so an estimate from every
/// second difference would be 0.
#[test]
fn one_more_difference_hardly_changes_the_deviation() {
    let after: Vec<f64> = (0..1_001).map(|n| f64::from(n % 2 * n)).collect();
    let scatter = |pairs: usize| {
        let forecast = planning::Forecast::from_pilot(&vec![0.0; pairs], &after[..pairs]);
        forecast.unwrap().scatter
    };
    let (fewer, more) = (scatter(1_000), scatter(1_001));
    assert!(fewer > 0.0);
    near(more / fewer, 1.0, 0.03);
}

/// Checks the numbers of pairs from Noether's formula. The expected numbers were confirmed by simulation.
#[test]
fn plans() {
    let needed = [
        (0.25, 184, 138),
        (0.5, 52, 39),
        (0.75, 28, 21),
        (1.0, 20, 15),
        (1.5, 16, 12),
        (2.0, 15, 11),
    ];
    for (change, at_90, at_80) in needed {
        assert_eq!(planning::pairs(change, 0.9), Some(at_90), "{change}");
        assert_eq!(planning::pairs(change, 0.8), Some(at_80), "{change}");
    }
    // A difference can be found with at least six pairs, or with at least four runs on each side. Three comparisons
    // at once need seven pairs.
    for (share, design, least) in [
        (0.05, Design::Paired, 6),
        (0.05 / 3.0, Design::Paired, 7),
        (0.01, Design::Paired, 8),
        (0.05, Design::Unpaired, 4),
        (0.0286, Design::Unpaired, 4),
        (0.008, Design::Unpaired, 5),
    ] {
        assert_eq!(planning::least_runs(share, design), least, "{share}");
    }
    assert_eq!(planning::pairs(0.0, 0.9), None);
    // The minimum change that the planned pairs find must be the change for which they were planned.
    for (change, at_90, _) in needed {
        let found = planning::detectable(at_90, 0.9).unwrap();
        assert!(
            found <= change && found > 0.9 * change || at_90 < 20,
            "{change}: {found}"
        );
    }
    assert_eq!(planning::detectable(5, 0.9), None);
    assert_eq!(
        (
            planning::samples_per_run(0.99),
            planning::samples_per_run(0.999)
        ),
        (1_000, 10_000)
    );
}

/// Checks that the effect of the order is found in pairs with a change of 0.5 and an effect of 0.1, in
/// logarithms. The only noise is so small that it just avoids ties.
#[test]
fn effects_of_the_order() {
    let began: Vec<bool> = (0..8).map(|pair| pair % 2 == 0).collect();
    let after: Vec<f64> = (began.iter().enumerate())
        .map(|(pair, before_began)| {
            let noise = pair as f64 * 1e-9;
            let order = if *before_began { 0.1 } else { -0.1 };
            f64::exp(0.5 + order + noise)
        })
        .collect();
    let it = order(&[1.0; 8], &after, &began).unwrap();
    assert_eq!((it.before_began, it.after_began), (4, 4));
    interval(it.second, [0.1_f64.exp(); 3], 1e-6);
    // Of the 70 ways to choose 4 of 8 pairs, two are equally extreme.
    near(it.p, 2.0 / 70.0, 1e-12);
    let always = order(&[1.0; 8], &after, &[true; 8]);
    assert!(matches!(always, Err(Incomparable::TooFewRuns { .. })));
    assert!(order(&[1.0; 8], &after, &[true; 7]).is_err());
}

/// Compares sides of all sizes from 0 to 50 runs. The values are equal, distinct, or have ties. The least numbers of
/// runs are 4 on each side, and 6 pairs.
#[test]
fn sides_of_any_size_are_compared_or_refused() {
    let side = |count: usize, distinct: usize, from: f64| -> Vec<f64> {
        (0..count)
            .map(|n| from + (n % distinct) as f64 / 7.0)
            .collect()
    };
    let sizes = (0..=50).flat_map(|n| (0..=50).map(move |m| (n, m)));
    for (n, m) in testdata::cases(sizes) {
        for distinct in [1, 3, 100] {
            let (before, after) = (side(n, distinct, 1.0), side(m, distinct, 1.1));
            let unpaired = compare(&before, &after, Design::Unpaired);
            assert_eq!(unpaired.is_ok(), n.min(m) >= 4, "{n} and {m} runs");
            let pairs = compare(&before, &after, Design::Paired);
            assert_eq!(pairs.is_ok(), n == m && n >= 6, "{n} and {m} runs");
            let looks = compare_with_looks(&before, &after);
            assert_eq!(looks.is_ok(), n == m && n >= 8, "{n} and {m} runs");
            let began: Vec<bool> = (0..n).map(|pair| pair % 2 == 0).collect();
            assert_eq!(order(&before, &after, &began).is_ok(), n == m && n >= 8);
            let plan = planning::Forecast::from_pilot(&before, &after);
            assert_eq!(plan.is_ok(), n == m && n >= 6, "{n} and {m} runs");
        }
    }
}

/// Checks that a published benchmark of 4 pairs has too little evidence for its claim.
#[test]
fn published_claims() {
    // Clock ticks to read 4,000 files with ReadFile and with an I/O ring. They do not support the claim "3 % faster".
    let read_file = [24600140797.0, 20453198839.0, 20623863171.0, 20346912325.0];
    let ring = [22419537722.0, 19735951191.0, 20185793675.0, 20002724133.0];
    let few = Incomparable::TooFewPairs {
        found: 4,
        needed: 6,
    };
    assert_eq!(compare(&read_file, &ring, Design::Paired), Err(few));
    let pairs = ring.iter().zip(&read_file);
    let differences: Vec<f64> = pairs.map(|(b, a): (&f64, &f64)| (b / a).ln()).collect();
    assert_eq!(paired::signed_rank_p(&differences), 0.125);
    // Durations of Sleep(1) in milliseconds, with the program's own timer resolution and without it.
    let own = [1.4968, 1.4956, 1.4953, 1.4956, 1.4964, 1.4953];
    let usual = [
        15.51, 15.54, 15.48, 15.581, 15.5474, 15.4744, 15.4757, 15.5466, 15.4807, 15.5045,
    ];
    let it = unpaired::unpaired(&own, &usual, 0.95).unwrap();
    near(it.shift.centre, 14.0112, 1e-9);
    // Of the 8,008 ways to choose 6 of 16 runs, this way and its mirror image are the most extreme.
    near(it.p, 2.0 / 8008.0, 1e-12);
}

/// Compares three batches of three values each. If all values are in ascending order, 6 of the 1,680 ways to divide
/// nine values into these batches are equally extreme.
#[test]
fn differences_between_batches() {
    let of =
        |values: [f64; 9]| -> Vec<Vec<f64>> { values.chunks(3).map(<[f64]>::to_vec).collect() };
    let apart = of([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    let p = batches::difference_p(&apart).unwrap();
    // The tolerance is three standard deviations of 9,999 draws.
    near(p, 6.0 / 1_680.0, 0.0018);
    let mixed = of([1.0, 5.0, 9.0, 2.0, 6.0, 7.0, 3.0, 4.0, 8.0]);
    // The values of each batch have the sum 15, so every order is at least as extreme.
    assert_eq!(batches::difference_p(&mixed), Some(1.0));
    assert_eq!(batches::difference_p(&[vec![1.0, 2.0], vec![3.0]]), None);
}

/// Compares the distance between `A` and `B` with SciPy's Wasserstein distance.
#[test]
fn distance_of_distributions() {
    let weighted = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let each = sorted.into_iter().map(|value| (value, 1.0));
        each.collect::<Vec<_>>()
    };
    let (a, b) = (weighted(&A), weighted(&B));
    near(wasserstein(&a, &b).unwrap(), 1.6125, 1e-12);
    near(wasserstein(&b, &a).unwrap(), 1.6125, 1e-12);
    near(wasserstein(&a, &a).unwrap(), 0.0, 0.0);
    // Only the shares of the weights matter. Half of the weight moves by 3.
    let (before, after) = ([(1.0, 5.0)], [(1.0, 2.0), (4.0, 2.0)]);
    near(wasserstein(&before, &after).unwrap(), 1.5, 1e-12);
    assert_eq!(wasserstein(&[], &a), None);
}

/// Compares ten pairs that differ by `D`. There is no look from 9 to 11 pairs, so the interval with looks uses only the
/// first 8 pairs. The looks after 6 and 8 of 64 pairs may have only a small error. So of the 256 patterns of signs, the
/// looks reject only the patterns in which all signs are equal. The bounds are therefore the least and the greatest of
/// the eight differences.
#[test]
fn a_comparison_with_looks_is_wider() {
    let before = [10.0; 10];
    let after = D.map(|d| 10.0 * f64::exp(d));
    let alone = compare(&before, &after, Design::Paired).unwrap();
    let looks = compare_with_looks(&before, &after).unwrap();
    assert_eq!((alone.runs, looks.runs), (10, 8));
    near(looks.change.low, f64::exp(-0.012), 1e-9);
    near(looks.change.high, f64::exp(0.064), 1e-9);
    assert!(looks.change.low < alone.change.low && looks.change.high > alone.change.high);
    let few = compare_with_looks(&before[..7], &after[..7]);
    let expected = Incomparable::TooFewPairs {
        found: 7,
        needed: 8,
    };
    assert_eq!(few, Err(expected));
}

/// Checks that the interval with looks is never joined with the ordinary interval, which can reach further at one end.
#[test]
fn an_interval_with_looks_is_that_of_the_looks_alone() {
    let mut random = Rng(7);
    let mut further = 0;
    for _ in 0..20 {
        let before = [10.0; 12];
        let after = before.map(|_| (1 + random.below(1000)) as f64);
        let differences: Vec<f64> = after.iter().map(|after| (after / 10.0).ln()).collect();
        let expected = Looks::running().interval(&differences).unwrap();
        let looks = compare_with_looks(&before, &after).unwrap();
        near(looks.change.low, expected.low.exp(), 1e-9);
        near(looks.change.high, expected.high.exp(), 1e-9);
        let alone = compare(&before, &after, Design::Paired).unwrap().change;
        further += u32::from(alone.low < looks.change.low || alone.high > looks.change.high);
    }
    assert!(further > 0);
}

/// Checks the probability for pairs whose values all grow. If the error `a` is allowed, the look after 6 of 64 pairs
/// may spend `a · ln(1 + (e - 1) · 6 / 64)`. It shows a difference only if 2 of 64 patterns may be rejected. The look
/// after 8 pairs needs 2 of 256 patterns.
#[test]
fn probabilities_with_looks_are_those_of_all_looks() {
    let looks = Looks::running();
    let spent = |pairs: f64| f64::ln(1.0 + (std::f64::consts::E - 1.0) * pairs / 64.0);
    let growing = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    near(
        looks.probability(&growing[..6]),
        2.0 / 64.0 / spent(6.0),
        1e-4,
    );
    near(looks.probability(&growing), 2.0 / 256.0 / spent(8.0), 1e-4);
    near(looks.probability(&growing[..5]), 1.0, 0.0);
    let before = [10.0; 8];
    let after = growing.map(|d| 10.0 * f64::exp(d));
    let compared = compare_with_looks(&before, &after).unwrap();
    near(compared.p, 2.0 / 256.0 / spent(8.0), 1e-4);
    assert!(compare(&before, &after, Design::Paired).unwrap().p < compared.p);
}
