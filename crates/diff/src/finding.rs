//! Findings: sentences about the changes that matter, with their causes, evidence and doubts.

use explain::{Evidence, Subject};
use serde::Serialize;
use wording::{Name, Sentence, duration, grouped, listed, size};

use crate::compare::{EXPLAINS, class, weight};
use crate::moved_interrupts::MovedInterrupts;
use crate::successors::{self, successors};
use crate::sums::Key;
use crate::{
    Change, Conclusion, Diff, Kind, PerWork, Recording, Root, Unit, Work, doubts, throughput,
};

/// Statement about a difference between both sides.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Sentence that states the change.
    pub sentence: Sentence,
    /// Sentences that give the cause, the most important first.
    pub why: Vec<Sentence>,
    /// Subjects of the finding, such as programs and modules: the subject that changed, and the subjects that explain
    /// the change.
    pub subjects: Vec<Subject>,
    /// Evidence from each recording: the rows with the numbers of the finding.
    pub evidence: Vec<Proof>,
    /// Uncertainties of the finding.
    pub doubts: Vec<String>,
}

/// Evidence of a finding in one recording.
#[derive(Clone, Debug, Serialize)]
pub struct Proof {
    /// Side of the recording.
    pub side: When,
    /// Number of the recording on its side, counted from 1.
    pub recording: usize,
    /// Rows with their query.
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// Side of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// Before the change.
    Before,
    /// After the change.
    After,
}

/// Maximum number of findings.
const FINDINGS: usize = 10;

/// Share of the longer time. If the whole confidence interval of a change is below this share, a sentence says that the
/// time is about the same.
const SAME: f64 = 0.1;

/// Minimum share of a module's change that code must explain to be named as its cause.
const MOST: f64 = 0.5;

/// Upper limit of the share of a change that counts as all of it. It exceeds 1, because samples do not show the exact
/// time of the DPCs in which they were taken.
const ABOUT_ALL: f64 = 1.05;

/// Range for the change of a call, as a share of the finding's change. A call is named as a cause only if its change
/// is in this range.
const STACKS: std::ops::RangeInclusive<f64> = 0.5..=1.5;

impl Finding {
    pub(crate) fn new(sentence: String, subject: Option<Subject>) -> Finding {
        Finding {
            sentence: sentence.into(),
            why: Vec::new(),
            subjects: subject.into_iter().collect(),
            evidence: Vec::new(),
            doubts: Vec::new(),
        }
    }

    /// Adds a sentence about a cause and, if known, the subject that is the cause.
    pub(crate) fn because(&mut self, why: String, subject: Option<Subject>) {
        self.why.push(why.into());
        self.subjects
            .extend(subject.filter(|it| !self.subjects.contains(it)));
    }

    /// Adds the evidence of each recording.
    pub(crate) fn prove(
        &mut self,
        sides: [&[Recording]; 2],
        evidence: impl Fn(&Recording) -> Option<Evidence>,
    ) {
        for (side, recordings) in [When::Before, When::After].into_iter().zip(sides) {
            for (recording, of) in (1..).zip(recordings) {
                self.evidence.extend(evidence(of).map(|evidence| Proof {
                    side,
                    recording,
                    evidence,
                }));
            }
        }
    }
}

/// Returns the findings. Lost throughput comes first, then used resources and waits. The changes per unit of work are
/// included in three cases: the work differs, the user requested the unit, or no time per second differs.
pub(crate) fn findings(diff: &Diff, sides: [&[Recording]; 2]) -> Vec<Finding> {
    let lost = throughput::lost(diff, sides);
    let per_second = of_changes(diff, &diff.per_second, None, sides);
    let is_cost = |change: &Change| change.conclusion == Conclusion::Differs;
    // If the load varies, chance may explain all differences of the times per second. The times per unit of
    // work may still differ.
    let work = (diff.per_work.as_ref())
        .filter(|work| work.differs() || work.is_asked || !diff.per_second.iter().any(is_cost));
    let per_work = work.map_or_else(Vec::new, |work| {
        of_changes(diff, &work.changes, Some(work), sides)
    });
    let rank = |change: &Change, change_work: Option<&PerWork>| {
        // If the amount of work differs, the time per second of a row that depends on the work differs, too. Then the
        // change of the time per unit of work is the answer.
        let is_of_work = work.is_some_and(PerWork::differs)
            && change.kind.is_in_interrupts()
            && diff.per_unit(change).is_some();
        let is_asked = change_work.is_some_and(|work| work.is_asked);
        // Changes per unit of work and changes per second are sorted together. To be comparable, a change per unit of
        // work is multiplied by the work per second of the side with less work.
        let rate = change_work.map_or(1.0, |work| work.before.min(work.after));
        (
            !is_asked,
            class(change),
            change_work.is_none() && is_of_work,
            weight(change) * rate,
        )
    };
    let per_second = per_second.into_iter().map(|found| (None, found));
    let per_work = per_work.into_iter().map(|found| (work, found));
    let mut all: Vec<_> = (per_second.chain(per_work))
        .map(|(work, (change, finding))| (rank(change, work), finding))
        .collect();
    all.sort_by(|(a, _), (b, _)| {
        let places = (a.0, a.1, a.2).cmp(&(b.0, b.1, b.2));
        places.then_with(|| b.3.total_cmp(&a.3))
    });
    let all = all.into_iter().map(|(_, finding)| finding);
    lost.into_iter().chain(all).take(FINDINGS).collect()
}

