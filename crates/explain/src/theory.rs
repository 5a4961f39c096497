//! Theories and their answers.

use tables::{StoreError, Table};

use crate::{Case, Evidence, Finding, Source};

/// Question about a trace, with the code that answers it.
pub trait Theory: Sync {
    /// Returns the description of the theory, with its question and the tables that it needs.
    fn about(&self) -> &'static About;

    /// Returns true if the theory searches only in the scope. All its findings are then in scope.
    fn is_scoped(&self) -> bool {
        false
    }

    /// Returns true if the question applies to the traced system: Linux if `is_linux` is true, otherwise Windows.
    fn is_asked_of(&self, is_linux: bool) -> bool {
        !is_linux
    }

    /// Returns the delays that the theory finds, if they are a main kind of delays. An explanation names those that the
    /// trace cannot show.
    fn main_delays(&self) -> Option<&'static str> {
        None
    }

    /// Returns true if the findings depend on exact times and on complete events. Damage of the trace can look like such
    /// a finding.
    fn needs_exact_times(&self) -> bool {
        false
    }

    /// Returns true if the findings are about the recording, not about the machine.
    fn is_about_recording(&self) -> bool {
        false
    }

    /// Answers the question for a trace.
    ///
    /// # Errors
    /// Returns an error if a table cannot be read, or the user cancelled.
    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError>;
}

/// Two theories whose findings may be about the same delay. The delay is then reported once, by the second theory.
pub(crate) struct Overlap {
    /// Theory of the finding whose severity is lowered.
    pub(crate) covered: &'static dyn Theory,
    /// Theory of the finding that reports the delay.
    pub(crate) covering: &'static dyn Theory,
    pub(crate) relation: Relation,
}

/// Relation of a finding to another one that reports the same delay.
#[derive(Clone, Copy)]
pub(crate) enum Relation {
    /// The other finding is the cause of this one.
    Symptom(StopTarget),
    /// The other finding says what users notice, and contains the same cause.
    Part,
}

/// Things that a cause stops. A symptom of the cause is about one of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopTarget {
    /// Threads and CPUs.
    Threads,
    /// CPUs. A thread may wait for a stopped CPU and hang for another reason, so a common thread is not enough.
    Cpus,
    /// All threads of a process.
    Process,
}

/// Description of a theory. [`record::needs`] lists the events that the theory needs. `laglab record` prepares
/// recordings from this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Id of the theory in lower case, with words joined by hyphens.
    pub id: &'static str,
    /// Name of the cause in lists, such as "higher priority".
    pub name: &'static str,
    /// Question of the theory.
    pub question: &'static str,
    /// Tables that the theory reads, in addition to processes, threads and images.
    pub tables: &'static [Table],
    /// Published sources of the facts that the theory uses.
    pub sources: &'static [Source],
}

/// Answer to the question of a theory.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The answer is yes, with findings. A finding does not always have a delay.
    For(Vec<Finding>),
    /// The answer is no, with the reason, and with findings whose severity is information.
    Noted(String, Vec<Finding>),
    /// The answer is no, with the reason and the numbers.
    Against(String, Vec<Evidence>),
    /// The trace lacks data for an answer. The text names the missing data.
    NotRecorded(String),
    /// The trace lacks data for an answer. The text names the missing data, and the evidence gives
    /// a hint from related data.
    Hint(String, Vec<Evidence>),
}
