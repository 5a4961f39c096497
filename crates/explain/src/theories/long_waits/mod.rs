//! Theory: ready threads got no CPU for long. For each such wait, all possible causes are examined,
//! and the chain of events that led to the wait is followed back in time.

mod critical_path;
mod doubts;
mod edge_wait;
pub mod late;
mod readier;
pub mod story;
mod unfinished_wait;
mod words;

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashSet;
use tables::{StoreError, Table};

use crate::chain::cpu_wait::group::{self, Group};
#[cfg(test)]
use crate::chain::cpu_wait::weigh;
use crate::chain::cpu_wait::weigh::{Cause, Facts};
use crate::chain::cpu_wait::{Advice, driver, examine_causes, linux, wait_table};
use crate::chain::holder_times;
use crate::chain::holders::Holders;
use crate::chain::path::{self, Leg, Runs, Thread};
use crate::chain::waiter::Waiter;
use crate::survey::Wait;
use crate::thresholds::NOTICED_NS;
use crate::{
    About, Case, Evidence, Finding, Judgement, Name, Outcome, Source, Theory, Verdict, duration,
};
use edge_wait::EdgeWait;

/// Theory about long waits of ready threads for a CPU.
pub(crate) struct LongWaits;

pub(crate) static ABOUT: About = About {
    id: "long-waits",
    name: "waits for a CPU",
    question: "Did ready threads wait long for a CPU, and why?",
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
    sources: &[
        Source {
            title: "Bruce Dawson: What Outranks Thread Priority? (randomascii.wordpress.com)",
            url: None,
        },
        Source {
            title: "Windows Internals, 7th edition, part 1, chapter 4: thread scheduling",
            url: None,
        },
        Source {
            title: "Jakob Nielsen: Response Times: The 3 Important Limits (0.1 s, 1 s)",
            url: Some("https://www.nngroup.com/articles/response-times-3-important-limits/"),
        },
    ],
};

static LATE_WAKER: About = About {
    id: "late-waker",
    name: "a late waker",
    question: "Was the readying thread late, because it had to wait for a CPU?",
    tables: &[],
    sources: &[],
};

/// Causes that are examined for a wait in a trace of Windows. Tests use this list.
#[cfg(test)]
pub(super) static CAUSES: &[&About] = &[
    &weigh::PRIORITY,
    &weigh::QUANTUM,
    &weigh::RANK,
    &weigh::DISPATCHER,
    &weigh::INTERRUPTS,
    &weigh::AFFINITY,
    &weigh::PAGED_OUT,
    &weigh::FROZEN,
    &weigh::SUSPENDED,
    &weigh::LOST,
    &LATE_WAKER,
];

/// Maximum number of findings.
const FINDINGS: usize = 10;
/// Maximum number of waits examined, in addition to the longest waits in scope.
const WEIGHED: usize = 128;
/// Maximum number of waits of one process in a table of evidence.
const WAITS_SHOWN: usize = 20;
/// Maximum number of examined threads that still wait when the trace ends.
const STILL_WAITING: usize = 32;
/// Maximum number of steps that are followed back from a wait.
const STEPS: usize = 20;

impl Theory for LongWaits {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    /// Returns true, because only waits of threads and times in scope are examined.
    fn is_scoped(&self) -> bool {
        true
    }

    fn is_asked_of(&self, _is_linux: bool) -> bool {
        true
    }

    fn main_delays(&self) -> Option<&'static str> {
        Some("waits for a CPU")
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let survey = &case.survey;
        if survey.cpus.is_empty() {
            let why = "the trace has no context switches";
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        let is_asked = case.scope != crate::Scope::default();
        let at_least_ns = if is_asked { 1 } else { NOTICED_NS };
        let mut waiters: Vec<Waiter> = to_be_weighed(case, is_asked)
            .iter()
            .map(Waiter::new)
            .collect();
        let mut in_part: Vec<Option<Evidence>> = vec![None; waiters.len()];
        let at_start = edge_wait::since_before(case, STILL_WAITING)?;
        let at_end = edge_wait::read(case, at_least_ns, STILL_WAITING)?;
        for still in at_start.into_iter().chain(at_end) {
            if is_asked_for(case, &still) {
                waiters.push(still.waiter);
                in_part.push(Some(still.evidence));
            }
        }
        let mut findings = critical_path::findings(case)?;
        if !waiters.is_empty() {
            findings.extend(findings_about(case, waiters, in_part, is_asked)?);
        }
        if findings.is_empty() {
            if let Some(missing) = survey.complete.missing() {
                return Ok(Outcome::NotRecorded(format!(
                    "no events of {missing} are recorded, and threads may have run there unseen"
                )));
            }
            if !survey.has_ready_events {
                let why = "no thread that lost its CPU waited long, but waits of threads that were readied are not \
                           recorded";
                return Ok(Outcome::NotRecorded(why.to_owned()));
            }
            return Ok(none(case, is_asked));
        }
        Ok(
            if findings.iter().any(|found| found.delay_ns() >= NOTICED_NS) {
                Outcome::For(findings)
            } else {
                let because = format!(
                    "no {} is known to have waited for a CPU for {} or longer; the shorter waits are \
                         listed",
                    if is_asked {
                        "requested thread"
                    } else {
                        "thread"
                    },
                    duration(NOTICED_NS)
                );
                Outcome::Noted(because, findings)
            },
        )
    }
}

