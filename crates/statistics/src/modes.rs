//! Modes of a distribution of positive values. A mode is a peak of the histogram of the logarithms of the
//! values.

use std::ops::Range;

use serde::Serialize;

use crate::{Comparison, Design, Incomparable, compare};

/// Width of a bar of the histogram, as a difference of natural logarithms. The upper end of a bar is about 10
/// % above its lower end.
const WIDTH: f64 = 0.1;

/// Minimum share of the samples in a mode. Smaller groups are stray values.
const LEAST_SHARE: f64 = 0.01;

/// One mode of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mode {
    /// Lower end of the mode.
    pub low: f64,
    /// Upper end of the mode, where the next mode begins.
    pub high: f64,
    /// Value at the peak of the mode.
    pub peak: f64,
}

/// Part of the histogram between two neighbouring valleys.
#[derive(Clone, Copy)]
struct Hill {
    start: usize,
    end: usize,
    top: usize,
    mass: f64,
}

/// Histogram of one or several runs. It counts values by their logarithm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bars {
    /// Index of the first bar. The lower end of a bar with the index `i` is `exp(i * WIDTH)`.
    first: i64,
    counts: Vec<u64>,
    /// Number of all values, including values that belong to no bar.
    all: u64,
}

/// Returns the number of the bar of a positive value.
fn bar(value: f64) -> i64 {
    (value.ln() / WIDTH).floor() as i64
}

impl Bars {
    /// Counts the values of each bar. Values that are not positive or not finite belong to no bar.
    pub fn of(values: &[f64]) -> Bars {
        let positive = || values.iter().filter(|it| **it > 0.0 && it.is_finite());
        let (least, greatest) = positive().fold((f64::INFINITY, 0.0), |(least, greatest), it| {
            (it.min(least), it.max(greatest))
        });
        if least > greatest {
            return Bars {
                all: values.len() as u64,
                ..Bars::default()
            };
        }
        let mut bars = Bars::between(least, greatest, values.len());
        positive().for_each(|value| bars.add(*value, 1));
        bars
    }

    /// Creates a histogram for `all` values without counting the values. All positive finite values must be between
    /// `least` and `greatest`.
    pub(crate) fn between(least: f64, greatest: f64, all: usize) -> Bars {
        let first = bar(least);
        Bars {
            first,
            counts: vec![0; (bar(greatest) - first) as usize + 1],
            all: all as u64,
        }
    }

    /// Returns the border between the bars of `low` and `high`: the first value of the bar of `high`. `low` must be
    /// positive and less than `high`. Returns `None` if both are in the same bar. There must be no bar between both.
    /// Values below the least value count as the least value.
    pub(crate) fn edge(&self, low: f64, high: f64) -> Option<f64> {
        let last = bar(high);
        if bar(low).max(self.first) == last {
            return None;
        }
        // The bits of positive numbers have the order of the numbers.
        let (mut below, mut edge) = (low.to_bits(), high.to_bits());
        while edge - below > 1 {
            let middle = u64::midpoint(below, edge);
            if bar(f64::from_bits(middle)) == last {
                edge = middle
            } else {
                below = middle
            }
        }
        Some(f64::from_bits(edge))
    }

    /// Counts a positive value `times` times. A value below the first bar counts in the first bar.
    pub(crate) fn add(&mut self, value: f64, times: u64) {
        let place = (bar(value) - self.first).max(0) as usize;
        if let Some(count) = self.counts.get_mut(place) {
            *count += times;
        }
    }

