//! Theory: all CPUs were busy.

use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{StoreError, Table};

use crate::ranges::overlap;
use crate::survey::{interrupted_runs, selected_runs, totals};
use crate::system::{run_priority, run_priority_expression};
use crate::thresholds::{
    NOTICED_NS, PARTIAL_CAUSE_PERCENT, SATURATED_NS, SATURATED_PERCENT, is_share,
};
use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Theory, Unit, counted, duration,
    percent, runs,
};

/// Theory about times during which all CPUs were busy, by process and by priority.
pub(crate) struct Saturation;

static ABOUT: About = About {
    id: "saturation",
    name: "busy CPUs",
    question: "Were all CPUs busy, so that ready threads had to wait for one?",
    tables: &[Table::CpuRuns],
    sources: &[],
};

/// Maximum number of processes that a sentence names.
const NAMED: usize = 3;
/// Maximum number of rows of evidence.
const SHOWN: usize = 10;

impl Theory for Saturation {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_asked_of(&self, _is_linux: bool) -> bool {
        true
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let survey = &case.survey;
        if survey.cpus.is_empty() {
            return Ok(Outcome::NotRecorded(
                "the trace has no context switches".to_owned(),
            ));
        }
        if let Some(missing) = survey.complete.missing() {
            return Ok(Outcome::NotRecorded(format!(
                "no events of {missing} are recorded"
            )));
        }
        let stretches = survey
            .load
            .busier_than(SATURATED_PERCENT, survey.cpus.len(), SATURATED_NS);
        // If there is a time range in scope, saturation within it is preferred.
        let matters = |range: &&Range<i64>| {
            let scope_range = case.scope.during.as_ref();
            let then = scope_range.and_then(|scope_range| overlap(range, scope_range));
            (
                then.map_or(0, |then| then.end - then.start),
                range.end - range.start,
            )
        };
        let Some(longest) = stretches.iter().max_by_key(matters) else {
            let because = format!(
                "in every range of {}, the CPUs were busy for less than {SATURATED_PERCENT} % of their time; over \
                 the whole trace, for {} {}",
                duration(SATURATED_NS),
                percent(survey.busy_ns(), survey.awake_cpus_ns(&survey.span)),
                survey.of_their_time(&survey.span)
            );
            let inside_ns: i64 = survey.processes.iter().map(|used| used.interrupts_ns).sum();
            let interrupts_ns = inside_ns.saturating_add(survey.idle_interrupts_ns());
            let sums = [survey.busy_ns(), interrupts_ns];
            let whole = totals(case, "CPU time in the whole trace", None, sums);
            return Ok(Outcome::Against(because, vec![by_cpu(case), whole]));
        };
        let used = CpuTimes::read(case, longest)?;
        let finding = finding(case, longest, &stretches, &used);
        Ok(Outcome::For(vec![survey.doubtful.doubted(finding)]))
    }
}

/// Row of a process in `processes`, and id of the process. A value that is not known is `None`.
type ProcessKey = (Option<u32>, Option<u32>);

/// CPU time within a time range, in nanoseconds.
#[derive(Default)]
struct CpuTimes {
    busy_ns: i64,
    interrupts_ns: i64,
    /// CPU time by process, the process with most time first.
    processes: Vec<(ProcessKey, i64)>,
    /// CPU time by priority, the priority with most time first.
    priorities: Vec<(Option<i8>, i64)>,
}