/// Returns findings about the rows that differ, each with its row. `work` is the work to which the times are
/// related. If `work` is `None`, times are per second. A change that explains another change has no separate
/// finding: it is part of the finding about the other change.
fn of_changes<'d>(
    diff: &Diff,
    changes: &'d [Change],
    work: Option<&PerWork>,
    sides: [&[Recording]; 2],
) -> Vec<(&'d Change, Finding)> {
    let mut findings = Vec::new();
    let mut explained: Vec<&Change> = Vec::new();
    let mut has_stacks = false;
    let moved = MovedInterrupts::find(changes);
    for change in changes
        .iter()
        .filter(|it| it.differs() && !it.kind.is_detail())
    {
        let is_explained = explained.iter().any(|it| std::ptr::eq(*it, change))
            || change.kind == Kind::Cpu && has_routine_of(change, &findings);
        if findings.len() >= FINDINGS || is_explained {
            continue;
        }
        if let Some(moved) = moved.as_ref().filter(|moved| moved.has(change)) {
            if std::ptr::eq(moved.largest, change) {
                let mut finding = moved.finding(changes, work, sides);
                finding.doubts = doubts::of_finding(diff, change, work, sides);
                findings.push((change, finding));
            }
            continue;
        }
        let mut finding = Finding::new(sentence(change, work), subject(change));
        finding.prove(sides, |recording| Some(recording.evidence(change)));
        if let Some(work) = work {
            finding.prove(sides, |recording| Some(recording.work_evidence(&work.work)));
        }
        // If other modules replace this module, the sentence about them comes first, because it has the net change.
        let others = successors(change, changes);
        if !others.is_empty() {
            finding.because(successors::sentence(change, &others, work), None);
            for other in &others {
                finding.subjects.extend(subject(other));
                finding.prove(sides, |recording| Some(recording.evidence(other)));
            }
            // Samples show the code of these modules also in other rows.
            let is_code = |it: &&Change| {
                let mut own = others.iter().map(|other| &other.name);
                it.kind == Kind::InterruptCode && own.any(|own| own.eq_ignore_ascii_case(&it.name))
            };
            explained.extend(changes.iter().filter(is_code));
            explained.extend(others);
        }
        for Cause { change: cause, ns } in causes(change, changes, work, sides) {
            let share = ns / change.ns();
            let why = if share <= ABOUT_ALL {
                format!(
                    "{:.0} % of the change is {}{}.",
                    share.min(1.0) * 100.0,
                    code(cause),
                    presence_remark(cause)
                )
            } else {
                format!(
                    "{} {} is {}{}; {}.",
                    time_text(ns.abs()),
                    more_or_less(ns),
                    code(cause),
                    presence_remark(cause),
                    if has_opposite(cause, changes) {
                        "other parts changed in the opposite direction"
                    } else {
                        "the parts are estimates, and their sum differs from the whole"
                    }
                )
            };
            finding.because(why, subject(cause));
            finding.prove(sides, |recording| Some(recording.evidence(cause)));
            if ns / cause.ns() >= EXPLAINS {
                explained.push(cause);
            }
        }
        if work.is_none() && !(has_stacks && change.kind.is_in_interrupts()) {
            has_stacks |= change.kind.is_in_interrupts();
            add_stacks(&mut finding, diff, change, sides);
        }
        finding.doubts = doubts::of_finding(diff, change, work, sides);
        findings.push((change, finding));
    }
    findings
}

