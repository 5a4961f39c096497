//! Changes of the rows between the side before the change and the side after it, and conclusions about the role of
//! chance.

use serde::Serialize;
use statistics::Interval;
use statistics::welch::Neighbours;

use crate::compare::{LEAST_SHARE, Matching, conclude};
use crate::sums::Key;
use crate::{Finding, Kind, OtherDifferences, Parts, Recording, Sum, Tree, Work, finding};

/// Differences between two recordings, or between the recordings of two sides.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    /// Side before the change.
    pub before: Side,
    /// Side after the change.
    pub after: Side,
    /// Unit of evidence: a block of time or a recording.
    pub unit: Unit,
    /// Differences between the machines and between the recordings. Only the first recording of each side is
    /// examined.
    pub besides: OtherDifferences,
    /// True if two of the recordings are of the same trace, and their compared times overlap.
    pub has_copies: bool,
    /// Compared rows, with times per second, sorted by descending importance. The rows that changed are first.
    pub per_second: Vec<Change>,
    /// Compared rows, with times per unit of work. `None` if a recording has no such work.
    pub per_work: Option<PerWork>,
    /// Findings, the most important first.
    pub findings: Vec<Finding>,
    /// For each kind, the share of time in rows that have no counterpart on the other side.
    pub unmatched: Vec<UnmatchedShare>,
    /// Sampled call stacks of both sides.
    #[serde(skip)]
    pub stacks: Tree,
}

/// Compared rows, with times per unit of work.
#[derive(Clone, Debug, Serialize)]
pub struct PerWork {
    /// Unit of work.
    pub work: Work,
    /// True if the user requested this unit of work.
    pub is_asked: bool,
    /// Units per second before the change.
    pub before: f64,
    /// Units per second after the change.
    pub after: f64,
    /// Compared rows, sorted like [`Diff::per_second`]. If the user requested no unit of work, only rows of DPCs and
    /// ISRs that depend on the network traffic are compared, per KiB of this traffic.
    pub changes: Vec<Change>,
}

impl PerWork {
    /// Returns true if the amount of work per second differs by more than 5 %.
    pub fn differs(&self) -> bool {
        !(0.95..=1.05).contains(&(self.after / self.before))
    }
}

/// Share of time in rows that have no counterpart on the other side, for one kind of rows. A row has no counterpart in
/// four cases: its name is unknown, only one side has its name, only some recordings have symbols for its module, or
/// there are too many rows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UnmatchedShare {
    /// Kind of the rows.
    pub kind: Kind,
    /// Share before the change, from 0 to 1.
    pub before: f64,
    /// Share after the change, from 0 to 1.
    pub after: f64,
}

/// Facts about one side.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Number of recordings.
    pub recordings: usize,
    /// Length of all recordings together, in seconds.
    pub seconds: f64,
    /// Number of units of evidence: blocks of time or recordings.
    pub units: usize,
    /// Number of lost events in all recordings.
    pub lost_events: u64,
    /// Number of recordings with unreadable or missing parts.
    pub damaged: usize,
}

/// Unit of evidence. Each unit gives one value to the statistical test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Block of time within a recording. Blocks are used if each side has only one recording. They show whether these
    /// two recordings differ.
    Block,
    /// Recording. Recordings show if the two sides differ more than the recordings of one side differ from each other.
    Recording,
}

impl Unit {
    /// Minimum number of units on each side that a conclusion needs.
    pub fn min_count(self) -> usize {
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

/// Compared row, with its times on both sides.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Kind of the row.
    pub kind: Kind,
    /// Name of the row.
    pub name: String,
    /// Source of the row: the data that its kind and name do not contain.
    #[serde(skip)]
    pub(crate) key: Key,
    /// Count and time per unit before the change.
    pub before: Sum,
    /// Count and time per unit after the change.
    pub after: Sum,
    /// Change of the time per unit in nanoseconds, with its 95 % confidence interval. `None` if there are too
    /// few units of evidence.
    pub change: Option<Interval>,
    /// Parts of the change of the time per unit: the part of the count, and the part of the mean time.
    pub parts: Parts,
    /// Probability that chance alone makes such a change of the time. `None` if there are too few units of evidence.
    pub p: Option<f64>,
    /// `p`, corrected for the number of rows (Benjamini and Hochberg).
    pub adjusted_p: Option<f64>,
    /// Minimum change of the time per unit that matters, in nanoseconds.
    pub matters_ns: f64,
    /// Change of the mean time of one event in nanoseconds, with its 95 % confidence interval. `None` for samples and
    /// for sums by CPU, and if there are too few events or units of evidence.
    pub mean_change: Option<Interval>,
    /// Probability that chance alone makes such a change of the mean time. `None` if `mean_change` is `None`.
    pub mean_p: Option<f64>,
    /// `mean_p`, corrected in the same way as `adjusted_p`.
    pub adjusted_mean_p: Option<f64>,
    /// Conclusion about the row.
    pub conclusion: Conclusion,
    /// True if the row is sampled code that was exchanged: the time of other sampled code has a large change in the
    /// opposite direction. The net change is in a row that is not sampled, for example the DPCs that ran the code.
    #[serde(skip)]
    pub(crate) is_exchanged: bool,
}

/// Conclusion about a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// The sides differ in the time of this row.
    Differs,
    /// The mean time of one event differs. The total time is about the same, or chance may explain its change.
    MeanDiffers,
    /// The change is too small to matter, and so is its whole confidence interval.
    TooSmall,
    /// Chance may explain the change.
    Chance,
    /// The change is too small to matter, but its confidence interval contains a change that matters.
    MayMatter,
    /// There are too few blocks or recordings for a conclusion.
    TooFew,
    /// The row does not depend on the work: the work changed, but the time per second stayed the same. Only rows per
    /// unit of work have this conclusion.
    Unrelated,
}

