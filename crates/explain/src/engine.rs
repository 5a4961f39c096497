//! Runs all theories and ranks their findings.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use record::MissingData;
use serde::Serialize;
use tables::{Functions, Identities, Options, Store, StoreError};
use ts_rs::TS;

use crate::chain::user_attention::ProcessKind;
use crate::finding::Attention;
use crate::ranges::overlap;
use crate::theories::{NEED_RANKS, OVERLAPS, THEORIES, tables};
use crate::theory::{Relation, StopTarget};
use crate::thresholds::{ABANDONED_NS, CAUSE_PERCENT, NOTICED_NS, SAME_DELAY_PERCENT, is_share};
use crate::{
    Case, Damage, Finding, Judgement, Outcome, Reader, Scope, Severity, Subject, Survey, Terms,
    Theory, Verdict, duration, listed,
};

/// Answer to the question why a traced machine lagged.
#[derive(Debug, Serialize, TS)]
pub struct Explanation {
    /// Time range from the start of the first run of a thread on a CPU to the end of the last run, in nanoseconds
    /// since the trace's start.
    pub span: Range<i64>,
    /// Findings, the most important first. Findings in scope come before all others. Then findings are sorted by
    /// severity. Among findings of the same severity, the longest delay comes first, but programs with windows come
    /// before other programs with about the same delay, and short delays of programs in the background come last.
    pub findings: Vec<Finding>,
    /// Answers of all theories about the whole trace.
    pub theories: Vec<Verdict>,
    /// Sums over the trace that the theories share.
    #[serde(skip)]
    pub survey: Arc<Survey>,
    /// Processes, threads and images that the survey refers to.
    #[serde(skip)]
    pub names: Arc<Identities>,
    /// True if the tables are of a recording of Linux.
    #[serde(skip)]
    pub is_linux: bool,
}

/// Conclusion of an explanation that has no problem, and no warning about the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// The trace has no context switches.
    CannotAnswer,
    /// No noticeable delay was found.
    NothingNoticeable {
        /// Number of theories that lack data.
        open: usize,
        /// Number of all theories.
        all: usize,
        /// Kinds of delays that the trace cannot show. Empty if it can show all main kinds.
        unseen: Vec<&'static str>,
        /// True if there are findings about delays that users probably did not notice.
        has_delays: bool,
    },
    /// No noticeable delay was found in the recorded data, but the capture is incomplete.
    Incomplete,
    /// Most CPU time is in doubtful runs of threads: runs within which context switches are missing. The first number
    /// is the CPU time of doubtful runs, which the sums by CPU and by process leave out. The second number is the CPU
    /// time of all other runs. Both are in nanoseconds.
    Unusable(i64, i64),
}

impl fmt::Display for Conclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Conclusion::CannotAnswer => f.write_str(
                "This trace does not show why the machine lagged: it has no context switches",
            ),
            Conclusion::NothingNoticeable {
                open,
                all,
                unseen,
                has_delays,
            } => {
                f.write_str(if *has_delays {
                    "No delay was found that users probably noticed"
                } else {
                    "No noticeable delay was found"
                })?;
                match (open, unseen.as_slice()) {
                    (0, _) => Ok(()),
                    (_, []) => {
                        write!(
                            f,
                            "; the trace lacks the data for {open} of {all} questions"
                        )
                    }
                    _ => write!(
                        f,
                        ", but this trace cannot show {}: it lacks the data for {open} of {all} questions",
                        listed(unseen)
                    ),
                }
            }
            Conclusion::Incomplete => f.write_str(
                "No noticeable delay was found in the recorded data, but the capture is incomplete",
            ),
            Conclusion::Unusable(left_out_ns, kept_ns) => write!(
                f,
                "This trace does not show why the machine lagged: {} of CPU time are in runs with missing \
                 context switches, and only {} can be assigned to threads",
                duration(*left_out_ns),
                duration(*kept_ns)
            ),
        }
    }
}

