//! Summaries of runs. A run is read once for them, and not kept.

use rayon::prelude::*;
use statistics::dependence::samples_per_independent_at;
use statistics::modes::Bars;
use statistics::quantile;
use statistics::shift_function::RunQuantiles;

use crate::{Error, Group, Run, Sides};

/// Summary of the samples of both sides.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Sides before and after the change.
    pub(crate) sides: [Side; 2],
}

/// Summary of the samples of one side.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    pub(crate) runs: Vec<RunSummary>,
    greatest: Greatest,
}

/// Summary of the samples of one run.
#[derive(Clone, Debug)]
pub(crate) struct RunSummary {
    pub(crate) quantiles: RunQuantiles,
    /// Number of samples without a value.
    pub(crate) unknown: u64,
    pub(crate) bars: Bars,
    /// Least value; `None` without values.
    pub(crate) least: Option<f64>,
    /// Number of neighbouring samples that count as one independent sample.
    pub(crate) samples_per_independent: f64,
}

/// Greatest values of several runs, from which high quantiles of all values follow.
#[derive(Clone, Debug)]
struct Greatest {
    /// Number of values that are kept.
    most: usize,
    values: Vec<f64>,
}

/// Maximum number of samples of a run in which dependence is searched. The search takes time that grows with
/// the square of the number of samples in the worst case.
const SEARCHED: usize = 50_000;

/// Memory for runs that are read at the same time, in bytes. A single run may need more.
const MEMORY: u64 = 48 << 20;

impl Summary {
    /// Reads all runs once. Runs are read in parallel, as many at once as fit into the memory.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn read(sides: &Sides) -> Result<Summary, Error> {
        let both = [&sides.before, &sides.after];
        let samples = both.iter().flat_map(|group| &group.runs).map(Run::samples);
        let all = usize::try_from(samples.sum::<u64>()).unwrap_or(usize::MAX);
        // Enough for p99.9 of both sides together, and for p99 of up to 10,000 samples.
        let most = (all / 1_000).max(all.min(10_000) / 100) + 2;
        let [before, after] = both.map(|group| Side::read(group, most));
        Ok(Summary {
            sides: [before?, after?],
        })
    }

    /// Returns a quantile of all values of both sides. The share is at least 0.999, or at least 0.99 with up to
    /// 10,000 samples; `None` without values.
    pub(crate) fn high(&self, share: f64) -> Option<f64> {
        let [before, after] = &self.sides;
        let mut both = before.greatest.clone();
        both.add(&after.greatest.values);
        both.at(before.samples() + after.samples(), share)
    }

    /// Returns true if each run has one value.
    pub(crate) fn has_one_value_per_run(&self) -> bool {
        let mut runs = self.sides.iter().flat_map(|side| &side.runs);
        runs.all(|run| run.quantiles.samples == 1)
    }
}

impl Side {
    fn read(group: &Group, most: usize) -> Result<Side, Error> {
        let mut side = Side {
            runs: Vec::with_capacity(group.runs.len()),
            greatest: Greatest {
                most,
                values: Vec::new(),
            },
        };
        in_waves(
            &group.runs,
            |run| RunSummary::read(run, most),
            |read| {
                let (run, greatest) = read?;
                side.greatest.add(&greatest);
                side.runs.push(run);
                Ok(())
            },
        )?;
        Ok(side)
    }

    /// Returns the number of samples with a value.
    pub(crate) fn samples(&self) -> usize {
        self.runs.iter().map(|run| run.quantiles.samples).sum()
    }

    /// Returns a quantile of all values like [`Summary::high`].
    pub(crate) fn high(&self, share: f64) -> Option<f64> {
        self.greatest.at(self.samples(), share)
    }
}

impl RunSummary {
    /// Reads a run. Also returns its greatest values, of which at most `most` are needed.
    fn read(run: &Run, most: usize) -> Result<(RunSummary, Vec<f64>), Error> {
        let values = run.values()?;
        let unknown = values.unknown;
        let mut values = values.known.into_owned();
        let samples_per_independent = dependence(&values);
        let bars = Bars::of(&values);
        let quantiles = RunQuantiles::of(&mut values);
        let summary = RunSummary {
            quantiles,
            unknown,
            bars,
            least: values.iter().copied().reduce(f64::min),
            samples_per_independent,
        };
        // The quantiles have moved the greatest tenth to the end.
        let tenth = quantile::rank(values.len(), 0.9);
        let from = values.len().saturating_sub(most);
        if from > tenth {
            values[tenth..].select_nth_unstable_by(from - tenth, f64::total_cmp);
        } else if from > 0 {
            values.select_nth_unstable_by(from, f64::total_cmp);
        }
        values.drain(..from);
        Ok((summary, values))
    }
}

/// Returns the quantiles of each run.
pub(crate) fn quantiles(runs: &[Run]) -> Result<Vec<RunQuantiles>, Error> {
    let mut all = Vec::with_capacity(runs.len());
    in_waves(
        runs,
        |run| Ok(RunQuantiles::of(&mut run.values()?.known.into_owned())),
        |run| {
            all.push(run?);
            Ok(())
        },
    )?;
    Ok(all)
}

/// Returns the median by nearest rank; `None` without values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    quantile::of_sorted(&values, 0.5)
}

/// Returns how many samples of a run, in order of time, count as one independent sample of its median.
pub(crate) fn dependence(values: &[f64]) -> f64 {
    let searched = &values[..values.len().min(SEARCHED)];
    let middle = RunQuantiles::of(&mut searched.to_vec()).at(0.5);
    middle.map_or(1.0, |middle| samples_per_independent_at(searched, middle))
}

impl Greatest {
    fn add(&mut self, values: &[f64]) {
        self.values.extend_from_slice(values);
        let Some(fewer) = self.values.len().checked_sub(self.most).filter(|n| *n > 0) else {
            return;
        };
        self.values.select_nth_unstable_by(fewer, f64::total_cmp);
        self.values.drain(..fewer);
    }

    /// Returns a quantile of `count` values, of which these are the greatest.
    fn at(&self, count: usize, share: f64) -> Option<f64> {
        let place = quantile::rank(count, share).checked_sub(1)?;
        let place = place.checked_sub(count - self.values.len())?;
        let mut values = self.values.clone();
        (place < values.len()).then(|| *values.select_nth_unstable_by(place, f64::total_cmp).1)
    }
}

/// Applies `read` to the runs in parallel, and passes the results to `take` in order.
pub(crate) fn in_waves<T: Send>(
    runs: &[Run],
    read: impl Fn(&Run) -> Result<T, Error> + Sync,
    mut take: impl FnMut(Result<T, Error>) -> Result<(), Error>,
) -> Result<(), Error> {
    let longest = runs.iter().map(Run::samples).max().unwrap_or(0);
    let at_once = MEMORY / longest.saturating_mul(size_of::<f64>() as u64).max(1);
    let threads = rayon::current_num_threads();
    let at_once = usize::try_from(at_once)
        .unwrap_or(usize::MAX)
        .clamp(1, threads);
    // Short runs are read in longer waves, so that threads wait less for each other.
    let wave = match longest {
        0..10_000 => 64 * at_once,
        _ => at_once,
    };
    for some in runs.chunks(wave) {
        let results: Vec<Result<T, Error>> = some.par_iter().map(&read).collect();
        results.into_iter().try_for_each(&mut take)?;
    }
    Ok(())
}
