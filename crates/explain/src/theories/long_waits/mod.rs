//! Why did threads that could run get no CPU for long? For each such wait an argument: every theory
//! is weighed, and what led to the wait is followed back.

mod critical_path;
mod held;
mod holders;
mod path;
mod readier;
mod silence;
mod still_waiting;
pub mod story;
mod waiter;
mod weigh;
mod words;

use std::cmp::Reverse;
use std::ops::Range;

use tables::{StoreError, Table};

use crate::survey::Wait;
use crate::{
    About, Case, Column, Evidence, Finding, Judgement, Outcome, Severity, Source, Theory, Unit,
    Value, Verdict, duration, labels,
};
use held::Held;
use holders::Holders;
use path::{Leg, Runs, Thread};
use still_waiting::StillWaiting;
use waiter::Waiter;
use weigh::{Facts, Weighed};

/// Long waits of ready threads.
pub(crate) struct LongWaits;

pub(crate) static ABOUT: About = About {
    id: "long-waits",
    question: "Did threads that could run get no CPU for long, and why?",
    tables: &[
        Table::CpuRuns,
        Table::ReadyThreads,
        Table::Interrupts,
        Table::Samples,
        Table::Priorities,
        Table::Cpus,
        Table::ProcessFreezes,
        Table::Damages,
        Table::Focus,
        Table::Stacks,
    ],
    record: "context switches and threads made ready, with stacks (xperf -on \
             PROC_THREAD+LOADER+CSWITCH+DISPATCHER -stackwalk CSwitch+ReadyThread, WPR keywords \
             CSwitch and ReadyThread)",
    sources: &[
        Source {
            title: "Bruce Dawson: What Outranks Thread Priority? (randomascii.wordpress.com)",
            url: "",
        },
        Source {
            title: "Windows Internals, 7th edition, part 1, chapter 4: thread scheduling",
            url: "",
        },
        Source {
            title: "Jakob Nielsen: Response Times: The 3 Important Limits (0.1 s, 1 s)",
            url: "https://www.nngroup.com/articles/response-times-3-important-limits/",
        },
    ],
};

static LATE_WAKER: About = About {
    id: "late-waker",
    question: "Was whoever made it ready late for want of a CPU too?",
    tables: &[],
    record: "threads made ready (xperf -on DISPATCHER, WPR keyword ReadyThread)",
    sources: &[],
};

/// Up to here a reaction feels instantaneous (Nielsen).
const NOTICED_NS: i64 = 100_000_000;
/// From here on people's flow of thought is interrupted (Nielsen).
const INTERRUPTS_THOUGHT_NS: i64 = 1_000_000_000;
/// The base priority of the class `normal`: what runs below it is said not to be urgent.
const URGENT_FROM: i8 = 8;
/// At most so many findings.
const FINDINGS: usize = 10;
/// Waits of one process that are shown in one table.
const WAITS_SHOWN: usize = 20;
/// Threads that wait when the trace ends and are looked at.
const STILL_WAITING: usize = 32;
/// How far what led to a wait is followed back.
const STEPS: usize = 20;

impl Theory for LongWaits {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let survey = &case.survey;
        if survey.cpus.is_empty() {
            let why = "the trace has no context switches";
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        let is_asked = case.asked != crate::Asked::default();
        let at_least_ns = if is_asked { 1 } else { NOTICED_NS };
        let waits = survey.longest_waits.iter();
        let mut waiters: Vec<Waiter> = waits
            .filter(|wait| wait.ready_ns >= at_least_ns)
            .map(Waiter::of)
            .collect();
        let mut at_end: Vec<Option<Evidence>> = vec![None; waiters.len()];
        for still in still_waiting::read(case, at_least_ns, STILL_WAITING)? {
            if is_asked_for(case, &still) {
                waiters.push(still.waiter);
                at_end.push(Some(still.evidence));
            }
        }
        let mut findings = critical_path::findings(case)?;
        if !waiters.is_empty() {
            findings.extend(found(case, waiters, at_end)?);
        }
        if findings.is_empty() {
            return Ok(none(case, is_asked));
        }
        Ok(
            match findings.iter().any(|found| found.lost_ns() >= NOTICED_NS) {
                true => Outcome::For(findings),
                false => {
                    let because = format!(
                        "none of {} is known to have lost {} by it",
                        if is_asked {
                            "what is asked for"
                        } else {
                            "them"
                        },
                        duration(NOTICED_NS)
                    );
                    Outcome::Noted(because, findings)
                }
            },
        )
    }
}

fn is_asked_for(case: &Case<'_>, still: &StillWaiting) -> bool {
    let (asked, waiter) = (&case.asked, &still.waiter);
    let is_of_all = asked.threads.is_empty() && asked.processes.is_empty();
    let is_within =
        |during: &Range<i64>| waiter.range.start < during.end && during.start < waiter.range.end;
    asked.during.as_ref().is_none_or(is_within)
        && (is_of_all
            || asked.threads.contains(&waiter.thread_id)
            || (waiter.process_row)
                .is_some_and(|row| case.rows_of_asked_processes().any(|asked| asked == row)))
}

