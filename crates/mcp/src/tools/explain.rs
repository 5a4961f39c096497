//! Tool `explain`: why the machine lagged.

use explain::{Scope, Severity};
use report::{BriefFinding, ExplainedTrace};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Session, recorded};
use crate::answer::{Answer, More, Next, Room};
use crate::arguments::{self, CallScope, Time};
use crate::failure::Failure;
use crate::finding_id::FindingId;
use crate::open_traces::OpenTrace;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "expected an object with arguments")]
pub(super) struct Arguments {
    trace: Option<String>,
    process: Option<String>,
    thread: Option<u32>,
    at: Option<Time>,
    between: Option<[Time; 2]>,
    #[serde(default)]
    after: u64,
    max_tokens: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Content<'c> {
    answer: String,
    trace: &'c str,
    recorded: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    simulated: bool,
    findings: Vec<FindingSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    more: Option<More>,
    /// Questions that the trace cannot answer.
    missing: Vec<String>,
    /// Events to record, so that the trace can answer the questions in `missing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damage: Vec<String>,
    next: Vec<Next>,
}

#[derive(Debug, Serialize)]
struct FindingSummary {
    id: String,
    #[serde(flatten)]
    brief: BriefFinding,
    evidence: Vec<String>,
}

/// Number of bytes that are reserved for the field `more`, for the name of the field `record`, and for the number of
/// further questions.
const SLACK: usize = 80;

/// Maximum number of unanswered questions that an answer lists.
const MISSING: usize = 12;

pub(super) fn answer(session: &Session<'_>, asked: Arguments) -> Result<Answer, Failure> {
    let tokens = arguments::tokens(asked.max_tokens)?;
    let trace = session.open(asked.trace.as_deref())?;
    let scope = CallScope {
        process: asked.process,
        thread: asked.thread,
        at: asked.at,
        between: asked.between,
    };
    let scope = scope.scope(&trace, session.call)?;
    let explained = trace.explained(scope.clone(), session.call)?;
    let explanation = &explained.explanation;
    let findings = &explanation.findings;
    let open: Vec<&str> = report::not_recorded(explanation).collect();
    let mut contents = explained.info.contents.iter();
    let has_runs = contents.any(|content| content.data == facts::Data::ContextSwitches);
    let next = next(session, &trace, &scope, &explained, has_runs)?;
    let mut content = Content {
        answer: answer_of(&explained, &scope),
        trace: &trace.file.handle,
        recorded: recorded(&explained.info),
        simulated: explained.info.is_simulated(),
        findings: Vec::new(),
        more: None,
        record: None,
        missing: Vec::new(),
        damage: report::damage(&explained),
        next: Vec::new(),
    };
    let mut room = Room::new(tokens).without(report::json_bytes(&content) + SLACK);
    let after = usize::try_from(asked.after).unwrap_or(usize::MAX);
    let mut rest = (1..).zip(findings).skip(after).map(|(number, finding)| {
        let id = FindingId::new(&trace, &scope, number);
        FindingSummary {
            id: id.to_string(),
            brief: BriefFinding::new(number, finding),
            evidence: (1..=finding.evidence.len())
                .map(|k| id.evidence_uri(k))
                .collect(),
        }
    });
    // The first finding is always in the answer, even if it is too long, so that each page makes progress.
    if let Some(mut first) = rest.next() {
        let fits = room.take(&first);
        if !fits {
            // The tool `finding` shows the evidence too.
            first.evidence.clear();
            room = room.without(report::json_bytes(&first));
        }
        content.findings.push(first);
    }
    content.next = room.fit(next);
    content.record = explanation
        .what_to_record()
        .filter(|record| !open.is_empty() && room.take(record));
    let questions = open
        .iter()
        .take(MISSING)
        .map(|&question| question.to_owned());
    content.missing = room.fit(questions);
    if content.missing.len() < open.len() {
        let left = open.len() - content.missing.len();
        content.missing.push(format!("and {left} more"));
    }
    content.findings.extend(room.fit(rest));
    let shown = asked.after.saturating_add(content.findings.len() as u64);
    if asked.after > 0 && content.findings.is_empty() {
        content.answer = format!(
            "`after` is past the end: there are {}.",
            wording::counted(findings.len() as u64, "finding", "findings")
        );
    }
    let left = (findings.len() as u64).saturating_sub(shown);
    content.more = (left > 0).then_some(More {
        after: shown,
        left: Some(left),
    });
    Answer::new(&content)
}

/// Returns the answer in one sentence. If the scope is limited, the answer is the first finding about this scope.
fn answer_of(explained: &ExplainedTrace, scope: &Scope) -> String {
    let explanation = &explained.explanation;
    if *scope == Scope::default() {
        return report::answer(explained);
    }
    let mut about = explanation.findings.iter().filter(|found| !found.off_topic);
    match about.next() {
        Some(first) => first.sentence.quoted(),
        None => {
            let because = explanation.theories.first().map(|v| v.because.quoted());
            format!("Nothing found in scope: {}.", because.unwrap_or_default())
        }
    }
}

/// Returns calls that show more about the most important finding. Without findings, the calls show the use of the CPUs.
/// If this use was not recorded, they show the kinds of events.
fn next(
    session: &Session<'_>,
    trace: &OpenTrace,
    scope: &Scope,
    explained: &ExplainedTrace,
    has_runs: bool,
) -> Result<Vec<Next>, Failure> {
    let handle = &trace.file.handle;
    let Some(first) = explained.explanation.findings.first() else {
        let (arguments, why) = if has_runs {
            (
                json!({ "trace": handle, "table": "cpu_runs", "by": ["process"], "measures": ["time"] }),
                "shows which processes used the CPUs",
            )
        } else {
            (
                json!({ "trace": handle, "table": "event_kinds", "by": ["provider"], "measures": ["count"] }),
                "shows what was recorded",
            )
        };
        return Ok(vec![Next {
            tool: "summarize",
            arguments,
            why,
        }]);
    };
    let mut next = vec![Next {
        tool: "finding",
        arguments: json!({ "id": FindingId::new(trace, scope, 1).to_string() }),
        why: "shows examined causes, remedies, doubts and evidence",
    }];
    if first.severity > Severity::Information {
        next.extend(super::story::of_finding(session, trace, explained, first)?);
    }
    Ok(next)
}
