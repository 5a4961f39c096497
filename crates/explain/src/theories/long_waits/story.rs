//! Description of one moment of a thread: the thread's activity, the reason for its wait, the event that
//! ended the wait, and the reason why the thread did not run at once.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use serde::Serialize;
use tables::{CpuRunsView, Functions, Identities, Options, Store, StoreError, Table};
use ts_rs::TS;

use super::group::Group;
pub use super::path::Thread;
use super::path::{self, Leg, Runs};
use super::waiter::Waiter;
use super::weigh::Facts;
use super::{STEPS, readier};
use crate::survey::{self, Wait};
use crate::{Case, Evidence, Finding, Reader, Survey, Verdict, duration, labels};

/// Description of a moment of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct Story {
    /// Described thread.
    pub thread: Named,
    /// Moment, in nanoseconds since the trace's start.
    pub at_ns: i64,
    /// State of the thread at the moment.
    pub kind: Doing,
    /// Run of the thread at the moment. If the thread was not running, it is the thread's next run.
    pub run: Option<Ran>,
    /// Events of the thread, in order of time.
    pub story: Vec<Event>,
    /// Possible causes of the wait for a CPU, each with its verdict.
    pub theories: Vec<Verdict>,
    /// Findings about the wait for a CPU.
    pub findings: Vec<Finding>,
    /// Chain of events that led to the run, the latest first.
    pub chain: Vec<Link>,
}

/// A thread and its process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, TS)]
pub struct Named {
    /// Id of the thread.
    pub id: u32,
    /// Row of the thread in the table `threads`.
    pub row: Option<u32>,
    /// Name that the program gave to the thread.
    pub name: Option<String>,
    /// Name and id of the thread's process.
    pub process: Option<String>,
}

/// State of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Doing {
    /// The thread has a CPU.
    Running,
    /// The thread is ready and has no CPU.
    Ready,
    /// The thread waits for something other than a CPU.
    Waiting,
    /// The trace does not record the state of the thread.
    Unknown,
}

/// A run of the thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, TS)]
pub struct Ran {
    /// Number of the CPU.
    pub cpu: u16,
    /// Start, in nanoseconds since the trace's start.
    pub start_ns: i64,
    /// End, in nanoseconds since the trace's start.
    pub end_ns: i64,
    /// Priority of the thread at the start of the run.
    pub priority: Option<i8>,
    /// Rank of the thread. The thread has a rank at the end of the run and a rank at the last switch-out
    /// before the run; this is the worse of the two.
    pub rank: Option<u8>,
}

/// Kind of an [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "StoryEventKind")]
pub enum EventKind {
    /// The thread lost or gave up its CPU.
    SwitchedOut,
    /// The thread was readied.
    Readied,
    /// The thread was ready while other threads had the CPUs.
    WaitedBehind,
    /// The thread ran.
    Ran,
}

/// Event in the description of a thread. Fields that do not apply to its kind are `None`.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
#[ts(rename = "StoryEvent")]
pub struct Event {
    /// Kind of the event.
    pub kind: EventKind,
    /// Time of the event, or its start if it lasted for some time, in nanoseconds since the trace's
    /// start.
    pub at_ns: i64,
    /// End of the event, if it lasted for some time.
    pub until_ns: Option<i64>,
    /// Sentence that describes the event.
    pub sentence: String,
    /// Number of the CPU.
    pub cpu: Option<u16>,
    /// Other thread that caused the event.
    pub thread: Option<Named>,
    /// State that the thread entered.
    pub state: Option<String>,
    /// Wait reason of the thread in this state.
    pub wait_reason: Option<String>,
    /// Priority of the thread.
    pub priority: Option<i8>,
    /// Rank of the thread.
    pub rank: Option<u8>,
    /// Call stack of the thread, with the innermost function first.
    pub stack: Vec<String>,
    /// Evidence with details of the event.
    pub evidence: Option<Evidence>,
}