/// Returns true if a row of the same kind changed in the direction opposite to `part`, and chance does not explain
/// this.
fn has_opposite(part: &Change, changes: &[Change]) -> bool {
    let is_opposite =
        |other: &Change| other.kind == part.kind && other.differs() && other.ns() * part.ns() < 0.0;
    changes.iter().any(is_opposite)
}

/// Returns true if a finding about a module's DPCs or ISRs explains most of the change of a CPU's DPCs and ISRs.
fn has_routine_of(cpu: &Change, findings: &[(&Change, Finding)]) -> bool {
    findings.iter().any(|(change, _)| {
        matches!(change.kind, Kind::Dpc | Kind::Isr) && change.ns() / cpu.ns() >= EXPLAINS
    })
}

/// Change that explains a part of another change.
struct Cause<'d> {
    change: &'d Change,
    /// Explained part of the other change, in nanoseconds per unit.
    ns: f64,
}

/// Returns the changes that explain a change: the change of the code that ran in the DPCs of a module, or the
/// greatest change of a function of a module, of a thread of a program, or of the code that waited.
fn causes<'d>(
    change: &Change,
    changes: &'d [Change],
    work: Option<&PerWork>,
    sides: [&[Recording]; 2],
) -> Vec<Cause<'d>> {
    if change.conclusion != Conclusion::Differs {
        return Vec::new();
    }
    let parts = || {
        let differ = |part: &&Change| part.conclusion == Conclusion::Differs;
        let parts = changes.iter().filter(differ);
        parts.filter(|part| (part.ns() > 0.0) == (change.ns() > 0.0))
    };
    let greatest = |is_part: &dyn Fn(&Change) -> bool| {
        let part = parts().find(|part| is_part(part))?;
        Some(Cause {
            change: part,
            ns: part.ns(),
        })
    };
    let name = change.name.to_lowercase();
    let function = |kind: Kind, module: String| {
        greatest(&move |part: &Change| {
            part.kind == kind && matches!(&part.key, Key::Function(name) if **name == *module)
        })
    };
    match change.kind {
        Kind::Dpc => {
            let code = parts().filter(|part| part.kind == Kind::InterruptCode);
            let code = code.map(|part| Cause {
                change: part,
                ns: dpc_code(&name, &part.name.to_lowercase(), work, sides),
            });
            let code = code
                .filter(|cause| cause.ns / change.ns() >= MOST)
                .max_by(|a, b| a.ns.abs().total_cmp(&b.ns.abs()));
            let within = match &code {
                // Samples show that the function ran in DPCs, but they do not show the module of these DPCs.
                Some(Cause { change, ns }) if ns / change.ns() >= EXPLAINS => {
                    function(Kind::InterruptFunction, change.name.to_lowercase())
                }
                Some(_) => None,
                None => function(Kind::DpcFunction, name),
            };
            code.into_iter().chain(within).collect()
        }
        Kind::Isr => function(Kind::IsrFunction, name).into_iter().collect(),
        Kind::InterruptCode => function(Kind::InterruptFunction, name)
            .into_iter()
            .collect(),
        Kind::ThreadCode => function(Kind::ThreadFunction, name).into_iter().collect(),
        Kind::Program => {
            let is_thread = |part: &Change| {
                part.kind == Kind::Thread
                    && matches!(&part.key, Key::Thread(program, _) if **program == *name)
            };
            greatest(&is_thread).into_iter().collect()
        }
        Kind::Wait => {
            let is_code = |part: &Change| match (&part.key, &change.key) {
                (Key::WaitCode(program, reason, _), Key::Wait(waiter, why)) => {
                    program == waiter && reason == why
                }
                _ => false,
            };
            greatest(&is_code).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the change of the sampled time of code in DPCs, per second or per unit of work. `dpcs` is the module of the
/// DPCs and `code` the module of the code, both in lower case.
fn dpc_code(dpcs: &str, code: &str, work: Option<&PerWork>, sides: [&[Recording]; 2]) -> f64 {
    let rate = |recording: &Recording| {
        let amount = match work {
            Some(work) => recording
                .work
                .get(&work.work)
                .map_or(0.0, |it| it.iter().sum()),
            None => recording.seconds,
        };
        let ns = recording.dpc_code.get(&(dpcs.into(), code.into()));
        ns.copied().unwrap_or(0.0) / amount
    };
    let [before, after] = sides.map(|side| side.iter().map(rate).sum::<f64>() / side.len() as f64);
    after - before
}

/// Adds a cause: the deepest call in the sampled stacks that still has most of the change.
fn add_stacks(finding: &mut Finding, diff: &Diff, change: &Change, sides: [&[Recording]; 2]) {
    /// Number of calls that a sentence shows.
    const SHOWN: usize = 3;
    let root = match change.kind {
        Kind::Program => Root::Program(change.name.to_lowercase()),
        kind if kind.is_in_interrupts() => Root::Interrupts,
        _ => return,
    };
    let tree = &diff.stacks;
    let Some(at) = tree.blamed(&root) else {
        return;
    };
    let call = &tree.calls[at];
    let share = call.change_ns() / change.ns();
    if !STACKS.contains(&share) || change.conclusion != Conclusion::Differs {
        return;
    }
    let path = tree.path(at);
    // Nearly all stacks contain the outermost call, so it explains nothing.
    if path.len() < 2 {
        return;
    }
    let stacks = |recording: &Recording| tree.reaching(at, &root, recording, sides);
    let of_each = |recording: &Recording| recording.stack_evidence(&root, &stacks(recording));
    if sides
        .into_iter()
        .flatten()
        .any(|recording| of_each(recording).is_none())
    {
        return;
    }
    let of_all = match root {
        Root::Interrupts => " of all DPCs and ISRs",
        Root::Program(_) => "",
    };
    let from = path.len().saturating_sub(SHOWN);
    let cut = if from > 0 { "… → " } else { "" };
    finding.because(
        format!(
            "In sampled call stacks{of_all}, most of the change is below {cut}{}: {} per second before and {} after.",
            (path[from..].iter().map(|call| Name(call).to_string()))
                .collect::<Vec<_>>()
                .join(" → "),
            time_text(call.before_ns),
            time_text(call.after_ns)
        ),
        None,
    );
    finding.prove(sides, of_each);
}

impl Change {
    /// Returns true if the time or the mean time of the row differs.
    pub fn differs(&self) -> bool {
        matches!(
            self.conclusion,
            Conclusion::Differs | Conclusion::MeanDiffers
        )
    }
}

pub(crate) fn more_or_less(ns: f64) -> &'static str {
    if ns > 0.0 { "more" } else { "less" }
}

/// Describes a change in one sentence. `work` is the unit of work; `None` for times per second.
fn sentence(change: &Change, work: Option<&PerWork>) -> String {
    let per = work.map_or("per second".to_owned(), |work| format!("per {}", work.work));
    let (before, after) = (change.before, change.after);
    if change.conclusion == Conclusion::MeanDiffers
        && let Some((old, new)) = before.mean_ns().zip(after.mean_ns())
    {
        let counts = if after.count < before.count {
            "fewer"
        } else {
            "more"
        };
        let total = if change.is_within(SAME) {
            "so the total time is about the same".to_owned()
        } else {
            format!(
                "and chance may explain the change of the total time, {} before and {} after",
                time_text(before.ns),
                time_text(after.ns)
            )
        };
        return format!(
            "{}: each {} takes {} instead of {}, on average. There are {counts} ({} instead of {} \
             {per}), {total}.",
            row_name(change),
            change.kind.one(),
            time_text(new),
            time_text(old),
            count_text(after.count),
            count_text(before.count)
        );
    }
    let ns = change.ns();
    let more = more_or_less(ns);
    let time = match change.kind {
        Kind::Ready | Kind::Wait | Kind::WaitCode => "time waited",
        Kind::Disk | Kind::File => "time to serve requests",
        _ => "CPU time",
    };
    format!(
        "{}: {} {more} {time} {per}, {} before and {} after{}.",
        row_name(change),
        time_text(ns.abs()),
        time_text(before.ns),
        time_text(after.ns),
        presence_remark(change)
    )
}

/// Returns the name of a row and its location, for example its disk or program.
fn row_name(change: &Change) -> String {
    let place = match change.kind {
        Kind::Cpu => " (DPCs and ISRs)",
        Kind::Dpc | Kind::DpcFunction => " in DPCs",
        Kind::Isr | Kind::IsrFunction => " in ISRs",
        Kind::InterruptCode | Kind::InterruptFunction => " within DPCs and ISRs",
        Kind::ThreadCode | Kind::ThreadFunction => " within threads",
        Kind::Ready => " (waits for a CPU)",
        Kind::Wait | Kind::WaitCode => " (waits)",
        _ => "",
    };
    format!("{}{place}", name(change))
}

/// Returns the program in the name of a row, and the rest of the name. `program` is its lower-case name.
fn in_program<'a>(change: &'a Change, program: &str) -> Option<(Name<'a>, &'a str)> {
    let (own, rest) = change.name.split_at_checked(program.len())?;
    let rest = rest.strip_prefix(": ")?;
    (own.to_lowercase() == program).then_some((Name(own), rest))
}

