//! Tool `compare`: what changed between traces.

use std::sync::Arc;

use diff::{Change, Conclusion, Diff, ReadOptions, Recording, Work};
use serde::{Deserialize, Serialize};
use serde_json::json;
use wording::{QuotedName, Sentence};

use super::Session;
use crate::answer::{Answer, Next, Room};
use crate::arguments;
use crate::failure::Failure;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "expected an object with arguments")]
pub(super) struct Arguments {
    before: Vec<String>,
    after: Vec<String>,
    /// Unit of work. If it is given, times are divided by the number of these units.
    by: Option<String>,
    max_tokens: Option<u32>,
}

#[derive(Debug, Serialize)]
struct Content {
    answer: String,
    /// Unit of statistical evidence: blocks of time of two traces, or whole traces.
    unit: diff::Unit,
    findings: Vec<ChangeSummary>,
    /// Compared rows that differ. The row with the greatest change comes first.
    changes: Vec<Row>,
    /// Numbers of compared rows, of rows that differ, and of undecided rows.
    compared: RowCounts,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    doubts: Vec<String>,
    /// Other differences of the machines and recordings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    besides: Vec<OtherChange>,
    next: Vec<Next>,
}

/// Numbers of compared rows: all rows (`rows`), rows that differ (`differ`), and undecided rows (`chance`). A row is
/// undecided if chance may explain its change, or if its change is small but its confidence interval contains a change
/// that matters.
#[derive(Debug, Serialize)]
struct RowCounts {
    rows: usize,
    differ: usize,
    chance: usize,
}

#[derive(Debug, Serialize)]
struct ChangeSummary {
    sentence: String,
    why: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    doubts: Vec<String>,
}

/// Compared row, with its times before and after the change, per second or per unit of work.
#[derive(Debug, Serialize)]
struct Row {
    kind: diff::Kind,
    name: String,
    before_ns: f64,
    after_ns: f64,
    /// Change with its 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    change_ns: Option<diff::Interval>,
    /// Probability that chance alone causes a change of this size, corrected for the number of comparisons.
    #[serde(skip_serializing_if = "Option::is_none")]
    adjusted_p: Option<f64>,
    conclusion: Conclusion,
}

#[derive(Debug, Serialize)]
struct OtherChange {
    fact: &'static str,
    before: Option<String>,
    after: Option<String>,
}

/// Maximum number of traces on each side.
const MOST: usize = 8;

pub(super) fn answer(session: &Session<'_>, asked: Arguments) -> Result<Answer, Failure> {
    let tokens = arguments::tokens(asked.max_tokens)?;
    if [&asked.before, &asked.after]
        .iter()
        .any(|side| side.is_empty() || side.len() > MOST)
    {
        return Err(Failure::arguments(format!(
            "`before` and `after` must each have 1 to {MOST} traces"
        )));
    }
    let work = match &asked.by {
        None => None,
        Some(by) => Some(
            by.parse::<Work>()
                .map_err(|expected| Failure::arguments(format!("`by`: {expected}")))?,
        ),
    };
    let read = |side: &[String]| -> Result<Vec<Recording>, Failure> {
        side.iter()
            .map(|trace| recording(session, trace, work.as_ref()))
            .collect()
    };
    let (before, after) = (read(&asked.before)?, read(&asked.after)?);
    session.call.begin_query();
    let diff = diff::diff(&before, &after, work.as_ref());
    let last = session.open(asked.after.last().map(String::as_str))?;
    let next = Next {
        tool: "explain",
        arguments: json!({ "trace": last.file.handle }),
        why: "explains a trace after the change",
    };
    Answer::new(&content(&diff, next, Room::new(tokens)))
}

fn recording(
    session: &Session<'_>,
    asked: &str,
    work: Option<&Work>,
) -> Result<Recording, Failure> {
    let trace = session.open_windows(Some(asked))?;
    if trace.store.info().only_table.is_some() {
        return Err(Failure::arguments(
            "one of the files has no events to compare; give traces of Windows",
        ));
    }
    trace.tables(session.call).make(&Recording::tables(work))?;
    let symbols = trace.symbols(session.call)?;
    let read_options = ReadOptions {
        during: None,
        work: work.cloned(),
        functions: Some(&*symbols),
    };
    let store = Arc::clone(&trace.store);
    Ok(session
        .call
        .watched(|options| Recording::read(&store, &read_options, options))?)
}

fn content(diff: &Diff, next: Next, room: Room) -> Content {
    let texts = |sentences: &[Sentence]| sentences.iter().map(Sentence::quoted).collect::<Vec<_>>();
    let rows = diff
        .per_work
        .as_ref()
        .filter(|work| work.is_asked)
        .map(|work| &work.changes);
    let rows: &[Change] = rows.unwrap_or(&diff.per_second);
    let count = |is: &dyn Fn(&Change) -> bool| rows.iter().filter(|row| is(row)).count();
    let mut content = Content {
        answer: diff.answer().quoted(),
        unit: diff.unit,
        findings: Vec::new(),
        changes: Vec::new(),
        compared: RowCounts {
            rows: rows.len(),
            differ: count(&Change::differs),
            chance: count(&|row| {
                matches!(row.conclusion, Conclusion::Chance | Conclusion::MayMatter)
            }),
        },
        doubts: diff.doubts().iter().map(Sentence::quoted).collect(),
        besides: Vec::new(),
        next: vec![next],
    };
    let mut room = room.without(report::json_bytes(&content));
    content.findings = room.fit(diff.findings.iter().map(|finding| ChangeSummary {
        sentence: finding.sentence.quoted(),
        why: texts(&finding.why),
        doubts: finding.doubts.clone(),
    }));
    let besides = diff.besides.facts.iter().take(12);
    content.besides = room.fit(besides.map(|fact| {
        OtherChange {
            fact: fact.fact,
            before: fact
                .before
                .as_ref()
                .map(|text| QuotedName(text).to_string()),
            after: fact.after.as_ref().map(|text| QuotedName(text).to_string()),
        }
    }));
    let changed = rows.iter().filter(|row| row.differs());
    content.changes = room.fit(changed.map(|row| Row {
        kind: row.kind,
        name: QuotedName(&row.name).to_string(),
        before_ns: row.before.ns.round(),
        after_ns: row.after.ns.round(),
        change_ns: row.change,
        adjusted_p: row.adjusted_p,
        conclusion: row.conclusion,
    }));
    content
}