impl Event {
    fn new(kind: EventKind, at_ns: i64, sentence: String) -> Event {
        Event {
            kind,
            at_ns,
            until_ns: None,
            sentence,
            cpu: None,
            thread: None,
            state: None,
            wait_reason: None,
            priority: None,
            rank: None,
            stack: Vec::new(),
            evidence: None,
        }
    }
}

/// Step of the chain that led to a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, TS)]
pub struct Link {
    /// Thread of the step.
    pub thread: Named,
    /// Start, in nanoseconds since the trace's start.
    pub from_ns: i64,
    /// End, in nanoseconds since the trace's start.
    pub to_ns: i64,
    /// Text about the activity of the thread during the step and about the end of its wait.
    pub why: String,
    /// CPU of the thread's run in the step.
    pub cpu: u16,
}

/// Describes a moment of a thread. Returns `None` if the trace has no run of the thread.
///
/// `survey` and `names` come from the explanation of the trace.
///
/// # Errors
/// Returns an error if a table cannot be made or read, or the user cancelled.
pub fn tell(
    store: &Store,
    survey: &Arc<Survey>,
    names: &Arc<Identities>,
    thread: Thread,
    at_ns: i64,
    functions: Option<&dyn Functions>,
    options: Options<'_>,
) -> Result<Option<Story>, StoreError> {
    store.make(&crate::tables(), options)?;
    let size = store.trace().size_bytes();
    let is_cancelled = || !(options.progress)(size);
    let reader = Reader::new(store, Arc::clone(names), functions, &is_cancelled);
    let case = Case::of_survey(reader, Arc::clone(survey));
    let mut runs = Runs::new(&case)?;
    match runs.next_after(thread, at_ns)? {
        Some((chunk, row)) => Ok(Some(of_run(&case, &mut runs, chunk, row, at_ns)?)),
        None => Ok(runs
            .last_end_before(thread, at_ns.saturating_add(1))?
            .map(|end_ns| {
                let doing = format!(
                    "It ran until {} and not again before the trace ended.",
                    crate::moment(end_ns)
                );
                Story {
                    thread: named(&case, thread.id, thread.row, None, None),
                    at_ns,
                    kind: Doing::Unknown,
                    run: None,
                    story: vec![Event::new(EventKind::SwitchedOut, end_ns, doing)],
                    theories: Vec::new(),
                    findings: Vec::new(),
                    chain: Vec::new(),
                }
            })),
    }
}

/// Columns of `cpu_runs` that are read in addition to the columns of the survey.
const COLUMNS: [&str; 1] = ["previous_cpu"];

fn of_run(
    case: &Case<'_>,
    runs: &mut Runs<'_>,
    chunk: usize,
    row: usize,
    at_ns: i64,
) -> Result<Story, StoreError> {
    let table = case.table(Table::CpuRuns)?;
    let batch = table.read(chunk, &[&survey::COLUMNS[..], &COLUMNS[..]].concat())?;
    let view = CpuRunsView::new(&batch)?;
    let wait = Wait::read(&view, row, view.ready_ns.get(row).unwrap_or(0));
    let since = view.ready_ns.get(row).map(|_| wait.range().start);
    let kind = match (since, wait.previous_out_ns) {
        _ if wait.start_ns <= at_ns => Doing::Running,
        (Some(since), _) if since <= at_ns => Doing::Ready,
        (Some(_), out) if out.is_none_or(|out| out <= at_ns) => Doing::Waiting,
        _ => Doing::Unknown,
    };
    let mut findings = Vec::new();
    let mut behind = None;
    if since.is_some() && wait.ready_ns > 0 && wait.thread_id != 0 {
        let facts = Facts::read(case)?;
        let (argued, holders) = super::argue(case, &facts, vec![Waiter::of(&wait)], vec![None])?;
        let group = Group::of_these(case, argued, &holders);
        behind = Some(group.who_ran.evidence.clone());
        findings.push(super::finding(case, &group, &holders, runs)?);
    }
    let theories: Vec<Verdict> = findings
        .iter_mut()
        .flat_map(|finding| std::mem::take(&mut finding.weighed))
        .collect();
    let thread = Thread {
        id: wait.thread_id,
        row: wait.thread_row,
    };
    let span = case.survey.span.start.min(wait.start_ns)..wait.start_ns;
    let legs = path::path(runs, thread, &span, STEPS)?;
    Ok(Story {
        thread: named(
            case,
            thread.id,
            thread.row,
            wait.process_row,
            wait.process_id,
        ),
        at_ns,
        kind,
        run: Some(Ran {
            cpu: wait.cpu,
            start_ns: wait.start_ns,
            end_ns: wait.end_ns,
            priority: wait.priority,
            rank: wait.rank,
        }),
        story: events(case, &view, row, &wait, behind)?,
        theories,
        findings,
        chain: legs.iter().filter_map(|leg| link(case, leg)).collect(),
    })
}

