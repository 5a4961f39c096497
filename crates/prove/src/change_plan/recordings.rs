//! Checks of the planned traces.

use diff::{Change, Conclusion, Diff, diff};
use wording::{counted, duration, listed};

use super::verdict::{Mismatch, one_computer};
use super::{Answer, Check, Evidence, MeasurePlan, Recording, Side};

/// Compares the traces of both sides. If a side does not match the plan, the check has no answer but states
/// the mismatch.
pub(super) fn check(plan: &MeasurePlan, asked: &Recording, evidence: &Evidence) -> Check {
    let name = match &asked.row {
        Some(row) => format!("{} of {row}", asked.times.words()),
        None => asked.times.words().to_owned(),
    };
    let settings: Vec<String> = (asked.reasons.iter())
        .map(|reason| reason.setting.clone())
        .collect();
    match compared(plan, asked, evidence) {
        Err(mismatch) => Check::mismatched(name, settings, mismatch),
        Ok(differences) => conclude(asked, &differences, name, settings),
    }
}

fn compared(plan: &MeasurePlan, asked: &Recording, evidence: &Evidence) -> Result<Diff, Mismatch> {
    side(asked, &evidence.before, "before", &asked.before)?;
    side(asked, &evidence.after, "after", &asked.after)?;
    let (before, after) = (&evidence.before.recordings, &evidence.after.recordings);
    let again = |what: String| Mismatch {
        what,
        settle: format!(
            "Record both sides on the same machine ({}), as {} and {}",
            asked.kit, asked.before, asked.after
        ),
    };
    let computers = before.iter().chain(after).map(|it| it.computer());
    one_computer(plan.computer.as_deref(), computers).map_err(again)?;
    let mut all = before.iter().chain(after);
    if let Some(without) = all.position(|it| !it.has(asked.times.kind())) {
        let when = if without < before.len() {
            "before"
        } else {
            "after"
        };
        let what = format!(
            "A trace {when} the change did not record {}",
            asked.times.words()
        );
        return Err(again(what));
    }
    let differences = diff(before, after, None);
    let facts = &differences.besides.facts;
    match facts
        .iter()
        .find(|it| ["processor", "CPUs"].contains(&it.fact))
    {
        None => Ok(differences),
        Some(other) => Err(again(format!(
            "The traces are of different machines: the {} differ",
            other.fact
        ))),
    }
}

/// Minimum length of a trace, as a share of the planned length. Recordings do not end exactly on time.
const LENGTH: f64 = 0.9;

/// Checks the number and length of the traces of a side.
fn side(asked: &Recording, side: &Side, when: &str, files: &str) -> Result<(), Mismatch> {
    let again = |what: String| Mismatch {
        what,
        settle: format!(
            "Record {} of {} s {when} the change ({}), as {files}",
            counted(asked.traces as u64, "trace", "traces"),
            asked.seconds,
            asked.kit
        ),
    };
    let found = side.recordings.len();
    if found < asked.traces {
        return Err(again(format!(
            "Too few traces {when} the change: {found}; the plan asks for {}",
            asked.traces
        )));
    }
    let shortest = side.recordings.iter().map(|it| it.seconds);
    let shortest = shortest.fold(f64::INFINITY, f64::min);
    match shortest >= LENGTH * asked.seconds {
        true => Ok(()),
        false => Err(again(format!(
            "A trace {when} the change has {shortest:.1} s; the plan asks for {} s",
            asked.seconds
        ))),
    }
}

