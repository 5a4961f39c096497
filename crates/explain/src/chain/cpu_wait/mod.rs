//! Wait of a ready thread for a CPU: its examined causes, and remedies.

mod advice;
mod certain;
pub(crate) mod group;
pub(crate) mod linux;
mod lost_events;
mod threaded_dpcs;
pub(crate) mod weigh;
mod words;

use std::cmp::Reverse;
use std::ops::Range;

use selection::{Condition, Expression, Selection};
use tables::{StoreError, Table};

use super::holder_times::{HolderTimes, Most};
use super::holders::Holders;
use super::waiter::{self, Waiter};
use crate::drivers::{DriverInSystem, SYSTEM};
use crate::survey::Wait;
use crate::{Case, Column, Evidence, Unit, Value, Verdict};
pub(crate) use advice::Advice;
use group::Group;
pub(crate) use linux::SPREAD;
use weigh::{Cause, Facts, WaitVerdicts};
pub(crate) use words::because;

/// Wait with its examined causes.
pub(crate) struct ExaminedWait {
    pub(crate) waiter: Waiter,
    pub(crate) times: HolderTimes,
    pub(crate) weighed: WaitVerdicts,
    /// Evidence for a wait that is recorded only in part; `None` for other waits.
    pub(crate) in_part: Option<Evidence>,
}

impl ExaminedWait {
    pub(crate) fn delay_ns(&self) -> i64 {
        self.waiter.ready_ns() - self.weighed.not_delay_ns.min(self.waiter.ready_ns())
    }

    /// Returns true if the thread probably ran unseen: the trace lacks switches, it has no end of the wait, and nothing
    /// explains the wait.
    pub(crate) fn may_have_run(&self, case: &Case<'_>) -> bool {
        case.survey.contradictions > 0 && self.waiter.wait.is_none() && self.weighed.cause.is_none()
    }
}

/// Examines the causes of waits. In the result, the worst waits come first.
pub(crate) fn examine_causes(
    case: &Case<'_>,
    facts: &Facts,
    mut waiters: Vec<Waiter>,
    in_part: Vec<Option<Evidence>>,
) -> Result<(Vec<ExaminedWait>, Holders), StoreError> {
    certain::narrow(case, facts, &mut waiters)?;
    waiter::look_up(case, &mut waiters)?;
    let windows: Vec<Range<i64>> = waiters
        .iter()
        .flat_map(|waiter| waiter.priorities.iter().map(|(range, _)| range.clone()))
        .collect();
    let holders = Holders::read(case, &windows)?;
    let mut waits: Vec<ExaminedWait> = Vec::new();
    for (waiter, in_part) in waiters.into_iter().zip(in_part) {
        let times = HolderTimes::new(case, &waiter, &holders);
        let weighed = weigh::weigh(case, facts, &waiter, &times, &holders);
        waits.push(ExaminedWait {
            waiter,
            times,
            weighed,
            in_part,
        });
    }
    waits.sort_by_key(|a| Reverse((a.delay_ns(), a.waiter.ready_ns())));
    Ok((waits, holders))
}

/// Wait for a CPU with its cause.
pub(crate) struct WaitWithCause {
    pub(crate) wait: Wait,
    /// Name of the cause; `None` if no cause explains half of the wait.
    pub(crate) cause: Option<&'static str>,
    /// Clause that names the cause.
    pub(crate) because: String,
    pub(crate) is_of_interrupts: bool,
    /// True if threads of the waiting program itself used the CPUs, or if the wait may be wrong.
    pub(crate) is_among_its_own: bool,
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) evidence: [Evidence; 2],
    /// Row and id of the process with most CPU time during the wait; `None` if threads of lower priority ran, which
    /// cannot have caused the wait.
    pub(crate) most: Option<(Option<u32>, Option<u32>)>,
}