/// Returns the events from the thread's switch-out before the run to the end of the run.
fn events(
    case: &Case<'_>,
    view: &CpuRunsView<'_>,
    row: usize,
    wait: &Wait,
    behind: Option<Evidence>,
) -> Result<Vec<Event>, StoreError> {
    let mut stacks = case.stacks(&FxHashSet::from_iter(
        [wait.stack_id, wait.readying_stack_id]
            .into_iter()
            .flatten(),
    ))?;
    let mut stack = |id: Option<u32>, process_id: Option<u32>, time: i64| -> Vec<String> {
        let addresses = id.and_then(|id| stacks.remove(&id)).unwrap_or_default();
        let frame = |address: &u64| {
            let image = readier::image(case, *address, process_id, time);
            case.symbol(image, *address)
        };
        addresses.iter().map(frame).collect()
    };
    let mut events = Vec::new();
    if let Some(out_ns) = wait.previous_out_ns {
        let waits = wait.previous_state == Some(WAITING);
        let reason = wait.previous_wait_reason.map(labels::wait_reason);
        let cpu = view.previous_cpu.get(row);
        let left = cpu.map_or("its CPU".to_owned(), |cpu| format!("CPU {cpu}"));
        let because = reason
            .as_ref()
            .map_or(String::new(), |reason| format!(" ({reason})"));
        let sentence = match (waits, wait.waits_ns) {
            (true, Some(ns)) => {
                format!("It left {left} and waited for {}{because}.", duration(ns))
            }
            (true, None) => format!("It left {left} and waited{because}."),
            (false, _) => format!("It lost {left} although it was still ready{because}."),
        };
        events.push(Event {
            until_ns: wait.waits_ns.map(|ns| out_ns.saturating_add(ns)),
            cpu,
            state: wait.previous_state.map(state),
            wait_reason: reason,
            priority: view.previous_priority_out.get(row),
            rank: view.previous_rank.get(row),
            // The stack recorded for the run shows where the thread had waited, because a thread
            // continues there.
            stack: stack(wait.stack_id, wait.process_id, wait.start_ns),
            ..Event::new(EventKind::SwitchedOut, out_ns, sentence)
        });
    }
    if let Some(readied_ns) = wait.readied_ns {
        let by_dpc = wait.readied_by_dpc == Some(true);
        let by = wait.readying_thread_id.filter(|_| !by_dpc).map(|id| {
            let (row, process) = (wait.readying_thread_row, wait.readying_process_row);
            named(case, id, row, process, wait.readying_process_id)
        });
        let who = match &by {
            Some(by) => words_of(by),
            None if by_dpc => "A DPC".to_owned(),
            None => "Something unknown".to_owned(),
        };
        let from = wait
            .readying_cpu
            .map_or(String::new(), |cpu| format!(", on CPU {cpu}"));
        let sentence = format!("{who} readied it{from}.");
        events.push(Event {
            cpu: wait.readying_cpu,
            thread: by,
            stack: stack(wait.readying_stack_id, wait.readying_process_id, readied_ns),
            ..Event::new(EventKind::Readied, readied_ns, sentence)
        });
    }
    if let Some(evidence) = behind {
        let Range { start, end } = wait.range();
        let sentence = format!(
            "It was ready without a CPU for {}.",
            duration(wait.ready_ns)
        );
        events.push(Event {
            until_ns: Some(end),
            evidence: Some(evidence),
            ..Event::new(EventKind::WaitedBehind, start, sentence)
        });
    }
    let reason = view.wait_reason_out.get(row).map(labels::wait_reason);
    let ended = match (view.state_out.get(row), &reason) {
        (Some(WAITING), Some(reason)) => format!("; then it waited ({reason})"),
        (Some(TERMINATED), _) => "; then it ended".to_owned(),
        (Some(_), Some(reason)) => format!("; then it lost the CPU ({reason})"),
        _ => String::new(),
    };
    let sentence = format!(
        "It ran on CPU {} for {}{ended}.",
        wait.cpu,
        duration(wait.end_ns.saturating_sub(wait.start_ns))
    );
    events.push(Event {
        until_ns: Some(wait.end_ns),
        cpu: Some(wait.cpu),
        state: view.state_out.get(row).map(state),
        wait_reason: reason,
        priority: wait.priority,
        rank: wait.rank,
        ..Event::new(EventKind::Ran, wait.start_ns, sentence)
    });
    Ok(events)
}