/// What is to be said where nobody waited for long.
fn none(case: &Case<'_>, is_asked: bool) -> Outcome {
    let Some(longest) = case.survey.longest_waits.first() else {
        let because = match is_asked {
            true => "no wait for a CPU is known of what is asked for",
            false => "no wait of a ready thread is known",
        };
        return Outcome::Against(because.to_owned(), Vec::new());
    };
    let because = format!(
        "no thread that could run waited for {} or longer; the longest was {}, of {}",
        duration(NOTICED_NS),
        duration(longest.ready_ns),
        case.process(longest.process_row, longest.process_id),
    );
    Outcome::Against(because, vec![table_of(case, "The longest", &[*longest])])
}

/// A wait, and what is weighed for it.
struct Argued {
    waiter: Waiter,
    held: Held,
    weighed: Weighed,
    /// Of a wait that is not over, the rows that tell so.
    at_end: Option<Evidence>,
}

impl Argued {
    fn lost_ns(&self) -> i64 {
        self.waiter.ready_ns() - self.weighed.not_lost_ns.min(self.waiter.ready_ns())
    }
}

/// Weighs what kept threads from running; the worst waits come first.
fn argue(
    case: &Case<'_>,
    mut waiters: Vec<Waiter>,
    at_end: Vec<Option<Evidence>>,
) -> Result<(Vec<Argued>, Holders), StoreError> {
    waiter::look_up(case, &mut waiters)?;
    let windows: Vec<Range<i64>> = waiters
        .iter()
        .flat_map(|waiter| waiter.priorities.iter().map(|(range, _)| range.clone()))
        .collect();
    let holders = Holders::read(case, &windows)?;
    let facts = Facts::read(case)?;
    let mut argued: Vec<Argued> = Vec::new();
    for (waiter, at_end) in waiters.into_iter().zip(at_end) {
        let held = Held::of(case, &waiter, &holders);
        let weighed = weigh::weigh(case, &facts, &waiter, &held, &holders);
        argued.push(Argued {
            waiter,
            held,
            weighed,
            at_end,
        });
    }
    argued.sort_by_key(|a| Reverse((a.lost_ns(), a.waiter.ready_ns())));
    Ok((argued, holders))
}

