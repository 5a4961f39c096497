//! Verdict about the changes of a plan.

use std::fmt;

use serde::Serialize;
use statistics::multiple;
use tables::SampleConditions;

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
    /// Files of `laglab measure`.
    pub measured: Vec<MeasuredFile>,
    /// Traces.
    pub recordings: Vec<diff::Recording>,
    /// Places of planned changes in exports of the settings of this side.
    pub places: Vec<PlaceSeen>,
}

/// Place of a planned change in an export of the settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlaceSeen {
    /// The place.
    pub place: String,
    /// True if the place has the value that the plan has for this side.
    pub as_planned: bool,
}

/// Answer to the question whether a change helped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Times are shorter by more than the margin.
    Helped,
    /// Times are longer by more than the margin.
    Harmed,
    /// No time differs by more than the margin.
    NoDifference,
    /// The measurements and traces do not tell.
    Unknown,
}

/// Verdict about the changes of a plan.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Answer.
    pub answer: Answer,
    /// Reason why the answer is unknown although each measurement or recording has one.
    pub why: Option<String>,
    /// Checks of the measurements and recordings that the plan asks for.
    pub checks: Vec<Check>,
    /// Reasons to doubt the verdict, one sentence each.
    pub doubts: Vec<String>,
    /// Steps that would settle an unknown answer, one sentence each.
    pub settle: Vec<String>,
}

/// Result of one measurement or recording of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Compared times.
    pub name: String,
    /// Ids of the settings whose effect it shows.
    pub settings: Vec<String>,
    /// Answer.
    pub answer: Answer,
    /// Result, or the reason why there is none, as a sentence.
    pub result: String,
    /// Probability of such a difference by chance, corrected for the number of checks (Holm); `None` if the sides
    /// were not compared.
    pub adjusted_p: Option<f64>,
    /// Reasons to doubt the result, one sentence each.
    pub doubts: Vec<String>,
    /// Step that would settle an unknown answer.
    pub settle: Option<String>,
}

/// Probability of an error that a verdict allows.
const ALPHA: f64 = 0.05;

/// Compares both sides, if they are what the plan asks for, and concludes.
///
/// # Errors
/// If a file of a measurement cannot be read.
pub fn verdict(plan: &MeasurePlan, evidence: &Evidence) -> Result<Verdict, Error> {
    let measured = plan.measurements.iter();
    let measured = measured.map(|of| measurements::check(plan, of, evidence));
    let recorded = plan.recordings.iter();
    let recorded = recorded.map(|of| recordings::check(plan, of, evidence));
    let mut checks = measured.collect::<Result<Vec<Check>, Error>>()?;
    checks.extend(recorded);
    correct(&mut checks);
    let mut doubts: Vec<String> = (plan.not_shown.iter())
        .map(|of| format!("The effect of {} is not compared. {}", of.setting, of.why))
        .collect();
    let unchanged = unchanged(evidence);
    if unchanged.is_none() && evidence.after.places.is_empty() {
        doubts.push(
            "Nothing here shows that the settings were changed between both sides; check.ps1 does, or exports of \
             the registry keys (.reg) in the folders before and after"
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

/// Returns a sentence about a place that does not have the planned value, if there is one.
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

/// Corrects the probabilities for the number of checks. A difference that several checks show by chance is
/// unknown.
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
                "Measure more runs, or fewer things, than for {}",
                check.name
            );
            check.settle.get_or_insert(step);
        }
    }
}

/// Joins the answers of the checks. The reason is given if the checks have answers, and the whole has none.
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
    /// Returns a check that has no answer because the evidence is not what the plan asks for.
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

/// Compares the machines of all files of both sides. Returns doubts.
///
/// # Errors
/// If the files are from different machines, or from another machine than that of the plan.
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
    let differ = |of: &dyn Fn(&SampleConditions) -> Option<String>| {
        let mut known = all.iter().filter_map(|it| of(it));
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

/// Returns an error if two known names of computers differ. Their case does not matter.
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
