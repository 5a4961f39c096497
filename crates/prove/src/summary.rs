//! Summaries of runs. Each run is read once to compute its summary, and is not kept in memory.

use std::hash::Hasher;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use rustc_hash::FxHasher;
use statistics::Design;
use statistics::classes::Shape;
use statistics::clusters;
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

/// Sides after the runs without a value were left out. If the runs are paired, their partners are left out, too.
pub(crate) struct WithValues {
    pub(crate) sides: Sides,
    pub(crate) summary: Summary,
    /// Sentence that says which runs are left out.
    pub(crate) doubt: String,
}

/// Maximum number of runs without values whose names are listed.
const MOST_NAMES: usize = 5;

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
    /// Hash of the samples in their order. Runs with the same hash have the same samples.
    pub(crate) hash: u64,
    /// Greatest samples of a long run.
    pub(crate) late: Option<Late>,
}

/// Greatest samples of a run. Stalls are counted from them, without reading the run again.
#[derive(Clone, Debug)]
pub(crate) struct Late {
    /// Index in the run and value of each kept sample.
    samples: Vec<(u32, f64)>,
    /// Limit: `samples` contains every sample of the run above this value.
    beyond: f64,
}

/// Divisor for the number of late samples that are kept: a run with 20,000 samples keeps at most 100.
const LATE: usize = 200;

/// Greatest values of several runs, from which high quantiles of all values follow.
#[derive(Clone, Debug)]
struct Greatest {
    /// Number of the greatest values that the caller needs.
    most: usize,
    /// Values, at most twice as many as are needed.
    values: Vec<f64>,
    /// Lower limit: smaller values are not added, because they cannot be among the greatest.
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
        // Number of greatest samples that each side keeps. They are enough to compute p99.9 of both sides together. If
        // there are at most 10,000 samples, they are also enough for p99.
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