impl Explanation {
    /// Returns the conclusion; `None` if there are problems or warnings about the machine.
    pub fn conclusion(&self) -> Option<Conclusion> {
        let mut findings = self.findings.iter();
        // A finding about an incomplete capture does not explain why the machine lagged, so it is ignored here.
        let is_grave = |finding: &Finding| {
            finding.severity > Severity::Information && !is_about_recording(finding)
        };
        if findings.any(is_grave) {
            return None;
        }
        let is_open = |verdict: &&Verdict| verdict.judgement == Judgement::NotRecorded;
        let open = self.theories.iter().filter(is_open).count();
        let all = self.theories.len();
        let kept_ns = self.survey.kept_ns();
        let left_out_ns = self.survey.doubtful.cpu_ns;
        let is_incomplete =
            (self.findings.iter()).any(|finding| finding.severity > Severity::Information);
        Some(match self.span.is_empty() {
            true => Conclusion::CannotAnswer,
            false if self.survey.lacks_switches() => Conclusion::Unusable(left_out_ns, kept_ns),
            // The check above excludes all other warnings, so this warning is about the capture.
            false if is_incomplete => Conclusion::Incomplete,
            false => Conclusion::NothingNoticeable {
                open,
                all,
                unseen: self.unseen().map(|(_, delays)| delays).collect(),
                has_delays: (self.findings.iter()).any(|finding| finding.delay_ns() >= NOTICED_NS),
            },
        })
    }

    /// Returns the main theories that lack data: their verdicts, and the delays that they would find.
    fn unseen(&self) -> impl Iterator<Item = (&Verdict, &'static str)> {
        THEORIES.iter().filter_map(|theory| {
            let delays = theory.main_delays()?;
            let mut verdicts = self.theories.iter();
            let verdict = verdicts.find(|verdict| verdict.theory == theory.about().id)?;
            (verdict.judgement == Judgement::NotRecorded).then_some((verdict, delays))
        })
    }

    /// Returns the command or events that record the delays that the trace cannot show. The text can follow the word
    /// "record". Returns `None` if the trace can show the main kinds of delays, or shows another cause of lag.
    pub fn main_record(&self) -> Option<String> {
        let conclusion = self.conclusion()?;
        if matches!(
            conclusion,
            Conclusion::Incomplete | Conclusion::Unusable(..)
        ) {
            return None;
        }
        let missing = self.unseen().filter_map(|(verdict, _)| verdict.record);
        MissingData::command(&missing.collect::<Vec<_>>())
    }

    /// Returns true if the trace lacks events or whole CPUs. Conclusions are then uncertain.
    pub fn is_incomplete(&self) -> bool {
        let mut findings = self.findings.iter();
        findings
            .any(|finding| is_about_recording(finding) && finding.severity > Severity::Information)
    }

    /// Returns the terms of the traced operating system.
    pub fn terms(&self) -> &'static Terms {
        Terms::for_system(self.is_linux)
    }

    /// Returns the events that the trace lacks for the answers of theories. The text can follow the word "record".
    /// Returns `None` if no theory lacks data.
    pub fn what_to_record(&self) -> Option<String> {
        let missing = self.theories.iter().filter_map(|verdict| verdict.record);
        MissingData::advice(&missing.collect::<Vec<_>>())
    }

    /// Returns an explanation without findings. It is used if the files are from different systems, or from
    /// before and after a boot.
    fn of_several_systems(store: &Store, options: Options<'_>) -> Result<Explanation, StoreError> {
        let because = "the files are of different systems, or from before and after a boot: they \
            cannot be explained together";
        let verdict = |theory: &&dyn Theory| Verdict {
            record: Some(MissingData::OneSystem),
            ..Verdict::new(theory.about(), Judgement::NotRecorded, because)
        };
        Ok(Explanation {
            span: 0..0,
            findings: Vec::new(),
            theories: THEORIES.iter().map(verdict).collect(),
            survey: Arc::default(),
            names: Arc::new(Identities::read(store, options)?),
            is_linux: store.info().is_linux(),
        })
    }

    /// Returns the answers of theories that have no finding.
    pub fn without_findings(&self) -> impl Iterator<Item = &Verdict> {
        let has_finding = |verdict: &Verdict| {
            let mut findings = self.findings.iter();
            findings.any(|finding| finding.theory == verdict.theory)
        };
        self.theories
            .iter()
            .filter(move |verdict| !has_finding(verdict))
    }
}