/// Examines the causes of waits that are too short for a separate finding. In the result, the
/// worst wait comes first.
pub(crate) fn examine(case: &Case<'_>, waits: &[Wait]) -> Result<Vec<WaitWithCause>, StoreError> {
    if waits.is_empty() {
        return Ok(Vec::new());
    }
    let facts = Facts::read(case)?;
    let waiters: Vec<Waiter> = waits.iter().map(Waiter::new).collect();
    let in_part = vec![None; waiters.len()];
    let (waits, _) = examine_causes(case, &facts, waiters, in_part)?;
    let title = "The longest of these waits";
    let examined = waits.iter().filter_map(|one| {
        let wait = one.waiter.wait?;
        Some(WaitWithCause {
            wait,
            cause: one.weighed.cause.map(|cause| cause.name(case)),
            because: words::because(case, one),
            is_of_interrupts: one.weighed.cause == Some(Cause::Interrupts),
            is_among_its_own: one.weighed.is_among_its_own
                || one.weighed.cause == Some(Cause::LostEvents),
            verdicts: one.weighed.verdicts.clone(),
            evidence: [
                wait_table(case, title, &[wait]),
                one.times.evidence(&one.waiter, &case.survey.suspend_gaps),
            ],
            most: (one.weighed.most.as_ref())
                .filter(|_| one.weighed.cause != Some(Cause::Dispatcher))
                .map(|most| (most.process_row, most.process_id)),
        })
    });
    Ok(examined.collect())
}

/// Cause of a wait for a CPU, in words.
pub(crate) struct Reason {
    /// Clause that names the cause.
    pub(crate) because: String,
    pub(crate) advice: Advice,
    /// True if threads of higher or equal priority used the CPUs.
    pub(crate) is_priority: bool,
}

/// Explains one wait for a CPU.
pub(crate) fn explain_wait(case: &Case<'_>, wait: &Wait) -> Result<Reason, StoreError> {
    let facts = Facts::read(case)?;
    let (waits, holders) = examine_causes(case, &facts, vec![Waiter::new(wait)], vec![None])?;
    let group = Group::new(case, waits, &holders);
    let advice = Advice::read(case, &group, driver(case, &group)?)?;
    Ok(Reason {
        because: words::because(case, group.worst()),
        advice,
        is_priority: matches!(
            group.cause(),
            Some(Cause::HigherPriority | Cause::EqualPriority)
        ),
    })
}

/// Returns the driver whose threads used the CPUs during the worst wait of a group, if threads of System used them.
pub(crate) fn driver(
    case: &Case<'_>,
    group: &Group<'_>,
) -> Result<Option<DriverInSystem>, StoreError> {
    let is_of_system =
        |most: &Most| case.names.process(most.process_row, most.process_id).id == Some(SYSTEM);
    if case.is_linux() || !group.who_ran.most.as_ref().is_some_and(is_of_system) {
        return Ok(None);
    }
    let waiter = &group.worst().waiter;
    case.driver_in_system(&waiter.range, waiter.its_cpus())
}

/// Maximum number of processes or threads in the filter of a view of waits. If there are more, the view has
/// no such filter.
const MAX_NAMED: usize = 8;

/// Returns a selection of the runs of the threads that waited.
fn runs_after(waits: &[Wait]) -> Selection {
    let distinct = |numbers: Vec<u32>| {
        let mut distinct: Vec<u32> = Vec::new();
        for number in numbers {
            if !distinct.contains(&number) {
                distinct.push(number);
            }
        }
        distinct
    };
    let processes: Option<Vec<u32>> = waits.iter().map(|wait| wait.process_row).collect();
    let processes = processes
        .map(distinct)
        .filter(|rows| rows.len() <= MAX_NAMED);
    let threads = distinct(waits.iter().map(|wait| wait.thread_id).collect());
    let threads = Some(threads).filter(|ids| ids.len() <= MAX_NAMED);
    Selection::new(Table::CpuRuns)
        .column("process", Expression::Process("process_row"))
        .column("thread_id", Expression::Column("thread_id"))
        .column("ready_ns", Expression::Column("ready_ns"))
        .column("since_last_ns", Expression::Column("since_last_ns"))
        .column("waits_ns", Expression::Column("waits_ns"))
        .filters(processes.map(|rows| Condition::is_one_of("process_row", &rows)))
        .filters(threads.map(|ids| Condition::is_one_of("thread_id", &ids)))
}