impl Conclusion {
    /// Returns the conclusion in words, for a table.
    pub fn in_words(self) -> &'static str {
        match self {
            Conclusion::Differs => "differs",
            Conclusion::MeanDiffers => "mean differs",
            Conclusion::TooSmall => "too small to matter",
            Conclusion::Chance => "perhaps chance",
            Conclusion::MayMatter => "may matter",
            Conclusion::TooFew => "unknown",
            Conclusion::Unrelated => "does not depend on the work",
        }
    }
}

impl Change {
    /// Returns the change of the time per unit, in nanoseconds.
    pub fn ns(&self) -> f64 {
        self.after.ns - self.before.ns
    }

    /// Returns true if the change of the row may matter: its confidence interval contains a change that matters, or it
    /// has no confidence interval.
    pub fn may_matter(&self) -> bool {
        self.change.is_none_or(|change| {
            let matters = |ns: f64| ns.abs() >= self.matters_ns;
            matters(change.low) || matters(change.high)
        })
    }

    /// Returns true if the change of the mean time may matter: its confidence interval contains a change that matters,
    /// and its part of the change of the time matters. The sum of the times may still be the same, because there are
    /// fewer events.
    pub fn mean_may_matter(&self) -> bool {
        let means = self.before.mean_ns().zip(self.after.mean_ns());
        let Some((change, (before, after))) = self.mean_change.zip(means) else {
            return false;
        };
        change.low.abs().max(change.high.abs()) >= LEAST_SHARE * before.max(after)
            && self.parts.mean_ns.abs() >= self.matters_ns
    }

    /// Returns true if the change is surely small: its whole confidence interval is below `share` of the longer time.
    /// Returns false if there is no interval.
    pub(crate) fn is_within(&self, share: f64) -> bool {
        let most_ns = share * self.before.ns.max(self.after.ns);
        let is_near = |ns: f64| ns.abs() < most_ns;
        self.change
            .is_some_and(|change| is_near(change.low) && is_near(change.high))
    }
}

/// Compares the recordings of two sides. Each side must have at least one recording. If each side has exactly
/// one recording, the blocks of time are the units of evidence. Otherwise, the recordings are the units of
/// evidence.
///
/// If `asked` is given, all rows are also compared per this unit of work. Otherwise, only DPCs and ISRs that
/// depend on the network traffic are compared per unit of work, which is then a KiB of this traffic.
pub fn diff(before: &[Recording], after: &[Recording], asked: Option<&Work>) -> Diff {
    let unit = match (before, after) {
        ([_], [_]) => Unit::Block,
        _ => Unit::Recording,
    };
    let side = |recordings: &[Recording]| Side {
        recordings: recordings.len(),
        seconds: recordings.iter().map(|it| it.seconds).sum(),
        units: match unit {
            Unit::Block => recordings.iter().map(|it| it.blocks.count).sum(),
            Unit::Recording => recordings.len(),
        },
        lost_events: recordings.iter().map(|it| it.info.damage.events_lost).sum(),
        damaged: recordings
            .iter()
            .filter(|it| it.info.damage.has_gaps())
            .count(),
    };
    let matching = Matching::new([before, after], unit);
    let per_second = matching.per_second();
    let mut diff = Diff {
        before: side(before),
        after: side(after),
        unit,
        besides: match (before, after) {
            ([before, ..], [after, ..]) => OtherDifferences::new(before, after),
            _ => OtherDifferences::default(),
        },
        has_copies: has_copies(before.iter().chain(after)),
        per_work: matching.per_work(asked, &per_second),
        per_second,
        findings: Vec::new(),
        unmatched: matching.unmatched(),
        stacks: Tree::new(before, after),
    };
    diff.findings = finding::findings(&diff, [before, after]);
    diff
}

/// Draws the conclusions about some rows of a [`Diff`], as if no other rows were compared: the probabilities are corrected
/// for the number of these rows only. Sorts the rows by descending importance.
pub fn conclude_alone(rows: &mut [Change]) {
    for row in rows.iter_mut() {
        (row.adjusted_p, row.adjusted_mean_p) = (row.p, row.mean_p);
    }
    conclude(rows);
}

/// Returns true if two recordings are of the same trace, and their compared times overlap.
fn has_copies<'r>(all: impl Iterator<Item = &'r Recording> + Clone) -> bool {
    let mut rest = all;
    while let Some(one) = rest.next() {
        if rest.clone().any(|other| one.overlaps(other)) {
            return true;
        }
    }
    false
}
