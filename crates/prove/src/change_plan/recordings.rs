//! Checks of the planned traces.

use diff::{Change, Conclusion, Diff, Kind, conclude_alone, diff};
use explain::Subject;
use wording::{counted, duration, listed};

use super::verdict::{Mismatch, copies_text, one_computer};
use super::{Answer, Check, Evidence, MeasurePlan, Recording, Side};

/// Compares the traces of both sides. If a side does not match the plan, the answer of the check is unknown, and its
/// result is the mismatch.
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
        Ok(differences) => {
            let mut check = conclude(asked, &differences, name, settings);
            let copies = evidence.before.copies + evidence.after.copies;
            check
                .doubts
                .extend((copies > 0).then(|| copies_text(copies as u64, "trace")));
            check
        }
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
    let is_copied = |old: &diff::Recording| after.iter().any(|new| new.overlaps(old));
    if before.iter().any(is_copied) {
        return Err(again(
            "A trace is on both sides: it cannot be from before and after the change".to_owned(),
        ));
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
        let copies = match side.copies {
            0 => String::new(),
            copies => format!(" ({})", copies_text(copies as u64, "trace")),
        };
        return Err(again(format!(
            "Too few traces {when} the change: {found}{copies}; the plan asks for {}",
            asked.traces
        )));
    }
    let shortest = side.recordings.iter().map(|it| it.seconds);
    let shortest = shortest.fold(f64::INFINITY, f64::min);
    if shortest >= LENGTH * asked.seconds {
        Ok(())
    } else {
        Err(again(format!(
            "A trace {when} the change has {shortest:.1} s; the plan asks for {} s",
            asked.seconds
        )))
    }
}

/// Rows of the traces that the plan asks for, compared by unit. A row that is compared per work has no comparison per
/// second.
struct AskedRows {
    /// Times of DPCs and ISRs that depend on the traffic, per KiB of network traffic.
    per_work: Vec<Change>,
    per_second: Vec<Change>,
}

fn asked_rows(asked: &Recording, differences: &Diff) -> AskedRows {
    let kind = asked.times.kind();
    let is_asked = |change: &&Change| {
        let row = asked.row.as_ref();
        change.kind == kind && row.is_none_or(|row| change.name.eq_ignore_ascii_case(row))
    };
    let rows = differences.per_second.iter().filter(is_asked).cloned();
    let mut per_second: Vec<Change> = rows.collect();
    let per_work = differences.per_work.as_ref();
    let mut per_work: Vec<Change> =
        per_work
            .filter(|_| kind.is_in_interrupts())
            .map_or_else(Vec::new, |work| {
                let depends = |of: &&Change| of.conclusion != Conclusion::Unrelated;
                let asked = work.changes.iter().filter(is_asked).filter(depends);
                asked.cloned().collect()
            });
    per_second.retain(|row| !per_work.iter().any(|of| of.name == row.name));
    // The other rows of the traces are not asked, so the number of all rows does not matter.
    conclude_alone(&mut per_work);
    conclude_alone(&mut per_second);
    AskedRows {
        per_work,
        per_second,
    }
}

fn conclude(asked: &Recording, differences: &Diff, name: String, settings: Vec<String>) -> Check {
    let AskedRows {
        per_work,
        per_second,
    } = asked_rows(asked, differences);
    let rows: Vec<&Change> = per_work.iter().chain(&per_second).collect();
    let unit = |row: &Change| {
        if per_work.iter().any(|of| std::ptr::eq(of, row)) {
            "per KiB of network traffic"
        } else {
            "per second"
        }
    };
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
    let differing = rows.iter().copied();
    let differing = differing.filter(|row| row.conclusion == Conclusion::Differs || is_longer(row));
    let (less, more): (Vec<&Change>, Vec<&Change>) = differing.partition(|row| {
        if is_longer(row) {
            row.mean_change.is_some_and(|change| change.centre < 0.0)
        } else {
            row.ns() < 0.0
        }
    });
    if !less.is_empty() && !more.is_empty() {
        let names = |of: &[&Change]| listed(of.iter().take(4).map(|row| &row.name));
        let what = format!(
            "Less time for {}, but more for {}",
            names(&less),
            names(&more)
        );
        let settle = "Name the program or module that matters as `row` in measure.toml";
        return Check::mismatched(name, settings, mismatch(what, settle));
    }
    // Row that determines the answer: the first row that differs. Rows per KiB come first, and the rows of each unit
    // are sorted by descending importance. If no row differs, it is the first row whose change may matter.
    let open = |row: &&&Change| row.may_matter() || may_be_longer(row);
    let deciding = less.first().or(more.first()).or(rows.iter().find(open));
    let answer = match (less.is_empty(), more.is_empty(), deciding) {
        (false, ..) => Answer::Helped,
        (_, false, _) => Answer::Harmed,
        (_, _, Some(_)) => Answer::Unknown,
        _ => Answer::NoDifference,
    };
    // If no row determines the answer, the result shows the row whose change is closest to a change that matters.
    let share = |row: &&&Change| row.ns().abs() / row.matters_ns;
    let most = rows.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
    let shown = deciding.or(most).copied().unwrap_or(rows[0]);
    let limit = match answer {
        Answer::NoDifference => format!(
            ". A change of less than {} is too small to matter",
            duration(shown.matters_ns.round() as i64)
        ),
        _ => String::new(),
    };
    let traces = counted(differences.before.recordings as u64, "trace", "traces");
    Check {
        name,
        settings,
        answer,
        result: format!(
            "{}{limit}. {traces} before, {} after",
            sentence(shown, unit(shown)),
            counted(differences.after.recordings as u64, "trace", "traces")
        ),
        adjusted_p: match deciding {
            Some(row) if is_longer(row) => row.adjusted_mean_p,
            Some(row) => row.adjusted_p,
            None => None,
        },
        doubts: doubts(differences, &shown.name),
        settle: (answer == Answer::Unknown).then(|| {
            format!(
                "Record more than {} traces on each side: {} may have changed by an amount that matters",
                asked.traces, shown.name
            )
        }),
    }
}

/// Returns true if single waits for a CPU are longer or shorter, although their sum is about the same. While the CPUs
/// are busy, threads may wait less often but longer, for example for the end of a longer quantum. The sum of the waits
/// then stays the same.
fn is_longer(row: &Change) -> bool {
    row.kind == Kind::Ready && row.conclusion == Conclusion::MeanDiffers
}

/// Returns true if single waits for a CPU may be longer or shorter by an amount that matters.
fn may_be_longer(row: &Change) -> bool {
    row.kind == Kind::Ready && row.mean_may_matter()
}

fn sentence(row: &Change, unit: &str) -> String {
    let time = |ns: f64| duration(ns.round() as i64);
    let shows_mean = is_longer(row)
        || row.conclusion != Conclusion::Differs && !row.may_matter() && may_be_longer(row);
    if shows_mean && let Some((before, after)) = row.before.mean_ns().zip(row.after.mean_ns()) {
        return format!(
            "{}: each wait has {} before and {} after the change, on average",
            row.name,
            time(before),
            time(after)
        );
    }
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

fn doubts(differences: &Diff, row: &str) -> Vec<String> {
    let mut doubts = Vec::new();
    let row = Subject::Module {
        name: row.to_owned(),
    };
    let others = differences.besides.other_reasons(&[&row]);
    doubts.extend(others.map(|others| others.to_string()));
    let lost = differences.before.lost_events + differences.after.lost_events;
    if lost > 0 {
        doubts.push(format!(
            "{lost} events were lost, so times may be too small"
        ));
    }
    doubts
}
