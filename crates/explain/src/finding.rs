//! What theories say.

use std::ops::Range;

use serde::Serialize;

use crate::{About, Evidence};

/// Something that a theory found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Id of the theory.
    pub theory: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What it is, in a sentence or a few.
    pub sentence: String,
    /// The user asked for something else: for other threads, processes or times.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aside: bool,
    /// What it cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
    /// When it was, in nanoseconds since the trace's start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub during: Option<Range<i64>>,
    /// The numbers, and the rows that they come from.
    pub evidence: Vec<Evidence>,
    /// What else it might have been, and what speaks for and against that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weighed: Vec<Verdict>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<String>,
    /// What is uncertain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// Where the facts are from that it rests on.
    pub sources: &'static [Source],
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Information,
    /// It may cost time, or is beyond a published limit.
    Warning,
    /// It cost time that people notice.
    Problem,
}

/// What something cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// Time that somebody waited, in nanoseconds of the clock on the wall.
    pub lost_ns: i64,
    /// Who lost it, and how it was reckoned.
    pub how: String,
}

/// What is to be said of one theory, of the whole trace or of one wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Id of the theory.
    pub theory: &'static str,
    /// What it asks.
    pub question: &'static str,
    /// The answer.
    pub judgement: Judgement,
    /// Why.
    pub because: String,
    /// How much of the wait it explains, in nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explains_ns: Option<i64>,
    /// The numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Evidence>,
    /// What to record for an answer, where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
}

/// What a trace says of a theory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// It holds.
    For,
    /// It does not.
    Against,
    /// The trace does not hold what would tell.
    NotRecorded,
}

/// Where a fact is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    /// What it is called.
    pub title: &'static str,
    /// Where it is; empty of books, and of what was found by measuring.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub url: &'static str,
}

impl Finding {
    /// A finding of a theory.
    pub fn new(theory: &About, severity: Severity, sentence: impl Into<String>) -> Finding {
        Finding {
            theory: theory.id,
            severity,
            sentence: sentence.into(),
            aside: false,
            loss: None,
            during: None,
            evidence: Vec::new(),
            weighed: Vec::new(),
            remedies: Vec::new(),
            doubts: Vec::new(),
            sources: theory.sources,
        }
    }

    /// The same, with what it cost.
    #[must_use]
    pub fn costing(mut self, lost_ns: i64, how: impl Into<String>) -> Finding {
        let how = how.into();
        self.loss = Some(Loss { lost_ns, how });
        self
    }

    /// The same, with when it was.
    #[must_use]
    pub fn during(mut self, range: Range<i64>) -> Finding {
        self.during = Some(range);
        self
    }

    /// The same, with more evidence.
    #[must_use]
    pub fn with(mut self, evidence: Evidence) -> Finding {
        self.evidence.push(evidence);
        self
    }

    /// The same, with something to do about it.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Finding {
        self.remedies.push(remedy.into());
        self
    }

    /// The same, with something that is uncertain.
    #[must_use]
    pub fn doubt(mut self, doubt: impl Into<String>) -> Finding {
        self.doubts.push(doubt.into());
        self
    }

    /// Time that somebody lost; 0 if it is not known to have cost any.
    pub fn lost_ns(&self) -> i64 {
        self.loss.as_ref().map_or(0, |loss| loss.lost_ns)
    }
}

impl Verdict {
    /// What is to be said of a theory.
    pub fn new(theory: &About, judgement: Judgement, because: impl Into<String>) -> Verdict {
        Verdict {
            theory: theory.id,
            question: theory.question,
            judgement,
            because: because.into(),
            explains_ns: None,
            evidence: Vec::new(),
            record: (judgement == Judgement::NotRecorded)
                .then(|| record::needs::of(theory.id).map(ToString::to_string))
                .flatten(),
        }
    }
}
