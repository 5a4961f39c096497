//! Statistical comparison of two methods.
//!
//! The runs of both methods alternate, so that disturbances of the machine affect both methods. Each pair of
//! runs yields a ratio of medians. The crate `statistics` compares these ratios.

use serde::Serialize;
use statistics::looks::Looks;
use statistics::{CONFIDENCE, Incomparable, Interval, Margin, Scale, Verdict, paired};

/// Comparison of a method with another method.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Number of pairs of runs.
    pub pairs: usize,
    /// Confidence interval of the ratio: latency of the method divided by latency of the other method.
    pub ratio: Interval,
}

impl Comparison {
    /// Minimum number of pairs.
    pub const MIN_PAIRS: usize = paired::LEAST;

    /// Maximum number of pairs.
    pub const MAX_PAIRS: usize = paired::MOST;

    /// Returns the verdict for a margin. Changes up to the margin do not matter. The margin is a share of the
    /// latency of the other method.
    pub fn verdict(&self, margin: f64) -> Verdict {
        Verdict::from_interval(self.ratio, Scale::Ratio, Margin::Share(margin))
    }
}

/// Variant that a measurement compares with other variants: a method under a setting. Two variants can be
/// compared only if they have equal loads.
#[derive(Debug, PartialEq)]
pub(crate) struct Variant<L, M, S> {
    pub load: L,
    pub method: M,
    pub setting: S,
}

/// Returns the index of the reference: the variant with which the variant at the index `place` is compared. Both have
/// the same load. If the variants with this load have several settings, the reference is the same method under the
/// first setting. Otherwise, the reference is the first method. Returns `None` for the reference itself.
pub(crate) fn reference<L: PartialEq, M: PartialEq, S: PartialEq>(
    variants: &[Variant<L, M, S>],
    place: usize,
) -> Option<usize> {
    let own = variants.get(place)?;
    let alike = || (variants.iter().enumerate()).filter(|(_, it)| it.load == own.load);
    let (_, first) = alike().next()?;
    let has_settings = alike().any(|(_, it)| it.setting != first.setting);
    let mut possible = alike().filter(|(_, it)| !has_settings || it.method == own.method);
    let (reference, _) = possible.next()?;
    (reference != place).then_some(reference)
}

/// Returns the index of the reference of each variant. The index is `None` for a variant that is itself a
/// reference.
pub(crate) fn references<L: PartialEq, M: PartialEq, S: PartialEq>(
    variants: &[Variant<L, M, S>],
) -> Vec<Option<usize>> {
    (0..variants.len())
        .map(|place| reference(variants, place))
        .collect()
}

/// Compares a method with another method by the medians of paired runs. Each pair contains the median of the
/// method, and then the median of the other method.
///
/// # Errors
/// Returns an error if there are too few or too many pairs, or if a median is not positive.
pub fn compare(pairs: &[(f64, f64)]) -> Result<Comparison, Incomparable> {
    let ratio = positive_interval(ratios(pairs), CONFIDENCE)?;
    Ok(Comparison {
        pairs: pairs.len(),
        ratio,
    })
}

/// Compares two methods like [`compare`], but for measurements that end as soon as the result is sure. Such
/// measurements look at the data repeatedly, and the confidence interval takes this into account. The interval is
/// therefore wider than the interval of [`compare`]. The interval changes only at the
/// [looks](statistics::looks::LOOKS).
///
/// # Errors
/// Returns the errors of [`compare`]. At least 8 pairs are needed.
pub(crate) fn compare_so_far(pairs: &[(f64, f64)]) -> Result<Comparison, Incomparable> {
    let looks = Looks::running();
    let logs: Vec<f64> = ratios(pairs).map(f64::ln).collect();
    let ratio = looks.interval(&logs).map_err(not_positive)?.map(f64::exp);
    let used = looks.at.iter().rfind(|at| **at <= pairs.len());
    Ok(Comparison {
        pairs: used.copied().unwrap_or(0),
        ratio,
    })
}

/// Returns the ratio of each pair.
fn ratios(pairs: &[(f64, f64)]) -> impl Iterator<Item = f64> {
    pairs.iter().map(|(method, other)| method / other)
}

/// Estimates the centre of positive values whose logarithms scatter symmetrically.
///
/// # Errors
/// Returns the errors of [`compare`].
pub(crate) fn positive_interval(
    values: impl Iterator<Item = f64>,
    confidence: f64,
) -> Result<Interval, Incomparable> {
    let logs: Vec<f64> = values.map(f64::ln).collect();
    let centre = paired::centre(&logs, confidence).map_err(not_positive)?;
    Ok(centre.map(f64::exp))
}

