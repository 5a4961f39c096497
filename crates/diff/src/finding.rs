//! Findings: sentences about the changes that matter, with their causes, evidence and doubts.

use explain::{Evidence, Subject};
use serde::Serialize;
use wording::{duration, grouped, listed, size};

use crate::compare::{class, weight};
use crate::sums::Key;
use crate::{
    Besides, Change, Conclusion, Diff, Kind, PerWork, Recording, Root, Unit, Work, throughput,
};

/// Statement about a difference between both sides.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Sentence that states the change.
    pub sentence: String,
    /// Sentences that give the cause, the most important first.
    pub why: Vec<String>,
    /// Subjects of the finding: the thing that changed, and the things that explain the change.
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

/// Maximum change of a time, as a share, for which a sentence says that the time is about the same.
const SAME: f64 = 0.1;

/// Minimum share of time without a counterpart. From this share on, a finding mentions it as a doubt.
const UNMATCHED: f64 = 0.05;

impl Finding {
    pub(crate) fn new(sentence: String, subject: Option<Subject>) -> Finding {
        Finding {
            sentence,
            why: Vec::new(),
            subjects: subject.into_iter().collect(),
            evidence: Vec::new(),
            doubts: Vec::new(),
        }
    }

    /// Adds a sentence about a cause and, if known, the thing that is the cause.
    pub(crate) fn because(&mut self, why: String, subject: Option<Subject>) {
        self.why.push(why);
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

/// Returns the findings. Lost throughput comes first, then used resources and waits. If the work differs, the
/// changes per unit of work are included.
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
    let rank = |change: &Change, of: Option<&PerWork>| {
        // If the work differs, the change of the time per second only follows the change of the work. Then
        // the change of the time per unit of work is the answer.
        let is_of_work = change.kind.is_in_interrupts() && work.is_some_and(PerWork::differs);
        let is_asked = of.is_some_and(|work| work.is_asked);
        // Changes per unit of work are compared by their size at the smaller amount of work per second.
        let rate = of.map_or(1.0, |work| work.before.min(work.after));
        (
            !is_asked,
            class(change),
            of.is_none() && is_of_work,
            weight(change) * rate,
        )
    };
    let per_second = per_second.into_iter().map(|found| (None, found));
    let per_work = per_work.into_iter().map(|found| (work, found));
    let mut all: Vec<_> = (per_second.chain(per_work))
        .map(|(of, (change, finding))| (rank(change, of), finding))
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
    for change in changes
        .iter()
        .filter(|it| it.differs() && !it.kind.is_detail())
    {
        if findings.len() >= FINDINGS || explained.iter().any(|it| std::ptr::eq(*it, change)) {
            continue;
        }
        let mut finding = Finding::new(sentence(change, work), subject(change));
        finding.prove(sides, |of| Some(of.evidence(change)));
        if let Some(work) = work {
            finding.prove(sides, |of| Some(of.work_evidence(&work.work)));
        }
        for cause in causes(change, changes) {
            let share = (cause.ns() / change.ns()).min(1.0) * 100.0;
            let why = format!("{share:.0} % of it is {}{}.", code(cause), ends(cause));
            finding.because(why, subject(cause));
            finding.prove(sides, |of| Some(of.evidence(cause)));
            explained.push(cause);
        }
        if work.is_none() && !(has_stacks && change.kind.is_in_interrupts()) {
            has_stacks |= change.kind.is_in_interrupts();
            add_stacks(&mut finding, diff, change, sides);
        }
        finding.doubts = doubts(diff, change, work);
        findings.push((change, finding));
    }
    findings
}

/// Returns the changes that explain most of the change `of`. They are the code that ran in DPCs, the function
/// of a module, or the thread of a program.
fn causes<'d>(of: &Change, changes: &'d [Change]) -> Vec<&'d Change> {
    if of.conclusion != Conclusion::Differs {
        return Vec::new();
    }
    let greatest = |is_part: &dyn Fn(&Change) -> bool| {
        let parts = changes
            .iter()
            .filter(|it| it.conclusion == Conclusion::Differs);
        let mut parts = parts.filter(|part| (part.ns() > 0.0) == (of.ns() > 0.0));
        parts.find(|part| is_part(part))
    };
    let name = of.name.to_lowercase();
    let function = |kind: Kind, module: String| {
        greatest(&move |part: &Change| {
            part.kind == kind && matches!(&part.key, Key::Function(of) if **of == *module)
        })
    };
    match of.kind {
        Kind::Dpc => {
            let code = greatest(&|part| part.kind == Kind::InterruptCode);
            let within =
                code.and_then(|code| function(Kind::InterruptFunction, code.name.to_lowercase()));
            code.into_iter().chain(within).collect()
        }
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
        _ => Vec::new(),
    }
}

