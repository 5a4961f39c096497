//! Findings and verdicts of theories.

use std::fmt;
use std::ops::{Deref, Range};

use record::MissingData;
use serde::{Serialize, Serializer};
use ts_rs::TS;
use wording::{Part, Sentence};

use crate::{About, Evidence, Subject};

/// Maximum number of time ranges of a finding.
const MOMENTS: usize = 64;

/// Result of a theory: a problem, a warning or a fact.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
#[ts(optional_fields)]
pub struct Finding {
    /// Id of the theory.
    pub theory: &'static str,
    /// Importance of the finding.
    pub severity: Severity,
    /// Sentence that says what happened: who was delayed, for how long and when.
    #[serde(flatten)]
    pub sentence: Headline,
    /// Sentences that give the cause, the most important first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(optional = nullable, as = "Vec<String>")]
    pub why: Vec<Sentence>,
    /// Subjects of the finding: all things that the sentence names, and the threads that it counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(optional = nullable)]
    pub subjects: Vec<Subject>,
    /// True if the user asked about other threads, processes or times.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[ts(optional = nullable)]
    pub off_topic: bool,
    /// Attention that the user paid to the delayed program; `None` if it is unknown, or the finding is
    /// not about a single program.
    #[serde(skip)]
    pub(crate) attention: Option<Attention>,
    /// Delay that this finding explains, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// Time range of the finding, in nanoseconds since the trace's start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub during: Option<Range<i64>>,
    /// Time ranges of a delay that happened several times, in order; at most 64. Empty if it happened once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(optional = nullable)]
    pub moments: Vec<Range<i64>>,
    /// Rows with the numbers of the finding or verdict.
    pub evidence: Vec<Evidence>,
    /// Other possible causes that were examined, each with its answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(optional = nullable)]
    pub weighed: Vec<Verdict>,
    /// Actions that avoid the delay.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(optional = nullable, as = "Vec<String>")]
    pub remedies: Vec<Sentence>,
    /// Uncertainties of the finding.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(optional = nullable, as = "Vec<String>")]
    pub doubts: Vec<Sentence>,
    /// Published sources of the facts that the finding uses.
    pub sources: Vec<Source>,
}

/// Importance of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Fact that is neither a warning nor a problem.
    Information,
    /// Fact that may cause delays, or that exceeds a published limit.
    Warning,
    /// Cause of a delay that people notice.
    Problem,
}

/// Attention that the user paid to a program while it was delayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Attention {
    /// The program did not have the focus, and none of its threads handles messages of windows.
    Background,
    /// The program has windows, but another program had the focus.
    Window,
    /// The program had the focus.
    Focus,
}

/// Delay that a problem caused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, TS)]
pub struct Delay {
    /// Time that a user or program waited, in nanoseconds of wall-clock time.
    pub ns: i64,
    /// Text that names the delayed user or program and the way the delay was computed.
    #[ts(as = "String")]
    pub how: Sentence,
}

/// Answer of one theory, about the whole trace or about one wait.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
#[ts(optional_fields)]
pub struct Verdict {
    /// Id of the theory.
    pub theory: &'static str,
    /// Name of the cause in lists, such as "higher priority".
    pub name: &'static str,
    /// Question of the theory.
    pub question: &'static str,
    /// Answer to the question.
    pub judgement: Judgement,
    /// Reason for the answer.
    #[ts(as = "String")]
    pub because: Sentence,
    /// Part of the wait that this cause explains, in nanoseconds; `None` if the verdict is not
    /// about a wait or the part is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explains_ns: Option<i64>,
    /// Rows with the numbers of the finding or verdict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[ts(optional = nullable)]
    pub evidence: Vec<Evidence>,
    /// Data to record for an answer, if the trace lacks them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(as = "Option<String>")]
    pub record: Option<MissingData>,
}

/// Answer of a trace to the question of a theory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The answer is yes.
    For,
    /// The answer is no.
    Against,
    /// The trace lacks the data for an answer.
    NotRecorded,
}

/// Source of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
pub struct Source {
    /// Title of the source.
    pub title: &'static str,
    /// Web address (URL) of the source; `None` for books and for measurements of this project.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional = nullable)]
    pub url: Option<&'static str>,
}

impl Finding {
    /// Creates a finding without subjects, delay and evidence.
    pub fn new(theory: &About, severity: Severity, sentence: impl Into<Sentence>) -> Finding {
        Finding {
            theory: theory.id,
            severity,
            sentence: Headline(sentence.into()),
            why: Vec::new(),
            subjects: Vec::new(),
            off_topic: false,
            attention: None,
            delay: None,
            during: None,
            moments: Vec::new(),
            evidence: Vec::new(),
            weighed: Vec::new(),
            remedies: Vec::new(),
            doubts: Vec::new(),
            sources: theory.sources.to_vec(),
        }
    }

