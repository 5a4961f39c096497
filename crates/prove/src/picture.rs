//! Numbers for the pictures of a comparison.

use serde::Serialize;
use statistics::shift_function::{self, shifts_on_one_scale};
use statistics::{Design, Scale};
use ts_rs::TS;

use crate::judgement::ALPHA;
use crate::sessions::Sessions;
use crate::summary::{Side, in_waves};
use crate::{Error, Group, Sides, Summary, Unit};

/// Numbers for the pictures of one comparison.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
#[ts(rename = "RunsPicture")]
pub struct Picture {
    /// Unit of the values.
    #[ts(inline)]
    pub unit: Unit,
    /// Relation between the runs of both sides.
    #[ts(type = "\"paired\" | \"unpaired\"")]
    pub design: Design,
    /// Scale of the changes in `shifts`.
    #[ts(type = "\"ratio\" | \"difference\"")]
    pub scale: Scale,
    /// True if the measurement could end early. The bounds of the changes are then too narrow.
    pub has_looks: bool,
    /// Change of each quantile for which the runs have enough samples. Empty if each run has one value.
    pub shifts: Vec<Shift>,
    /// Median of each run before and after the change, in order. `None` for a run without values.
    pub runs: [Vec<Option<f64>>; 2],
    /// Distribution of all values. `None` if there are no values, or if all values are equal.
    pub histogram: Option<Histogram>,
}

/// Change of one quantile, with its 95 % confidence interval.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
#[ts(rename = "RunsShift")]
pub struct Shift {
    /// Share of samples that do not exceed the quantile.
    pub share: f64,
    /// Estimated change.
    pub change: f64,
    /// Lower bound of the change.
    pub low: f64,
    /// Upper bound of the change.
    pub high: f64,
    /// False if chance may explain the change.
    pub differs: bool,
}

/// Distribution of the values of both sides.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
#[ts(rename = "RunsHistogram")]
pub struct Histogram {
    /// Minimum of the values, where the first bin starts.
    pub low: f64,
    /// End of the last bin. The last bin also counts all greater values.
    pub high: f64,
    /// Maximum of the values.
    pub greatest: f64,
    /// True if the bins are equally wide on a logarithmic axis.
    pub is_logarithmic: bool,
    /// Share of the values in each bin, before and after the change.
    pub shares: [Vec<f64>; 2],
}

/// Number of bins of a histogram.
const BINS: usize = 64;

/// Share of the values below the end of the last bin. The bins do not reach the maximum: a few very late values would
/// otherwise compress all others into one bin.
const REACH: f64 = 0.999;

/// Returns the numbers for the pictures. `summary` must be the summary of `sides`.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn picture(sides: &Sides, summary: &Summary) -> Result<Picture, Error> {
    if let Some(kept) = summary.without_empty(sides)? {
        return picture(&kept.sides, &kept.summary);
    }
    let sessions = Sessions::new(sides, summary);
    let [before, after] = &summary.sides;
    let compared = if summary.has_one_value_per_run() {
        Vec::new()
    } else {
        shifts_on_one_scale(
            &sessions.values(&sides.before, before),
            &sessions.values(&sides.after, after),
            sides.design,
        )
    };
    let compared: Vec<_> = compared.into_iter().flatten().collect();
    let medians = |side: &Side| side.runs.iter().map(|run| run.quantiles.at(0.5)).collect();
    Ok(Picture {
        unit: sides.before.unit,
        design: sides.design,
        scale: (compared.first()).map_or(Scale::Ratio, |shift| shift.comparison.scale),
        has_looks: sides.has_looks,
        shifts: compared.iter().map(Shift::from).collect(),
        runs: [medians(before), medians(after)],
        histogram: Histogram::from_sides(sides, summary)?,
    })
}

impl From<&shift_function::Shift> for Shift {
    fn from(shift: &shift_function::Shift) -> Shift {
        let change = shift.comparison.change;
        Shift {
            share: shift.share,
            change: change.centre,
            low: change.low,
            high: change.high,
            differs: shift.adjusted_p <= ALPHA,
        }
    }
}

impl Histogram {
    fn from_sides(sides: &Sides, summary: &Summary) -> Result<Option<Histogram>, Error> {
        let runs = summary.sides.iter().flat_map(|side| &side.runs);
        let low = runs.filter_map(|run| run.least).reduce(f64::min);
        let high = summary.high(REACH).zip(summary.high(1.0));
        let Some((low, (high, greatest))) = low.zip(high) else {
            return Ok(None);
        };
        let high = if low < high { high } else { greatest };
        if low >= high {
            return Ok(None);
        }
        let is_logarithmic = low > 0.0;
        let scale = |value: f64| if is_logarithmic { value.ln() } else { value };
        let (start, width) = (scale(low), (scale(high) - scale(low)) / BINS as f64);
        let bins = |group: &Group| {
            let (mut bins, mut count) = (vec![0_u64; BINS], 0_u64);
            let counted = in_waves(
                &group.runs,
                |run| {
                    let mut bins = vec![0_u64; BINS];
                    for value in run.values()?.known.iter() {
                        let bin = (scale(*value) - start) / width;
                        bins[(bin as usize).min(BINS - 1)] += 1;
                    }
                    Ok(bins)
                },
                |more| {
                    for (sum, more) in bins.iter_mut().zip(more?) {
                        *sum += more;
                        count += more;
                    }
                    Ok(())
                },
            );
            let share = |bin: u64| bin as f64 / count.max(1) as f64;
            counted.map(|()| bins.into_iter().map(share).collect::<Vec<f64>>())
        };
        Ok(Some(Histogram {
            low,
            high,
            greatest,
            is_logarithmic,
            shares: [bins(&sides.before)?, bins(&sides.after)?],
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Run, Unit};
    use statistics::Design;

    fn side(values: &[&[f64]]) -> Group {
        let run = |(n, values): (usize, &&[f64])| Run::new(n.to_string(), values.to_vec(), 0);
        Group {
            name: "side".to_owned(),
            column: None,
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
            alone: [0, 0],
            same_names: 0,
            has_looks: false,
        };
        let picture = picture(&sides, &Summary::read(&sides).unwrap()).unwrap();
        assert_eq!(picture.runs, [vec![Some(8.0); 6], vec![Some(2.0); 6]]);
        // Nine quantiles are compared. p99 and p99.9 would need more samples.
        assert_eq!(picture.shifts.len(), 9);
        let is_quarter = |shift: &Shift| (shift.change - 0.25).abs() < 1e-12;
        assert!(picture.shifts.iter().all(is_quarter));
        let histogram = picture.histogram.unwrap();
        assert!(histogram.is_logarithmic);
        assert_eq!((histogram.low, histogram.high), (1.0, 16.0));
        for shares in &histogram.shares {
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        // Before the change, a third of the values are in the last bin, because they are the greatest. After
        // the change, a third of the values are in the first bin.
        assert!((histogram.shares[0][BINS - 1] - 1.0 / 3.0).abs() < 1e-12);
        assert!((histogram.shares[1][0] - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn equal_or_missing_values_have_no_histogram() {
        for values in [&[5.0, 5.0][..], &[]] {
            let sides = Sides {
                name: String::new(),
                design: Design::Paired,
                before: side(&[values]),
                after: side(&[values]),
                alone: [0, 0],
                same_names: 0,
                has_looks: false,
            };
            let summary = Summary::read(&sides).unwrap();
            assert_eq!(Histogram::from_sides(&sides, &summary).unwrap(), None);
        }
    }
}