    /// Returns one histogram of the values of several histograms.
    pub fn joined<'b>(all: impl Iterator<Item = &'b Bars> + Clone) -> Bars {
        let filled = || all.clone().filter(|bars| !bars.counts.is_empty());
        let first = filled().map(|bars| bars.first).min().unwrap_or(0);
        let end = filled().map(|bars| bars.first + bars.counts.len() as i64);
        let mut joined = Bars {
            first,
            counts: vec![0; (end.max().unwrap_or(first) - first) as usize],
            all: all.clone().map(|bars| bars.all).sum(),
        };
        for bars in filled() {
            let from = (bars.first - first) as usize;
            let counts = joined.counts[from..].iter_mut().zip(&bars.counts);
            counts.for_each(|(sum, count)| *sum += count);
        }
        joined
    }

    /// Returns the number of values in the bars whose indexes are in `range`.
    fn within(&self, range: &Range<i64>) -> u64 {
        let bars = (self.first..).zip(&self.counts);
        let inside = bars.filter(|(bar, _)| range.contains(bar));
        inside.map(|(_, count)| count).sum()
    }

    /// Returns the modes in ascending order, each with the indexes of its bars. A valley separates two modes
    /// if its height is below half of the lower one of the two peaks.
    fn modes(&self) -> Vec<(Mode, Range<i64>)> {
        if self.counts.is_empty() {
            return Vec::new();
        }
        // Add one empty bar at each end, so that each end is a valley.
        let first = self.first - 1;
        let inner = self.counts.iter().map(|count| *count as f64);
        let counts: Vec<f64> = std::iter::once(0.0).chain(inner).chain([0.0]).collect();
        let at = |bar: usize| counts.get(bar).copied().unwrap_or(0.0);
        // A clock with coarse steps leaves empty bars between other bars, so each bar is smoothed with its neighbours.
        let smooth: Vec<f64> = (0..counts.len())
            .map(|n| (n.checked_sub(1).map_or(0.0, at) + 2.0 * at(n) + at(n + 1)) / 4.0)
            .collect();
        let mut hills = hills(&smooth, &counts);
        let least_mass = LEAST_SHARE * counts.iter().sum::<f64>();
        while let Some(at) = weakest(&hills, &smooth, least_mass) {
            let next = hills.remove(at + 1);
            let hill = &mut hills[at];
            hill.end = next.end;
            hill.mass += next.mass;
            if smooth[next.top] > smooth[hill.top] {
                hill.top = next.top;
            }
        }
        let place = |bar: usize, half: f64| (((first + bar as i64) as f64 + half) * WIDTH).exp();
        let modes = hills.iter().map(|hill| {
            let mode = Mode {
                low: place(hill.start, 0.0),
                high: place(hill.end, 0.0),
                peak: place(hill.top, 0.5),
            };
            (mode, first + hill.start as i64..first + hill.end as i64)
        });
        modes.collect()
    }
}

/// Splits the histogram at each local minimum.
fn hills(smooth: &[f64], counts: &[f64]) -> Vec<Hill> {
    let mut starts = vec![0];
    let mut falls = false;
    for n in 1..smooth.len() {
        if smooth[n] > smooth[n - 1] && falls {
            starts.push(n - 1);
            falls = false;
        } else if smooth[n] < smooth[n - 1] {
            falls = true;
        }
    }
    let ends = starts.iter().skip(1).copied().chain([smooth.len()]);
    let hill = |(start, end): (&usize, usize)| {
        let top = (*start..end).max_by(|a, b| smooth[*a].total_cmp(&smooth[*b]));
        Hill {
            start: *start,
            end,
            top: top.unwrap_or(*start),
            mass: counts[*start..end].iter().sum(),
        }
    };
    starts.iter().zip(ends).map(hill).collect()
}

/// Returns the index of a hill that must be joined with the next hill. Returns `None` if no hills must be
/// joined.
fn weakest(hills: &[Hill], smooth: &[f64], least_mass: f64) -> Option<usize> {
    let depth = |two: &[Hill]| {
        let lower = smooth[two[0].top].min(smooth[two[1].top]);
        smooth[two[1].start] / lower.max(f64::MIN_POSITIVE)
    };
    let joins = hills
        .windows(2)
        .enumerate()
        .filter(|(_, two)| depth(two) >= 0.5 || two.iter().any(|hill| hill.mass < least_mass));
    // Hills are joined at the shallowest valley first, so a stray hill joins the neighbour behind the shallower of its
    // two valleys.
    let joins = joins.max_by(|(_, a), (_, b)| depth(a).total_cmp(&depth(b)));
    joins.map(|(at, _)| at)
}

/// Change of the share of the samples in one mode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Move {
    /// Mode whose share is compared.
    pub mode: Mode,
    /// Share of the samples before the change that belong to the mode.
    pub before: f64,
    /// Share of the samples after the change that belong to the mode.
    pub after: f64,
    /// Comparison of the log-odds of the mode. The odds of a run are about `share / (1 - share)`, where
    /// `share` is the run's share of samples in the mode.
    pub odds: Comparison,
}

/// Compares for each mode the share of the samples in the mode. `before` and `after` contain one histogram
/// for each run.
///
/// # Errors
/// Returns an error if the runs cannot be compared.
pub fn moves(before: &[Bars], after: &[Bars], design: Design) -> Result<Vec<Move>, Incomparable> {
    let compared = Bars::joined(before.iter().chain(after)).modes();
    let compared = compared.into_iter().map(|(mode, bars)| {
        let inside = |run: &Bars| (run.within(&bars) as f64, run.all as f64);
        let odds = |runs: &[Bars]| -> Vec<f64> {
            let odds = runs.iter().map(inside);
            odds.map(|(held, all)| (held + 0.5) / (all - held + 0.5))
                .collect()
        };
        let share = |runs: &[Bars]| {
            let sums = runs.iter().map(inside);
            let (held, all) = sums.fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
            held / all
        };
        Ok(Move {
            mode,
            before: share(before),
            after: share(after),
            odds: compare(&odds(before), &odds(after), design)?,
        })
    });
    compared.collect()
}