    /// Leaves out the runs without any value. If the runs are paired, also leaves out their partners. Returns `None` if
    /// each run has a value, or if a side has no run with a value. `self` must be the summary of `sides`.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub(crate) fn without_empty(&self, sides: &Sides) -> Result<Option<WithValues>, Error> {
        let is_empty = |run: &RunSummary| run.quantiles.samples == 0;
        let [mut before, mut after] =
            (self.sides.each_ref()).map(|side| side.runs.iter().map(is_empty).collect::<Vec<_>>());
        if sides.design == Design::Paired {
            for (one, other) in before.iter_mut().zip(&mut after) {
                *one |= *other;
                *other = *one;
            }
        }
        let count = |empty: &[bool]| empty.iter().filter(|empty| **empty).count();
        let counts = [count(&before), count(&after)];
        if counts == [0, 0] || counts[0] == before.len() || counts[1] == after.len() {
            return Ok(None);
        }
        let names = |group: &Group, empty: &[bool]| -> Vec<String> {
            let left_out = group.runs.iter().zip(empty).filter(|(_, empty)| **empty);
            left_out
                .map(|(run, _)| wording::Printable(&run.name).to_string())
                .collect()
        };
        let mut left_out = names(&sides.before, &before);
        let what = match sides.design {
            Design::Paired => {
                wording::counted(counts[0] as u64, "pair of runs is", "pairs of runs are")
            }
            Design::Unpaired => {
                left_out.extend(names(&sides.after, &after));
                let both = wording::counted(counts[0] as u64, "run", "runs");
                format!("{both} before the change and {} after it are", counts[1])
            }
        };
        let run = if left_out.len() == 1 { "run" } else { "runs" };
        let more = left_out.len().saturating_sub(MOST_NAMES);
        left_out.truncate(MOST_NAMES);
        if more > 0 {
            left_out.push(format!("{more} more"));
        }
        let mut complete = sides.clone();
        for (group, empty) in [(&mut complete.before, before), (&mut complete.after, after)] {
            let mut empty = empty.into_iter();
            group.runs.retain(|_| empty.next() == Some(false));
        }
        Ok(Some(WithValues {
            summary: Summary::read(&complete)?,
            sides: complete,
            doubt: format!(
                "{what} left out, because a run has no value ({run} {}).",
                wording::listed(left_out)
            ),
        }))
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
        // Floor of the runs that were read so far, as the bits of an `f64`. Without a floor, each run would return many
        // values that are then dropped.
        let floor = AtomicU64::new(side.greatest.floor.to_bits());
        in_waves(
            &group.runs,
            |run| RunSummary::read(run, most, f64::from_bits(floor.load(Ordering::Relaxed))),
            |read| {
                let (run, greatest) = read?;
                side.greatest.add(&greatest);
                side.runs.push(run);
                floor.store(side.greatest.floor.to_bits(), Ordering::Relaxed);
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
    /// Reads a run. Returns its summary and its greatest values. The returned values include each value of the run that
    /// is among its `most` greatest values and not below `floor`.
    fn read(run: &Run, most: usize, floor: f64) -> Result<(RunSummary, Vec<f64>), Error> {
        let values = run.values()?;
        let unknown = values.unknown;
        let samples_per_independent = dependence(&values.known);
        let hash = hash(&values.known);
        let late = values.known.len() / LATE;
        if let Some(shape) = Shape::from_samples(&values.known, late + 1, most, floor) {
            let greatest = shape.great.iter().map(|(_, value)| *value);
            let greatest = greatest.filter(|value| *value >= floor).collect();
            let late = Late::from_values(shape.great, late);
            let summary = RunSummary {
                quantiles: shape.quantiles,
                unknown,
                bars: shape.bars,
                least: Some(shape.least),
                samples_per_independent,
                hash,
                late: Some(late),
            };
            return Ok((summary, greatest));
        }
        let mut values = values.known.into_owned();
        let bars = Bars::from_values(&values);
        let quantiles = RunQuantiles::from_samples(&mut values);
        let summary = RunSummary {
            quantiles,
            unknown,
            bars,
            least: values.iter().copied().reduce(f64::min),
            samples_per_independent,
            hash,
            late: None,
        };
        // `RunQuantiles::from_samples` has already moved the greatest tenth of the values to the end of `values`.
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
    /// Keeps at most `most` samples. `great` must contain the greatest samples of the run, each with its index in
    /// the run.
    fn from_values(mut great: Vec<(u32, f64)>, most: usize) -> Late {
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

    /// Returns the samples above a threshold. Returns `None` if the threshold is so low that samples above it may be
    /// missing here.
    pub(crate) fn beyond(&self, above: f64) -> Option<clusters::Late> {
        let late = self.samples.iter().filter(|(_, value)| *value > above);
        let places = late.map(|(place, _)| *place as usize);
        (above >= self.beyond).then(|| clusters::Late::of_places(places))
    }
}

/// Returns the quantiles of each run.
pub(crate) fn quantiles(runs: &[Run]) -> Result<Vec<RunQuantiles>, Error> {
    let mut all = Vec::with_capacity(runs.len());
    in_waves(
        runs,
        |run| {
            Ok(RunQuantiles::from_samples(
                &mut run.values()?.known.into_owned(),
            ))
        },
        |run| {
            all.push(run?);
            Ok(())
        },
    )?;
    Ok(all)
}

/// Returns the median: the middle value, or the mean of the two middle values. Returns `None` if there are no values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    let high = *values.get(values.len() / 2)?;
    let low = values[(values.len() - 1) / 2];
    Some(f64::midpoint(low, high))
}

/// Returns a hash of the samples in their order.
fn hash(values: &[f64]) -> u64 {
    let mut hasher = FxHasher::default();
    for value in values {
        hasher.write_u64(value.to_bits());
    }
    hasher.finish()
}

/// Returns the number of consecutive samples of a run that count as one independent sample of the run's
/// median. `values` are in order of time.
pub(crate) fn dependence(values: &[f64]) -> f64 {
    let searched = &values[..values.len().min(SEARCHED)];
    let mut copy = searched.to_vec();
    let Some(place) = quantile::rank(copy.len(), 0.5).checked_sub(1) else {
        return 1.0;
    };
    let (_, middle, _) = copy.select_nth_unstable_by(place, f64::total_cmp);
    samples_per_independent_at(searched, *middle)
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
        // A selection takes as long as many additions, so it happens only after many values were added.
        if self.values.len() > 2 * self.most {
            self.floor = self.keep_most();
        }
    }

    /// Drops all values except the `most` greatest. Returns the least of the kept values.
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
    // With more runs in a wave, threads wait less for each other. If all threads may read, the number of runs in memory
    // is at most the number of threads, so a larger wave needs no more memory.
    let wave = match longest {
        0..10_000 => 64 * at_once,
        _ if at_once == threads => 4 * at_once,
        _ => at_once,
    };
    for some in runs.chunks(wave) {
        let results: Vec<Result<T, Error>> = some.par_iter().map(&read).collect();
        results.into_iter().try_for_each(&mut take)?;
    }
    Ok(())
}