/// Adds the deepest call of the sampled stacks that still has most of the change.
fn add_stacks(finding: &mut Finding, diff: &Diff, change: &Change, sides: [&[Recording]; 2]) {
    /// Number of calls that a sentence shows.
    const SHOWN: usize = 3;
    let root = match change.kind {
        Kind::Program => Root::Program(change.name.to_lowercase()),
        kind if kind.is_in_interrupts() => Root::Interrupts,
        _ => return,
    };
    let tree = &diff.stacks;
    let Some((whole, at)) = tree.roots.get(&root).zip(tree.blamed(&root)) else {
        return;
    };
    let call = &tree.calls[at];
    let whole = tree.calls[*whole].change_ns();
    if (call.change_ns() > 0.0) != (change.ns() > 0.0) || change.conclusion != Conclusion::Differs {
        return;
    }
    let path = tree.path(at);
    let stacks = |of: &Recording| tree.reaching(at, &root, of, sides);
    let of_each = |of: &Recording| of.stack_evidence(&root, &stacks(of));
    if sides.into_iter().flatten().any(|of| of_each(of).is_none()) {
        return;
    }
    let from = path.len().saturating_sub(SHOWN);
    let cut = if from > 0 { "… → " } else { "" };
    finding.because(
        format!(
            "In sampled call stacks, {:.0} % of the change is below {cut}{}: {} before and {} after \
             per second.",
            (call.change_ns() / whole * 100.0).min(100.0),
            path[from..].join(" → "),
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

/// Describes a change in one sentence.
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
        let total = match (after.ns / before.ns - 1.0).abs() < SAME {
            true => "so the total time is about the same".to_owned(),
            false => format!(
                "and chance may explain the change of the total time, {} before and {} after",
                time_text(before.ns),
                time_text(after.ns)
            ),
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
    let more = if ns > 0.0 { "more" } else { "less" };
    let time = match change.kind {
        Kind::Ready | Kind::Wait => "time waited",
        Kind::Disk | Kind::File => "time to serve requests",
        _ => "CPU time",
    };
    format!(
        "{}: {} {more} {time} {per}, {} before and {} after{}.",
        row_name(change),
        time_text(ns.abs()),
        time_text(before.ns),
        time_text(after.ns),
        ends(change)
    )
}

/// Returns the name of a row and its location, for example its disk or program.
fn row_name(change: &Change) -> String {
    let place = match change.kind {
        Kind::Cpu => " (DPCs and ISRs)",
        Kind::Dpc => " in DPCs",
        Kind::Isr => " in ISRs",
        Kind::InterruptCode | Kind::InterruptFunction => " within DPCs and ISRs",
        Kind::ThreadCode | Kind::ThreadFunction => " within threads",
        Kind::Ready => " (waits for a CPU)",
        Kind::Wait => " (waits)",
        _ => "",
    };
    format!("{}{place}", change.name)
}

/// Returns words for a cause. They follow the word "is" in a sentence.
fn code(cause: &Change) -> String {
    match cause.kind {
        Kind::InterruptCode => format!("code of {}", cause.name),
        Kind::Thread => format!("of the threads {}", cause.name),
        _ => format!("in {}", cause.name),
    }
}

/// Returns a remark if only one side has the row.
fn ends(change: &Change) -> &'static str {
    match (change.before.count > 0.0, change.after.count > 0.0) {
        (false, _) => " (it is new)",
        (_, false) => " (it is gone)",
        _ => "",
    }
}

pub(crate) fn subject(change: &Change) -> Option<Subject> {
    let name = change.name.clone();
    match (&change.key, change.kind) {
        (Key::Disk(number, _), _) => Some(Subject::Disk { number: *number }),
        (Key::Cpu(number), _) => Some(Subject::Cpu { number: *number }),
        (Key::Wait(program, _) | Key::Thread(program, _), _) => Some(Subject::Process {
            id: None,
            row: None,
            name: Some(program.to_string()),
        }),
        (_, Kind::Program | Kind::Ready) => Some(Subject::Process {
            id: None,
            row: None,
            name: Some(name),
        }),
        (_, Kind::Dpc | Kind::Isr | Kind::InterruptCode | Kind::ThreadCode) => {
            Some(Subject::Module { name })
        }
        (_, Kind::InterruptFunction | Kind::ThreadFunction) => Some(Subject::Routine { name }),
        _ => None,
    }
}

/// Returns the doubts about the finding of one change.
fn doubts(diff: &Diff, change: &Change, work: Option<&PerWork>) -> Vec<String> {
    let mut doubts = Vec::new();
    let of_kind = diff.unmatched.iter().find(|it| it.kind == change.kind);
    if let Some(unmatched) = of_kind
        && unmatched.before.max(unmatched.after) > UNMATCHED
    {
        doubts.push(format!(
            "{:.0} % of the time before and {:.0} % of the time after the change is in rows that only one \
             side has",
            unmatched.before * 100.0,
            unmatched.after * 100.0
        ));
    }
    if work.is_none()
        && change.kind.is_in_interrupts()
        && diff.per_work.as_ref().is_some_and(PerWork::differs)
    {
        doubts.push(
            "The work differs by more than 5 %: compare the times per unit of work, too".into(),
        );
    }
    if change.kind == Kind::Wait {
        doubts.push(
            "A thread that has nothing to do waits, too: longer waits need not be a delay"
                .to_owned(),
        );
    }
    doubts
}

impl Diff {
    /// Returns the doubts about all findings.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if self.unit == Unit::Block {
            doubts.push(
                "One trace on each side shows only that the traces differ. More traces are needed to show \
                 whether the change is the reason"
                    .to_owned(),
            );
        } else if self.besides != Besides::default() {
            doubts.push("Something else differs, too, and may be the reason".to_owned());
        }
        if self.before.lost_events + self.after.lost_events > 0 {
            doubts.push(format!(
                "Events were lost ({} before, {} after the change): sums may be too small",
                grouped(self.before.lost_events),
                grouped(self.after.lost_events)
            ));
        }
        doubts
    }

    /// Returns the answer in one sentence. The sentence is the first finding. If there is no finding, the
    /// sentence states how much was compared.
    pub fn answer(&self) -> String {
        if let Some(first) = self.findings.first() {
            let because = first.why.first();
            return match because {
                Some(why) => format!("{} {why}", first.sentence),
                None => first.sentence.clone(),
            };
        }
        if self.per_second.is_empty() {
            return "Nothing to compare: the recordings have no kind of event in common."
                .to_owned();
        }
        let (units, least) = (self.before.units.min(self.after.units), self.unit.least());
        if units < least {
            let (one, several) = match self.unit {
                Unit::Block => ("block of at least 0.5 s", "blocks of at least 0.5 s"),
                Unit::Recording => ("trace", "traces"),
            };
            let found = wording::counted(units as u64, one, several);
            return format!(
                "Unknown: {found} cannot distinguish a change from chance; at least {least} on each side are needed."
            );
        }
        let is_chance = |it: &&Change| it.conclusion == Conclusion::Chance;
        let chance = self.per_second.iter().filter(is_chance).count() as u64;
        let least_p = self.per_second.iter().filter_map(|it| it.adjusted_p);
        let least_p = least_p.fold(1.0, f64::min);
        let answer = format!(
            "No difference that matters per second: {} compared, {} perhaps by chance, smallest p {least_p:.3}.",
            wording::counted(self.per_second.len() as u64, "row", "rows"),
            wording::counted(chance, "change", "changes")
        );
        let facts: Vec<&str> = self.besides.facts.iter().map(|it| it.fact).collect();
        match facts.is_empty() {
            true => answer,
            false => format!("{answer} Something else differs: {}.", listed(&facts)),
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

pub(crate) fn time_text(ns: f64) -> String {
    duration(ns.round() as i64)
}

/// Formats a count. Counts from 10 on have no decimals, and smaller counts have two.
pub fn count_text(count: f64) -> String {
    match count {
        10.0.. => grouped(count.round() as u64),
        _ => format!("{count:.2}"),
    }
}