impl CpuTimes {
    fn read(case: &Case<'_>, range: &Range<i64>) -> Result<CpuTimes, StoreError> {
        const COLUMNS: [&str; 10] = [
            "start_ns",
            "end_ns",
            "cpu_ns",
            "planned_thread_id",
            "cpu",
            "thread_id",
            "process_id",
            "process_row",
            "priority",
            "priority_out",
        ];
        let mut used = CpuTimes::default();
        let mut by_process: FxHashMap<ProcessKey, i64> = FxHashMap::default();
        let mut by_priority: FxHashMap<Option<i8>, i64> = FxHashMap::default();
        let idle_ns = runs::each_within(case, range, &COLUMNS, |view, row, within| {
            let ran_ns = within.cpu_ns + within.inside_ns;
            used.busy_ns = used.busy_ns.saturating_add(ran_ns);
            used.interrupts_ns = used.interrupts_ns.saturating_add(within.inside_ns);
            let process = (view.process_row.get(row), view.process_id.get(row));
            *by_process.entry(process).or_default() += within.cpu_ns;
            let priority = run_priority(case.is_linux(), view, row);
            *by_priority.entry(priority).or_default() += within.cpu_ns;
        })?;
        used.busy_ns = used.busy_ns.saturating_add(idle_ns);
        used.interrupts_ns = used.interrupts_ns.saturating_add(idle_ns);
        used.processes.extend(by_process);
        used.processes.sort_by_key(|(process, ns)| (-ns, *process));
        used.priorities.extend(by_priority);
        used.priorities
            .sort_by_key(|(priority, ns)| (-ns, *priority));
        Ok(used)
    }

    /// Returns the CPU time of threads below normal priority, in nanoseconds. All other threads run before
    /// them.
    fn low_ns(&self, case: &Case<'_>) -> i64 {
        let normal = case.normal_priority();
        let low = self
            .priorities
            .iter()
            .filter(|(priority, _)| priority.is_some_and(|priority| priority < normal));
        low.map(|(_, ns)| *ns).sum()
    }

    /// Returns true if the kernel divided the CPUs among threads of Linux whose waits are all known. Real-time threads
    /// share with no other thread.
    fn is_shared(&self, case: &Case<'_>, cpus_ns: i64) -> bool {
        let times = self.priorities.iter();
        let real_time = times.filter(|(priority, _)| priority.is_none_or(|it| it > 0));
        let real_time_ns: i64 = real_time.map(|(_, ns)| *ns).sum();
        case.is_linux()
            && case.survey.has_ready_events
            && case.scope.has_all_threads()
            && !is_share(real_time_ns, cpus_ns, PARTIAL_CAUSE_PERCENT)
    }

    fn evidence(&self, case: &Case<'_>, range: &Range<i64>) -> [Evidence; 3] {
        let runs = interrupted_runs(case, Some(range));
        let time = Column::new("cpu_ns", "CPU time", Unit::Duration);
        let mut by_process = Evidence::new(
            "CPU time by process in the longest range",
            format!(
                "SELECT process(process_row) AS process, sum(cpu_ns) AS cpu_ns FROM {runs} GROUP BY \
                 process_row, process_id ORDER BY cpu_ns DESC, process_row NULLS FIRST, process_id \
                 NULLS FIRST LIMIT {SHOWN}"
            ),
            &[Column::new("process", "process", Unit::None), time],
        )
        .about(selected_runs(
            case,
            Some(range),
            "process",
            Expression::Process("process_row"),
        ));
        for ((row, _), ns) in self.processes.iter().take(SHOWN) {
            let name = case.process_label(*row).map(Into::into);
            by_process = by_process.row([name, Some((*ns).into())]);
        }
        let mut by_priority = Evidence::new(
            "CPU time by priority in the longest range",
            format!(
                "SELECT priority, sum(cpu_ns) AS cpu_ns FROM {runs} GROUP BY priority ORDER BY cpu_ns \
                 DESC, priority NULLS FIRST LIMIT {SHOWN}"
            ),
            &[Column::new("priority", "priority", Unit::None), time],
        )
        .about(selected_runs(
            case,
            Some(range),
            "priority",
            run_priority_expression(case.is_linux()),
        ));
        for (priority, ns) in self.priorities.iter().take(SHOWN) {
            by_priority = by_priority.row([priority.map(Into::into), Some((*ns).into())]);
        }
        let sums = [self.busy_ns, self.interrupts_ns];
        let all = totals(case, "CPU time in the longest range", Some(range), sums);
        [by_process, by_priority, all]
    }
}