/// Returns evidence with the rows of waits, the longest first.
pub(crate) fn wait_table(case: &Case<'_>, title: &str, waits: &[Wait]) -> Evidence {
    let mut waits = waits.to_vec();
    waits.sort_by_key(|wait| Reverse((wait.ready_ns, wait.start_ns, wait.end_ns, wait.cpu)));
    let these: Vec<String> = waits
        .iter()
        .map(|wait| format!("({}, {}, {})", wait.thread_id, wait.cpu, wait.start_ns))
        .collect();
    let a_routine = case.terms().a_routine;
    // The ranks of Windows and the nice values of Linux tell which of two threads of the same priority comes first.
    let (rank_name, rank) = if case.is_linux() {
        ("nice", "nice")
    } else {
        ("rank", "greatest(rank_out, previous_rank) AS rank")
    };
    let query = format!(
        "SELECT process(process_row) AS process, thread_id, start_ns - ready_ns AS ready_from_ns, \
         start_ns, ready_ns, since_last_ns, waits_ns, readied_ns, cpu, priority, {rank}, CASE WHEN readied_by_dpc THEN '{a_routine}' ELSE \
         process(readying_process_row) END AS readied_by, readying_thread_id FROM cpu_runs JOIN \
         (VALUES {}) AS these (thread, on_cpu, from_ns) ON thread_id = thread AND cpu = on_cpu AND \
         start_ns = from_ns WHERE ready_ns > 0 ORDER BY ready_ns DESC, start_ns DESC, end_ns DESC, \
         cpu DESC",
        these.join(", ")
    );
    let columns = [
        Column::new("process", "process", Unit::None),
        Column::new("thread_id", "thread", Unit::None),
        Column::new("ready_from_ns", "ready from", Unit::Moment),
        Column::new("start_ns", "ran at", Unit::Moment),
        Column::new("ready_ns", "was ready", Unit::Duration),
        Column::new("since_last_ns", "since its last run", Unit::Duration),
        Column::new("waits_ns", "waited before", Unit::Duration),
        Column::new("readied_ns", "readied at", Unit::Moment),
        Column::new("cpu", "CPU", Unit::None),
        Column::new("priority", "priority", Unit::None),
        Column::new(rank_name, rank_name, Unit::None),
        Column::new("readied_by", "readied by", Unit::None),
        Column::new("readying_thread_id", "its thread", Unit::None),
    ];
    let mut evidence = Evidence::new(title, query, &columns).about(runs_after(&waits));
    for wait in &waits {
        let process = case.process_label(wait.process_row);
        let readied_by = match wait.readied_by_dpc {
            Some(true) => Some(a_routine.to_owned()),
            _ => case.process_label(wait.readying_process_row),
        };
        evidence = evidence.row([
            process.map(Value::from),
            Some(wait.thread_id.into()),
            Some(wait.range().start.into()),
            Some(wait.start_ns.into()),
            Some(wait.ready_ns.into()),
            wait.since_last_ns.map(Value::from),
            wait.waits_ns.map(Value::from),
            wait.readied_ns.map(Value::from),
            Some(wait.cpu.into()),
            wait.priority.map(Value::from),
            if case.is_linux() {
                wait.nice.map(Value::from)
            } else {
                wait.rank.map(Value::from)
            },
            readied_by.map(Value::from),
            wait.readying_thread_id.map(Value::from),
        ]);
    }
    evidence
}
