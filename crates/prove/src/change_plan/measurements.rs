//! Checks of the planned measurements.

use statistics::{Comparison, Design, Interval, Scale, Verdict};
use wording::{counted, duration, listed};

use super::verdict::{Mismatch, copies_text, same_machine};
use super::{Answer, Check, Evidence, MeasurePlan, Measurement, Side};
use crate::judgement::{self, Question};
use crate::measured::Key;
use crate::{
    Error, Group, Judgement, Line, MOST_NEEDED, Metric, Run, Sides, Summary, judge, needed_text,
    sides,
};

/// Compares a measurement of both sides. If a side does not match the plan, the answer of the check is unknown, and its
/// result is the mismatch.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub(super) fn check(
    plan: &MeasurePlan,
    asked: &Measurement,
    evidence: &Evidence,
) -> Result<Check, Error> {
    let name = name(asked);
    let settings: Vec<String> = (asked.reasons.iter())
        .map(|reason| reason.setting.clone())
        .collect();
    Ok(match compared(plan, asked, evidence) {
        Err(Ends::Failed(error)) => return Err(error),
        Err(Ends::Mismatch(mismatch)) => Check::mismatched(name, settings, mismatch),
        Ok((judgement, mut doubts)) => {
            doubts.extend(judgement.doubts.iter().cloned());
            conclude(plan, asked, &judgement, name, settings, doubts)
        }
    })
}

/// Reason why there is no comparison.
enum Ends {
    Mismatch(Mismatch),
    Failed(Error),
}

impl From<Mismatch> for Ends {
    fn from(mismatch: Mismatch) -> Ends {
        Ends::Mismatch(mismatch)
    }
}

impl From<Error> for Ends {
    fn from(error: Error) -> Ends {
        Ends::Failed(error)
    }
}

/// Returns the name of the compared times: the quantile, the probe and the measured thing.
fn name(asked: &Measurement) -> String {
    let what = match asked.quantile {
        Some(quantile) => format!("p{}", (quantile * 1000.0).round() / 10.0),
        None => "time".to_owned(),
    };
    format!(
        "{what} of {}: {}",
        asked.probe.name(),
        asked_key(asked).name()
    )
}

fn asked_key(asked: &Measurement) -> Key {
    Key {
        probe: asked.probe.name().to_owned(),
        method: asked.method.clone(),
        setting: asked.setting.clone(),
        phase: asked.phase.clone(),
        requested_ns: asked.requested_ns,
        size_bytes: asked.size_bytes,
    }
}

/// Returns the commands for both sides.
fn commands(asked: &Measurement) -> String {
    if asked.before == asked.after {
        format!("{}, once before and once after the change", asked.before)
    } else {
        format!("{}, and {}", asked.before, asked.after)
    }
}

fn compared(
    plan: &MeasurePlan,
    asked: &Measurement,
    evidence: &Evidence,
) -> Result<(Judgement, Vec<String>), Ends> {
    let before = side(asked, &evidence.before, "before", &asked.before)?;
    let after = side(asked, &evidence.after, "after", &asked.after)?;
    let again = |what: String| Mismatch {
        what,
        settle: format!(
            "Measure both sides on the same machine: {}",
            commands(asked)
        ),
    };
    let conditions = |side: &Side| {
        let files = side
            .measured
            .iter()
            .filter(|file| file.has_probe(asked.probe.name()));
        files
            .map(|file| file.conditions.clone())
            .collect::<Vec<_>>()
    };
    let (old, new) = (conditions(&evidence.before), conditions(&evidence.after));
    let (old, new): (Vec<_>, Vec<_>) = (
        old.iter().map(Option::as_ref).collect(),
        new.iter().map(Option::as_ref).collect(),
    );
    let mut doubts = same_machine(plan, &old, &new).map_err(again)?;
    if before.size_bytes != after.size_bytes {
        return Err(again(
            "The files that were read before and after the change have different sizes".to_owned(),
        )
        .into());
    }
    if are_equal(&before.group, &after.group)? {
        return Err(again("Both sides have the same measurement".to_owned()).into());
    }
    let copies = before.copies + after.copies;
    doubts.extend((copies > 0).then(|| copies_text(copies, "measurement")));
    for (side, when) in [(&before, "before"), (&after, "after")] {
        if side.group.runs.len() > asked.runs {
            doubts.push(format!(
                "There are {} {when} the change, more than the {} of the plan: the verdict holds only if their \
                 number was decided before anybody looked at the results",
                counted(side.group.runs.len() as u64, "run", "runs"),
                asked.runs
            ));
        }
    }
    let sides = Sides {
        name: before.group.name.clone(),
        design: Design::Unpaired,
        before: before.group,
        after: after.group,
        alone: [0, 0],
        same_names: 0,
        has_looks: false,
    };
    let question = Question {
        margin: plan.margin,
    };
    match judge(&sides, &Summary::read(&sides)?, question) {
        Err(error @ Error::NoValues { .. }) => Err(again(error.to_string()).into()),
        judgement => Ok((judgement?, doubts)),
    }
}

