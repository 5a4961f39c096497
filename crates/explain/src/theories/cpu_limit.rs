//! Theory: a limit on CPU time stopped programs of Linux (`cpu.max` of a cgroup, and the limits of real-time and
//! deadline threads).

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::{CpuRunsView, LimitPeriodsView, StoreError, Table};

use crate::ranges::union;
use crate::thread_state::READY;
use crate::thresholds::{CAUSE_PERCENT, DISRUPTIVE_NS, NOTICED_NS, is_share};
use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Source, Subject, Theory, Unit,
    Value, counted, duration,
};

/// Theory about limits on CPU time.
pub(crate) struct CpuLimit;

static ABOUT: About = About {
    id: "cpu-limit",
    name: "CPU limits",
    question: "Did a limit on CPU time stop threads that could have run?",
    tables: &[Table::CpuRuns, Table::LimitPeriods],
    sources: &[
        Source {
            title: "Linux kernel: CFS bandwidth control",
            url: Some("https://docs.kernel.org/scheduler/sched-bwc.html"),
        },
        Source {
            title: "Linux kernel: real-time group scheduling (sched_rt_runtime_us)",
            url: Some("https://docs.kernel.org/scheduler/sched-rt-group.html"),
        },
    ],
};

/// Longest time from the end of a limit's period to the run of a thread that the limit had stopped, in nanoseconds. On
/// an idle CPU it is 14 to 62 µs (measured). On a busy CPU, other threads may first end their slices.
const AFTER_PERIOD_NS: i64 = 10_000_000;
/// Shortest wait that counts, in nanoseconds. Periods last for a millisecond or longer.
const SHORTEST_NS: i64 = 500_000;
/// Maximum number of findings.
const FINDINGS: usize = 6;
/// Maximum number of rows of evidence.
const SHOWN: usize = 12;

impl Theory for CpuLimit {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn is_scoped(&self) -> bool {
        true
    }

    fn is_asked_of(&self, is_linux: bool) -> bool {
        is_linux
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let periods = Periods::read(case)?;
        if periods.0.is_empty() {
            let why = "no timer of a CPU limit expired: either no limit was in use, or the timers or the \
                addresses of their functions were not recorded";
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        let mut processes: Vec<ProcessStops> = read(case, &periods)?;
        processes.retain(|stopped| stopped.delay_ns() >= NOTICED_NS);
        if processes.is_empty() {
            let because = format!(
                "no limit stopped the threads of a process for {} or longer in total",
                duration(NOTICED_NS)
            );
            return Ok(Outcome::Against(because, Vec::new()));
        }
        processes.sort_by_key(|stopped| Reverse(stopped.delay_ns()));
        processes.truncate(FINDINGS);
        Ok(Outcome::For(
            processes
                .iter()
                .map(|stopped| stopped.finding(case))
                .collect(),
        ))
    }
}

/// Ends of the periods of limits, in order of time. Each entry has the time in nanoseconds and the kind of the limit.
struct Periods(Vec<(i64, String)>);

impl Periods {
    fn read(case: &Case<'_>) -> Result<Periods, StoreError> {
        let table = case.table(Table::LimitPeriods)?;
        let mut periods = Vec::new();
        for batch in case.batches(&table, i64::MIN..i64::MAX, &["time_ns", "kind"]) {
            let batch = batch?;
            let view = LimitPeriodsView::new(&batch)?;
            periods.extend((0..view.len()).map(|row| {
                let kind = view.kind.get(row).unwrap_or_default();
                (view.time_ns[row], kind.to_owned())
            }));
        }
        periods.sort();
        Ok(Periods(periods))
    }

