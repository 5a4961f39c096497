//! Runs that were several in truth: switches within them are missing.

use tables::{CpuRunsView, DoubtfulRuns, StoreError};

use crate::{Case, Column, Evidence, Finding, Unit, duration, grouped};

/// The [`DoubtfulRuns`] of a trace and what they come to. They are in no sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubtful {
    /// How many there are.
    pub runs: u64,
    /// How long they were together, in nanoseconds.
    pub cpu_ns: i64,
    /// Which they are.
    which: DoubtfulRuns,
}

impl Doubtful {
    /// Finds out which runs they are; they are counted on the way.
    pub(super) fn read(case: &Case<'_>) -> Result<Doubtful, StoreError> {
        Ok(Doubtful {
            which: case.doubtful_runs()?,
            ..Doubtful::default()
        })
    }

    /// Whether a run is one of them. [`DoubtfulRuns::COLUMNS`] must be among the columns.
    pub fn is(&self, runs: &CpuRunsView<'_>, row: usize) -> bool {
        self.which.is(runs, row)
    }

    /// Counts a run that is one of them.
    pub(super) fn count(&mut self, cpu_ns: i64) {
        self.runs += 1;
        self.cpu_ns = self.cpu_ns.saturating_add(cpu_ns);
    }

    /// What a run of a thread must be not to be one of them, in SQL.
    pub fn is_believed(&self) -> String {
        match self.runs {
            0 => "thread_id <> 0".to_owned(),
            _ => format!("thread_id <> 0 AND NOT ({})", self.which.condition()),
        }
    }

    /// The finding, with what is doubtful of its sums of CPU time.
    pub(crate) fn doubted(&self, finding: Finding) -> Finding {
        if self.runs == 0 {
            return match self.which.is_unchecked {
                true => finding.doubt(
                    "Something is lost or broken, and no samples tell which runs of threads lasted \
                     over a gap: sums of CPU time may be too large, or too small",
                ),
                false => finding,
            };
        }
        let query = format!(
            "SELECT count(*) AS runs, sum(cpu_ns) AS cpu_ns FROM cpu_runs WHERE {}",
            self.which.condition()
        );
        let columns = [
            Column::new("runs", "runs", Unit::Count),
            Column::new("cpu_ns", "CPU time", Unit::Duration),
        ];
        let evidence = Evidence::new("Runs within which switches are missing", query, &columns)
            .row([Some(self.runs.into()), Some(self.cpu_ns.into())]);
        let lasted = duration(self.cpu_ns);
        let left_out = match self.runs {
            1 => format!("A run of {lasted} is left out: switches within it are missing"),
            many => format!(
                "{} runs of {lasted} in all are left out: switches within them are missing",
                grouped(many)
            ),
        };
        finding.with(evidence).doubt(format!(
            "{left_out}, so that who had the CPUs meanwhile is not known; tables have them as they are recorded, and so \
             have graphs of `laglab open` whose filter “without doubtful runs” is taken away"
        ))
    }
}