/// Returns the program and the start function of a row of threads that have no name.
fn start_of(change: &Change) -> Option<(Name<'_>, Name<'_>)> {
    let Key::Thread(program, Some(_)) = &change.key else {
        return None;
    };
    let (program, thread) = in_program(change, program)?;
    Some((program, Name(thread.strip_prefix("starts in ")?)))
}

/// Returns the name of a row in a sentence. The rows of CPUs and disks have names of this program.
pub(crate) fn name(change: &Change) -> String {
    match &change.key {
        Key::Cpu(_) | Key::Disk(..) => return change.name.clone(),
        Key::Wait(program, _) => {
            if let Some((program, reason)) = in_program(change, program) {
                return format!("{program}: {reason}");
            }
        }
        Key::Thread(program, _) => {
            if let Some((program, function)) = start_of(change) {
                return format!("{program}: starts in {function}");
            }
            if let Some((program, thread)) = in_program(change, program) {
                return format!("{program}: {}", Name(thread));
            }
        }
        Key::WaitCode(program, reason, _) => {
            let reason = explain::wait_reason(*reason);
            let code = in_program(change, program).and_then(|(program, rest)| {
                let code = rest.strip_prefix(&*reason)?.strip_prefix(" in ")?;
                Some((program, code))
            });
            if let Some((program, code)) = code {
                return format!("{program}: {reason} in {}", Name(code));
            }
        }
        Key::Name | Key::Function(_) => {}
    }
    Name(&change.name).to_string()
}