/// Describes the ranges in which all CPUs were busy. If threads below normal priority used much of the time, the
/// finding is only information, because programs of normal priority do not have to wait for these threads. The same is
/// true on Linux, which shares the CPUs among its threads, if no thread waited for a noticeable time.
fn finding(case: &Case<'_>, longest: &Range<i64>, all: &[Range<i64>], used: &CpuTimes) -> Finding {
    let cpus = case.survey.cpus.len();
    let long_ns = longest.end - longest.start;
    let cpus_ns = long_ns.saturating_mul(cpus as i64);
    let first = used.processes.iter().take(NAMED);
    let mut most: Vec<String> = first
        .clone()
        .map(|((row, id), ns)| format!("{} {}", case.processes(*row, *id), percent(*ns, cpus_ns)))
        .collect();
    if is_share(used.interrupts_ns, cpus_ns, 1) {
        let share = percent(used.interrupts_ns, cpus_ns);
        most.push(format!("{} {share}", case.terms().routines));
    }
    let mut sentence = format!(
        "All {cpus} CPUs were busy for {}, from {} to {} ({} of their time): {}.",
        duration(long_ns),
        duration(longest.start),
        duration(longest.end),
        percent(used.busy_ns, cpus_ns),
        most.join(", ")
    );
    if let others @ 1.. = all.len() as u64 - 1 {
        let all_ns: i64 = all.iter().map(|range| range.end - range.start).sum();
        let others_ns = all_ns - long_ns;
        sentence += &format!(
            " They were also busy in {}: {} in total.",
            counted(others, "other time range", "other time ranges"),
            duration(others_ns)
        );
    }
    let subjects = first.filter_map(|((row, id), _)| case.process_subject(*row, *id));
    let low_ns = used.low_ns(case);
    let others_ns = used.busy_ns.saturating_sub(low_ns);
    let is_shared = used.is_shared(case, cpus_ns) && !has_noticed_wait(case, all);
    let is_urgent = is_share(others_ns, cpus_ns, SATURATED_PERCENT) && !is_shared;
    let severity = if is_urgent {
        Severity::Warning
    } else {
        Severity::Information
    };
    let mut finding = Finding::new(&ABOUT, severity, sentence)
        .during(longest.clone())
        .subjects(subjects);
    finding = if is_urgent {
        finding.remedy(
            "Find out which of these programs need to run at all, or at the same time. Give a lower \
             priority to those that may wait",
        )
    } else if is_shared {
        finding.because(format!(
            "Linux gave each thread its share of the CPUs: no ready thread waited for {} or longer in {}.",
            duration(NOTICED_NS),
            match case.scope.during {
                Some(_) => "the requested time",
                None => "this time",
            }
        ))
    } else {
        finding.because(format!(
            "Threads below normal priority used {} of this time. A ready thread of normal priority runs \
             before them{}.",
            percent(low_ns, cpus_ns),
            match case.survey.runs_with_rank {
                0 => "",
                _ => ", unless its rank is worse",
            }
        ))
    };
    finding.evidence.extend(used.evidence(case, longest));
    finding
}

/// Returns true if a ready thread waited for a noticeable time in one of the ranges.
fn has_noticed_wait(case: &Case<'_>, ranges: &[Range<i64>]) -> bool {
    let waits = case.survey.noticed_waits.iter();
    let mut waits = waits.flat_map(|process| &process.ranges);
    waits.any(|wait| ranges.iter().any(|range| overlap(wait, range).is_some()))
}

fn by_cpu(case: &Case<'_>) -> Evidence {
    let doubtful = &case.survey.doubtful;
    let selection = Selection::new(Table::CpuRuns)
        .group_by(&["cpu"])
        .order(&[Order::ascending("cpu")])
        .limit(SHOWN);
    let busy = Expression::sum_if("cpu_ns", doubtful.believed());
    let idle = Expression::sum_if("cpu_ns", Condition::is("thread_id", 0));
    let mut evidence = Evidence::from_selection("Load of each CPU", selection)
        .stored("cpu", "CPU", Unit::None)
        .column("busy_ns", "threads", Unit::Duration, busy)
        .column("idle_ns", "idle thread", Unit::Duration, idle);
    for used in case.survey.cpus.iter().take(SHOWN) {
        let cells = [used.cpu.into(), used.busy_ns.into(), used.idle_ns.into()];
        evidence = evidence.row(cells.map(Some));
    }
    evidence
}