fn theory_of(finding: &Finding) -> Option<&'static dyn Theory> {
    let mut theories = THEORIES.iter().copied();
    theories.find(|theory| theory.about().id == finding.theory)
}

fn is_about_recording(finding: &Finding) -> bool {
    theory_of(finding).is_some_and(|theory| theory.is_about_recording())
}

/// Returns true if a finding is a symptom of a cause that stopped threads, CPUs or a process. The findings must overlap in
/// time, and have such a subject in common. If the cause stopped a process, it must last for at least half of the symptom.
fn is_symptom(symptom: &Finding, cause: &Finding, stopped: StopTarget) -> bool {
    let is_place = |subject: &&Subject| match subject {
        Subject::Cpu { .. } => true,
        Subject::Thread { .. } => stopped != StopTarget::Cpus,
        Subject::Process { .. } => stopped == StopTarget::Process,
        _ => false,
    };
    let mut places = symptom.subjects.iter().filter(is_place);
    let ranges = symptom.during.as_ref().zip(cause.during.as_ref());
    cause.severity > Severity::Information
        && places.any(|place| cause.subjects.contains(place))
        && ranges.is_some_and(|(a, b)| {
            if stopped == StopTarget::Process {
                is_mostly_within(a, b)
            } else {
                overlap(a, b).is_some()
            }
        })
        && is_same_routine(symptom, cause)
}

/// Returns true if at least half of the first range is within the second.
fn is_mostly_within(part: &Range<i64>, whole: &Range<i64>) -> bool {
    overlap(part, whole)
        .is_some_and(|both| is_share(both.end - both.start, part.end - part.start, CAUSE_PERCENT))
}

/// Returns false if the two findings are about different routines. Returns true if they have a routine in common, or
/// if one of them is not about a routine.
fn is_same_routine(finding: &Finding, cause: &Finding) -> bool {
    let routines = |finding: &Finding| -> Vec<Subject> {
        let subjects = finding.subjects.iter();
        let routines = subjects.filter(|subject| matches!(subject, Subject::Routine { .. }));
        routines.cloned().collect()
    };
    let (own, others) = (routines(finding), routines(cause));
    own.is_empty() || others.is_empty() || own.iter().any(|routine| others.contains(routine))
}

/// Returns true if a finding is a part of another one. A wait of a thread is a part of a hang if the hung thread waited for
/// this thread, and the finding is about no other thread. A long routine is a part if it delayed the thread of the other
/// finding, and a slow disk if the hung thread waited for it.
fn is_part(part: &Finding, whole: &Finding) -> bool {
    let ranges = part.during.as_ref().zip(whole.during.as_ref());
    let is_within = ranges.is_some_and(|(part, whole)| is_mostly_within(part, whole));
    let is_thread = |subject: &&Subject| matches!(subject, Subject::Thread { .. });
    let mut threads = part.subjects.iter().filter(is_thread);
    let is_cause =
        |subject: &&Subject| matches!(subject, Subject::Routine { .. } | Subject::Disk { .. });
    let mut causes = part.subjects.iter().filter(is_cause);
    part.severity <= whole.severity
        && part.delay_ns() / 2 <= whole.delay_ns()
        && match (part.subjects.first(), whole.subjects.split_first()) {
            (Some(Subject::Thread { .. }), Some((hung, others))) => {
                is_within && threads.all(|thread| thread != hung && others.contains(thread))
            }
            _ => causes.any(|cause| whole.subjects.contains(cause)),
        }
}

