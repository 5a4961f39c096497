//! Runs of a measurement.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;

use crate::Error;
use crate::stored::StoredRun;

/// Runs that measured the same thing.
#[derive(Clone, Debug)]
pub struct Group {
    /// Name of the measured thing: method and setting, or the value of a column.
    pub name: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Runs, in order.
    pub runs: Vec<Run>,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Name, which is unique within its group. Runs of two groups with equal names make a pair.
    pub name: String,
    /// Position in the order in which runs began, if it is known. It is comparable between the groups of a
    /// comparison.
    pub began: Option<i64>,
    samples: Samples,
}

/// Samples of a run, in order of time.
#[derive(Clone, Debug)]
enum Samples {
    Held(Values<'static>),
    /// Samples that are read from a file when they are needed.
    Stored(StoredRun),
}

/// Start of each sample in nanoseconds, and its value, if it is known.
pub type TimedSamples = Vec<(i64, Option<f64>)>;

/// Values of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values<'v> {
    /// Known values, in order of time.
    pub(crate) known: Cow<'v, [f64]>,
    /// Number of samples without a value.
    pub(crate) unknown: u64,
}

/// Unit of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// Unknown to laglab.
    Other,
}

impl Run {
    /// Creates a run from its known values, in order of time, and the number of samples without a value.
    pub fn new(name: String, values: Vec<f64>, unknown: u64) -> Run {
        let known = Cow::Owned(values);
        Run {
            name,
            began: None,
            samples: Samples::Held(Values { known, unknown }),
        }
    }

    pub(crate) fn stored(name: String, began: Option<i64>, run: StoredRun) -> Run {
        Run {
            name,
            began,
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

    /// Returns the samples with their starts, in order of time; `None` if the starts are unknown.
    ///
    /// # Errors
    /// If the samples are in a file that cannot be read.
    pub fn timed(&self) -> Result<Option<TimedSamples>, Error> {
        match &self.samples {
            Samples::Held(_) => Ok(None),
            Samples::Stored(run) => run.timed(),
        }
    }

    /// Returns the samples.
    ///
    /// # Errors
    /// If the samples are in a file that cannot be read.
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

/// Groups that grow while rows are read. Groups and runs are found by their names.
#[derive(Default)]
pub(crate) struct Growing {
    pub(crate) groups: Vec<Group>,
    by_name: HashMap<String, usize>,
    runs_by_name: Vec<HashMap<String, usize>>,
}

impl Growing {
    /// Returns the place of a group, which is added if it is new.
    pub(crate) fn group(&mut self, name: &str, unit: Unit) -> usize {
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        let place = self.groups.len();
        self.by_name.insert(name.to_owned(), place);
        self.runs_by_name.push(HashMap::new());
        self.groups.push(Group {
            name: name.to_owned(),
            unit,
            runs: Vec::new(),
        });
        place
    }

    /// Returns the place of a run in its group. If the name is new, the run is `make`d.
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
