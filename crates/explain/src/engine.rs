//! All theories, asked side by side.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;
use tables::{Functions, Identities, Options, Store, StoreError, Table};

use crate::theories::THEORIES;
use crate::{Asked, Case, Finding, Judgement, Outcome, Severity, Survey, Verdict};

/// What is to be said of a trace.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// From the first to the last run of a thread on a CPU, in nanoseconds since the trace's start.
    pub span: Range<i64>,
    /// What was found: problems first, then warnings, then information; within these by the time
    /// lost, the most first.
    pub findings: Vec<Finding>,
    /// What each theory said.
    pub theories: Vec<Verdict>,
    /// What the theories were judged by.
    #[serde(skip)]
    pub survey: Arc<Survey>,
    /// Who and what the survey speaks of.
    #[serde(skip)]
    pub names: Arc<Identities>,
}

impl Explanation {
    /// What the theories said that found nothing.
    pub fn without_findings(&self) -> impl Iterator<Item = &Verdict> {
        let found = |verdict: &Verdict| {
            let mut findings = self.findings.iter();
            findings.any(|finding| finding.theory == verdict.theory)
        };
        self.theories.iter().filter(move |verdict| !found(verdict))
    }
}

/// The tables that [`explain()`] reads: whoever reads others too makes them all in one pass.
pub fn tables() -> Vec<Table> {
    let mut wanted: Vec<Table> = Survey::TABLES.to_vec();
    wanted.extend(Identities::TABLES);
    wanted.extend(THEORIES.iter().flat_map(|theory| theory.about().tables));
    wanted.sort_unstable();
    wanted.dedup();
    wanted
}

/// Explains a trace, all theories side by side. Tables that are not there yet are made first, with
/// the progress that `options` are told; they are asked often whether to go on.
///
/// # Errors
/// If a table cannot be made or read, or the user stopped it.
pub fn explain(
    store: &Store,
    asked: Asked,
    functions: Option<&dyn Functions>,
    options: Options<'_>,
) -> Result<Explanation, StoreError> {
    store.make(&tables(), options)?;
    let size = store.trace().size_bytes();
    let go_on = || (options.progress)(size);
    let case = Case::open(store, asked, functions, &go_on)?;
    let (mut findings, mut theories) = (Vec::new(), Vec::new());
    let outcomes: Vec<Outcome> = THEORIES
        .par_iter()
        .map(|theory| theory.judge(&case))
        .collect::<Result<_, StoreError>>()?;
    for (theory, outcome) in THEORIES.iter().zip(outcomes) {
        let about = theory.about();
        let verdict = match outcome {
            Outcome::For(found) => {
                let worst = found
                    .iter()
                    .max_by_key(|found| (found.severity, found.lost_ns()));
                let judgement = match worst.map(|worst| worst.severity) {
                    Some(Severity::Warning | Severity::Problem) => Judgement::For,
                    Some(Severity::Information) | None => Judgement::Against,
                };
                let because = worst.map_or_else(String::new, |worst| worst.sentence.clone());
                findings.extend(found);
                Verdict::new(about, judgement, because)
            }
            Outcome::Against(because, evidence) => {
                let mut verdict = Verdict::new(about, Judgement::Against, because);
                verdict.evidence = evidence;
                verdict
            }
            Outcome::NotRecorded(because) => Verdict::new(about, Judgement::NotRecorded, because),
            Outcome::Hint(because, evidence) => {
                let mut verdict = Verdict::new(about, Judgement::NotRecorded, because);
                verdict.evidence = evidence;
                verdict
            }
        };
        theories.push(verdict);
    }
    findings.sort_by_key(|finding| Reverse((finding.severity, finding.lost_ns())));
    Ok(Explanation {
        span: case.survey.span.clone(),
        findings,
        theories,
        survey: case.survey,
        names: case.names,
    })
}