/// Returns words for a cause. They follow the word "is" in a sentence.
fn code(cause: &Change) -> String {
    match (cause.kind, &cause.key) {
        (Kind::InterruptCode, _) => format!("code of {}", name(cause)),
        (_, Key::Thread(program, _)) => {
            if let Some((program, function)) = start_of(cause) {
                return format!("in threads of {program} that start in {function}");
            }
            match in_program(cause, program) {
                Some((program, thread)) => {
                    format!("in threads of {program} with the name {}", Name(thread))
                }
                None => format!("in threads {}", name(cause)),
            }
        }
        (_, Key::WaitCode(_, _, code)) => format!("in {}", Name(code.label())),
        _ => format!("in {}", name(cause)),
    }
}

/// Returns a remark if only one side has the row.
fn presence_remark(change: &Change) -> &'static str {
    match (change.before.count > 0.0, change.after.count > 0.0) {
        (false, _) => " (new)",
        (_, false) => " (gone)",
        _ => "",
    }
}

pub(crate) fn subject(change: &Change) -> Option<Subject> {
    let name = change.name.clone();
    match (&change.key, change.kind) {
        (Key::Disk(number, _), _) => Some(Subject::Disk { number: *number }),
        (Key::Cpu(number), _) => Some(Subject::Cpu { number: *number }),
        (Key::Wait(program, _) | Key::WaitCode(program, ..) | Key::Thread(program, _), _) => {
            Some(Subject::Process {
                id: None,
                row: None,
                name: Some(program.to_string()),
            })
        }
        (_, Kind::Program | Kind::Ready) => Some(Subject::Process {
            id: None,
            row: None,
            name: Some(name),
        }),
        (_, Kind::Dpc | Kind::Isr | Kind::InterruptCode | Kind::ThreadCode) => {
            Some(Subject::Module { name })
        }
        (
            _,
            Kind::DpcFunction | Kind::IsrFunction | Kind::InterruptFunction | Kind::ThreadFunction,
        ) => Some(Subject::Routine { name }),
        _ => None,
    }
}