    /// Returns the last end of a period that lies shortly before the end of a wait, and the kind of the limit. Only
    /// limits that apply to threads of this priority count.
    fn that_ended(&self, wait: &Range<i64>, priority: i8) -> Option<(i64, &str)> {
        let from_ns = wait.start.max(wait.end.saturating_sub(AFTER_PERIOD_NS));
        let after = self.0.partition_point(|(at, _)| *at <= wait.end);
        let before = self.0[..after].iter().rev();
        let (at, kind) = before
            .take_while(|(at, _)| *at > from_ns)
            .find(|(_, kind)| is_for(kind, priority))?;
        Some((*at, kind))
    }
}

/// Returns true if this kind of limit applies to threads of this priority. A fair thread has priority 0, a deadline
/// thread has priority 100.
fn is_for(kind: &str, priority: i8) -> bool {
    match kind {
        "real_time" => (1..100).contains(&priority),
        "deadline" => priority >= 100,
        _ => priority <= 0,
    }
}

/// Wait that a limit probably caused: the wait ended shortly after a period of the limit.
#[derive(Clone, Copy)]
struct Stop {
    thread_id: u32,
    thread_row: Option<u32>,
    /// CPU of the run after the wait.
    cpu: u16,
    since_ns: i64,
    /// End of the limit's period. After this time, the limit no longer stopped the thread, and it waited for a CPU like
    /// other threads.
    period_ns: i64,
    start_ns: i64,
}

impl Stop {
    fn ready_ns(&self) -> i64 {
        self.start_ns - self.since_ns
    }
}

/// Waits of the threads of one process that the same kind of limit probably caused.
struct ProcessStops {
    kind: String,
    process_row: Option<u32>,
    process_id: Option<u32>,
    stops: Vec<Stop>,
}

/// Row and id of a process, as far as they are known.
type ProcessKey = (Option<u32>, Option<u32>);

/// Finds the waits of threads that lost their CPU while they were ready, and ran again shortly after a period of a
/// limit ended.
fn read(case: &Case<'_>, periods: &Periods) -> Result<Vec<ProcessStops>, StoreError> {
    const COLUMNS: [&str; 10] = [
        "start_ns",
        "cpu",
        "thread_id",
        "thread_row",
        "process_id",
        "process_row",
        "previous_state",
        "priority",
        "ready_ns",
        "ran_unseen",
    ];
    let during = case.scope.during.clone().unwrap_or(i64::MIN..i64::MAX);
    let scope_rows: Vec<u32> = case.scope.process_rows(&case.names).collect();
    let is_asked = |thread: u32, process: Option<u32>| {
        case.scope.has_all_threads()
            || case.scope.threads.contains(&thread)
            || process.is_some_and(|row| scope_rows.contains(&row))
    };
    let mut processes: FxHashMap<(String, ProcessKey), ProcessStops> = FxHashMap::default();
    // Time of all waits of ready threads that lost their CPU, by process.
    let mut all_ns: FxHashMap<ProcessKey, i64> = FxHashMap::default();
    let table = case.table(Table::CpuRuns)?;
    for batch in case.batches(&table, during.start..i64::MAX, &COLUMNS) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        for row in 0..view.len() {
            let Some(ready_ns) = view.ready_ns.get(row).filter(|ns| *ns >= SHORTEST_NS) else {
                continue;
            };
            let (start_ns, thread_id) = (view.start_ns[row], view.thread_id[row]);
            let since_ns = start_ns - ready_ns;
            let is_then = since_ns < during.end && during.start < start_ns;
            if !is_then
                || view.previous_state.get(row) != Some(READY)
                || view.ran_unseen.get(row) == Some(true)
                || !is_asked(thread_id, view.process_row.get(row))
            {
                continue;
            }
            let process = (view.process_row.get(row), view.process_id.get(row));
            *all_ns.entry(process).or_default() += ready_ns;
            let priority = view.priority.get(row);
            let Some((period_ns, kind)) =
                priority.and_then(|own| periods.that_ended(&(since_ns..start_ns), own))
            else {
                continue;
            };
            let key = (kind.to_owned(), process);
            let stopped = processes.entry(key).or_insert_with(|| ProcessStops {
                kind: kind.to_owned(),
                process_row: process.0,
                process_id: process.1,
                stops: Vec::new(),
            });
            stopped.stops.push(Stop {
                thread_id,
                thread_row: view.thread_row.get(row),
                cpu: view.cpu[row],
                since_ns,
                period_ns,
                start_ns,
            });
        }
    }
    // On a busy CPU, a wait can happen to end shortly after a period of another process's limit. So a limit counts
    // only if its waits are at least half of the process's waiting time.
    let is_of_limit = |stopped: &ProcessStops| {
        let all_ns = all_ns.get(&(stopped.process_row, stopped.process_id));
        let ns = stopped.stops.iter().map(Stop::ready_ns).sum();
        all_ns.is_some_and(|all_ns| is_share(ns, *all_ns, CAUSE_PERCENT))
    };
    Ok(processes.into_values().filter(is_of_limit).collect())
}