/// Returns the finding that also reports the delay of the finding at `place`.
fn covering(findings: &[Finding], place: usize) -> Option<(usize, Relation)> {
    let covered = &findings[place];
    let overlaps = OVERLAPS.iter();
    let mut overlaps = overlaps.filter(|overlap| overlap.covered.about().id == covered.theory);
    overlaps.find_map(|overlap| {
        let theory = overlap.covering.about().id;
        let is_covering = |other: &Finding| {
            other.theory == theory
                && match overlap.relation {
                    Relation::Symptom(stopped) => is_symptom(covered, other, stopped),
                    Relation::Part => is_part(covered, other),
                }
        };
        let place = findings.iter().position(is_covering)?;
        Some((place, overlap.relation))
    })
}

/// Sets the severity of symptoms and parts of other findings to information, so that one delay is not reported twice. The
/// other finding lists them.
fn fold(findings: &mut [Finding]) {
    let covering: Vec<_> = (0..findings.len())
        .map(|place| covering(findings, place))
        .collect();
    for (place, covering) in covering.into_iter().enumerate() {
        let Some((other, relation)) = covering else {
            continue;
        };
        let (is, has) = match relation {
            Relation::Symptom(_) => ("This is a symptom of", "This finding has a symptom"),
            Relation::Part => ("This is a part of", "This finding has a part"),
        };
        let because = format!("{is} another finding: {:#}", findings[other].sentence);
        let covered = &mut findings[place];
        covered.severity = Severity::Information;
        covered.why.insert(0, because.into());
        let shows = format!("{has}: {:#}", covered.sentence);
        findings[other].why.push(shows.into());
    }
}

/// Returns true if the finding is about a program in the background, and its delay is shorter than `ABANDONED_NS`.
/// After a delay of this length, users turn to something else.
fn is_short_in_background(finding: &Finding) -> bool {
    finding.attention == Some(Attention::Background) && finding.delay_ns() < ABANDONED_NS
}

/// Lowers problems of programs in the background to warnings, if a program that the user looked at was also delayed.
/// The user probably recorded the trace because of the visible delay. If a program with the focus was delayed, windows
/// without the focus count as background.
fn lower_background(findings: &mut [Finding]) {
    let is_seen = |finding: &Finding| {
        finding.severity > Severity::Information
            && !finding.off_topic
            && finding.attention > Some(Attention::Background)
    };
    if !findings.iter().any(is_seen) {
        return;
    }
    let is_focus =
        |finding: &Finding| is_seen(finding) && finding.attention == Some(Attention::Focus);
    let has_focus = findings.iter().any(is_focus);
    let is_unseen_window = |finding: &Finding| {
        has_focus
            && finding.attention == Some(Attention::Window)
            && finding.delay_ns() < ABANDONED_NS
    };
    for finding in findings
        .iter_mut()
        .filter(|finding| is_short_in_background(finding) || is_unseen_window(finding))
    {
        finding.severity = finding.severity.min(Severity::Warning);
    }
}

fn needs_exact_times(finding: &Finding) -> bool {
    theory_of(finding).is_some_and(|theory| theory.needs_exact_times())
}

/// Adds a sentence to the findings of damaged traces that depend on exact times. If the file is broken, such a finding is
/// no problem, because the damage is its probable cause.
fn distrust(findings: &mut [Finding], damage: Damage) {
    let because = match damage {
        Damage { is_any: false, .. } => return,
        Damage {
            is_broken: true, ..
        } => "The file is broken, and this finding may be an effect of that.",
        _ => "Events are missing, and this finding may be an effect of that.",
    };
    for finding in findings
        .iter_mut()
        .filter(|finding| needs_exact_times(finding))
    {
        if damage.is_broken {
            finding.severity = finding.severity.min(Severity::Warning);
        }
        finding.why.insert(0, because.into());
    }
}

