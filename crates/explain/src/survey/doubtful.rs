//! Doubtful runs. Context switches within these runs are missing.

use selection::{Condition, Expression, Selection};
use tables::{CpuRunsView, DoubtfulRuns, StoreError, Table};

use crate::{Evidence, Finding, Reader, Unit, duration, grouped};

/// Doubtful runs of a trace and their sums. The sums of CPU time by CPU, by process and by rank do not include these
/// runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubtful {
    /// Number of doubtful runs.
    pub runs: u64,
    /// Total length of the doubtful runs, in nanoseconds.
    pub cpu_ns: i64,
    /// The doubtful runs themselves.
    which: DoubtfulRuns,
}

impl Doubtful {
    /// Finds the doubtful runs. [`Doubtful::count`] adds them to the sums later.
    pub(super) fn read(reader: &Reader<'_>) -> Result<Doubtful, StoreError> {
        Ok(Doubtful {
            which: reader.doubtful_runs()?,
            ..Doubtful::default()
        })
    }

    /// Returns true if a run is doubtful. The columns must include [`DoubtfulRuns::COLUMNS`].
    pub fn is(&self, runs: &CpuRunsView<'_>, row: usize) -> bool {
        self.which.is(runs, row)
    }

    /// Counts a doubtful run of length `cpu_ns`.
    pub(super) fn count(&mut self, cpu_ns: i64) {
        self.runs += 1;
        self.cpu_ns = self.cpu_ns.saturating_add(cpu_ns);
    }

    /// Returns a condition on rows of `cpu_runs`. It selects the runs of threads, except doubtful runs and the runs of
    /// idle threads.
    pub fn believed(&self) -> Condition {
        let is_of_thread = Condition::is_not("thread_id", 0);
        match self.runs {
            0 => is_of_thread,
            _ => Condition::All(vec![
                is_of_thread,
                Condition::IsDoubtful(self.which.clone()).negated(),
            ]),
        }
    }

    /// Returns a condition on rows of `cpu_runs`. It selects the runs of idle threads, except doubtful runs.
    pub(crate) fn idle(&self) -> Condition {
        let is_idle = Condition::is("thread_id", 0);
        match self.runs {
            0 => is_idle,
            _ => Condition::All(vec![
                is_idle,
                Condition::IsDoubtful(self.which.clone()).negated(),
            ]),
        }
    }

    /// Adds a doubt about sums of CPU time, if runs are doubtful or could not be checked.
    pub(crate) fn doubted(&self, finding: Finding) -> Finding {
        if self.runs == 0 {
            return if self.which.is_unchecked {
                finding.doubt(
                    "Events are lost or damaged, and the trace has no CPU samples that show which \
                     runs contain a gap: sums of CPU time may be too large or too small",
                )
            } else {
                finding
            };
        }
        let selection =
            Selection::new(Table::CpuRuns).filter(Condition::IsDoubtful(self.which.clone()));
        let evidence = Evidence::from_selection("Runs with missing switches", selection)
            .column("runs", "runs", Unit::Count, Expression::Count)
            .column(
                "cpu_ns",
                "CPU time",
                Unit::Duration,
                Expression::Sum("cpu_ns"),
            )
            .row([Some(self.runs.into()), Some(self.cpu_ns.into())]);
        let lasted = duration(self.cpu_ns);
        let left_out = match self.runs {
            1 => format!("A run of {lasted} is not counted: switches within it are missing"),
            many => format!(
                "{} runs of {lasted} in total are not counted: switches within them are missing",
                grouped(many)
            ),
        };
        finding.with(evidence).doubt(format!(
            "{left_out}, so it is unknown which threads ran. Tables contain such runs as \
             recorded. Graphs of `laglab open` also contain them if the filter “without doubtful \
             runs” is off"
        ))
    }
}
