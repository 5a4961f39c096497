//! All theories, asked side by side.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;
use tables::{Functions, Identities, Options, Store, StoreError, Table};

use crate::theories::{THEORIES, capture};
use crate::{
    Asked, Case, Finding, Judgement, Outcome, Severity, Survey, Theory, Verdict, duration,
};

/// What is to be said of a trace.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// From the first to the last run of a thread on a CPU, in nanoseconds since the trace's start.
    pub span: Range<i64>,
    /// What was found: problems first, then warnings, then information; within these by the time
    /// lost, the most first. What is not about what the user asked for comes after all that is.
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

/// What an explanation comes to where it has neither problems nor warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// The trace does not tell when threads ran: so many of so many questions are not recorded.
    CannotAnswer(usize, usize),
    /// Nothing costs time that anybody would notice; so many of so many questions are not recorded.
    NothingNoticeable(usize, usize),
    /// The same of what is recorded; but the capture is incomplete.
    Incomplete,
    /// Most of what threads ran is not believed, as switches are missing: so many nanoseconds, and so
    /// many that are.
    Unusable(i64, i64),
}

impl fmt::Display for Conclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Conclusion::CannotAnswer(open, all) => write!(
                f,
                "This trace cannot answer why it lagged: {open} of {all} questions are not recorded"
            ),
            Conclusion::NothingNoticeable(0, _) => {
                f.write_str("Nothing that costs noticeable time was found")
            }
            Conclusion::NothingNoticeable(open, all) => write!(
                f,
                "Nothing that costs noticeable time was found; {open} of {all} questions are not \
                 recorded"
            ),
            Conclusion::Incomplete => f.write_str(
                "Nothing that costs noticeable time was found in what is recorded, but the capture \
                 is incomplete: of what is missing this trace cannot tell",
            ),
            Conclusion::Unusable(left_out_ns, kept_ns) => write!(
                f,
                "This trace cannot tell why it lagged: runs of {} are left out, as switches within \
                 them are missing, and of {} is known who had the CPUs",
                duration(*left_out_ns),
                duration(*kept_ns)
            ),
        }
    }
}

impl Explanation {
    /// What it comes to; nothing if there are problems or warnings.
    pub fn conclusion(&self) -> Option<Conclusion> {
        let mut findings = self.findings.iter();
        // What is wrong with the capture tells nothing of why the machine lagged.
        let is_grave = |finding: &Finding| {
            finding.severity > Severity::Information && finding.theory != capture::ABOUT.id
        };
        if findings.any(is_grave) {
            return None;
        }
        let is_open = |verdict: &&Verdict| verdict.judgement == Judgement::NotRecorded;
        let open = self.theories.iter().filter(is_open).count();
        let all = self.theories.len();
        let kept_ns: i64 = self.survey.cpus.iter().map(|cpu| cpu.busy_ns).sum();
        let left_out_ns = self.survey.doubtful.cpu_ns;
        let is_incomplete =
            (self.findings.iter()).any(|finding| finding.severity > Severity::Information);
        Some(match self.span.is_empty() {
            true => Conclusion::CannotAnswer(open, all),
            false if left_out_ns > kept_ns => Conclusion::Unusable(left_out_ns, kept_ns),
            // Nothing else is grave.
            false if is_incomplete => Conclusion::Incomplete,
            false => Conclusion::NothingNoticeable(open, all),
        })
    }

    /// What to record for an answer to the first question of all, if there is none.
    pub fn what_to_record(&self) -> Option<&str> {
        let first = self.theories.first();
        first.and_then(|verdict| verdict.record.as_deref())
    }

    /// Nothing can be said of what several systems recorded, or one before and after it was booted.
    fn of_several_systems(store: &Store, options: Options<'_>) -> Result<Explanation, StoreError> {
        let because = "the files are of different systems, or of one before and after it was \
                       booted: nothing holds across them";
        let record = "one system without booting it, or look at these files one by one";
        let verdict = |theory: &&dyn Theory| Verdict {
            record: Some(record.to_owned()),
            ..Verdict::new(theory.about(), Judgement::NotRecorded, because)
        };
        Ok(Explanation {
            span: 0..0,
            findings: Vec::new(),
            theories: THEORIES.iter().map(verdict).collect(),
            survey: Arc::default(),
            names: Arc::new(Identities::read(store, options)?),
        })
    }

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
    if !store.trace().is_one_system() {
        return Explanation::of_several_systems(store, options);
    }
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
                let because = worst.map_or_else(String::new, |worst| worst.sentence.clone());
                findings.extend(found);
                Verdict::new(about, Judgement::For, because)
            }
            Outcome::Noted(because, found) => {
                findings.extend(found);
                Verdict::new(about, Judgement::Against, because)
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
    for finding in &mut findings {
        finding.aside = !case.is_about_what_is_asked(finding);
    }
    findings.sort_by_key(|finding| Reverse((!finding.aside, finding.severity, finding.lost_ns())));
    Ok(Explanation {
        span: case.survey.span.clone(),
        findings,
        theories,
        survey: case.survey,
        names: case.names,
    })
}