/// Sorts findings, the most important first. If the file is broken, findings that depend on exact times come after the
/// finding about the damage. Of findings with about the longest delay, those about programs with windows come first, then
/// those about other programs of users. `kind` returns the kind of the delayed process, if it is known.
fn rank(findings: &mut [Finding], damage: Damage, kind: impl Fn(&Finding) -> Option<ProcessKind>) {
    distrust(findings, damage);
    fold(findings);
    lower_background(findings);
    let longest_ns = |severity: Severity| {
        let of_severity = findings
            .iter()
            .filter(|finding| finding.severity == severity);
        of_severity.map(Finding::delay_ns).max().unwrap_or(0)
    };
    let longest_ns = [Severity::Information, Severity::Warning, Severity::Problem]
        .map(|severity| (severity, longest_ns(severity)));
    findings.sort_by_cached_key(|finding| {
        let is_doubtful = damage.is_broken && needs_exact_times(finding);
        let delay_ns = finding.delay_ns();
        let is_among_longest = longest_ns.iter().any(|(severity, longest_ns)| {
            *severity == finding.severity
                && delay_ns > 0
                && is_share(delay_ns, *longest_ns, SAME_DELAY_PERCENT)
        });
        Reverse((
            !finding.off_topic,
            finding.severity,
            !is_doubtful,
            !is_short_in_background(finding),
            is_among_longest.then(|| (finding.attention, kind(finding))),
            delay_ns,
        ))
    });
}

