//! Modes of a distribution of positive values: peaks of its histogram over logarithms.

use serde::Serialize;

use crate::{Comparison, Design, Incomparable, compare};

/// Width of a bar of the histogram, in natural logarithms: 10 %.
const WIDTH: f64 = 0.1;

/// Least share of the samples that a mode has. Fewer are stray values.
const LEAST_SHARE: f64 = 0.01;

/// Mode of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mode {
    /// Lower end.
    pub low: f64,
    /// Upper end; the next mode begins here.
    pub high: f64,
    /// Place of the peak.
    pub peak: f64,
}

/// Part of the histogram between two valleys.
#[derive(Clone, Copy)]
struct Hill {
    start: usize,
    end: usize,
    top: usize,
    mass: f64,
}

/// Returns the modes of the positive ones of all values, in ascending order. A valley separates two
/// modes if it is below half of the lower of the two peaks.
pub fn modes<'v>(values: impl Iterator<Item = &'v f64>) -> Vec<Mode> {
    let logs: Vec<f64> = values
        .filter(|it| **it > 0.0 && it.is_finite())
        .map(|it| it.ln())
        .collect();
    let Some(least) = logs.iter().copied().min_by(f64::total_cmp) else {
        return Vec::new();
    };
    // One empty bar at each end is a valley.
    let first = (least / WIDTH).floor() as i64 - 1;
    let bar = |log: &f64| ((log / WIDTH).floor() as i64 - first) as usize;
    let bars = logs.iter().map(bar).max().unwrap_or(0) + 2;
    let mut counts = vec![0.0; bars];
    for log in &logs {
        counts[bar(log)] += 1.0;
    }
    let at = |bar: usize| counts.get(bar).copied().unwrap_or(0.0);
    // Rounded clocks leave gaps between bars, so neighbours count a little.
    let smooth: Vec<f64> = (0..bars)
        .map(|n| (n.checked_sub(1).map_or(0.0, at) + 2.0 * at(n) + at(n + 1)) / 4.0)
        .collect();
    let mut hills = hills(&smooth, &counts);
    let least_mass = LEAST_SHARE * logs.len() as f64;
    while let Some(at) = weakest(&hills, &smooth, least_mass) {
        let next = hills.remove(at + 1);
        let hill = &mut hills[at];
        hill.end = next.end;
        hill.mass += next.mass;
        if smooth[next.top] > smooth[hill.top] {
            hill.top = next.top;
        }
    }
    let place = |bar: usize, half: f64| ((first + bar as i64) as f64 + half) * WIDTH;
    let modes = hills.iter().map(|hill| Mode {
        low: place(hill.start, 0.0).exp(),
        high: place(hill.end, 0.0).exp(),
        peak: place(hill.top, 0.5).exp(),
    });
    modes.collect()
}

/// Splits the histogram at every local minimum.
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

/// Returns the place of a hill that is joined with the next one, if any must be.
fn weakest(hills: &[Hill], smooth: &[f64], least_mass: f64) -> Option<usize> {
    let depth = |two: &[Hill]| {
        let lower = smooth[two[0].top].min(smooth[two[1].top]);
        smooth[two[1].start] / lower.max(f64::MIN_POSITIVE)
    };
    let joins = hills
        .windows(2)
        .enumerate()
        .filter(|(_, two)| depth(two) >= 0.5 || two.iter().any(|hill| hill.mass < least_mass));
    // The shallowest valley goes first; a stray hill joins the neighbour with the shallower valley.
    let joins = joins.max_by(|(_, a), (_, b)| depth(a).total_cmp(&depth(b)));
    joins.map(|(at, _)| at)
}

/// Change of the share of samples that one mode has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Move {
    /// The mode.
    pub mode: Mode,
    /// Share of the samples before the change.
    pub before: f64,
    /// Share of the samples after the change.
    pub after: f64,
    /// Comparison of the log-odds of the shares of the runs.
    pub odds: Comparison,
}

/// Compares for each mode the share of samples that it has.
///
/// # Errors
/// Returns an error if the runs cannot be compared.
pub fn moves(
    before: &[Vec<f64>],
    after: &[Vec<f64>],
    design: Design,
) -> Result<Vec<Move>, Incomparable> {
    let modes = modes(before.iter().chain(after).flatten());
    let of_mode = |mode: Mode| {
        let inside = |run: &Vec<f64>| {
            let held = run
                .iter()
                .filter(|value| (mode.low..mode.high).contains(value));
            (held.count() as f64, run.len() as f64)
        };
        let odds = |runs: &[Vec<f64>]| -> Vec<f64> {
            let odds = runs.iter().map(inside);
            odds.map(|(held, all)| (held + 0.5) / (all - held + 0.5))
                .collect()
        };
        let share = |runs: &[Vec<f64>]| {
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
    };
    modes.into_iter().map(of_mode).collect()
}
