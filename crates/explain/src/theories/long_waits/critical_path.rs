//! Critical paths of threads within the time range in scope.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashSet;
use tables::StoreError;

use super::ABOUT;
use crate::chain::freezes::{self, Freeze};
use crate::chain::path::{self, Leg, Runs, Thread};
use crate::moment;
use crate::ranges::overlap;
use crate::{Case, Finding, Severity, Subject, duration};

/// Maximum number of runs on a path. The number is limited because the SQL queries list every run.
const LEGS: usize = 1000;
/// Maximum number of steps of the path shown in a table.
const SHOWN: usize = 20;
/// Maximum number of process freezes reported with a path.
const FREEZES: usize = 3;
/// Maximum number of threads whose paths are reported.
const THREADS: usize = 4;

/// Finds the critical path of each thread in scope, if the scope has a time range. If the scope names only
/// processes, the path belongs to the thread of these processes that ran last in the range. If the scope
/// names no threads and no processes, the path belongs to a thread of the process that got the focus at the
/// end of the range.
pub(super) fn findings(case: &Case<'_>) -> Result<Vec<Finding>, StoreError> {
    let Some(during) = case.scope.range() else {
        return Ok(Vec::new());
    };
    let mut runs = Runs::new(case)?;
    let mut threads: Vec<Thread> = case
        .scope
        .threads
        .iter()
        .map(|id| Thread { id: *id, row: None })
        .collect();
    if threads.is_empty() {
        let processes: FxHashSet<u32> = if case.scope.processes.is_empty() {
            focused_at(case, during.end)?.into_iter().collect()
        } else {
            case.scope.process_rows(&case.names).collect()
        };
        if !processes.is_empty() {
            let is_asked = |row: Option<u32>| row.is_some_and(|row| processes.contains(&row));
            threads.extend(runs.last_before(during.end, is_asked)?);
        }
    }
    let mut findings = Vec::new();
    for thread in threads.into_iter().take(THREADS) {
        let legs = path::path(&mut runs, thread, during, LEGS)?;
        if legs.is_empty() {
            continue;
        }
        // The last step of the path may belong to another thread, for which `thread` waits. So the process is
        // taken from the last run of `thread` itself.
        let own = match runs.until(thread, during.end)? {
            Some(run) => Some(run),
            None => match runs.last_end_before(thread, during.end)? {
                Some(at) => runs.until(thread, at)?,
                None => None,
            },
        };
        let process = own.map_or((None, None), |run| (run.process_row, run.process_id));
        findings.push(finding(case, thread, process, during, &legs)?);
    }
    Ok(findings)
}

/// Returns the row of the process that got the focus at `time`.
fn focused_at(case: &Case<'_>, time: i64) -> Result<Option<u32>, StoreError> {
    let focus = case.focus()?.into_iter();
    let mut focused = focus.filter(|focus| focus.during.start == time);
    Ok(focused.next().and_then(|focus| focus.process_row))
}

/// Finds freezes of processes on the path that overlap the path in time. The freeze with the
/// longest overlap comes first.
fn freezes_on(
    case: &Case<'_>,
    (own_row, own_id): (Option<u32>, Option<u32>),
    covered: &Range<i64>,
    legs: &[Leg],
) -> Result<Vec<(i64, Freeze)>, StoreError> {
    let is_on_path = |freeze: &Freeze| {
        let is_it = |row: Option<u32>, id: Option<u32>| match freeze.process_row {
            Some(_) => row == freeze.process_row,
            None => id == Some(freeze.process_id),
        };
        let mut legs = legs.iter();
        is_it(own_row, own_id) || legs.any(|leg| is_it(leg.run.process_row, leg.run.process_id))
    };
    let freezes = freezes::read(case)?.into_iter();
    let mut overlaps: Vec<(i64, Freeze)> = freezes
        .filter(is_on_path)
        .filter_map(|freeze| {
            let then = overlap(&freeze.range, covered)?;
            Some((then.end - then.start, freeze))
        })
        .collect();
    overlaps.sort_by_key(|(ns, freeze)| (Reverse(*ns), freeze.range.start));
    overlaps.truncate(FREEZES);
    Ok(overlaps)
}

fn finding(
    case: &Case<'_>,
    thread: Thread,
    own: (Option<u32>, Option<u32>),
    during: &Range<i64>,
    legs: &[Leg],
) -> Result<Finding, StoreError> {
    let covered = legs[legs.len() - 1].range.start..legs[0].range.end;
    let by_thread = path::by_thread(legs);
    let most: Vec<String> = by_thread
        .iter()
        .take(3)
        .map(|(run, [waited, was_ready, ran, slept])| {
            format!(
                "thread {} of {} (ran {}, ready {}, waited {}{})",
                run.thread_id,
                case.process(run.process_row, run.process_id),
                duration(*ran),
                duration(*was_ready),
                duration(*waited),
                match slept {
                    0 => String::new(),
                    ns => format!(
                        "; {} for {}",
                        case.survey.suspend_gaps.clause(),
                        duration(*ns)
                    ),
                }
            )
        })
        .collect();
    let process = case.process(own.0, own.1);
    let mut sentence = format!(
        "Critical path of thread {} of {process} from {} to {}: it depended on {} {}, mostly on \
         {}.",
        thread.id,
        moment(covered.start),
        moment(covered.end),
        by_thread.len(),
        if by_thread.len() == 1 {
            "thread"
        } else {
            "threads"
        },
        most.join(", ")
    );
    let frozen = freezes_on(case, own, &covered, legs)?;
    for (_, freeze) in &frozen {
        sentence += &format!(
            " Windows froze {} from {} to {}: none of its threads could run.",
            case.process(freeze.process_row, Some(freeze.process_id)),
            moment(freeze.range.start),
            moment(freeze.range.end)
        );
    }
    let mut finding = Finding::new(&ABOUT, Severity::Information, sentence)
        .during(covered.clone())
        .subjects([Subject::Thread {
            id: thread.id,
            row: thread.row,
            process_row: own.0,
        }])
        .subjects(case.process_subject(own.0, own.1))
        .subjects(by_thread.iter().take(3).map(|(run, _)| Subject::Thread {
            id: run.thread_id,
            row: run.thread_row,
            process_row: run.process_row,
        }))
        .with(path::totals(case, "Time by thread", legs))
        .with(path::evidence(
            case,
            "The path, step by step, latest first",
            &legs[..legs.len().min(SHOWN)],
        ));
    for (_, freeze) in &frozen {
        finding = finding.with(freeze.evidence(case));
    }
    if covered.start > during.start {
        finding = finding.doubt(format!(
            "The path is followed back only to {}, over {} runs.",
            moment(covered.start),
            legs.len()
        ));
    }
    if covered.end < during.end {
        finding = finding.doubt(format!(
            "The path ends at {}, because the thread did not run again after that.",
            moment(covered.end)
        ));
    }
    Ok(finding)
}