impl Diff {
    /// Returns the doubts about all findings.
    pub fn doubts(&self) -> Vec<Sentence> {
        let mut doubts: Vec<Sentence> = Vec::new();
        if self.unit == Unit::Block {
            doubts.push(
                "One trace on each side shows only that the traces differ. More traces are needed to show \
                 whether the change is the reason"
                    .into(),
            );
        } else if !self.findings.is_empty() {
            // If there is no finding, the answer already names the other differences. A driver that is the subject of a
            // finding is part of the finding, so it is not listed again.
            let subjects: Vec<&Subject> =
                self.findings.iter().flat_map(|it| &it.subjects).collect();
            doubts.extend(self.besides.other_reasons(&subjects));
        }
        if self.has_copies {
            doubts
                .push("A trace is given more than once: its copy is no second observation".into());
        }
        if self.before.damaged + self.after.damaged > 0 {
            doubts.push(format!(
                "Files are damaged or cut ({} before, {} after the change; laglab info says where): sums may be too \
                 small",
                self.before.damaged, self.after.damaged
            ).into());
        }
        if self.before.lost_events + self.after.lost_events > 0 {
            doubts.push(
                format!(
                    "Events were lost ({} before, {} after the change): sums may be too small",
                    grouped(self.before.lost_events),
                    grouped(self.after.lost_events)
                )
                .into(),
            );
        }
        doubts
    }

    /// Returns the answer in one sentence. The sentence is the first finding. If there is no finding, the
    /// sentence states how much was compared.
    pub fn answer(&self) -> Sentence {
        if let Some(first) = self.findings.first() {
            let because = first.why.first();
            return match because {
                Some(why) => format!("{:#} {why:#}", first.sentence).into(),
                None => first.sentence.clone(),
            };
        }
        self.without_findings().into()
    }

    /// Returns the answer if there are no findings.
    fn without_findings(&self) -> String {
        if self.per_second.is_empty() {
            return "Unknown: the traces have no kind of event in common.".to_owned();
        }
        let (units, least) = (
            self.before.units.min(self.after.units),
            self.unit.min_count(),
        );
        if units < least {
            let (one, several) = match self.unit {
                Unit::Block => ("block of at least 0.5 s", "blocks of at least 0.5 s"),
                Unit::Recording => ("trace", "traces"),
            };
            let units = wording::counted(units as u64, one, several);
            return format!(
                "Unknown: {units} cannot distinguish a change from chance; at least {least} on each side are needed."
            );
        }
        let compared = wording::counted(self.per_second.len() as u64, "row", "rows");
        let is_open =
            |it: &&Change| matches!(it.conclusion, Conclusion::Chance | Conclusion::MayMatter);
        // Resources come before waits, and rows come before the rows that divide them.
        let class =
            |change: &Change| (!change.kind.is_detail(), !matches!(change.kind, Kind::Wait));
        let by_size = |a: &&Change, b: &&Change| {
            (class(a).cmp(&class(b))).then_with(|| a.ns().abs().total_cmp(&b.ns().abs()))
        };
        let open = || self.per_second.iter().filter(is_open);
        let answer = match open().max_by(by_size) {
            None => format!("No difference that matters per second: {compared} compared."),
            Some(largest) => {
                let interval = largest.change.map_or_else(String::new, |change| {
                    let [low, high] = [change.low, change.high].map(signed_time);
                    format!(" (95 % interval {low} to {high})")
                });
                let longer = match self.unit {
                    Unit::Block => "longer times, or at least three traces on each side",
                    Unit::Recording => "more traces on each side",
                };
                format!(
                    "Unknown: {} of {compared} may have changed by enough to matter. Largest: {}, {} per \
                     second{interval}. Compare {longer}.",
                    open().count(),
                    row_name(largest),
                    signed_time(largest.ns()),
                )
            }
        };
        let facts: Vec<&str> = self.besides.facts.iter().map(|it| it.fact).collect();
        if facts.is_empty() {
            answer
        } else {
            format!("{answer} Other differences: {}.", listed(&facts))
        }
    }
}

/// Formats a rate of work for the user.
pub fn rate_text(work: &Work, per_second: f64) -> String {
    match work {
        Work::NetworkKib | Work::DiskKib => {
            format!("{}/s", size((per_second * 1024.0).round() as u64))
        }
        _ => format!("{} per second", count_text(per_second)),
    }
}

/// Formats a change of a time, with its sign.
fn signed_time(ns: f64) -> String {
    let sign = if ns > 0.0 { "+" } else { "" };
    format!("{sign}{}", time_text(ns))
}

pub(crate) fn time_text(ns: f64) -> String {
    duration(ns.round() as i64)
}

/// Formats a count. Counts from 10 on have no decimals, and smaller counts have three significant digits.
pub fn count_text(count: f64) -> String {
    match count {
        10.0.. => grouped(count.round() as u64),
        _ if count > 0.0 => {
            let digits = 2.0 - count.log10().floor();
            format!("{count:.*}", digits.clamp(0.0, 9.0) as usize)
        }
        _ => "0".to_owned(),
    }
}
