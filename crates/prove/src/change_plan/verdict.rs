//! Verdict about the changes of a plan.

use std::fmt;

use imports::SampleConditions;
use serde::Serialize;
use statistics::multiple;
use wording::counted;

use super::{MeasurePlan, measurements, recordings};
use crate::Error;
use crate::measured::MeasuredFile;

/// Measurements and traces before and after a change.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Side before the change.
    pub before: Side,
    /// Side after the change.
    pub after: Side,
}

/// Measurements and traces of one side.
#[derive(Debug, Default)]
pub struct Side {
    /// Files that `laglab measure` wrote on this side.
    pub measured: Vec<MeasuredFile>,
    /// Traces that were recorded on this side, without copies. [`Side::add_recording`] leaves copies out.
    pub recordings: Vec<diff::Recording>,
    /// Number of traces that were left out because they are copies of other traces of this side.
    pub copies: usize,
    /// Registry values or other locations of planned changes, as found in exports of this side's settings.
    pub places: Vec<PlaceCheck>,
}

impl Side {
    /// Adds a trace. A copy of a known trace is not added but counted, because it is no second observation.
    pub fn add_recording(&mut self, recording: diff::Recording) {
        let mut known = self.recordings.iter();
        if known.any(|known| known.overlaps(&recording)) {
            self.copies += 1
        } else {
            self.recordings.push(recording)
        }
    }
}

/// Returns the sentence about copies that are left out. `what` is the word for one copy, such as “trace”.
pub(super) fn copies_text(copies: u64, what: &str) -> String {
    let are = counted(
        copies,
        &format!("{what} is a copy"),
        &format!("{what}s are copies"),
    );
    format!("{are} of another {what} and left out: a copy is no second observation")
}

/// Location of a planned change, as found in an export of the settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlaceCheck {
    /// Location of the setting.
    pub place: String,
    /// True if the location has the value that the plan states for this side.
    pub as_planned: bool,
}

/// Answer to the question whether the change helped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Some times are shorter by more than the margin, and none is longer by more than the margin.
    Helped,
    /// Some times are longer by more than the margin, and none is shorter by more than the margin.
    Harmed,
    /// No time differs by more than the margin.
    NoDifference,
    /// The measurements and traces do not give an answer.
    Unknown,
}

/// Verdict about the changes of a plan.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Answer to the question whether the changes helped.
    pub answer: Answer,
    /// Reason for an unknown answer, if no check states the reason. For example, the answers of the checks contradict
    /// each other. `None` if the answer is known, or if the unknown answer of a check is the reason.
    pub why: Option<String>,
    /// Checks of the planned measurements and recordings.
    pub checks: Vec<Check>,
    /// Reasons to doubt the verdict, one sentence each.
    pub doubts: Vec<String>,
    /// Steps that may turn an unknown answer into a known one, one sentence each.
    pub settle: Vec<String>,
}

/// Result of one measurement or recording of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Name of the compared times.
    pub name: String,
    /// Ids of the settings whose effect the compared times show.
    pub settings: Vec<String>,
    /// Answer of this check alone.
    pub answer: Answer,
    /// Result as a sentence. If there is no result, the reason for this.
    pub result: String,
    /// Probability that chance alone makes such a difference, corrected for the number of checks (Holm).
    /// `None` if the sides were not compared.
    pub adjusted_p: Option<f64>,
    /// Reasons to doubt the result, one sentence each.
    pub doubts: Vec<String>,
    /// Step that may turn an unknown answer into a known one.
    pub settle: Option<String>,
}

/// Maximum probability of a wrong verdict.
const ALPHA: f64 = 0.05;

/// Compares both sides and returns the verdict. If a side does not match the plan, the answer is unknown.
///
/// # Errors
/// Returns an error if a file of a measurement cannot be read.
pub fn verdict(plan: &MeasurePlan, evidence: &Evidence) -> Result<Verdict, Error> {
    let measured = plan.measurements.iter();
    let measured = measured.map(|measurement| measurements::check(plan, measurement, evidence));
    let recorded = plan.recordings.iter();
    let recorded = recorded.map(|recording| recordings::check(plan, recording, evidence));
    let mut checks = measured.collect::<Result<Vec<Check>, Error>>()?;
    checks.extend(recorded);
    correct(&mut checks);
    let mut doubts: Vec<String> = (plan.not_shown.iter())
        .map(|setting| {
            format!(
                "The effect of {} is not compared. {}",
                setting.setting, setting.why
            )
        })
        .collect();
    let unchanged = unchanged(evidence);
    if unchanged.is_none() && evidence.after.places.is_empty() {
        doubts.push(
            "Nothing here shows that the settings were changed between both sides: run check.ps1, or put exports \
             of the registry keys (.reg) into the folders before and after"
                .to_owned(),
        );
    }
    let (answer, why) = match &unchanged {
        Some(why) => (Answer::Unknown, Some(why.clone())),
        None => conclude(&checks),
    };
    let mut settle: Vec<String> = Vec::new();
    if answer == Answer::Unknown {
        if unchanged.is_some() {
            let step = "Apply the plan (or undo it), and measure that side again";
            settle.push(step.to_owned());
        }
        settle.extend(checks.iter().filter_map(|check| check.settle.clone()));
    }
    Ok(Verdict {
        answer,
        why,
        checks,
        doubts,
        settle,
    })
}