impl ProcessStops {
    /// Returns the time during which a limit stopped at least one of the threads, in nanoseconds.
    fn delay_ns(&self) -> i64 {
        let ranges = self.stops.iter().map(|stop| stop.since_ns..stop.period_ns);
        union(ranges.collect())
            .iter()
            .map(|range| range.end - range.start)
            .sum()
    }

    fn finding(&self, case: &Case<'_>) -> Finding {
        let process = case.process(self.process_row, self.process_id);
        let delay_ns = self.delay_ns();
        let lengths = self.stops.iter().map(|stop| stop.period_ns - stop.since_ns);
        let longest_ns = lengths.max().unwrap_or(0);
        let (limit, remedy) = match self.kind.as_str() {
            "real_time" => (
                "the limit of real-time threads (95 % of each second by default)",
                format!(
                    "Let {process} block more often, or give it the policy SCHED_DEADLINE with a budget. Only if \
                     the CPU has nothing else to do: sysctl kernel.sched_rt_runtime_us=-1."
                ),
            ),
            "deadline" => (
                "its own budget as a deadline thread",
                format!("Give {process} a larger runtime (chrt -d -T), or less work in a period."),
            ),
            _ => (
                "the quota of its cgroup (cpu.max)",
                format!(
                    "Raise the quota of the cgroup of {process} (cpu.max, or the CPU limit of its container), allow \
                     bursts (cpu.max.burst), or let it use fewer threads, which share the quota. The \
                     file cpu.stat of the cgroup counts these stops (nr_throttled)."
                ),
            ),
        };
        let sentence = format!(
            "{process} was stopped {} for {} in total, {} at most, by {limit}, although its threads were ready.",
            counted(self.stops.len() as u64, "time", "times"),
            duration(delay_ns),
            duration(longest_ns),
        );
        let severity = match delay_ns {
            DISRUPTIVE_NS.. => Severity::Problem,
            _ => Severity::Warning,
        };
        let start = self.stops.iter().map(|stop| stop.since_ns).min();
        let end = self.stops.iter().map(|stop| stop.start_ns).max();
        let threads = self
            .stops
            .iter()
            .map(|stop| (stop.thread_id, stop.thread_row));
        let mut threads: Vec<(u32, Option<u32>)> = threads.collect();
        threads.sort_unstable();
        threads.dedup();
        Finding::new(&ABOUT, severity, sentence)
            .subjects(threads.into_iter().map(|(id, row)| Subject::Thread {
                id,
                row,
                process_row: self.process_row,
            }))
            .subjects(case.process_subject(self.process_row, self.process_id))
            .during(start.unwrap_or(0)..end.unwrap_or(0))
            .delay(delay_ns, format!("of {process}, simultaneous waits counted once"))
            .with(self.evidence())
            .remedy(remedy)
            .doubt(
                "The recording has no stops by a limit, only the timer that ends a period of the limit. A wait \
                 counts as a stop if the thread was ready, lost its CPU without blocking, and ran within 10 ms after \
                 the timer",
            )
    }

    /// Returns evidence with the longest waits.
    fn evidence(&self) -> Evidence {
        let mut stops = self.stops.clone();
        stops.sort_unstable_by_key(|stop| {
            (
                Reverse(stop.ready_ns()),
                stop.start_ns,
                stop.cpu,
                stop.thread_id,
            )
        });
        stops.truncate(SHOWN);
        let these: Vec<String> = stops
            .iter()
            .map(|stop| format!("({}, {}, {})", stop.thread_id, stop.cpu, stop.start_ns))
            .collect();
        let query = format!(
            "SELECT thread_id, ready_ns, start_ns, cpu FROM cpu_runs JOIN (VALUES {}) AS these (thread, on_cpu, \
             from_ns) ON thread_id = thread AND cpu = on_cpu AND start_ns = from_ns ORDER BY ready_ns DESC, \
             start_ns, cpu, thread_id",
            these.join(", ")
        );
        let columns = [
            Column::new("thread_id", "thread", Unit::None),
            Column::new("ready_ns", "was ready", Unit::Duration),
            Column::new("start_ns", "ran at", Unit::Moment),
            Column::new("cpu", "CPU", Unit::None),
        ];
        let evidence = Evidence::new("Longest stops by the limit", query, &columns);
        stops.into_iter().fold(evidence, |evidence, stop| {
            evidence.row([
                Some(Value::from(stop.thread_id)),
                Some(stop.ready_ns().into()),
                Some(stop.start_ns.into()),
                Some(stop.cpu.into()),
            ])
        })
    }
}
