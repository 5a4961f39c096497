//! Findings about processes that CPU rate control stopped.

use std::cmp::Reverse;

use selection::{Condition, Expression, Order, Selection};
use tables::Table;

use super::{ABOUT, SHOWN};
use crate::chain::user_attention::UserAttention;
use crate::survey::RATE_CONTROL;
use crate::thresholds::DISRUPTIVE_NS;
use crate::{Case, Evidence, Finding, Severity, Subject, ThreadWaits, Unit, duration, grouped};

/// Returns findings about processes whose threads CPU rate control stopped. Each wait is short, so
/// the waits of a process are added up.
pub(super) fn rate_controlled(case: &Case<'_>, noticed: &UserAttention) -> Vec<Finding> {
    let mut processes: Vec<(Option<u32>, Option<u32>)> = Vec::new();
    let stopped = (case.survey.threads.iter()).filter(|thread| thread.rate_controlled.0 > 0);
    let stopped: Vec<&ThreadWaits> = stopped.collect();
    for thread in &stopped {
        let process = (thread.process_row, thread.process_id);
        if !processes.contains(&process) {
            processes.push(process);
        }
    }
    let findings = processes.into_iter().filter_map(|(row, id)| {
        let threads: Vec<&&ThreadWaits> = stopped
            .iter()
            .filter(|thread| (thread.process_row, thread.process_id) == (row, id))
            .collect();
        let most = threads.iter().max_by_key(|thread| thread.rate_controlled.1)?;
        let delay_ns = most.rate_controlled.1;
        if delay_ns < DISRUPTIVE_NS || !is_in_scope(case, most) {
            return None;
        }
        let (all, times) = threads.iter().fold((0, 0), |(ns, times), thread| {
            (ns + thread.rate_controlled.1, times + thread.rate_controlled.0)
        });
        let process = case.process(row, id);
        let sentence = format!(
            "CPU rate control stopped {process} {} times: thread {} for {}, all its threads \
             together for {}.",
            grouped(times),
            most.thread_id,
            duration(delay_ns),
            duration(all)
        );
        let condition = Condition::is_or_unknown("process_row", row);
        let selection = Selection::new(Table::CpuRuns)
            .filter(condition)
            .filter(Condition::is("previous_wait_reason", RATE_CONTROL))
            .filter(Condition::AtLeast("waits_ns", 1))
            .group_by(&["thread_id"])
            .order(&[Order::descending("waited_ns"), Order::ascending("thread_id")])
            .limit(SHOWN);
        let waited = Expression::Sum("waits_ns");
        let mut evidence = Evidence::from_selection("Waits for CPU rate control (WrCpuRateControl)", selection)
            .stored("thread_id", "thread", Unit::None)
            .column("times", "waits", Unit::Count, Expression::Count)
            .column("waited_ns", "waited", Unit::Duration, waited);
        let mut rows: Vec<(u32, u64, i64)> = Vec::new();
        for thread in &threads {
            let (times, ns) = thread.rate_controlled;
            match rows.iter_mut().find(|row| row.0 == thread.thread_id) {
                Some(row) => (row.1, row.2) = (row.1 + times, row.2 + ns),
                None => rows.push((thread.thread_id, times, ns)),
            }
        }
        rows.sort_by_key(|(id, _, ns)| (Reverse(*ns), *id));
        for (id, times, ns) in rows.into_iter().take(SHOWN) {
            evidence = evidence.row([Some(id.into()), Some(times.into()), Some(ns.into())]);
        }
        let because = "Its job object or scheduling group may use only a share of the CPUs \
            (WrCpuRateControl). When the share is used up, Windows stops the threads until the next \
            interval, even if CPUs are idle.";
        let finding = Finding::new(&ABOUT, Severity::Problem, sentence)
            .because(because)
            .subjects([Subject::Thread {
                id: most.thread_id,
                row: most.thread_row,
                process_row: row,
            }])
            .subjects(case.process_subject(row, id))
            .attention(noticed.attention(row, &case.survey.span))
            .during(case.survey.span.clone())
            .delay(delay_ns, format!("of thread {}, which CPU rate control stopped", most.thread_id))
            .with(evidence)
            .remedy(format!(
                "Find who limits {process} (a job object, a container, a quota of Windows System \
                 Resource Manager or Remote Desktop Services), and raise the limit or give \
                 {process} less to do"
            ));
        Some(finding)
    });
    findings.collect()
}

/// Returns true if the process in this row is a subject of the finding.
pub(super) fn is_about(finding: &Finding, process_row: Option<u32>) -> bool {
    (finding.subjects.iter()).any(|subject| match subject {
        Subject::Process { row, .. } => row.is_some() && *row == process_row,
        _ => false,
    })
}

fn is_in_scope(case: &Case<'_>, thread: &ThreadWaits) -> bool {
    case.scope.has_all_threads()
        || case.scope.threads.contains(&thread.thread_id)
        || (thread.process_row).is_some_and(|row| {
            case.scope
                .process_rows(&case.names)
                .any(|named| named == row)
        })
}