/// Returns a sentence about a location that does not have the planned value. Returns `None` if all locations
/// have their planned values.
fn unchanged(evidence: &Evidence) -> Option<String> {
    let wrong = |side: &Side, when: &str| {
        let mut places = side.places.iter();
        let wrong = places.find(|seen| !seen.as_planned)?;
        Some(format!(
            "{} does not have the planned value {when} the change",
            wrong.place
        ))
    };
    wrong(&evidence.before, "before").or_else(|| wrong(&evidence.after, "after"))
}

/// Corrects the probabilities for the number of checks. The answer of a check becomes unknown if chance can explain its
/// difference after the correction.
fn correct(checks: &mut [Check]) {
    let mut compared: Vec<&mut Check> = (checks.iter_mut())
        .filter(|check| check.adjusted_p.is_some())
        .collect();
    let all: Vec<f64> = compared.iter().filter_map(|it| it.adjusted_p).collect();
    for (check, p) in compared.iter_mut().zip(multiple::holm(&all)) {
        check.adjusted_p = Some(p);
        if p > ALPHA && matches!(check.answer, Answer::Helped | Answer::Harmed) {
            check.answer = Answer::Unknown;
            let step = format!(
                "Measure more runs than for {}, or compare fewer measurements",
                check.name
            );
            check.settle.get_or_insert(step);
        }
    }
}

/// Combines the answers of the checks. Also returns a reason if there are no checks, or if the answers of the
/// checks contradict each other.
fn conclude(checks: &[Check]) -> (Answer, Option<String>) {
    let has = |answer| checks.iter().any(|check| check.answer == answer);
    match (
        has(Answer::Helped),
        has(Answer::Harmed),
        has(Answer::Unknown),
    ) {
        _ if checks.is_empty() => {
            let why = "No measurement or trace is known to show the effect of the changes";
            (Answer::Unknown, Some(why.to_owned()))
        }
        (true, true, _) => {
            let why = "Some times are shorter and others longer: decide which of them matter, and remove the \
                       others from measure.toml";
            (Answer::Unknown, Some(why.to_owned()))
        }
        (_, true, _) => (Answer::Harmed, None),
        (_, _, true) => (Answer::Unknown, None),
        (true, ..) => (Answer::Helped, None),
        _ => (Answer::NoDifference, None),
    }
}

/// Reason why two sides cannot be compared as planned, and the step that makes it possible.
pub(super) struct Mismatch {
    pub(super) what: String,
    pub(super) settle: String,
}

impl Check {
    /// Returns a check whose answer is unknown, because the evidence does not match the plan.
    pub(super) fn mismatched(name: String, settings: Vec<String>, mismatch: Mismatch) -> Check {
        Check {
            name,
            settings,
            answer: Answer::Unknown,
            result: mismatch.what,
            adjusted_p: None,
            doubts: Vec::new(),
            settle: Some(mismatch.settle),
        }
    }
}

/// Checks that all files of both sides are from the same machine. Returns doubts.
///
/// # Errors
/// Returns an error if the files are from different machines, or if the plan is for another machine.
pub(super) fn same_machine(
    plan: &MeasurePlan,
    before: &[Option<&SampleConditions>],
    after: &[Option<&SampleConditions>],
) -> Result<Vec<String>, String> {
    let mut doubts = Vec::new();
    let all: Vec<&SampleConditions> = before.iter().chain(after).copied().flatten().collect();
    if all.len() < before.len() + after.len() {
        let doubt = "A file does not state on which machine it was measured";
        doubts.push(doubt.to_owned());
    }
    let computers = all.iter().map(|it| it.computer.as_deref());
    one_computer(plan.computer.as_deref(), computers)?;
    let differ = |condition: &dyn Fn(&SampleConditions) -> Option<String>| {
        let mut known = all.iter().filter_map(|it| condition(it));
        let first = known.next()?;
        let other = known.find(|other| *other != first)?;
        Some((first, other))
    };
    let cpus = |it: &SampleConditions| it.cpus.map(|cpus| format!("{cpus} CPUs"));
    let cpu = |it: &SampleConditions| it.cpu.clone();
    if let Some((one, other)) = differ(&cpu).or_else(|| differ(&cpus)) {
        return Err(format!(
            "The sides were measured on different machines: {one} and {other}"
        ));
    }
    if let Some((one, other)) = differ(&|it| it.system.clone()) {
        doubts.push(format!("The system changed, too: {one} and {other}"));
    }
    Ok(doubts)
}

/// Returns an error if two known names of computers differ. Upper and lower case are not distinguished.
pub(super) fn one_computer<'n>(
    planned: Option<&'n str>,
    names: impl Iterator<Item = Option<&'n str>>,
) -> Result<(), String> {
    let mut known = planned.into_iter().chain(names.flatten());
    let Some(first) = known.next() else {
        return Ok(());
    };
    match known.find(|other| !other.eq_ignore_ascii_case(first)) {
        None => Ok(()),
        Some(other) => Err(format!(
            "The plan and its files are of different machines: {first} and {other}"
        )),
    }
}

impl Answer {
    /// Returns true if the change helped.
    pub fn is_yes(self) -> bool {
        self == Answer::Helped
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Answer::Helped => "helped",
            Answer::Harmed => "harmed",
            Answer::NoDifference => "no difference that matters",
            Answer::Unknown => "unknown",
        })
    }
}