/// Returns true if both groups have the same samples in all runs.
fn are_equal(before: &Group, after: &Group) -> Result<bool, Error> {
    if before.runs.len() != after.runs.len() {
        return Ok(false);
    }
    for (one, other) in before.runs.iter().zip(&after.runs) {
        if one.values()?.known != other.values()?.known {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns true if a group of a file has the same samples as `group`.
fn is_known(group: &Group, files: &[Vec<Group>]) -> Result<bool, Error> {
    for known in files.iter().flatten() {
        if are_equal(known, group)? {
            return Ok(true);
        }
    }
    Ok(false)
}

struct Runs {
    group: Group,
    size_bytes: Option<u64>,
    /// Number of measurements that are left out because they are copies of other measurements of this side.
    copies: u64,
}

/// Returns the runs of one side that match the planned measurement.
fn side(asked: &Measurement, side: &Side, when: &str, command: &str) -> Result<Runs, Ends> {
    let again = |what: String| Mismatch {
        what,
        settle: format!("Run {command}"),
    };
    let probe = asked.probe.name();
    let of_probe = side.measured.iter().filter(|file| file.has_probe(probe));
    let key = asked_key(asked);
    let fits = |found: &Key| {
        let has_size = asked.size_bytes.is_none() || found.size_bytes == asked.size_bytes;
        let alike = Key {
            size_bytes: asked.size_bytes,
            ..found.clone()
        };
        has_size && alike == key
    };
    let mut others: Vec<String> = Vec::new();
    let mut sizes: Vec<Option<u64>> = Vec::new();
    let mut files: Vec<Vec<Group>> = Vec::new();
    let mut copies = 0;
    for file in of_probe {
        let mut groups = Vec::new();
        for (found, group) in &file.groups {
            if fits(found) {
                if is_known(group, &files)? {
                    copies += 1;
                    continue;
                }
                // Groups of the same thing from several files get the same name, so that `sides::joined` joins their
                // runs.
                groups.push(Group {
                    name: key.name(),
                    ..group.clone()
                });
                sizes.push(found.size_bytes);
            } else if found.probe == probe && others.len() < MOST_NAMED {
                others.push(format!("`{}`", found.name()));
            }
        }
        files.push(groups);
    }
    if files.is_empty() {
        let what = match side.measured.first().and_then(|file| file.groups.first()) {
            None => format!("Nothing was measured {when} the change"),
            Some((found, _)) => format!(
                "Another probe was measured {when} the change: {}, not {probe}",
                found.probe
            ),
        };
        return Err(again(what).into());
    }
    sizes.dedup();
    let size_bytes = match sizes[..] {
        [] => {
            let what = format!(
                "Something else was measured {when} the change: {}, not `{}`",
                listed(others),
                key.name()
            );
            return Err(again(what).into());
        }
        [size] => size,
        _ => {
            let what = format!("The files read {when} the change have different sizes");
            return Err(again(what).into());
        }
    };
    let Some(mut group) = sides::joined(files).into_iter().next() else {
        return Err(again(format!("Nothing was measured {when} the change")).into());
    };
    let is_long = |run: &Run| run.samples() >= asked.samples_per_run as u64;
    let all = group.runs.len();
    group.runs.retain(is_long);
    match group.runs.len() {
        enough if enough >= asked.runs => Ok(Runs {
            group,
            size_bytes,
            copies,
        }),
        few => {
            let short = match all - few {
                0 => String::new(),
                short => format!(
                    ", and {short} with fewer than {} each",
                    counted(asked.samples_per_run as u64, "sample", "samples")
                ),
            };
            let copied = match copies {
                0 => String::new(),
                copies => format!(" ({})", copies_text(copies, "measurement")),
            };
            Err(again(format!(
                "Too few runs {when} the change: {few}{short}{copied}; the plan asks for {}",
                asked.runs
            ))
            .into())
        }
    }
}

/// Maximum number of names that a sentence lists.
const MOST_NAMED: usize = 6;

fn conclude(
    plan: &MeasurePlan,
    asked: &Measurement,
    judgement: &Judgement,
    name: String,
    settings: Vec<String>,
    mut doubts: Vec<String>,
) -> Check {
    let metric = match asked.quantile {
        Some(quantile) => Metric::Quantile(quantile),
        None => Metric::Value,
    };
    let line = judgement.lines.iter().find(|line| line.metric == metric);
    let Some((line, comparison)) = line.and_then(|line| Some((line, line.comparison?))) else {
        let why = line.and_then(|line| line.not_compared.clone());
        let why = why.unwrap_or_else(|| "a run has several values".to_owned());
        let mismatch = Mismatch {
            what: format!("The runs cannot be compared: {why}"),
            settle: match judgement.sessions {
                None => format!("Run {}", commands(asked)),
                Some(_) => format!(
                    "Run the commands of both sides in turn, at least {} times each: {}",
                    judgement::least_sessions(),
                    commands(asked)
                ),
            },
        };
        let mut check = Check::mismatched(name, settings, mismatch);
        check.doubts = doubts;
        return check;
    };
    let margin = judgement::margin(
        Question {
            margin: plan.margin,
        },
        line,
        comparison.scale,
    );
    let answer = match Verdict::of(comparison.change, comparison.scale, margin) {
        Verdict::Lower => Answer::Helped,
        Verdict::Higher => Answer::Harmed,
        Verdict::Same => Answer::NoDifference,
        Verdict::SlightlyLower | Verdict::SlightlyHigher | Verdict::Unknown => Answer::Unknown,
    };
    let worse = |other: &&Line| {
        other.metric != metric
            && matches!(
                other.verdict,
                Some(Verdict::Higher | Verdict::SlightlyHigher)
            )
    };
    if answer != Answer::Harmed
        && let Some(Metric::Quantile(quantile)) =
            judgement.lines.iter().find(worse).map(|line| line.metric)
    {
        doubts.push(format!(
            "p{} is higher after the change; the plan does not ask for it",
            (quantile * 1000.0).round() / 10.0
        ));
    }
    let more = judgement::more(
        judgement::ALPHA,
        &comparison,
        margin,
        comparison.runs as u64,
    );
    let (one, many) = match judgement.sessions {
        None => ("run", "runs"),
        Some(_) => ("session", "sessions"),
    };
    let settle = (answer == Answer::Unknown).then(|| match more {
        Some(more) if more > MOST_NEEDED => format!(
            "Measure longer runs, or find out why runs differ: {} would be needed",
            needed_text(more, one, many)
        ),
        Some(more) => format!(
            "Plan {} instead of {}, and measure both sides again: this number detects a change of {} % with \
             a probability of 90 %",
            counted(comparison.runs as u64 + more, one, many),
            comparison.runs,
            plan.margin * 100.0
        ),
        None => "Measure both sides again with more runs".to_owned(),
    });
    Check {
        name,
        settings,
        answer,
        result: result(line, &comparison, judgement, plan.margin),
        adjusted_p: Some(comparison.p),
        doubts,
        settle,
    }
}

/// Describes a comparison in one sentence.
fn result(line: &Line, comparison: &Comparison, judgement: &Judgement, margin: f64) -> String {
    let Interval { centre, low, high } = comparison.change;
    let time = |ns: f64| duration(ns.round() as i64);
    let change = match comparison.scale {
        Scale::Ratio => format!("{centre:.3} times as long ({low:.3} to {high:.3})"),
        Scale::Difference => format!("{} longer ({} to {})", time(centre), time(low), time(high)),
    };
    let value = |value: Option<f64>| value.map_or_else(|| "unknown".to_owned(), time);
    format!(
        "{} before and {} after the change: {change}. A change of {} % matters. {} before, {} after",
        value(line.before),
        value(line.after),
        margin * 100.0,
        counted(judgement.runs_before as u64, "run", "runs"),
        counted(judgement.runs_after as u64, "run", "runs"),
    )
}