fn is_asked_for(case: &Case<'_>, still: &EdgeWait) -> bool {
    let (scope, waiter) = (&case.scope, &still.waiter);
    let is_within =
        |during: &Range<i64>| waiter.range.start < during.end && during.start < waiter.range.end;
    scope.during.as_ref().is_none_or(is_within)
        && (scope.has_all_threads()
            || scope.threads.contains(&waiter.thread_id)
            || (waiter.process_row)
                .is_some_and(|row| scope.process_rows(&case.names).any(|named| named == row)))
}

/// Returns the longest waits. The longest wait of each process comes before the second wait of any
/// process, so that a process with many waits does not hide others.
fn to_be_weighed(case: &Case<'_>, is_asked: bool) -> Vec<Wait> {
    let survey = &case.survey;
    let of_process = |waits| (0..).zip(waits);
    let noticed = survey.noticed_waits.iter();
    let mut waits: Vec<(usize, &Wait)> = noticed
        .flat_map(|noticed| of_process(&noticed.longest))
        .collect();
    waits.sort_by_key(|(place, wait)| (*place, Reverse(**wait)));
    waits.truncate(WEIGHED);
    let longest = survey.longest_waits.iter().filter(|_| is_asked);
    let mut seen = FxHashSet::default();
    let waits = waits.into_iter().map(|(_, wait)| wait).chain(longest);
    waits
        .filter(|wait| seen.insert((wait.thread_id, wait.cpu, wait.start_ns)))
        .copied()
        .collect()
}

/// Returns the answer if no thread waited for long.
fn none(case: &Case<'_>, is_asked: bool) -> Outcome {
    let Some(longest) = case.survey.longest_waits.first() else {
        let because = if is_asked {
            "no wait for a CPU of the requested threads is known"
        } else {
            "no wait of a ready thread is known"
        };
        return Outcome::Against(because.to_owned(), Vec::new());
    };
    let because = format!(
        "no ready thread waited for {} or longer{}; the longest wait was {}, of {}",
        duration(NOTICED_NS),
        match longest.ready_ns {
            NOTICED_NS.. => format!(" except while {}", case.survey.suspend_gaps.clause()),
            _ => String::new(),
        },
        duration(longest.ready_ns),
        case.process(longest.process_row, longest.process_id),
    );
    Outcome::Against(
        because,
        vec![wait_table(case, "The longest wait", &[*longest])],
    )
}

fn findings_about(
    case: &Case<'_>,
    waiters: Vec<Waiter>,
    in_part: Vec<Option<Evidence>>,
    is_asked: bool,
) -> Result<Vec<Finding>, StoreError> {
    let facts = Facts::read(case)?;
    let (waits, holders) = examine_causes(case, &facts, waiters, in_part)?;
    let groups = group::grouped(case, &facts, waits, &holders)?;
    let mut runs = Runs::new(case)?;
    let matters = |(place, group): &(usize, &Group<'_>)| {
        let worst = group.worst();
        // A wait may consist mainly of a suspend gap. The group of this wait is left out, because suspend gaps have a
        // separate finding.
        let slept = worst.weighed.cause == Some(Cause::Suspended) && group.delay_ns < NOTICED_NS;
        if is_asked {
            // If the user asked about waits, the first group is always reported. Other groups are reported if their
            // worst wait is long enough.
            *place == 0 || worst.waiter.ready_ns() >= NOTICED_NS / 100
        } else {
            !slept
        }
    };
    let groups = groups.iter().enumerate().filter(matters);
    let groups = groups.map(|(_, group)| group).take(FINDINGS);
    groups
        .map(|group| finding(case, group, &holders, &mut runs))
        .collect()
}

