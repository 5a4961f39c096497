//! Description of one moment of a thread: the thread's activity, the reason for its wait, the event that
//! ended the wait, and the reason why the thread did not run at once.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use serde::Serialize;
use tables::{CpuRunsView, Functions, Identities, Options, Store, StoreError, Table};
use ts_rs::TS;
use wording::{Name, Sentence};

use super::unfinished_wait::UnfinishedWait;
use super::{STEPS, doubts, readier};
use crate::chain::cpu_wait::examine_causes;
use crate::chain::cpu_wait::group::Group;
use crate::chain::cpu_wait::weigh::Facts;
use crate::chain::freezes;
pub use crate::chain::path::Thread;
use crate::chain::path::{self, Leg, Runs};
use crate::chain::waiter::Waiter;
use crate::ranges::overlap;
use crate::survey::{self, Wait};
use crate::thread_state::LOCKS;
use crate::thread_state::{TERMINATED, WAITING};
use crate::{Case, Evidence, Finding, Reader, Survey, Verdict, duration, labels, moment};

/// Description of a moment of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub struct Story {
    /// Described thread.
    pub thread: Named,
    /// Moment, in nanoseconds since the trace's start.
    pub at_ns: i64,
    /// State of the thread at the moment.
    pub kind: Doing,
    /// Run of the thread at the moment. If the thread was not running, it is the thread's next run. It is `None` if the
    /// thread does not run again before the trace ends.
    pub run: Option<Ran>,
    /// Events of the thread, in order of time.
    pub story: Vec<Event>,
    /// Possible causes of the wait for a CPU, each with its verdict.
    pub theories: Vec<Verdict>,
    /// Findings about the wait for a CPU.
    pub findings: Vec<Finding>,
    /// Chain of events that led to the run or, if there is no run, to the event that readied the thread. The latest
    /// step comes first. The chain goes back to the thread's last switch-out before the run.
    pub chain: Vec<Link>,
    /// True if the chain goes further back than `chain`.
    pub is_chain_cut: bool,
    /// Reasons why the story may be wrong.
    #[ts(as = "Vec<String>")]
    pub doubts: Vec<Sentence>,
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
    #[ts(as = "Option<String>")]
    pub process: Option<Sentence>,
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
    /// The thread has ended.
    Ended,
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
    #[ts(as = "String")]
    pub sentence: Sentence,
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
    pub(super) fn new(kind: EventKind, at_ns: i64, sentence: impl Into<Sentence>) -> Event {
        Event {
            kind,
            at_ns,
            until_ns: None,
            sentence: sentence.into(),
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
    #[ts(as = "String")]
    pub why: Sentence,
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
    let size = store.info().size_bytes;
    let is_cancelled = || !(options.progress)(size);
    let reader = Reader::new(store, Arc::clone(names), functions, &is_cancelled);
    let case = Case::of_survey(reader, Arc::clone(survey));
    let mut runs = Runs::new(&case)?;
    match runs.next_after(thread, at_ns)? {
        Some((chunk, row)) => Ok(Some(of_run(&case, &mut runs, chunk, row, at_ns)?)),
        None => match UnfinishedWait::read(&case, &mut runs, thread)? {
            Some(unfinished) => Ok(Some(unfinished.tell(&case, &mut runs, at_ns)?)),
            None => Ok(None),
        },
    }
}

/// Returns the longest part of a wait of a thread within a time range. If `needs_cpu` is true, only waits of a ready
/// thread for a CPU count. Otherwise, only waits for something else count. A wait may last until the trace ends.
/// Returns `None` if the thread does not wait.
///
/// # Errors
/// Returns an error if a table cannot be made or read, or the user cancelled.
pub fn longest_wait(
    store: &Store,
    survey: &Arc<Survey>,
    names: &Arc<Identities>,
    thread: Thread,
    during: &Range<i64>,
    needs_cpu: bool,
    options: Options<'_>,
) -> Result<Option<Range<i64>>, StoreError> {
    store.make(&crate::tables(), options)?;
    let size = store.info().size_bytes;
    let is_cancelled = || !(options.progress)(size);
    let reader = Reader::new(store, Arc::clone(names), None, &is_cancelled);
    let case = Case::of_survey(reader, Arc::clone(survey));
    let mut runs = Runs::new(&case)?;
    let length = |range: &Range<i64>| range.end.saturating_sub(range.start);
    let mut longest: Option<Range<i64>> = None;
    let mut at = during.start;
    loop {
        let Some(run) = runs.until(thread, at.saturating_add(1))? else {
            if let Some(unfinished) = UnfinishedWait::read(&case, &mut runs, thread)? {
                let part = overlap(&unfinished.range(needs_cpu), during);
                longest = [longest, part].into_iter().flatten().max_by_key(length);
            }
            break;
        };
        let since = run.since_ns();
        let wait = if needs_cpu {
            since..run.start_ns
        } else {
            run.previous_out_ns.unwrap_or(since)..since
        };
        let part = overlap(&wait, during);
        longest = [longest, part].into_iter().flatten().max_by_key(length);
        if run.start_ns >= during.end || run.end_ns <= at {
            break;
        }
        at = run.end_ns;
    }
    Ok(longest)
}

fn of_run(
    case: &Case<'_>,
    runs: &mut Runs<'_>,
    chunk: usize,
    row: usize,
    at_ns: i64,
) -> Result<Story, StoreError> {
    let table = case.table(Table::CpuRuns)?;
    let batch = table.read(chunk, &survey::COLUMNS)?;
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
        let (evidence, finding) = explain_waiter(case, runs, Waiter::new(&wait), None)?;
        behind = Some(evidence);
        findings.push(finding);
    }
    let theories: Vec<Verdict> = findings
        .iter_mut()
        .flat_map(|finding| std::mem::take(&mut finding.weighed))
        .collect();
    let thread = Thread {
        id: wait.thread_id,
        row: wait.thread_row,
    };
    // Waits before the thread's last switch-out did not lead to this wait.
    let from_ns = wait.previous_out_ns.unwrap_or(case.survey.span.start);
    let from_ns = from_ns.min(wait.start_ns);
    let legs = path::path(runs, thread, &(from_ns..wait.start_ns), STEPS)?;
    let (chain, is_chain_cut) = links(case, &legs, from_ns);
    let doubts = doubts::of_run(case, runs, &wait, kind, case.survey.doubtful.is(&view, row))?;
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
        chain,
        is_chain_cut,
        doubts: doubts.into_iter().map(Into::into).collect(),
    })
}

