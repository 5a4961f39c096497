//! Runs of a measurement.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde::Serialize;
use ts_rs::TS;

use crate::Error;
use crate::stored::StoredRun;

/// Runs that measured the same thing.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name of the measured thing. It consists of method and setting, or is the value of a column.
    pub name: String,
    /// Name of the column of the values, if a user named it. `None` for measurements and metrics of laglab.
    pub column: Option<String>,
    /// Unit of the values.
    pub unit: Unit,
    /// Runs, in order.
    pub runs: Vec<Run>,
}

/// One of the repeated runs of a measurement, with its samples.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name, which is unique within the group. Runs of two groups form a pair if they have the same name.
    pub name: String,
    /// Position in the order in which runs began. Positions of the two groups of a comparison can be
    /// compared. `None` if the order is unknown.
    pub began: Option<i64>,
    /// Index of the file of this run among the files of its side, from 0.
    pub(crate) file: usize,
    samples: Samples,
}

/// Samples of a run, in order of time.
#[derive(Clone, Debug)]
enum Samples {
    Held(Values<'static>),
    /// Samples that are read from a file when they are needed.
    Stored(StoredRun),
}

/// For each sample, its start in nanoseconds, and its value. A value is `None` if it is unknown.
pub type TimedSamples = Vec<(i64, Option<f64>)>;

/// Time from the first to the last sample of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// Start of the first sample, in nanoseconds.
    pub(crate) first_ns: i64,
    /// Start of the last sample, in nanoseconds.
    pub(crate) last_ns: i64,
    /// Number of samples.
    pub(crate) samples: usize,
}

/// Values of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values<'v> {
    /// Known values, in order of time.
    pub(crate) known: Cow<'v, [f64]>,
    /// Number of samples without a value.
    pub(crate) unknown: u64,
}

/// Unit of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Unit that laglab does not know.
    Other,
}

impl Group {
    /// Returns the number of files that the runs are from. Each file counts as one session.
    pub(crate) fn sessions(&self) -> usize {
        let files: HashSet<usize> = self.runs.iter().map(|run| run.file).collect();
        files.len()
    }
}

impl Run {
    /// Creates a run. `values` are the known values in order of time. `unknown` is the number of samples
    /// without a value.
    pub fn new(name: String, values: Vec<f64>, unknown: u64) -> Run {
        let known = Cow::Owned(values);
        Run {
            name,
            began: None,
            file: 0,
            samples: Samples::Held(Values { known, unknown }),
        }
    }

    pub(crate) fn stored(name: String, began: Option<i64>, run: StoredRun) -> Run {
        Run {
            name,
            began,
            file: 0,
            samples: Samples::Stored(run),
        }
    }

    /// Adds a sample to a run whose samples are in memory.
    pub(crate) fn push(&mut self, value: Option<f64>) {
        let Samples::Held(values) = &mut self.samples else {
            return;
        };
        match value {
            Some(value) => values.known.to_mut().push(value),
            None => values.unknown += 1,
        }
    }

    /// Returns the number of samples, including those without a value.
    pub fn samples(&self) -> u64 {
        match &self.samples {
            Samples::Held(values) => values.known.len() as u64 + values.unknown,
            Samples::Stored(run) => run.rows(),
        }
    }

    /// Returns true if a sample may have a value. Samples in a file are not read: each of them may have a value.
    pub fn has_values(&self) -> bool {
        match &self.samples {
            Samples::Held(values) => !values.known.is_empty(),
            Samples::Stored(run) => run.rows() > 0,
        }
    }

    /// Returns the start and value of each sample, in order of time. Returns `None` if the starts are
    /// unknown.
    ///
    /// # Errors
    /// Returns an error if the samples are in a file that cannot be read.
    pub fn timed(&self) -> Result<Option<TimedSamples>, Error> {
        match &self.samples {
            Samples::Held(_) => Ok(None),
            Samples::Stored(run) => run.timed(),
        }
    }

    /// Returns the times of the first and last sample. Returns `None` if the starts are unknown.
    ///
    /// # Errors
    /// Returns an error if the samples are in a file that cannot be read.
    pub(crate) fn span(&self) -> Result<Option<Span>, Error> {
        let timed = self.timed()?;
        Ok(timed.and_then(|timed| {
            let (first, last) = timed.first().zip(timed.last())?;
            Some(Span {
                first_ns: first.0,
                last_ns: last.0,
                samples: timed.len(),
            })
        }))
    }

    /// Returns the samples.
    ///
    /// # Errors
    /// Returns an error if the samples are in a file that cannot be read.
    pub(crate) fn values(&self) -> Result<Values<'_>, Error> {
        match &self.samples {
            Samples::Held(values) => Ok(Values {
                known: Cow::Borrowed(&values.known),
                unknown: values.unknown,
            }),
            Samples::Stored(run) => run.values(),
        }
    }
}

/// Groups that are built while rows are read. Groups and runs are found by name.
#[derive(Default)]
pub(crate) struct GroupBuilder {
    pub(crate) groups: Vec<Group>,
    by_name: HashMap<String, usize>,
    runs_by_name: Vec<HashMap<String, usize>>,
}

impl GroupBuilder {
    /// Returns the index of the group with this name. Adds the group if it is new.
    pub(crate) fn group(&mut self, name: &str, unit: Unit) -> usize {
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        let place = self.groups.len();
        self.by_name.insert(name.to_owned(), place);
        self.runs_by_name.push(HashMap::new());
        self.groups.push(Group {
            name: name.to_owned(),
            column: None,
            unit,
            runs: Vec::new(),
        });
        place
    }

    /// Returns the index of a run in its group. If the name is new, `make` creates the run.
    pub(crate) fn run(
        &mut self,
        group: usize,
        name: &str,
        make: impl FnOnce(String) -> Run,
    ) -> usize {
        if let Some(known) = self.runs_by_name[group].get(name) {
            return *known;
        }
        let runs = &mut self.groups[group].runs;
        self.runs_by_name[group].insert(name.to_owned(), runs.len());
        runs.push(make(name.to_owned()));
        runs.len() - 1
    }
}
