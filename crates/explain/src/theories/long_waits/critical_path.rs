//! What threads' time depended on between the two moments that the user asks for.

use std::ops::Range;

use rustc_hash::FxHashSet;
use tables::StoreError;

use super::ABOUT;
use super::path::{self, Leg, Runs, Thread};
use super::words::moment;
use crate::{Case, Finding, Severity, duration};

/// At most so many runs are followed back: the queries name each.
const LEGS: usize = 1000;
/// Steps that are shown one by one.
const SHOWN: usize = 20;
/// Threads that are looked at.
const THREADS: usize = 4;

/// A finding for each thread asked for, if a stretch of time is: of a process asked for, the thread
/// that ran last in it; of none, that of the process that got the focus at its end.
pub(super) fn findings(case: &Case<'_>) -> Result<Vec<Finding>, StoreError> {
    let Some(during) = &case.asked.during else {
        return Ok(Vec::new());
    };
    // A moment is no stretch of time.
    if during.end.saturating_sub(during.start) < 2 {
        return Ok(Vec::new());
    }
    let mut runs = Runs::new(case)?;
    let mut threads: Vec<Thread> = case
        .asked
        .threads
        .iter()
        .map(|id| Thread { id: *id, row: None })
        .collect();
    if threads.is_empty() {
        let processes: FxHashSet<u32> = match case.asked.processes.is_empty() {
            true => focused_at(case, during.end)?.into_iter().collect(),
            false => case.rows_of_asked_processes().collect(),
        };
        if !processes.is_empty() {
            let is_asked = |row: Option<u32>| row.is_some_and(|row| processes.contains(&row));
            threads.extend(runs.last_before(during.end, is_asked)?);
        }
    }
    let mut findings = Vec::new();
    for thread in threads.into_iter().take(THREADS) {
        let legs = path::path(&mut runs, thread, during, LEGS)?;
        if !legs.is_empty() {
            findings.push(found(case, thread, during, &legs));
        }
    }
    Ok(findings)
}

/// The process that got the focus at a moment, by its row.
fn focused_at(case: &Case<'_>, time: i64) -> Result<Option<u32>, StoreError> {
    let focus = case.focus()?.into_iter();
    let mut focused = focus.filter(|focus| focus.during.start == time);
    Ok(focused.next().and_then(|focus| focus.process_row))
}

fn found(case: &Case<'_>, thread: Thread, during: &Range<i64>, legs: &[Leg]) -> Finding {
    let covered = legs[legs.len() - 1].range.start..legs[0].range.end;
    let by_thread = path::by_thread(legs);
    let most: Vec<String> = by_thread
        .iter()
        .take(3)
        .map(|(run, [waited, was_ready, ran])| {
            format!(
                "thread {} of {} (ran {}, was ready {}, waited {})",
                run.thread_id,
                case.process(run.process_row, run.process_id),
                duration(*ran),
                duration(*was_ready),
                duration(*waited)
            )
        })
        .collect();
    let process = case.process(legs[0].run.process_row, legs[0].run.process_id);
    let sentence = format!(
        "Critical path of thread {} of {process} from {} to {}: what it did then depended on {} {}, \
         most of all {}.",
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
    let mut finding = Finding::new(&ABOUT, Severity::Information, sentence)
        .during(covered.clone())
        .with(path::totals(case, "Whose time it was", legs))
        .with(path::evidence(
            case,
            "The path, step by step back in time",
            &legs[..legs.len().min(SHOWN)],
        ));
    if covered.start > during.start {
        finding = finding.doubt(format!(
            "The path is followed back to {} only, over {} runs.",
            moment(covered.start),
            legs.len()
        ));
    }
    if covered.end < during.end {
        finding = finding.doubt(format!(
            "The thread did not run again after {}: the path ends there.",
            moment(covered.end)
        ));
    }
    finding
}