    /// Adds a sentence about the cause.
    #[must_use]
    pub fn because(mut self, sentence: impl Into<Sentence>) -> Finding {
        self.why.push(sentence.into());
        self
    }

    /// Adds subjects. A subject that is already listed is not added again.
    #[must_use]
    pub fn subjects(mut self, subjects: impl IntoIterator<Item = Subject>) -> Finding {
        for subject in subjects {
            if !self.subjects.contains(&subject) {
                self.subjects.push(subject);
            }
        }
        self
    }

    /// Sets the delay.
    #[must_use]
    pub fn delay(mut self, ns: i64, how: impl Into<Sentence>) -> Finding {
        let how = how.into();
        self.delay = Some(Delay { ns, how });
        self
    }

    /// Sets the attention that the user paid to the delayed program.
    #[must_use]
    pub(crate) fn attention(mut self, attention: Option<Attention>) -> Finding {
        self.attention = attention;
        self
    }

    /// Sets the time range.
    #[must_use]
    pub fn during(mut self, range: Range<i64>) -> Finding {
        self.during = Some(range);
        self
    }

    /// Sets the time ranges of a delay that happened several times. They must be in order.
    #[must_use]
    pub fn moments(mut self, ranges: Vec<Range<i64>>) -> Finding {
        if ranges.len() > 1 {
            self.moments = ranges;
            self.moments.truncate(MOMENTS);
        }
        self
    }

    /// Adds evidence.
    #[must_use]
    pub fn with(mut self, evidence: Evidence) -> Finding {
        self.evidence.push(evidence);
        self
    }

    /// Adds a remedy.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<Sentence>) -> Finding {
        self.remedies.push(remedy.into());
        self
    }

    /// Adds a doubt.
    #[must_use]
    pub fn doubt(mut self, doubt: impl Into<Sentence>) -> Finding {
        self.doubts.push(doubt.into());
        self
    }

    /// Returns the names of the examined causes with this answer. Leaves out causes whose events complete recordings can
    /// lack.
    pub fn causes(&self, judgement: Judgement) -> impl Iterator<Item = &'static str> {
        let is_rare = |verdict: &&Verdict| verdict.record.is_some_and(MissingData::is_rare);
        let weighed = self.weighed.iter().filter(move |verdict| !is_rare(verdict));
        let answered = weighed.filter(move |verdict| verdict.judgement == judgement);
        answered.map(|verdict| verdict.name)
    }

    /// Returns the delay in nanoseconds; 0 if no delay is known.
    pub fn delay_ns(&self) -> i64 {
        self.delay.as_ref().map_or(0, |delay| delay.ns)
    }
}

impl Verdict {
    /// Creates a verdict without evidence.
    pub fn new(theory: &About, judgement: Judgement, because: impl Into<Sentence>) -> Verdict {
        Verdict {
            theory: theory.id,
            name: theory.name,
            question: theory.question,
            judgement,
            because: because.into(),
            explains_ns: None,
            evidence: Vec::new(),
            record: (judgement == Judgement::NotRecorded)
                .then(|| record::needs::for_theory(theory.id).map(MissingData::Events))
                .flatten(),
        }
    }
}

/// Sentence of a finding. It is serialized twice: as text, and as a list of parts. The parts separate names in the
/// trace from words of this program.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline(pub Sentence);

#[derive(Serialize, TS)]
struct HeadlineJson<'h> {
    /// Sentence that says what happened: who was delayed, for how long and when.
    #[ts(as = "String")]
    sentence: &'h Sentence,
    /// Parts of the sentence: words of this program, and names from the trace.
    #[ts(type = "({ words: string } | { name: string })[]")]
    parts: Vec<Part<'h>>,
}

/// TypeScript type of the JSON: the type of `HeadlineJson`. The implementation is written by hand, because a derived
/// implementation cannot flatten a type that is declared as another type.
impl TS for Headline {
    type WithoutGenerics = Headline;
    type OptionInnerType = Headline;

    fn name(config: &ts_rs::Config) -> String {
        HeadlineJson::name(config)
    }

    fn inline(config: &ts_rs::Config) -> String {
        HeadlineJson::inline(config)
    }

    fn inline_flattened(config: &ts_rs::Config) -> String {
        HeadlineJson::inline_flattened(config)
    }

    fn decl(config: &ts_rs::Config) -> String {
        HeadlineJson::decl(config)
    }

    fn decl_concrete(config: &ts_rs::Config) -> String {
        HeadlineJson::decl_concrete(config)
    }
}

impl Serialize for Headline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        HeadlineJson {
            sentence: &self.0,
            parts: self.0.parts().collect(),
        }
        .serialize(serializer)
    }
}

impl From<String> for Headline {
    fn from(marked: String) -> Headline {
        Headline(marked.into())
    }
}

impl Deref for Headline {
    type Target = Sentence;

    fn deref(&self) -> &Sentence {
        &self.0
    }
}

impl fmt::Display for Headline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
