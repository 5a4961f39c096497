//! Numbers of the pictures of a comparison.

use statistics::quantile;
use statistics::shift_function::{SHARES, Shift, shifts};

use crate::runs::sorted;
use crate::{Run, Sides};

/// Numbers of the pictures of one comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// Change of each quantile that the runs allow; empty if runs have one value.
    pub shifts: Vec<Shift>,
    /// Median of each run before and after the change, in order. A run without values has none.
    pub runs: [Vec<Option<f64>>; 2],
    /// Distribution of all values; `None` if all are equal or there are none.
    pub histogram: Option<Histogram>,
}

/// Distribution of the values of both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Least value.
    pub low: f64,
    /// Upper end of the last bin. Greater values are in this bin, too.
    pub high: f64,
    /// True if the bins are equally wide on a logarithmic axis.
    pub is_logarithmic: bool,
    /// Share of the values in each bin, before and after the change.
    pub shares: [Vec<f64>; 2],
}

/// Number of bins of a histogram.
const BINS: usize = 64;

/// Share of the values that a histogram shows at their place. Without it, rare late values would squeeze all
/// others into one bin.
const REACH: f64 = 0.999;

/// Returns the numbers of the pictures.
pub fn picture(sides: &Sides) -> Picture {
    let both = [&sides.before, &sides.after];
    let is_single = both.iter().all(|side| side.has_one_value_per_run());
    let runs = both.map(|side| sorted(&side.runs));
    let shown = match is_single {
        true => Vec::new(),
        false => shifts(&runs[0], &runs[1], &SHARES, sides.design),
    };
    Picture {
        shifts: shown.into_iter().flatten().collect(),
        runs: runs.map(|runs| {
            runs.iter()
                .map(|run| quantile::of_sorted(run, 0.5))
                .collect()
        }),
        histogram: Histogram::of(both.map(|side| side.runs.as_slice())),
    }
}

impl Histogram {
    fn of(sides: [&[Run]; 2]) -> Option<Histogram> {
        let mut all: Vec<f64> = values(sides[0]).chain(values(sides[1])).collect();
        all.sort_unstable_by(f64::total_cmp);
        let low = *all.first()?;
        let high = quantile::of_sorted(&all, REACH)?;
        let (low, high) = match low < high {
            true => (low, high),
            false => (low, *all.last()?),
        };
        if low >= high {
            return None;
        }
        let is_logarithmic = low > 0.0;
        let scale = |value: f64| if is_logarithmic { value.ln() } else { value };
        let width = (scale(high) - scale(low)) / BINS as f64;
        let bins = |runs: &[Run]| {
            let mut bins = vec![0.0; BINS];
            let mut count = 0.0_f64;
            for value in values(runs) {
                let bin = (scale(value) - scale(low)) / width;
                bins[(bin as usize).min(BINS - 1)] += 1.0;
                count += 1.0;
            }
            bins.iter_mut().for_each(|bin| *bin /= count.max(1.0));
            bins
        };
        Some(Histogram {
            low,
            high,
            is_logarithmic,
            shares: sides.map(bins),
        })
    }
}

/// Returns the values of all runs.
fn values(runs: &[Run]) -> impl Iterator<Item = f64> {
    runs.iter().flat_map(|run| run.values.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Group, Unit};
    use statistics::Design;

    fn side(values: &[&[f64]]) -> Group {
        let run = |(n, values): (usize, &&[f64])| Run {
            name: n.to_string(),
            values: values.to_vec(),
            unknown: 0,
        };
        Group {
            name: "side".to_owned(),
            unit: Unit::Other,
            runs: values.iter().enumerate().map(run).collect(),
        }
    }

    #[test]
    fn pictures_have_the_numbers_of_both_sides() {
        let (slow, fast) = ([4.0, 8.0, 16.0], [1.0, 2.0, 4.0]);
        let sides = Sides {
            name: "both".to_owned(),
            design: Design::Paired,
            before: side(&[&slow[..]; 6]),
            after: side(&[&fast[..]; 6]),
        };
        let picture = picture(&sides);
        assert_eq!(picture.runs, [vec![Some(8.0); 6], vec![Some(2.0); 6]]);
        // Nine quantiles; p99 and p99.9 need more samples.
        assert_eq!(picture.shifts.len(), 9);
        let is_quarter = |shift: &Shift| (shift.comparison.change.centre - 0.25).abs() < 1e-12;
        assert!(picture.shifts.iter().all(is_quarter));
        let histogram = picture.histogram.unwrap();
        assert!(histogram.is_logarithmic);
        assert_eq!((histogram.low, histogram.high), (1.0, 16.0));
        for shares in &histogram.shares {
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        // A third of the values before the change are the greatest, and a third after it the least.
        assert!((histogram.shares[0][BINS - 1] - 1.0 / 3.0).abs() < 1e-12);
        assert!((histogram.shares[1][0] - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn equal_or_missing_values_have_no_histogram() {
        for values in [&[5.0, 5.0][..], &[]] {
            let runs = side(&[values]).runs;
            assert_eq!(Histogram::of([&runs, &runs]), None);
        }
    }
}