/// Codes of thread states.
const TERMINATED: u8 = 4;
const WAITING: u8 = 5;

fn state(code: u8) -> String {
    events::kernel::thread_state(code).map_or_else(|| code.to_string(), str::to_owned)
}

fn named(
    case: &Case<'_>,
    id: u32,
    row: Option<u32>,
    process_row: Option<u32>,
    process_id: Option<u32>,
) -> Named {
    let known = process_row.is_some() || process_id.is_some();
    Named {
        id,
        row,
        name: row
            .and_then(|row| case.names.thread_name(row))
            .map(str::to_owned),
        process: known.then(|| case.process(process_row, process_id)),
    }
}

fn words_of(thread: &Named) -> String {
    let name = thread
        .name
        .as_ref()
        .map_or(String::new(), |name| format!(" (“{name}”)"));
    let of = thread
        .process
        .as_ref()
        .map_or(String::new(), |process| format!(" of {process}"));
    format!("Thread {}{name}{of}", thread.id)
}

/// Describes a step. Returns `None` if the trace does not record the step.
fn link(case: &Case<'_>, leg: &Leg) -> Option<Link> {
    let run = &leg.run;
    let [mut waited, was_ready, ran] = leg.parts();
    let mut from_ns = leg.range.start;
    if run.previous_out_ns.is_none() {
        // The activity of the thread before it was readied for its first run is unknown.
        (waited, from_ns) = (0, from_ns.max(run.since_ns()));
    }
    let mut did = Vec::new();
    if waited > 0 {
        let reason = run.previous_wait_reason.map(labels::wait_reason);
        let reason = reason.map_or(String::new(), |reason| format!(" ({reason})"));
        let by = run.ended_by(case);
        let by = by.map_or(String::new(), |by| format!(", until {by} readied it"));
        did.push(format!("waited for {}{reason}{by}", duration(waited)));
    }
    if was_ready > 0 {
        did.push(format!(
            "was ready for {} without a CPU",
            duration(was_ready)
        ));
    }
    if ran > 0 {
        did.push(format!("ran for {}", duration(ran)));
    }
    if leg.slept_ns() > 0 {
        did.push(format!(
            "the machine was suspended for {}",
            duration(leg.slept_ns())
        ));
    }
    (from_ns < leg.range.end).then(|| Link {
        thread: named(
            case,
            run.thread_id,
            run.thread_row,
            run.process_row,
            run.process_id,
        ),
        from_ns,
        to_ns: leg.range.end,
        why: did.join("; "),
        cpu: run.cpu,
    })
}