fn finding(
    case: &Case<'_>,
    group: &Group<'_>,
    holders: &Holders,
    runs: &mut Runs<'_>,
) -> Result<Finding, StoreError> {
    let worst = group.worst();
    let waiter = &worst.waiter;
    let driver = driver(case, group)?;
    let sentence = words::sentence(case, group, driver.as_ref());
    let mut finding = Finding::new(&ABOUT, group.severity, sentence)
        .subjects(words::subjects(case, group))
        .attention(group.attention)
        .during(waiter.range.clone())
        .moments(group.ranges());
    if group.delay_ns > 0 {
        finding = finding.delay(group.delay_ns, words::cost(case, group));
    }
    let process = case.process(waiter.process_row, waiter.process_id);
    let whole = group.waits.iter().filter(|one| one.in_part.is_none());
    let whole = whole.filter_map(|one| one.waiter.wait).take(WAITS_SHOWN);
    let whole: Vec<Wait> = whole.collect();
    if !whole.is_empty() {
        let title = format!("Waits of {process} for a CPU");
        finding = finding.with(wait_table(case, &title, &whole));
    }
    for (title, is_at_end) in [
        (
            "First runs of threads that were ready before the recording began",
            false,
        ),
        ("Threads that were still ready when the trace ended", true),
    ] {
        let groups = std::iter::once(group).chain(&group.others);
        let waits = groups.flat_map(|group| &group.waits);
        let in_part = waits.filter(|one| one.waiter.wait.is_none() == is_at_end);
        let in_part = in_part.filter_map(|one| one.in_part.as_ref());
        finding.evidence.extend(edge_wait::together(title, in_part));
    }
    finding.evidence.extend(group.evidence(case));
    finding.evidence.extend(waiter.certain.clone());
    finding = finding
        .with(worst.times.evidence(waiter, &case.survey.suspend_gaps))
        .with(holder_times::by_precedence(waiter, holders))
        .with(group.who_ran.evidence.clone());
    finding.weighed = worst.weighed.verdicts.clone();
    if let Some(wait) = waiter.wait.filter(|_| waiter.is_whole()) {
        let from = wait.previous_out_ns.unwrap_or(case.survey.span.start);
        let thread = Thread {
            id: wait.thread_id,
            row: wait.thread_row,
        };
        let legs = path::path(runs, thread, &(from..wait.start_ns), STEPS)?;
        if !legs.is_empty() {
            let title = "What led to it, step by step, latest first";
            finding = finding.with(path::evidence(case, title, &legs));
            let waker = late_waker(case, &wait, &legs)?;
            finding.weighed.push(waker);
        }
    }
    finding = Advice::read(case, group, driver)?.add_to(finding);
    if case.is_linux() {
        finding = linux::add_details(case, finding, group)?;
    }
    for doubt in words::doubts(case, worst) {
        finding = finding.doubt(doubt);
    }
    Ok(finding)
}

/// Returns the verdict about the thread that readied the waiting thread. The verdict names this thread, and says if the
/// threads that led to the event were late themselves.
fn late_waker(case: &Case<'_>, wait: &Wait, legs: &[Leg]) -> Result<Verdict, StoreError> {
    if wait.readied_ns.is_none() {
        let because = "No event readied it: it had lost its CPU while it was still ready.";
        return Ok(Verdict::new(&LATE_WAKER, Judgement::Against, because));
    }
    let by = match wait.readied_by_dpc {
        Some(true) => case.terms().a_routine.to_owned(),
        _ => {
            let process = case.process(wait.readying_process_row, wait.readying_process_id);
            let thread = wait.readying_thread_id;
            thread.map_or("something unknown".to_owned(), |thread| {
                format!("thread {thread} of {process}")
            })
        }
    };
    let function = readier::function(case, wait)?;
    let function = function.map_or(String::new(), |function| {
        format!(" (in {})", Name(&function))
    });
    let waited = match (wait.waits_ns, wait.waited_for()) {
        (Some(ns), Some(reason)) if ns > 0 => format!(
            " Before this, it had waited for {} (wait reason {reason}).",
            duration(ns)
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
                " The threads that led to this event, one after the other, were themselves ready \
                 without a CPU for {}.",
                duration(was_ready)
            ),
        ),
        _ => (Judgement::Against, String::new()),
    };
    let because = format!(
        "Thread {} was readied by {by}{function}.{waited}{late}",
        wait.thread_id
    );
    Ok(Verdict::new(&LATE_WAKER, judgement, because))
}
