//! Summaries of runs. Each run is read once to compute its summary, and is not kept in memory.

use rayon::prelude::*;
use statistics::classes::Shape;
use statistics::clusters::{self, Clusters};
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
    /// Minimum of the values. `None` if there are no values.
    pub(crate) least: Option<f64>,
    /// Number of consecutive samples that count as one independent sample.
    pub(crate) samples_per_independent: f64,
    /// Greatest samples of a long run.
    pub(crate) late: Option<Late>,
}

/// Greatest samples of a run. Stalls are counted from them, without reading the run again.
#[derive(Clone, Debug)]
pub(crate) struct Late {
    /// Places and values.
    samples: Vec<(u32, f64)>,
    /// Value above which `samples` has all samples.
    beyond: f64,
}

/// Number of samples of a run for each late sample that is kept.
const LATE: usize = 200;

/// Greatest values of several runs, from which high quantiles of all values follow.
#[derive(Clone, Debug)]
struct Greatest {
    /// Number of values that are needed.
    most: usize,
    /// Values, at most twice as many as are needed.
    values: Vec<f64>,
    /// Lesser values are not needed.
    floor: f64,
}

/// Maximum number of samples of a run that are searched for dependence. In the worst case, the time of the
/// search is proportional to the square of the number of samples.
const SEARCHED: usize = 50_000;

/// Maximum memory for runs that are read at the same time, in bytes. A single run may need more.
const MEMORY: u64 = 48 << 20;

impl Summary {
    /// Reads each run once. Several runs are read in parallel, limited by the memory `MEMORY`.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub fn read(sides: &Sides) -> Result<Summary, Error> {
        let both = [&sides.before, &sides.after];
        let samples = both.iter().flat_map(|group| &group.runs).map(Run::samples);
        let all = usize::try_from(samples.sum::<u64>()).unwrap_or(usize::MAX);
        // This number is enough for p99.9 of both sides together. If there are at most 10,000 samples, it is
        // also enough for p99.
        let most = (all / 1_000).max(all.min(10_000) / 100) + 2;
        let [before, after] = both.map(|group| Side::read(group, most));
        Ok(Summary {
            sides: [before?, after?],
        })
    }

    /// Returns a quantile of all values of both sides. `share` must be at least 0.999. If there are at most
    /// 10,000 samples, `share` may be as low as 0.99. Returns `None` if there are no values.
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
            greatest: Greatest::new(most),
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

    /// Returns a quantile of all values of this side. The limits of `share` are the same as for
    /// [`Summary::high`].
    pub(crate) fn high(&self, share: f64) -> Option<f64> {
        self.greatest.at(self.samples(), share)
    }
}

impl RunSummary {
    /// Reads a run. Returns its summary and its greatest values, at most `most` of them.
    fn read(run: &Run, most: usize) -> Result<(RunSummary, Vec<f64>), Error> {
        let values = run.values()?;
        let unknown = values.unknown;
        let samples_per_independent = dependence(&values.known);
        if let Some(shape) = Shape::of(&values.known, most.min(values.known.len())) {
            let greatest = shape.great.iter().map(|(_, value)| *value).collect();
            let late = Late::of(shape.great, values.known.len() / LATE);
            let summary = RunSummary {
                quantiles: shape.quantiles,
                unknown,
                bars: shape.bars,
                least: Some(shape.least),
                samples_per_independent,
                late: Some(late),
            };
            return Ok((summary, greatest));
        }
        let mut values = values.known.into_owned();
        let bars = Bars::of(&values);
        let quantiles = RunQuantiles::of(&mut values);
        let summary = RunSummary {
            quantiles,
            unknown,
            bars,
            least: values.iter().copied().reduce(f64::min),
            samples_per_independent,
            late: None,
        };
        // `RunQuantiles::of` has already moved the greatest tenth of the values to the end of `values`.
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

impl Late {
    /// Keeps the `most` greatest of the samples of a run. All samples that are greater than those in `great` are
    /// in it.
    fn of(mut great: Vec<(u32, f64)>, most: usize) -> Late {
        let least = |samples: &[(u32, f64)]| {
            let values = samples.iter().map(|(_, value)| *value);
            values.reduce(f64::min).unwrap_or(f64::INFINITY)
        };
        let mut beyond = least(&great);
        if let Some(fewer) = great.len().checked_sub(most.max(1)) {
            let mut values: Vec<f64> = great.iter().map(|(_, value)| *value).collect();
            beyond = *values.select_nth_unstable_by(fewer, f64::total_cmp).1;
            great.retain(|(_, value)| *value > beyond);
            great.shrink_to_fit();
        }
        Late {
            samples: great,
            beyond,
        }
    }

    /// Returns the stalls above a threshold; `None` if lesser samples would have to be known.
    pub(crate) fn stalls(&self, above: f64) -> Option<Clusters> {
        let late = self.samples.iter().filter(|(_, value)| *value > above);
        (above >= self.beyond).then(|| clusters::of_places(late.map(|(place, _)| *place as usize)))
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

/// Returns the median by nearest rank. Returns `None` if there are no values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    quantile::of_sorted(&values, 0.5)
}

/// Returns the number of consecutive samples of a run that count as one independent sample of the run's
/// median. `values` are in order of time.
pub(crate) fn dependence(values: &[f64]) -> f64 {
    let searched = &values[..values.len().min(SEARCHED)];
    let middle = RunQuantiles::of(&mut searched.to_vec()).at(0.5);
    middle.map_or(1.0, |middle| samples_per_independent_at(searched, middle))
}

impl Greatest {
    fn new(most: usize) -> Greatest {
        Greatest {
            most,
            values: Vec::new(),
            floor: f64::NEG_INFINITY,
        }
    }

    fn add(&mut self, values: &[f64]) {
        let floor = self.floor;
        self.values
            .extend(values.iter().filter(|value| **value >= floor));
        // Each selection takes the time of many additions.
        if self.values.len() > 2 * self.most {
            self.floor = self.keep_most();
        }
    }

    /// Drops the values that are not among the greatest. Returns the least of these.
    fn keep_most(&mut self) -> f64 {
        match self.values.len().checked_sub(self.most) {
            Some(fewer) if fewer > 0 => {
                let (_, least, _) = self.values.select_nth_unstable_by(fewer, f64::total_cmp);
                let least = *least;
                self.values.drain(..fewer);
                least
            }
            _ => self.floor,
        }
    }

    /// Returns a quantile of `count` values. `self` contains the greatest of these values. Returns `None` if
    /// the quantile is not among them.
    fn at(&self, count: usize, share: f64) -> Option<f64> {
        let mut all = self.clone();
        all.keep_most();
        let place = quantile::rank(count, share).checked_sub(1)?;
        let place = place.checked_sub(count - all.values.len())?;
        let values = &mut all.values;
        (place < values.len()).then(|| *values.select_nth_unstable_by(place, f64::total_cmp).1)
    }
}

/// Applies `read` to the runs in parallel. Passes the results to `take` in the order of the runs.
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
    // If the runs are short, each wave has more runs, so that threads wait less for each other.
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
