//! Numbers for the pictures of a comparison. The page of `laglab open` and the report of `laglab prove diff`
//! draw the pictures.

use std::sync::atomic::AtomicBool;

use explore::{Condition, ExploreError, Explorer};
use serde::Serialize;
use ts_rs::TS;
use wording::Sentence;

use crate::picture_flame::{ComparedFlame, flames};
use crate::picture_histogram::{BackToBack, histograms};
use crate::picture_rows::{ComparedRows, kind_title, tables};
use crate::picture_strips::{Strips, strips};
use crate::picture_waits::{Waits, waits};
use crate::{Diff, Finding, Kind, OtherDifferences, Recording, Side};

/// One of the compared traces.
#[derive(Clone, Copy)]
pub struct Source<'s> {
    /// Name of the trace, as shown to the user.
    pub name: &'s str,
    /// Explorer, which answers requests about the trace.
    pub explorer: &'s Explorer,
    /// Sums of the trace.
    pub recording: &'s Recording,
}

/// Comparison of two sides with its pictures.
#[derive(Clone, Debug, Serialize, TS)]
pub struct Comparison {
    /// Side before the change.
    pub before: ComparedSide,
    /// Side after the change.
    pub after: ComparedSide,
    /// Answer of the comparison in one sentence.
    #[ts(as = "String")]
    pub answer: Sentence,
    /// Findings, the most important first.
    pub findings: Vec<ComparedFinding>,
    /// Doubts about all findings.
    #[ts(as = "Vec<String>")]
    pub doubts: Vec<Sentence>,
    /// Differences between the machines and between the recordings, in addition to the measured differences.
    pub besides: Vec<BesidesRow>,
    /// Tables of rows, one for each kind and unit. The table with the most important change is first.
    pub tables: Vec<ComparedRows>,
    /// Differential flame graphs of the stacks of both sides, one for each kind of code.
    pub flames: Vec<ComparedFlame>,
    /// Distributions of durations on both sides.
    pub histograms: Vec<BackToBack>,
    /// Use of each CPU over time, one for each kind of work.
    pub strips: Vec<Strips>,
    /// Waits of programs for each other; `None` if a trace did not record them.
    pub waits: Option<Waits>,
}

/// Traces of one side.
#[derive(Clone, Debug, Serialize, TS)]
pub struct ComparedSide {
    /// Names of the traces.
    pub names: Vec<String>,
    /// True if a trace comes from a model of Windows instead of a machine.
    pub simulated: bool,
    /// Length of all recordings together, in seconds.
    pub seconds: f64,
    /// Number of lost events in all recordings of the side.
    pub lost_events: u64,
}

/// Finding about both sides, without its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, TS)]
pub struct ComparedFinding {
    /// Sentence that states the change.
    #[ts(as = "String")]
    pub sentence: Sentence,
    /// Sentences that give the cause, the most important first.
    #[ts(as = "Vec<String>")]
    pub why: Vec<Sentence>,
    /// Uncertainties of the finding.
    pub doubts: Vec<String>,
}

/// A fact, driver or kind of events that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, TS)]
pub struct BesidesRow {
    /// Name of the fact, driver or kind of events.
    pub name: String,
    /// Value before the change.
    pub before: String,
    /// Value after the change.
    pub after: String,
}

impl Comparison {
    /// Creates the comparison of two sides from their differences, and makes its pictures. Each side must have at least
    /// one trace.
    ///
    /// # Errors
    /// Returns an error if a table cannot be made or read, or if the work is cancelled.
    pub fn new(
        diff: &Diff,
        before: &[Source<'_>],
        after: &[Source<'_>],
        cancel: &AtomicBool,
    ) -> Result<Comparison, ExploreError> {
        let sides = [before, after];
        Ok(Comparison {
            before: ComparedSide::new(before, &diff.before),
            after: ComparedSide::new(after, &diff.after),
            answer: diff.answer(),
            findings: diff.findings.iter().map(ComparedFinding::new).collect(),
            doubts: diff.doubts(),
            besides: besides(&diff.besides),
            tables: tables(diff),
            flames: flames(sides, cancel)?,
            histograms: histograms(sides, cancel)?,
            strips: strips(sides, cancel)?,
            waits: waits(sides),
        })
    }
}

impl ComparedFinding {
    fn new(finding: &Finding) -> ComparedFinding {
        ComparedFinding {
            sentence: finding.sentence.clone(),
            why: finding.why.clone(),
            doubts: finding.doubts.clone(),
        }
    }
}

impl ComparedSide {
    fn new(sources: &[Source<'_>], side: &Side) -> ComparedSide {
        ComparedSide {
            names: sources
                .iter()
                .map(|source| source.name.to_owned())
                .collect(),
            simulated: sources
                .iter()
                .any(|source| source.recording.info.is_simulated()),
            seconds: side.seconds,
            lost_events: side.lost_events,
        }
    }
}

fn besides(besides: &OtherDifferences) -> Vec<BesidesRow> {
    let text = |value: &Option<String>, absent: &str| {
        let value = value.as_deref();
        value.unwrap_or(absent).to_owned()
    };
    let facts = besides.facts.iter().map(|fact| BesidesRow {
        name: fact.fact.to_owned(),
        before: text(&fact.before, "unknown"),
        after: text(&fact.after, "unknown"),
    });
    let drivers = besides.drivers.iter().map(|driver| BesidesRow {
        name: driver.name.clone(),
        before: text(&driver.before, "not loaded"),
        after: text(&driver.after, "not loaded"),
    });
    let recorded = |kinds: &[Kind], [before, after]: [&str; 2]| -> Vec<BesidesRow> {
        let rows = kinds.iter().map(|kind| BesidesRow {
            name: kind_title(*kind).to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
        });
        rows.collect()
    };
    let (yes, no) = ("recorded", "not recorded, so not compared");
    (facts.chain(drivers))
        .chain(recorded(&besides.recorded_before_only, [yes, no]))
        .chain(recorded(&besides.recorded_after_only, [no, yes]))
        .collect()
}

/// Returns true if all traces recorded a kind of rows.
pub(crate) fn is_recorded(sides: [&[Source<'_>]; 2], kind: Kind) -> bool {
    let mut all = sides.into_iter().flatten();
    all.all(|source| source.recording.recorded.contains(&kind))
}

/// Returns conditions on runs that exclude idle threads and doubtful runs.
pub(crate) fn of_runs() -> Vec<Condition> {
    vec![not_idle(), has("doubtful", "true", false)]
}

/// Returns the condition that excludes idle threads.
pub(crate) fn not_idle() -> Condition {
    Condition {
        column: "thread_id".to_owned(),
        not_in: Some(vec![Some(0)]),
        ..Condition::default()
    }
}

/// Returns a condition on the labels of a column. If `wanted` is true, it selects the rows with the label
/// `label`. Otherwise, it selects all other rows.
pub(crate) fn has(column: &str, label: &str, wanted: bool) -> Condition {
    let labels = Some(vec![label.to_owned()]);
    let (is, is_not) = if wanted {
        (labels, None)
    } else {
        (None, labels)
    };
    Condition {
        column: column.to_owned(),
        is,
        is_not,
        ..Condition::default()
    }
}

/// Returns the condition that selects DPCs in the table `interrupts`.
pub(crate) fn is_dpc() -> Condition {
    let isrs = ["isr", "msi", "passive_isr"].map(str::to_owned);
    Condition {
        column: "kind".to_owned(),
        is_not: Some(isrs.into()),
        ..Condition::default()
    }
}
