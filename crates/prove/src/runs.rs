//! Runs of a measurement.

use serde::Serialize;

/// Runs that measured the same thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Name of the measured thing: method and setting, or the value of a column.
    pub name: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Runs, in order.
    pub runs: Vec<Run>,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Name, which is unique within its group. Runs of two groups with equal names make a pair.
    pub name: String,
    /// Known values, in order of time.
    pub values: Vec<f64>,
    /// Number of samples without a value.
    pub unknown: u64,
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

impl Group {
    /// Returns the run with this name, which is added if it is new. Most rows belong to the run of the row
    /// before, so the search begins at the end.
    pub(crate) fn run(&mut self, name: &str) -> &mut Run {
        let place = self.runs.iter().rposition(|run| run.name == name);
        match place {
            Some(place) => &mut self.runs[place],
            None => self.push_run(name.to_owned()),
        }
    }

    /// Adds a run.
    pub(crate) fn push_run(&mut self, name: String) -> &mut Run {
        self.runs.push_mut(Run {
            name,
            values: Vec::new(),
            unknown: 0,
        })
    }

    /// Returns true if each run has one value.
    pub fn has_one_value_per_run(&self) -> bool {
        self.runs.iter().all(|run| run.values.len() == 1)
    }
}

/// Returns the values of each run, sorted.
pub(crate) fn sorted(runs: &[Run]) -> Vec<Vec<f64>> {
    let sort = |run: &Run| {
        let mut values = run.values.clone();
        values.sort_unstable_by(f64::total_cmp);
        values
    };
    runs.iter().map(sort).collect()
}
