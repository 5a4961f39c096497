//! Tool `story`: one moment of a thread.

use explain::story::{self, Doing, Event, EventKind, Link, Thread};
use explain::{Finding, Subject, Value as Cell};
use report::{BriefFinding, ExplainedTrace};
use serde::{Deserialize, Serialize};
use serde_json::json;
use wording::{QuotedName, capitalized, duration, moment};

use super::Session;
use crate::answer::{Answer, Next, Room};
use crate::arguments::{self, Time};
use crate::failure::{Failure, Kind};
use crate::open_traces::OpenTrace;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "expected an object with arguments")]
pub(super) struct Arguments {
    trace: Option<String>,
    thread: u32,
    at: Time,
    max_tokens: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Content {
    answer: String,
    thread: String,
    at_ns: i64,
    state: Doing,
    /// Reasons why the story may be wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    doubts: Vec<String>,
    story: Vec<StoryEvent>,
    /// Findings about the time that the thread was ready without a CPU.
    findings: Vec<BriefFinding>,
    /// Steps that led to the end of the wait, the latest first.
    chain: Vec<Step>,
    /// Present if the chain goes further back than `chain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    chain_ends: Option<String>,
    next: Vec<Next>,
}

#[derive(Debug, Serialize)]
struct StoryEvent {
    at_ns: i64,
    what: String,
    /// Innermost functions of the thread's stack.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stack: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Step {
    thread: String,
    from_ns: i64,
    to_ns: i64,
    why: String,
}

/// Maximum size of the field `chain_ends` in an answer, in bytes.
const CHAIN_ENDS: usize = 160;
/// Maximum number of functions of a stack in an answer.
const FRAMES: usize = 6;

pub(super) fn answer(session: &Session<'_>, asked: Arguments) -> Result<Answer, Failure> {
    let tokens = arguments::tokens(asked.max_tokens)?;
    let trace = session.open_windows(asked.trace.as_deref())?;
    let at_ns = arguments::moment(&asked.at, &trace.store)?;
    let explained = trace.explained(explain::Scope::default(), session.call)?;
    let symbols = trace.symbols(session.call)?;
    session.call.begin_query();
    let explain::Explanation { survey, names, .. } = &explained.explanation;
    let thread = Thread {
        id: asked.thread,
        row: None,
    };
    let story = session.call.watched(|options| {
        let store = &trace.store;
        story::tell(
            store,
            survey,
            names,
            thread,
            at_ns,
            Some(&*symbols),
            options,
        )
    })?;
    let story = story.ok_or_else(|| {
        let message = "the thread has no run at that time or later; the trace may lack its context \
                       switches. `explain` names threads and times";
        Failure::new(Kind::Unknown, message)
    })?;
    let mut content = Content {
        answer: summary(&story),
        thread: named(&story.thread),
        at_ns: story.at_ns,
        state: story.kind,
        doubts: story.doubts.iter().map(sentence).collect(),
        story: Vec::new(),
        findings: Vec::new(),
        chain: Vec::new(),
        chain_ends: None,
        next: vec![Next {
            tool: "explain",
            arguments: json!({ "trace": trace.file.handle, "thread": story.thread.id }),
            why: "explains all waits of this thread",
        }],
    };
    let mut room = Room::new(tokens).without(report::json_bytes(&content) + CHAIN_ENDS);
    content.story = room.fit(story.story.iter().map(happened));
    // Findings are about the time that the thread is ready without a CPU, which follows a wait. During the wait itself,
    // no findings are shown.
    let is_waiting = story.kind == Doing::Waiting;
    let findings = (1..).zip(&story.findings).filter(|_| !is_waiting);
    content.findings =
        room.fit(findings.map(|(number, finding)| BriefFinding::new(number, finding)));
    content.chain = room.fit(story.chain.iter().map(step));
    content.chain_ends = chain_ends(&story, content.chain.len());
    Answer::new(&content)
}

/// Returns the proposed call of `story` for the longest wait of a finding. Returns `None` for a recording of Linux,
/// and for a finding that is not about a thread and a time.
pub(super) fn of_finding(
    session: &Session<'_>,
    trace: &OpenTrace,
    explained: &ExplainedTrace,
    finding: &Finding,
) -> Result<Option<Next>, Failure> {
    let (Some((id, needs_cpu)), Some(during)) = (delayed(finding), &finding.during) else {
        return Ok(None);
    };
    if trace.store.info().is_linux() {
        return Ok(None);
    }
    let explain::Explanation { survey, names, .. } = &explained.explanation;
    let thread = Thread { id, row: None };
    let wait = session.call.watched(|options| {
        let store = &trace.store;
        story::longest_wait(store, survey, names, thread, during, needs_cpu, options)
    })?;
    let at = wait.map_or(during.start, |wait| {
        wait.start + (wait.end - wait.start) / 2
    });
    Ok(Some(Next {
        tool: "story",
        arguments: json!({ "trace": trace.file.handle, "thread": id, "at": at }),
        why: "explains the longest wait of this thread: why it waited, and what woke it",
    }))
}

/// Returns the id of the thread that the finding reports as delayed for the longest time. The flag is true if the
/// thread was ready and needed a CPU.
fn delayed(finding: &Finding) -> Option<(u32, bool)> {
    const DELAYS: [&str; 4] = ["longest_ns", "longest_wait_ns", "ready_ns", "waits_ns"];
    for evidence in &finding.evidence {
        let column = |name: &str| {
            evidence
                .columns
                .iter()
                .position(|column| column.name == name)
        };
        let delay = DELAYS.iter().find_map(|name| column(name));
        let (Some(thread), Some(delay)) = (column("thread_id"), delay) else {
            continue;
        };
        let rows =
            evidence
                .rows
                .iter()
                .filter_map(|row| match (row.get(thread)?, row.get(delay)?) {
                    (Some(Cell::Integer(thread)), Some(Cell::Integer(ns))) => Some((*ns, *thread)),
                    _ => None,
                });
        if let Some((_, thread)) = rows.max()
            && let Ok(id) = u32::try_from(thread)
        {
            return Some((id, column("ready_ns").is_some()));
        }
    }
    let needs_cpu = finding.theory == "long-waits";
    finding.subjects.iter().find_map(|subject| match subject {
        Subject::Thread { id, .. } => Some((*id, needs_cpu)),
        _ => None,
    })
}

/// Returns a sentence if the chain goes further back than the `shown` steps of an answer. Returns `None` if these steps
/// are the whole chain.
fn chain_ends(told: &story::Story, shown: usize) -> Option<String> {
    let is_left = shown < told.chain.len();
    if !is_left && !told.is_chain_cut {
        return None;
    }
    let from_ns = match shown.checked_sub(1) {
        Some(last) => told.chain.get(last)?.from_ns,
        None => told.chain.first()?.to_ns,
    };
    let advice = if is_left {
        ": ask with a larger `max_tokens`"
    } else {
        ""
    };
    let from = moment(from_ns);
    Some(format!("The chain goes further back than {from}{advice}"))
}

fn summary(told: &story::Story) -> String {
    let (id, at) = (told.thread.id, told.at_ns as f64 / 1e9);
    let is_doubtful = !told.doubts.is_empty();
    let has_left = told
        .story
        .iter()
        .any(|event| event.kind == EventKind::SwitchedOut && event.at_ns <= told.at_ns);
    let doing = match told.kind {
        Doing::Running if is_doubtful => format!("Thread {id} probably had a CPU at {at} s."),
        Doing::Running => format!("Thread {id} had a CPU at {at} s."),
        Doing::Ready => format!("Thread {id} was ready and had no CPU at {at} s."),
        Doing::Waiting => format!("Thread {id} waited at {at} s."),
        Doing::Ended => format!("Thread {id} had ended at {at} s."),
        Doing::Unknown if has_left => format!(
            "Thread {id} had no CPU at {at} s; the trace does not record whether it waited or was ready."
        ),
        Doing::Unknown => format!("The trace does not record what thread {id} did at {at} s."),
    };
    let finding = told.findings.first().filter(|_| told.kind == Doing::Ready);
    let about: &[EventKind] = match (told.kind, finding) {
        (Doing::Ready, Some(_)) => &[],
        (Doing::Waiting, _) => &[EventKind::SwitchedOut, EventKind::Readied],
        (Doing::Running | Doing::Ended, _) => &[EventKind::Ran],
        (Doing::Ready | Doing::Unknown, _) => &[
            EventKind::SwitchedOut,
            EventKind::Readied,
            EventKind::WaitedBehind,
        ],
    };
    let events = told.story.iter();
    let mut sentences = vec![doing];
    sentences.extend(finding.map(|finding| finding.sentence.quoted()));
    sentences.extend(
        events
            .filter(|event| about.contains(&event.kind))
            .map(|event| event.sentence.quoted()),
    );
    if let (Doing::Unknown, Some(run)) = (told.kind, &told.run) {
        sentences.push(format!(
            "Its next run began at {}, on CPU {}.",
            moment(run.start_ns),
            run.cpu
        ));
    }
    if let Some(doubt) = told.doubts.first() {
        sentences.push(format!("Uncertain: {}.", doubt.quoted()));
    }
    sentences.join(" ")
}

/// Returns a doubt as a sentence.
fn sentence(doubt: &wording::Sentence) -> String {
    capitalized(&doubt.quoted()) + "."
}

fn named(thread: &story::Named) -> String {
    let name = thread.name.as_ref();
    let name = name.map_or(String::new(), |name| format!(" ({})", QuotedName(name)));
    let process = thread.process.as_ref();
    let process = process.map_or(String::new(), |process| format!(" of {}", process.quoted()));
    format!("{}{name}{process}", thread.id)
}

fn happened(event: &Event) -> StoryEvent {
    StoryEvent {
        at_ns: event.at_ns,
        what: event.sentence.quoted(),
        stack: (event.stack.iter().take(FRAMES))
            .map(|function| QuotedName(function).to_string())
            .collect(),
    }
}

fn step(link: &Link) -> Step {
    Step {
        thread: named(&link.thread),
        from_ns: link.from_ns,
        to_ns: link.to_ns,
        why: format!(
            "{} ({})",
            link.why.quoted(),
            duration(link.to_ns - link.from_ns)
        ),
    }
}
