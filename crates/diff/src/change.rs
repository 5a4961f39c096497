//! Changes from one side to the other, and whether chance explains them.

use serde::Serialize;
use statistics::Interval;
use statistics::welch::Neighbours;

use crate::compare::Matching;
use crate::sums::Key;
use crate::{Besides, Finding, Kind, Parts, Recording, Sum, Tree, Work, finding};

/// Differences between two recordings, or between the recordings of two sides.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    /// Side before the change.
    pub before: Side,
    /// Side after the change.
    pub after: Side,
    /// Unit of evidence.
    pub unit: Unit,
    /// Differences of the machines and the recordings, of the first recording of each side.
    pub besides: Besides,
    /// Compared rows, per second: those that changed first, the greatest change first.
    pub per_second: Vec<Change>,
    /// Compared rows per unit of work; `None` if a recording has no such work.
    pub per_work: Option<PerWork>,
    /// Findings, the most important first.
    pub findings: Vec<Finding>,
    /// Shares of time whose rows have no counterpart.
    pub unmatched: Vec<Unmatched>,
    /// Sampled call stacks of both sides.
    #[serde(skip)]
    pub stacks: Tree,
}

/// Rows per unit of work.
#[derive(Clone, Debug, Serialize)]
pub struct PerWork {
    /// Unit of work.
    pub work: Work,
    /// True if the work was asked for.
    pub is_asked: bool,
    /// Units per second before the change.
    pub before: f64,
    /// Units per second after the change.
    pub after: f64,
    /// Compared rows, in the order of [`Diff::per_second`]. Without a question, these are DPCs and ISRs per KiB
    /// of network traffic.
    pub changes: Vec<Change>,
}

impl PerWork {
    /// Returns true if the work differs by more than 5 %.
    pub fn differs(&self) -> bool {
        !(0.95..=1.05).contains(&(self.after / self.before))
    }
}

/// Share of the time of a kind whose rows have no counterpart on the other side: their names are unknown or
/// only on one side, or there are too many rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Unmatched {
    /// Kind of the rows.
    pub kind: Kind,
    /// Share before the change, from 0 to 1.
    pub before: f64,
    /// Share after the change.
    pub after: f64,
}

/// Facts about one side.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Number of recordings.
    pub recordings: usize,
    /// Length of all recordings together, in seconds.
    pub seconds: f64,
    /// Number of units of evidence.
    pub units: usize,
    /// Number of lost events.
    pub lost_events: u64,
}

/// Unit of evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Block of time of the only recording of each side. It tells whether the recordings differ.
    Block,
    /// Recording. It tells whether the sides differ by more than recordings of one side do.
    Recording,
}

impl Unit {
    /// Least number of units of a side for a conclusion.
    pub fn least(self) -> usize {
        match self {
            Unit::Block => 10,
            Unit::Recording => 3,
        }
    }

    pub(crate) fn neighbours(self) -> Neighbours {
        match self {
            Unit::Block => Neighbours::Dependent,
            Unit::Recording => Neighbours::Independent,
        }
    }
}

/// Row of both sides.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Kind of the row.
    pub kind: Kind,
    /// Name of the row.
    pub name: String,
    /// Source of the row.
    #[serde(skip)]
    pub(crate) key: Key,
    /// Count and time per unit before the change.
    pub before: Sum,
    /// Count and time per unit after the change.
    pub after: Sum,
    /// Change of the time per unit in nanoseconds, with its 95 % interval; `None` with too few units of
    /// evidence.
    pub change: Option<Interval>,
    /// Parts of the change per unit.
    pub parts: Parts,
    /// Probability of such a change by chance, corrected for the number of rows (Benjamini and Hochberg).
    pub adjusted_p: Option<f64>,
    /// Smallest change of the time per unit that matters, in nanoseconds.
    pub matters_ns: f64,
    /// Change of the mean time in nanoseconds, with its 95 % interval; `None` for samples, and if too little
    /// happened.
    pub mean_change: Option<Interval>,
    /// Corrected probability of such a change of the mean by chance.
    pub adjusted_mean_p: Option<f64>,
    /// Conclusion.
    pub conclusion: Conclusion,
}

/// Conclusion about a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// The sides differ in the time of this row.
    Differs,
    /// The time is the same, but each takes longer or shorter, and there are fewer or more of them.
    MeanDiffers,
    /// The change is too small to matter.
    TooSmall,
    /// Chance may explain the change.
    Chance,
    /// There are too few blocks or recordings to tell.
    TooFew,
}

impl Change {
    /// Returns the change of the time per unit, in nanoseconds.
    pub fn ns(&self) -> f64 {
        self.after.ns - self.before.ns
    }
}

/// Compares the recordings of two sides, of which each has at least one. With one recording on each side, its
/// blocks of time are the unit of evidence, otherwise the recordings are. `asked` is the unit of work to which
/// all rows are related. Without it, DPCs and ISRs are related to the network traffic.
pub fn diff(before: &[Recording], after: &[Recording], asked: Option<&Work>) -> Diff {
    let unit = match (before, after) {
        ([_], [_]) => Unit::Block,
        _ => Unit::Recording,
    };
    let side = |of: &[Recording]| Side {
        recordings: of.len(),
        seconds: of.iter().map(|it| it.seconds).sum(),
        units: match unit {
            Unit::Block => of.iter().map(|it| it.blocks.count).sum(),
            Unit::Recording => of.len(),
        },
        lost_events: of.iter().map(|it| it.info.damage.events_lost).sum(),
    };
    let matching = Matching::new([before, after], unit);
    let mut diff = Diff {
        before: side(before),
        after: side(after),
        unit,
        besides: match (before, after) {
            ([before, ..], [after, ..]) => Besides::of(before, after),
            _ => Besides::default(),
        },
        per_second: matching.per_second(),
        per_work: matching.per_work(asked),
        findings: Vec::new(),
        unmatched: matching.unmatched(),
        stacks: Tree::of(before, after),
    };
    diff.findings = finding::findings(&diff, [before, after]);
    diff
}