/// Explains a trace. All theories run in parallel.
///
/// Tables that do not exist yet are made first. The callback in `options` receives the progress and
/// can cancel.
///
/// # Errors
/// Returns an error if a table cannot be made or read, or the user cancelled.
pub fn explain(
    store: &Store,
    scope: Scope,
    functions: Option<&dyn Functions>,
    options: Options<'_>,
) -> Result<Explanation, StoreError> {
    store.make(&tables(), options)?;
    if !store.info().is_one_system {
        return Explanation::of_several_systems(store, options);
    }
    let size = store.info().size_bytes;
    let is_cancelled = || !(options.progress)(size);
    let names = Arc::new(Identities::read(store, Options::default())?);
    let reader = Reader::new(store, names, functions, &is_cancelled);
    let case = Case::read(reader, scope)?;
    let (mut findings, mut theories) = (Vec::new(), Vec::new());
    let is_linux = store.info().is_linux();
    let chosen = THEORIES
        .iter()
        .filter(|theory| theory.is_asked_of(is_linux));
    let chosen: Vec<&&dyn Theory> = chosen.collect();
    let outcomes: Vec<Outcome> = chosen
        .par_iter()
        .map(|theory| theory.judge(&case))
        .collect::<Result<_, StoreError>>()?;
    for (theory, mut outcome) in chosen.into_iter().zip(outcomes) {
        let about = theory.about();
        if let Outcome::For(found) | Outcome::Noted(_, found) = &mut outcome {
            for finding in found {
                finding.off_topic = !theory.is_scoped() && !case.scope.has(finding, &case.names);
            }
        }
        let verdict = match outcome {
            Outcome::For(found) => {
                let worst = found
                    .iter()
                    .max_by_key(|found| (found.severity, found.delay_ns()));
                let because = worst
                    .map(|worst| worst.sentence.0.clone())
                    .unwrap_or_default();
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
    if is_linux {
        let weighed = findings.iter_mut().flat_map(|finding| &mut finding.weighed);
        for verdict in theories.iter_mut().chain(weighed) {
            let needs = record::linux::for_theory(verdict.theory);
            verdict.record = verdict.record.and(needs).map(MissingData::LinuxEvents);
        }
    } else if case.survey.runs_with_rank == 0 && !case.survey.cpus.is_empty() {
        // The trace has context switches, but this version of Windows recorded no ranks in them.
        let weighed = findings.iter_mut().flat_map(|finding| &mut finding.weighed);
        for verdict in theories.iter_mut().chain(weighed) {
            if NEED_RANKS.iter().any(|about| about.id == verdict.theory) {
                verdict.record = verdict.record.and(Some(MissingData::Ranks));
            }
        }
    }
    let noticed = case.noticed()?;
    rank(&mut findings, case.survey.damage, |finding| {
        match finding.subjects.first() {
            Some(Subject::Thread { process_row, .. }) => Some(noticed.kind(*process_row)),
            _ => None,
        }
    });
    Ok(Explanation {
        span: case.survey.span.clone(),
        findings,
        theories,
        names: Arc::clone(&case.names),
        survey: case.survey,
        is_linux,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::About;

    static ABOUT: About = About {
        id: "a-theory",
        name: "",
        question: "",
        tables: &[],
        sources: &[],
    };

    fn finding(severity: Severity, attention: Option<Attention>, delay_ms: i64) -> Finding {
        Finding::new(&ABOUT, severity, format!("{delay_ms}"))
            .attention(attention)
            .delay(delay_ms * 1_000_000, "")
    }

    fn ranked(mut findings: Vec<Finding>) -> Vec<(Severity, i64)> {
        rank(&mut findings, Damage::default(), |_| None);
        let rank = |finding: &Finding| (finding.severity, finding.delay_ns() / 1_000_000);
        findings.iter().map(rank).collect()
    }

    #[test]
    fn delays_that_users_see_come_before_those_of_the_background() {
        use Attention::{Background, Focus, Window};
        use Severity::{Information, Problem, Warning};
        let service = |delay_ms| finding(Problem, Some(Background), delay_ms);
        let seen = finding(Warning, Some(Focus), 600);
        let expected = [(Warning, 600), (Warning, 9_000)];
        assert_eq!(ranked(vec![service(9_000), seen.clone()]), expected);
        let expected = [(Problem, 11_000), (Warning, 600)];
        assert_eq!(ranked(vec![seen, service(11_000)]), expected);

        // If no user saw a delay, or if the focus is unknown, the findings are sorted by severity and delay.
        assert_eq!(ranked(vec![service(2_000)]), [(Problem, 2_000)]);
        let unseen = finding(Information, Some(Focus), 300);
        let expected = [(Problem, 2_000), (Information, 300)];
        assert_eq!(ranked(vec![unseen, service(2_000)]), expected);
        let unknown = finding(Problem, None, 1_500);
        let expected = [(Problem, 2_000), (Problem, 1_500)];
        assert_eq!(
            ranked(vec![unknown.clone(), finding(Problem, None, 2_000)]),
            expected
        );

        // A long delay in the background is as important as any other.
        let expected = [(Problem, 19_500), (Problem, 1_500)];
        assert_eq!(ranked(vec![unknown.clone(), service(19_500)]), expected);
        let window = finding(Problem, Some(Window), 5_000);
        let expected = [(Problem, 5_000), (Problem, 1_500)];
        assert_eq!(ranked(vec![window, unknown]), expected);
    }

    #[test]
    fn windows_come_before_services_with_about_the_same_delay() {
        let kind = |finding: &Finding| match finding.delay_ns() {
            3_000_000_000 => Some(ProcessKind::Window),
            _ => Some(ProcessKind::Service),
        };
        for (service_ms, expected_ms) in [(3_200, [3_000, 3_200]), (9_000, [9_000, 3_000])] {
            let mut findings = [service_ms, 3_000].map(|ms| finding(Severity::Problem, None, ms));
            rank(&mut findings, Damage::default(), kind);
            let delays_ms = findings.map(|finding| finding.delay_ns() / 1_000_000);
            assert_eq!(delays_ms, expected_ms);
        }
    }

    #[test]
    fn a_wait_for_a_cpu_is_part_of_a_hang_that_waited_for_this_thread() {
        let thread = |id| Subject::Thread {
            id,
            row: None,
            process_row: None,
        };
        let about = |subjects: &[Subject], during: Range<i64>| {
            let delay_ns = during.end - during.start;
            Finding::new(&ABOUT, Severity::Problem, "")
                .subjects(subjects.to_vec())
                .during(during)
                .delay(delay_ns, "")
        };
        let hang = about(&[thread(1), thread(2)], 1_000..3_000);
        let wait = |id, during| about(&[thread(id)], during);
        assert!(is_part(&wait(2, 1_100..2_900), &hang));
        // The window itself, another thread, another time, and a wait that is mostly outside the hang.
        assert!(!is_part(&wait(1, 1_100..2_900), &hang));
        assert!(!is_part(&wait(3, 1_100..2_900), &hang));
        assert!(!is_part(&wait(2, 5_000..6_000), &hang));
        assert!(!is_part(&wait(2, 2_000..8_000), &hang));
    }
}
