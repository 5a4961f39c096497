//! Short form of an explanation, for assistants and other readers with little room.

use explain::{Explanation, Finding, Judgement, Severity, Subject};
use serde::Serialize;
use wording::{Printable, QuotedName, Sentence, duration};

use crate::ExplainedTrace;

/// Number of bytes of JSON for a token of a language model. English text has about 4, numbers have about 3.
pub const BYTES_PER_TOKEN: usize = 3;

/// Short form of an explanation. Names from the trace are in quotation marks (“…”), in every text.
#[derive(Debug, Serialize)]
pub struct Brief {
    /// Answer in one sentence.
    pub answer: String,
    /// True if the trace comes from a model of Windows instead of a machine.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// Findings, the most important first.
    pub findings: Vec<BriefFinding>,
    /// Number of further findings, for which there is no room.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_findings: usize,
    /// Questions that the trace cannot answer, because the data is not recorded.
    pub not_recorded: Vec<&'static str>,
    /// Events to record, so that the trace can answer the questions in `not_recorded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// Loss and damage of the recording.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
}

/// Short form of a finding.
#[derive(Debug, Serialize)]
pub struct BriefFinding {
    /// Number of the finding, from 1. `laglab explain --why` shows the finding with this number.
    pub number: usize,
    /// Id of the theory.
    pub theory: &'static str,
    /// Importance of the finding.
    pub severity: Severity,
    /// Sentence that says what happened.
    pub sentence: String,
    /// Main cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Delay in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<i64>,
    /// Delay and the delayed user or program, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// Start and end, in nanoseconds since the trace's start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub during_ns: Option<[i64; 2]>,
    /// Main subjects.
    pub subjects: Vec<String>,
    /// Most effective remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// True if the user asked about other threads, processes or times.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub off_topic: bool,
}

/// Maximum number of subjects, and of sentences about damage.
const SUBJECTS: usize = 3;
const DAMAGE: usize = 4;

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Brief {
    /// Summarizes an explanation in at most `tokens` tokens of JSON. A token counts as [`BYTES_PER_TOKEN`] bytes. If
    /// some findings do not fit, findings at the end of the list are left out.
    pub fn new(explained: &ExplainedTrace, tokens: usize) -> Brief {
        let explanation = &explained.explanation;
        let mut brief = Brief {
            answer: answer(explained),
            simulated: explained.info.is_simulated(),
            findings: Vec::new(),
            more_findings: explanation.findings.len(),
            not_recorded: not_recorded(explanation).collect(),
            record: explanation.what_to_record(),
            damage: damage(explained),
        };
        let limit = tokens * BYTES_PER_TOKEN;
        for (number, finding) in (1..).zip(&explanation.findings) {
            brief.findings.push(BriefFinding::new(number, finding));
            if json_bytes(&brief) > limit {
                brief.findings.pop();
                break;
            }
            brief.more_findings -= 1;
        }
        brief
    }
}

/// Returns the most important sentences about loss and damage of the recording.
pub fn damage(explained: &ExplainedTrace) -> Vec<String> {
    let lines = explained.damage().into_iter().take(DAMAGE);
    // A sentence can have the name of a file.
    lines.map(|line| Printable(&line).to_string()).collect()
}

/// Returns the number of bytes of a value as JSON.
pub fn json_bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |json| json.len())
}

/// Returns the answer in one sentence: the first finding that matters or, if there is none, the conclusion.
pub fn answer(explained: &ExplainedTrace) -> String {
    let first = explained.explanation.findings.first();
    let conclusion = explained.conclusion();
    conclusion.unwrap_or_else(|| first.map_or_else(String::new, |first| first.sentence.quoted()))
}

/// Returns the questions for which the trace lacks data.
pub fn not_recorded(explanation: &Explanation) -> impl Iterator<Item = &'static str> {
    let open = explanation
        .theories
        .iter()
        .filter(|verdict| verdict.judgement == Judgement::NotRecorded);
    open.map(|verdict| verdict.question)
}

impl BriefFinding {
    /// Summarizes a finding.
    pub fn new(number: usize, finding: &Finding) -> BriefFinding {
        let delay = finding.delay.as_ref();
        BriefFinding {
            number,
            theory: finding.theory,
            severity: finding.severity,
            sentence: finding.sentence.quoted(),
            why: finding.why.first().map(Sentence::quoted),
            delay_ns: delay.map(|delay| delay.ns),
            delay: delay.map(|delay| format!("{} {}", duration(delay.ns), delay.how.quoted())),
            during_ns: (finding.during.as_ref()).map(|during| [during.start, during.end]),
            subjects: (finding.subjects.iter().take(SUBJECTS))
                .map(subject)
                .collect(),
            remedy: finding.remedies.first().map(Sentence::quoted),
            off_topic: finding.off_topic,
        }
    }
}

/// Names a subject. Names from the trace are quoted.
fn subject(subject: &Subject) -> String {
    match subject {
        Subject::Thread { id, .. } => format!("thread {id}"),
        Subject::Process { id, name, .. } => match (name, id) {
            (Some(name), Some(id)) => format!("process {} ({id})", QuotedName(name)),
            (Some(name), None) => format!("process {}", QuotedName(name)),
            (None, Some(id)) => format!("process {id}"),
            (None, None) => "unknown process".to_owned(),
        },
        Subject::Cpu { number } => format!("CPU {number}"),
        Subject::Disk { number } => format!("disk {number}"),
        Subject::Module { name } => format!("module {}", QuotedName(name)),
        Subject::Routine { name } => format!("routine {}", QuotedName(name)),
    }
}