/// Replaces the error about a logarithm that is not finite with its cause: a value that is not positive.
fn not_positive(error: Incomparable) -> Incomparable {
    match error {
        Incomparable::NotFinite => Incomparable::NotPositive,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testdata::Rng;

    /// Returns pairs of values in which the first value is `factor` times the second, with noise.
    /// Both values of a pair share the noise of the machine, and each value has the noise of its
    /// method. One in ten noise values is a large disturbance.
    fn pairs(rng: &mut Rng, count: usize, factor: f64) -> Vec<(f64, f64)> {
        let noise = |rng: &mut Rng, size: f64| {
            let uniform = rng.below(1_000_000) as f64 / 1e6 - 0.5;
            (uniform
                * if rng.below(10) == 0 {
                    10.0 * size
                } else {
                    size
                })
            .exp()
        };
        (0..count)
            .map(|_| {
                let shared = 1_000.0 * noise(rng, 2.0);
                (shared * factor * noise(rng, 0.1), shared * noise(rng, 0.1))
            })
            .collect()
    }

    #[test]
    fn false_differences_are_as_rare_as_stated() {
        let mut rng = Rng(11);
        for count in [6, 10, 30, 100] {
            let rounds = 1_000;
            let wrong = (0..rounds)
                .filter(|_| {
                    let comparison = compare(&pairs(&mut rng, count, 1.0)).unwrap();
                    comparison.verdict(0.0) != Verdict::Unknown
                })
                .count();
            // The expected number of wrong results is 5 % of 1,000, which is 50. The limit of 71 is three
            // standard deviations above 50.
            assert!(wrong <= 71, "{wrong} of {rounds} with {count} pairs");
        }
    }

    #[test]
    fn a_difference_of_ten_percent_is_found() {
        let mut rng = Rng(12);
        for (factor, verdict) in [(1.1, Verdict::Higher), (1.0 / 1.1, Verdict::Lower)] {
            let matches = (0..200)
                .filter(|_| {
                    let comparison = compare(&pairs(&mut rng, 30, factor)).unwrap();
                    let Interval { low, high, centre } = comparison.ratio;
                    assert!(low <= centre && centre <= high);
                    comparison.verdict(0.0) == verdict
                })
                .count();
            assert!(matches >= 180, "{matches} of 200");
        }
    }

    /// Ends each comparison at the first sure verdict, as the option `--until-sure` does.
    #[test]
    fn comparisons_that_end_when_they_are_sure_err_as_rarely_as_stated() {
        const MARGIN: f64 = 0.02;
        let mut rng = Rng(13);
        let mut end = |factor: f64| {
            let all = pairs(&mut rng, 64, factor);
            let mut looks = [8, 12, 16, 24, 32, 48, 64].into_iter();
            looks.find_map(|count| {
                let comparison = compare_so_far(&all[..count]).ok()?;
                let verdict = comparison.verdict(MARGIN);
                (verdict.is_sure() || count == 64).then_some((verdict, count))
            })
        };
        let rounds = 200;
        // The true ratio is exactly the margin, so each sure verdict is wrong. At most 5 % of 200 rounds,
        // which is 10, should be wrong. The limit of 17 is 2.3 standard deviations above 10.
        let wrong = (0..rounds)
            .filter(|_| end(1.0 + MARGIN).is_some_and(|(verdict, _)| verdict.is_sure()))
            .count();
        assert!(wrong <= 17, "{wrong} of {rounds}");
        let ends: Vec<_> = (0..50).filter_map(|_| end(1.3)).collect();
        assert!(ends.iter().all(|end| *end == (Verdict::Higher, end.1)));
        assert!(
            ends.iter().filter(|end| end.1 <= 16).count() >= 45,
            "{ends:?}"
        );
    }

    #[test]
    fn too_few_or_invalid_pairs_are_errors() {
        let few = [(1.0, 2.0); 5];
        assert_eq!(
            compare(&few),
            Err(Incomparable::TooFewPairs {
                found: 5,
                needed: 6
            })
        );
        let mut zero = [(1.0, 2.0); 6];
        let comparison = compare(&zero).unwrap();
        assert_eq!(comparison.ratio.centre, 0.5);
        assert_eq!(comparison.verdict(0.02), Verdict::Lower);
        for odd in [(0.0, 1.0), (1.0, 0.0), (f64::NAN, 1.0), (-1.0, 1.0)] {
            zero[3] = odd;
            assert_eq!(compare(&zero), Err(Incomparable::NotPositive), "{odd:?}");
        }
        let many = vec![(1.0, 1.0); 5_000];
        assert_eq!(
            compare(&many),
            Err(Incomparable::TooMany {
                found: 5_000,
                most: 4_096
            })
        );
    }
}
