//! Tool `finding`: one finding with all that supports it.

use explain::{Evidence, Finding, Judgement, Source, Unit, Value as Cell};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wording::{Printable, Sentence, duration};

use super::Session;
use crate::answer::{Answer, Next, Room};
use crate::arguments;
use crate::failure::Failure;
use crate::finding_id::FindingId;
use crate::marks::Marks;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "expected an object with arguments")]
pub(super) struct Arguments {
    id: String,
    max_tokens: Option<u32>,
}

/// A finding. The field `left_out` counts the parts for which there is no room.
#[derive(Debug, Default, Serialize)]
struct Content {
    answer: String,
    id: String,
    severity: Option<explain::Severity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    during_ns: Option<[i64; 2]>,
    why: Vec<String>,
    remedies: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    doubts: Vec<String>,
    /// Other causes that were examined.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    weighed: Vec<CauseVerdict>,
    evidence: Vec<EvidenceRows>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sources: Vec<Source>,
    #[serde(skip_serializing_if = "is_zero")]
    left_out: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_trace: Option<String>,
    next: Vec<Next>,
}

/// Verdict about a cause.
#[derive(Debug, Serialize)]
struct CauseVerdict {
    cause: &'static str,
    answer: &'static str,
    because: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    explains_ns: Option<i64>,
}

/// Evidence: its first rows, and the query that returns all rows.
#[derive(Debug, Serialize)]
pub(crate) struct EvidenceRows {
    title: String,
    uri: String,
    columns: Vec<ShownColumn>,
    rows: Vec<Vec<Value>>,
    /// Query that returns all rows; absent if the query is too long for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    sql: Option<String>,
}

#[derive(Debug, Serialize)]
struct ShownColumn {
    name: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    unit: &'static str,
}

/// Maximum number of rows of each evidence.
const ROWS: usize = 5;

/// Maximum number of characters of a query.
const SQL: usize = 1_200;

fn is_zero(number: &usize) -> bool {
    *number == 0
}

pub(super) fn answer(session: &Session<'_>, asked: Arguments) -> Result<Answer, Failure> {
    let tokens = arguments::tokens(asked.max_tokens)?;
    let id = FindingId::parse(&asked.id).ok_or_else(no_finding)?;
    let trace = session.open(Some(&id.trace))?;
    let explained = trace.explained_as(id.scope.as_deref(), session.call)?;
    let finding = explained.explanation.findings.get(id.number - 1);
    let finding = finding.ok_or_else(no_finding)?;
    let next = super::story::of_finding(session, &trace, &explained, finding)?;
    let marks = Marks::new()?;
    Answer::new(&content(&id, finding, Room::new(tokens), next, &marks))
}

/// Returns the error for an unknown id.
pub(crate) fn no_finding() -> Failure {
    Failure::unknown("there is no finding with this id; call `explain` and use an id of its answer")
}

/// Returns the parts of a finding that fit into an answer, the most important parts first.
fn content(
    id: &FindingId,
    finding: &Finding,
    room: Room,
    next: Option<Next>,
    marks: &Marks,
) -> Content {
    let texts = |sentences: &[Sentence]| sentences.iter().map(Sentence::quoted).collect::<Vec<_>>();
    let delay = finding.delay.as_ref();
    let mut content = Content {
        answer: finding.sentence.quoted(),
        id: id.to_string(),
        severity: Some(finding.severity),
        delay: delay.map(|delay| format!("{} {}", duration(delay.ns), delay.how.quoted())),
        delay_ns: delay.map(|delay| delay.ns),
        during_ns: (finding.during.as_ref()).map(|during| [during.start, during.end]),
        next: next.into_iter().collect(),
        ..Content::default()
    };
    let mut room = room.without(report::json_bytes(&content) + 300);
    content.why = room.fit(texts(&finding.why));
    content.remedies = room.fit(texts(&finding.remedies));
    content.doubts = room.fit(texts(&finding.doubts));
    content.weighed = room.fit(finding.weighed.iter().map(|verdict| CauseVerdict {
        cause: verdict.name,
        answer: match verdict.judgement {
            Judgement::For => "yes",
            Judgement::Against => "no",
            Judgement::NotRecorded => "not recorded",
        },
        because: verdict.because.quoted(),
        explains_ns: verdict.explains_ns,
    }));
    let evidence = (1..).zip(&finding.evidence);
    content.evidence = room.fit(evidence.map(|(number, evidence)| {
        EvidenceRows::new(evidence, id.evidence_uri(number), ROWS, marks)
    }));
    content.sources = room.fit(finding.sources.iter().copied());
    let all = finding.why.len()
        + finding.remedies.len()
        + finding.doubts.len()
        + finding.weighed.len()
        + finding.evidence.len()
        + finding.sources.len();
    let shown = content.why.len()
        + content.remedies.len()
        + content.doubts.len()
        + content.weighed.len()
        + content.evidence.len()
        + content.sources.len();
    content.left_out = all - shown;
    content.from_trace = (!content.evidence.is_empty()).then(|| marks.note());
    content
}

impl EvidenceRows {
    pub(crate) fn new(
        evidence: &Evidence,
        uri: String,
        rows: usize,
        marks: &Marks,
    ) -> EvidenceRows {
        let sql = evidence.sql().replace(['\n', '\r', '\t'], " ");
        let columns = evidence.columns.iter().map(|column| ShownColumn {
            name: column.name,
            unit: unit(column.unit),
        });
        let cell = |cell: &Option<Cell>| match cell {
            None => Value::Null,
            Some(Cell::Integer(number)) => json!(number),
            Some(Cell::Real(number)) => json!(number),
            Some(Cell::Flag(flag)) => json!(flag),
            Some(Cell::Text(text)) => json!(marks.cell(text)),
        };
        EvidenceRows {
            title: evidence.title.quoted(),
            uri,
            columns: columns.collect(),
            rows: (evidence.rows.iter().take(rows))
                .map(|row| row.iter().map(cell).collect())
                .collect(),
            // A query may contain a name from the trace, so its characters are made harmless. A shortened query would
            // be wrong, so a long query is left out.
            sql: (sql.chars().nth(SQL).is_none()).then(|| Printable(&sql).to_string()),
        }
    }
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::None => "",
        Unit::Count => "count",
        Unit::Duration => "ns",
        Unit::Moment => "ns since start",
        Unit::Bytes => "bytes",
        Unit::BitsPerSecond => "bit/s",
        Unit::Percent => "%",
    }
}