fn found(
    case: &Case<'_>,
    waiters: Vec<Waiter>,
    at_end: Vec<Option<Evidence>>,
) -> Result<Vec<Finding>, StoreError> {
    let (argued, holders) = argue(case, waiters, at_end)?;
    // Waits of one process for one cause are one finding; those not over have their own rows.
    let mut groups: Vec<Vec<Argued>> = Vec::new();
    for one in argued {
        let same = |group: &&mut Vec<Argued>| {
            let (a, b) = (&group[0], &one);
            a.waiter.process_row == b.waiter.process_row
                && a.waiter.process_id == b.waiter.process_id
                && a.weighed.cause == b.weighed.cause
                && a.waiter.wait.is_some()
                && b.waiter.wait.is_some()
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    let mut runs = Runs::new(case)?;
    // Beside the worst, what nobody can notice is not told one by one.
    let matters = |(place, group): &(usize, &Vec<Argued>)| {
        *place == 0 || group[0].waiter.ready_ns() >= NOTICED_NS / 100
    };
    let groups = groups.iter().enumerate().filter(matters);
    let groups = groups.map(|(_, group)| group).take(FINDINGS);
    groups
        .map(|group| finding(case, group, &holders, &mut runs))
        .collect()
}

/// What is to be said of the waits of a process for one cause, the worst first.
fn finding(
    case: &Case<'_>,
    group: &[Argued],
    holders: &Holders,
    runs: &mut Runs<'_>,
) -> Result<Finding, StoreError> {
    let worst = &group[0];
    let waiter = &worst.waiter;
    let lost_ns = lost_in_all(group).min(case.survey.span_ns());
    let longest_lost_ns = worst.lost_ns();
    let is_urgent = waiter.priority().is_none_or(|p| p >= URGENT_FROM);
    let severity = match longest_lost_ns {
        INTERRUPTS_THOUGHT_NS.. if is_urgent => Severity::Problem,
        INTERRUPTS_THOUGHT_NS.. => Severity::Warning,
        NOTICED_NS.. if is_urgent => Severity::Warning,
        _ => Severity::Information,
    };
    let mut finding =
        Finding::new(&ABOUT, severity, words::sentence(case, group)).during(waiter.range.clone());
    if lost_ns > 0 {
        finding = finding.costing(lost_ns, words::cost(case, group));
    }
    let process = case.process(waiter.process_row, waiter.process_id);
    let waits: Vec<Wait> = group.iter().filter_map(|one| one.waiter.wait).collect();
    if let Some(still) = &worst.at_end {
        finding = finding.with(still.clone());
    } else {
        let title = format!("Waits of {process} for a CPU");
        finding = finding.with(table_of(
            case,
            &title,
            &waits[..waits.len().min(WAITS_SHOWN)],
        ));
    }
    finding = finding
        .with(worst.held.evidence(waiter, &holders.silences))
        .with(held::by_rank_and_priority(waiter, holders))
        .with(worst.weighed.who_ran.clone());
    finding.weighed = worst.weighed.verdicts.clone();
    if let Some(wait) = &waiter.wait {
        let from = wait.previous_out_ns.unwrap_or(case.survey.span.start);
        let thread = Thread {
            id: wait.thread_id,
            row: wait.thread_row,
        };
        let legs = path::path(runs, thread, &(from..wait.start_ns), STEPS)?;
        if !legs.is_empty() {
            let title = "What led to it, step by step back in time";
            finding = finding.with(path::evidence(case, title, &legs));
            let waker = late_waker(case, wait, &legs)?;
            finding.weighed.push(waker);
        }
    }
    for remedy in words::remedies(worst, &process) {
        finding = finding.remedy(remedy);
    }
    for doubt in words::doubts(case, worst) {
        finding = finding.doubt(doubt);
    }
    Ok(finding)
}

/// Time on the clock during which at least one of the waits cost something.
fn lost_in_all(group: &[Argued]) -> i64 {
    let mut lost: Vec<(Range<i64>, i64)> = group
        .iter()
        .map(|one| (one.waiter.range.clone(), one.lost_ns()))
        .filter(|(_, lost)| *lost > 0)
        .collect();
    lost.sort_by_key(|(range, _)| range.start);
    let (mut reached, mut sum) = (i64::MIN, 0);
    for (range, lost_ns) in lost {
        let new = range.end.saturating_sub(range.start.max(reached)).max(0);
        sum += new.min(lost_ns);
        reached = reached.max(range.end);
    }
    sum
}

/// Who made the thread ready, and whether that was late.
fn late_waker(case: &Case<'_>, wait: &Wait, legs: &[Leg]) -> Result<Verdict, StoreError> {
    if wait.readied_ns.is_none() {
        let because = "Nothing made it ready: it had lost its CPU while it could still run.";
        return Ok(Verdict::new(&LATE_WAKER, Judgement::Against, because));
    }
    let by = match wait.readied_by_dpc {
        Some(true) => "a DPC".to_owned(),
        _ => {
            let process = case.process(wait.readying_process_row, wait.readying_process_id);
            let thread = wait.readying_thread_id;
            thread.map_or("something unknown".to_owned(), |thread| {
                format!("thread {thread} of {process}")
            })
        }
    };
    let function = readier::function(case, wait)?;
    let function = function.map_or(String::new(), |function| format!(", in {function}"));
    let waited = match (wait.waits_ns, wait.previous_wait_reason) {
        (Some(ns), Some(reason)) if ns > 0 => format!(
            " It had waited for {} before ({}).",
            duration(ns),
            labels::wait_reason(reason)
        ),
        _ => String::new(),
    };
    let others = legs
        .iter()
        .filter(|leg| leg.run.thread_id != wait.thread_id);
    let was_ready: i64 = others.map(|leg| leg.parts()[1]).sum();
    let (judgement, late) = match was_ready {
        NOTICED_NS.. => (
            Judgement::For,
            format!(
                " Those that led to this were ready for {} themselves.",
                duration(was_ready)
            ),
        ),
        _ => (Judgement::Against, String::new()),
    };
    let because = format!("{by}{function} made it ready.{waited}{late}");
    Ok(Verdict::new(&LATE_WAKER, judgement, first_upper(&because)))
}

fn first_upper(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next();
    first.map_or(String::new(), |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// Waits as rows of `cpu_runs`, the longest first.
fn table_of(case: &Case<'_>, title: &str, waits: &[Wait]) -> Evidence {
    let mut waits = waits.to_vec();
    waits.sort_by_key(|wait| Reverse((wait.ready_ns, wait.start_ns, wait.end_ns, wait.cpu)));
    let these: Vec<String> = waits
        .iter()
        .map(|wait| format!("({}, {}, {})", wait.thread_id, wait.cpu, wait.start_ns))
        .collect();
    let query = format!(
        "SELECT process(process_row) AS process, thread_id, start_ns - ready_ns AS ready_from_ns, \
         start_ns, ready_ns, since_last_ns, waits_ns, readied_ns, cpu, priority, coalesce(rank_out, \
         previous_rank) AS rank, CASE WHEN readied_by_dpc THEN 'a DPC' ELSE \
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
        Column::new("since_last_ns", "since it ran last", Unit::Duration),
        Column::new("waits_ns", "had waited", Unit::Duration),
        Column::new("readied_ns", "made ready", Unit::Moment),
        Column::new("cpu", "CPU", Unit::None),
        Column::new("priority", "priority", Unit::None),
        Column::new("rank", "rank", Unit::None),
        Column::new("readied_by", "readied by", Unit::None),
        Column::new("readying_thread_id", "its thread", Unit::None),
    ];
    let mut evidence = Evidence::new(title, query, &columns);
    for wait in &waits {
        let process = case.process_label(wait.process_row);
        let readied_by = match wait.readied_by_dpc {
            Some(true) => Some("a DPC".to_owned()),
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
            wait.rank.map(Value::from),
            readied_by.map(Value::from),
            wait.readying_thread_id.map(Value::from),
        ]);
    }
    evidence
}