/// Examines the wait of a ready thread. Returns evidence with the threads that ran during the wait, and the finding.
/// `in_part` is evidence for a wait that is recorded only in part.
pub(super) fn explain_waiter(
    case: &Case<'_>,
    runs: &mut Runs<'_>,
    waiter: Waiter,
    in_part: Option<Evidence>,
) -> Result<(Evidence, Finding), StoreError> {
    let facts = Facts::read(case)?;
    let (waits, holders) = examine_causes(case, &facts, vec![waiter], vec![in_part])?;
    let group = Group::new(case, waits, &holders);
    let finding = super::finding(case, &group, &holders, runs)?;
    Ok((group.who_ran.evidence.clone(), finding))
}

/// Returns the events from the thread's switch-out before the run to the end of the run.
fn events(
    case: &Case<'_>,
    view: &CpuRunsView<'_>,
    row: usize,
    wait: &Wait,
    behind: Option<Evidence>,
) -> Result<Vec<Event>, StoreError> {
    let mut events = before_run(case, wait, behind, true)?;
    if let Some(out) = events
        .first_mut()
        .filter(|event| event.kind == EventKind::SwitchedOut)
    {
        out.rank = view.previous_rank.get(row);
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

/// Returns the events from the thread's switch-out to the end of its wait. `is_over` is false if the wait lasts until
/// the trace ends. In this case, `wait` ends at the end of the trace, not at a run.
pub(super) fn before_run(
    case: &Case<'_>,
    wait: &Wait,
    behind: Option<Evidence>,
    is_over: bool,
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
        let until_ns = match (wait.waits_ns, is_over) {
            (Some(ns), _) => Some(out_ns.saturating_add(ns)),
            (None, true) => None,
            (None, false) => Some(wait.start_ns),
        };
        events.push(Event {
            until_ns,
            cpu: wait.previous_cpu,
            state: wait.previous_state.map(state),
            wait_reason: wait.waited_for(),
            priority: wait.previous_priority,
            rank: wait.rank,
            // The stack recorded for the run shows where the thread had waited, because a thread
            // continues there.
            stack: stack(wait.stack_id, wait.process_id, wait.start_ns),
            ..Event::new(
                EventKind::SwitchedOut,
                out_ns,
                left(case, wait, out_ns, is_over) + &reasons(case, wait, waits)?,
            )
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
            None if by_dpc => wording::capitalized(case.terms().a_routine),
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
    if behind.is_some() || !is_over && wait.ready_ns > 0 {
        let Range { start, end } = wait.range();
        let lasted = duration(wait.ready_ns);
        let sentence = if is_over {
            format!("It was ready without a CPU for {lasted}.")
        } else {
            format!(
                "It was ready without a CPU for at least {lasted}, and still {}.",
                at_the_end(case, end)
            )
        };
        events.push(Event {
            until_ns: Some(end),
            evidence: behind,
            ..Event::new(EventKind::WaitedBehind, start, sentence)
        });
    }
    Ok(events)
}

/// Returns words for the last recorded moment of an unfinished wait.
fn at_the_end(case: &Case<'_>, end_ns: i64) -> String {
    if end_ns < case.survey.span.end {
        format!(
            "at {}, when the complete record of all CPUs ends",
            moment(end_ns)
        )
    } else {
        "when the trace ended".to_owned()
    }
}

/// Returns the sentence that says how the thread left its CPU before a wait.
fn left(case: &Case<'_>, wait: &Wait, out_ns: i64, is_over: bool) -> String {
    let cpu = wait.previous_cpu;
    let mut left = cpu.map_or("its CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    if !is_over {
        left += &format!(" at {}", moment(out_ns));
    }
    let because = wait
        .waited_for()
        .map_or(String::new(), |reason| format!(" ({reason})"));
    match (wait.previous_state, wait.waits_ns) {
        (Some(WAITING), Some(ns)) => {
            format!("It left {left} and waited for {}{because}.", duration(ns))
        }
        (Some(WAITING), None) if is_over => format!("It left {left} and waited{because}."),
        (Some(WAITING), None) => format!(
            "It left {left} and waited for at least {}{because}, and still {}. The trace does not show what would \
             have ended the wait.",
            duration(wait.start_ns.saturating_sub(out_ns)),
            at_the_end(case, wait.start_ns)
        ),
        // The thread was not “ready” when it left its CPU, and no event readied it later.
        (_, None) if !is_over => {
            format!("It left {left}{because}, and did not run again before the trace ended.")
        }
        _ => format!("It lost {left} although it was still ready{because}."),
    }
}

/// Returns sentences about causes of a wait: a freeze of the process, a suspended machine, or a lock.
fn reasons(case: &Case<'_>, wait: &Wait, waits: bool) -> Result<String, StoreError> {
    let Some(out_ns) = wait.previous_out_ns.filter(|_| waits) else {
        return Ok(String::new());
    };
    let waited = out_ns..wait.readied_ns.unwrap_or(wait.start_ns);
    let mut reasons = String::new();
    for freeze in freezes::read(case)? {
        let is_own = match (freeze.process_row, wait.process_row) {
            (Some(one), Some(other)) => one == other,
            _ => Some(freeze.process_id) == wait.process_id,
        };
        if is_own && let Some(part) = overlap(&freeze.range, &waited) {
            let until = if freeze.is_thawed {
                format!("until {}", moment(part.end))
            } else {
                "and did not thaw it before the trace ended".to_owned()
            };
            reasons += &format!(
                " Windows had frozen its process for {} of this time, {until}: no thread of it could run.",
                duration(part.end - part.start),
            );
        }
    }
    let gaps = &case.survey.suspend_gaps;
    let asleep_ns = gaps.asleep_ns(&waited);
    if asleep_ns > 0 {
        reasons += &format!(
            " {} for {} of this time.",
            wording::capitalized(gaps.clause()),
            duration(asleep_ns)
        );
    }
    let is_lock = |reason: &u8| LOCKS.contains(reason);
    if wait.previous_wait_reason.as_ref().is_some_and(is_lock) {
        reasons += " It probably waited for a lock, or for another thread.";
    }
    Ok(reasons)
}

pub(super) fn state(code: u8) -> String {
    tables::thread_state(code).map_or_else(|| code.to_string(), str::to_owned)
}

pub(super) fn named(
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
        process: known.then(|| case.process(process_row, process_id).into()),
    }
}

fn words_of(thread: &Named) -> String {
    let name = thread
        .name
        .as_ref()
        .map_or(String::new(), |name| format!(" ({:#})", Name(name)));
    let process = thread
        .process
        .as_ref()
        .map_or(String::new(), |process| format!(" of {process:#}"));
    format!("Thread {}{name}{process}", thread.id)
}

/// Describes the steps of a path that was followed back to `from_ns`. Returns true if the path goes further back than
/// its steps.
pub(super) fn links(case: &Case<'_>, legs: &[Leg], from_ns: i64) -> (Vec<Link>, bool) {
    let is_cut = legs.len() >= STEPS && legs.last().is_some_and(|leg| leg.range.start > from_ns);
    let links = legs.iter().filter_map(|leg| link(case, leg)).collect();
    (links, is_cut)
}

/// Describes a step. Returns `None` if the trace does not record the step.
fn link(case: &Case<'_>, leg: &Leg) -> Option<Link> {
    let run = &leg.run;
    let [mut waited, was_ready, ran] = leg.parts();
    let mut from_ns = leg.range.start;
    if run.previous_out_ns.is_none() {
        // It is unknown what the thread did before it was readied for its first run.
        (waited, from_ns) = (0, from_ns.max(run.since_ns()));
    }
    let mut did = Vec::new();
    if waited > 0 {
        let reason = run
            .waited_for()
            .map_or(String::new(), |reason| format!(" ({reason})"));
        let by = run.ended_by(case).map(|by| match run.readied_by_dpc {
            Some(true) => by,
            _ => Name(&by).to_string(),
        });
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
            "{} for {}",
            case.survey.suspend_gaps.clause(),
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
        why: did.join("; ").into(),
        cpu: run.cpu,
    })
}