fn conclude(asked: &Recording, differences: &Diff, name: String, settings: Vec<String>) -> Check {
    let kind = asked.times.kind();
    // DPCs and ISRs depend on the network traffic. So their times per unit of traffic are compared.
    let (all, unit) = match &differences.per_work {
        Some(per_work) if kind.is_in_interrupts() => {
            (&per_work.changes, "per KiB of network traffic")
        }
        _ => (&differences.per_second, "per second"),
    };
    let is_asked = |change: &&Change| {
        let row = asked.row.as_ref();
        change.kind == kind && row.is_none_or(|row| change.name.eq_ignore_ascii_case(row))
    };
    let rows: Vec<&Change> = all.iter().filter(is_asked).collect();
    let mismatch = |what: String, settle: &str| Mismatch {
        what,
        settle: settle.to_owned(),
    };
    if rows.is_empty() {
        let what = "The traces have no such times".to_owned();
        let settle =
            "Record while the program or device is busy, or name another `row` in measure.toml";
        return Check::mismatched(name, settings, mismatch(what, settle));
    }
    let differ = |row: &&&Change| row.conclusion == Conclusion::Differs;
    let (less, more): (Vec<&Change>, Vec<&Change>) = rows
        .iter()
        .copied()
        .filter(|row| differ(&row))
        .partition(|row| row.ns() < 0.0);
    if !less.is_empty() && !more.is_empty() {
        let names = |of: &[&Change]| listed(of.iter().take(4).map(|row| &row.name));
        let what = format!(
            "Less time {unit} for {}, but more for {}",
            names(&less),
            names(&more)
        );
        let settle = "Name the program or module that matters as `row` in measure.toml";
        return Check::mismatched(name, settings, mismatch(what, settle));
    }
    // Row that determines the answer. It is the row with the greatest difference. If no row differs, it is
    // the first row whose change may matter.
    let open = |row: &&&Change| may_matter(row);
    let deciding = less.first().or(more.first()).or(rows.iter().find(open));
    let answer = match (less.is_empty(), more.is_empty(), deciding) {
        (false, ..) => Answer::Helped,
        (_, false, _) => Answer::Harmed,
        (_, _, Some(_)) => Answer::Unknown,
        _ => Answer::NoDifference,
    };
    let shown = deciding.copied().unwrap_or(rows[0]);
    let traces = counted(differences.before.recordings as u64, "trace", "traces");
    Check {
        name,
        settings,
        answer,
        result: format!(
            "{}. {traces} before, {} after",
            sentence(shown, unit),
            counted(differences.after.recordings as u64, "trace", "traces")
        ),
        adjusted_p: match deciding {
            Some(row) => row.adjusted_p,
            None => None,
        },
        doubts: doubts(differences),
        settle: (answer == Answer::Unknown).then(|| {
            format!(
                "Record more than {} traces on each side: {} may have changed by an amount that matters",
                asked.traces, shown.name
            )
        }),
    }
}

/// Returns true if the row may have a change that matters: its confidence interval contains such a change, or
/// the row has no interval.
fn may_matter(row: &Change) -> bool {
    row.change.is_none_or(|change| {
        let matters = |ns: f64| ns.abs() >= row.matters_ns;
        matters(change.low) || matters(change.high)
    })
}

fn sentence(row: &Change, unit: &str) -> String {
    let time = |ns: f64| duration(ns.round() as i64);
    let change = row.change.map_or_else(String::new, |change| {
        format!(" (change: {} to {})", time(change.low), time(change.high))
    });
    format!(
        "{}: {} {unit} before and {} after the change{change}",
        row.name,
        time(row.before.ns),
        time(row.after.ns)
    )
}

fn doubts(differences: &Diff) -> Vec<String> {
    let mut doubts = Vec::new();
    let besides = &differences.besides;
    let facts = besides.facts.iter().map(|it| it.fact.to_owned());
    let drivers = besides.drivers.iter().map(|it| it.name.clone());
    let others: Vec<String> = facts.chain(drivers).take(6).collect();
    if !others.is_empty() {
        doubts.push(format!(
            "Other things differ, too, and may be the reason: {}",
            listed(others)
        ));
    }
    let lost = differences.before.lost_events + differences.after.lost_events;
    if lost > 0 {
        doubts.push(format!(
            "{lost} events were lost, so times may be too small"
        ));
    }
    doubts
}
