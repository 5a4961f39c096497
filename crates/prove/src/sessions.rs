//! Sessions: files of one side that were measured at different times.
//!
//! The results of a machine may differ from session to session by more than from run to run. In this case, the runs of
//! a session are not independent of each other, and each session counts as one value.

use std::collections::BTreeMap;

use statistics::shift_function::RunQuantiles;
use statistics::{Design, batches};

use crate::judgement::ALPHA;
use crate::summary::Side;
use crate::{Group, Sides, Summary};

/// Sessions of both sides.
pub(crate) struct Sessions {
    /// For each side: true if the files of the side differ by more than their runs explain.
    pub(crate) differ: [bool; 2],
    /// True if each session counts as one value.
    pub(crate) count: bool,
}

impl Sessions {
    /// Finds out if each session counts as one value. `summary` must be the summary of `sides`.
    pub(crate) fn new(sides: &Sides, summary: &Summary) -> Sessions {
        let [before, after] = &summary.sides;
        let differ = [
            differ_by_file(&sides.before, before),
            differ_by_file(&sides.after, after),
        ];
        // If runs are paired, a session shifts both runs of a pair, and their difference stays the same.
        let count = sides.design == Design::Unpaired && differ != [false, false];
        Sessions { differ, count }
    }

    /// Returns the quantiles that count as values of a side: the quantiles of each run. If sessions count as values,
    /// returns for each session the medians of the quantiles of its runs.
    pub(crate) fn values(&self, group: &Group, side: &Side) -> Vec<RunQuantiles> {
        if !self.count {
            return side.runs.iter().map(|run| run.quantiles).collect();
        }
        let mut sessions: BTreeMap<usize, Vec<RunQuantiles>> = BTreeMap::new();
        for (run, summary) in group.runs.iter().zip(&side.runs) {
            let session = sessions.entry(run.file).or_default();
            session.push(summary.quantiles);
        }
        let sessions = sessions.values();
        sessions.map(|runs| RunQuantiles::middle(runs)).collect()
    }
}

/// Returns true if the medians of the runs differ from file to file by more than chance explains.
fn differ_by_file(group: &Group, side: &Side) -> bool {
    let files = group.runs.iter().map(|run| run.file).max().unwrap_or(0) + 1;
    let mut medians = vec![Vec::new(); files];
    for (run, summary) in group.runs.iter().zip(&side.runs) {
        medians[run.file].extend(summary.quantiles.at(0.5));
    }
    // The allowed error is divided among both sides, so that both together have at most 5 %.
    batches::difference_p(&medians).is_some_and(|p| p <= ALPHA / 2.0)
}
