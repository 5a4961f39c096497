//! Theory: the .NET runtime stopped the threads of programs for garbage collections.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{DotnetPausesView, StoreError, Table};

use crate::chain::user_attention::UserAttention;
use crate::ranges::union;
use crate::thresholds::{DISRUPTIVE_NS, GC_PERCENT, NOTICED_NS, is_share};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Theory, Unit, counted, duration,
    moment, percent,
};

/// Theory about pauses for garbage collections.
pub(crate) struct Pauses;

static ABOUT: About = About {
    id: "dotnet-pauses",
    name: "garbage collections",
    question: "Did .NET stop the threads of programs for garbage collections?",
    tables: &[Table::DotnetPauses, Table::Focus],
    sources: &[
        Source {
            title: "Microsoft: .NET runtime garbage collection events",
            url: Some(
                "https://learn.microsoft.com/dotnet/fundamentals/diagnostics/runtime-garbage-collection-events",
            ),
        },
        Source {
            title: "Microsoft: Fundamentals of garbage collection (.NET)",
            url: Some(
                "https://learn.microsoft.com/dotnet/standard/garbage-collection/fundamentals",
            ),
        },
    ],
};

/// Maximum number of rows of evidence.
const SHOWN: usize = 10;
/// Maximum number of findings.
const FINDINGS: usize = 3;

#[derive(Default)]
struct ProcessPauses {
    process_id: u32,
    process_row: Option<u32>,
    count: u64,
    total_ns: i64,
    longest: Option<Pause>,
    /// Number of pauses during which a collection of generation 2 began.
    full: u64,
    ranges: Vec<Range<i64>>,
}

#[derive(Clone)]
struct Pause {
    range: Range<i64>,
    generation: Option<u32>,
}

impl Pause {
    fn ns(&self) -> i64 {
        self.range.end.saturating_sub(self.range.start)
    }
}

impl Theory for Pauses {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let processes = read(case)?;
        if processes.is_empty() {
            let what =
                "there are no pauses of .NET: either none happened, or they were not recorded";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        let noticed = case.noticed()?;
        let evidence = by_process(&processes, case);
        let findings = processes
            .iter()
            .filter_map(|pauses| finding(case, noticed, pauses));
        let findings: Vec<Finding> = (findings.take(FINDINGS))
            .map(|finding| finding.with(evidence.clone()))
            .collect();
        if findings.is_empty() {
            let most = &processes[0];
            let because = format!(
                "no pause was noticeable; {} paused longest, {} in {}",
                case.process(most.process_row, Some(most.process_id)),
                duration(most.total_ns),
                counted(most.count, "pause", "pauses")
            );
            return Ok(Outcome::Against(because, vec![evidence]));
        }
        Ok(Outcome::For(findings))
    }
}

/// Reads the pauses for collections, by process. The process with the longest total comes first.
fn read(case: &Case<'_>) -> Result<Vec<ProcessPauses>, StoreError> {
    let mut processes: FxHashMap<(Option<u32>, u32), ProcessPauses> = FxHashMap::default();
    let table = case.table(Table::DotnetPauses)?;
    for chunk in 0..table.chunks().len() {
        let batch = table.read_all(chunk)?;
        let view = DotnetPausesView::new(&batch)?;
        for row in 0..view.len() {
            if view.for_collection.get(row) == Some(false) {
                continue;
            }
            let (id, process_row) = (view.process_id[row], view.process_row.get(row));
            let pauses = processes.entry((process_row, id)).or_default();
            (pauses.process_id, pauses.process_row) = (id, process_row);
            let pause = Pause {
                range: view.start_ns[row]..view.end_ns[row],
                generation: view.generation.get(row),
            };
            pauses.count += 1;
            pauses.total_ns = pauses.total_ns.saturating_add(pause.ns());
            pauses.full += u64::from(pause.generation == Some(2));
            pauses.ranges.push(pause.range.clone());
            if (pauses.longest.as_ref()).is_none_or(|longest| longest.ns() < pause.ns()) {
                pauses.longest = Some(pause);
            }
        }
    }
    let mut processes: Vec<ProcessPauses> = processes.into_values().collect();
    processes.sort_by_key(|pauses| {
        (
            Reverse(pauses.total_ns),
            pauses.process_row,
            pauses.process_id,
        )
    });
    Ok(processes)
}

/// Describes the pauses of a process. Returns `None` if users do not notice the pauses: each pause is short, and all
/// pauses together take only a small part of the time.
fn finding(case: &Case<'_>, noticed: &UserAttention, pauses: &ProcessPauses) -> Option<Finding> {
    let longest = pauses.longest.as_ref()?;
    let gaps = &case.survey.suspend_gaps;
    let mut noticed_ns = 0;
    for range in union(pauses.ranges.clone()) {
        let ns = noticed.noticed_ns(pauses.process_row, &range) - gaps.asleep_ns(&range);
        noticed_ns += ns.max(0);
    }
    // Without context switches, the recorded time is unknown.
    let whole_ns = Some(case.survey.span_ns()).filter(|ns| *ns > 0);
    let is_much = whole_ns.is_some_and(|whole_ns| is_share(pauses.total_ns, whole_ns, GC_PERCENT));
    let longest_ns = longest.ns() - gaps.asleep_ns(&longest.range);
    if longest_ns < NOTICED_NS && !is_much {
        return None;
    }
    let severity = match noticed_ns {
        DISRUPTIVE_NS.. if noticed.knows_focus() => Severity::Problem,
        NOTICED_NS.. => Severity::Warning,
        _ => Severity::Information,
    };
    let process = case.process(pauses.process_row, Some(pauses.process_id));
    let generation = longest
        .generation
        .map_or(String::new(), |generation| match generation {
            2 => " (generation 2, a full collection)".to_owned(),
            other => format!(" (generation {other})"),
        });
    let took = format!(
        "{}, from {} to {}",
        duration(longest.ns()),
        moment(longest.range.start),
        moment(longest.range.end)
    );
    let sentence = match pauses.count {
        1 => format!(
            ".NET stopped the threads of {process} once for a garbage collection{generation}: {took}."
        ),
        times => format!(
            ".NET stopped the threads of {process} {} times for garbage collections, {} in total; the \
             longest pause{generation} took {took}.",
            crate::grouped(times),
            duration(pauses.total_ns)
        ),
    };
    let mut finding = Finding::new(&ABOUT, severity, sentence)
        .subjects(case.process_subject(pauses.process_row, Some(pauses.process_id)))
        .attention(noticed.attention(pauses.process_row, &longest.range))
        .during(longest.range.clone())
        .moments(pauses.ranges.clone())
        .with(longest_pauses(pauses))
        .remedy(format!(
            "Let {process} allocate less, above all large and long-lived objects. Concurrent collection \
             (System.GC.Concurrent) keeps the pauses of full collections short"
        ));
    if let Some(whole_ns) = whole_ns {
        let share = percent(pauses.total_ns, whole_ns);
        finding = finding.because(match pauses.count {
            1 => format!("The pause took {share} of the recorded time."),
            _ => format!(
                "The pauses took {share} of the recorded time; {} for a full collection.",
                match pauses.full {
                    0 => "none was".to_owned(),
                    1 => "one was".to_owned(),
                    full => format!("{full} were"),
                }
            ),
        });
    }
    if noticed_ns > 0 {
        let how = format!("of {process}, whose threads .NET had stopped");
        finding = finding.delay(noticed_ns, how);
    }
    Some(finding)
}

/// Returns the condition that selects pauses for garbage collections and pauses for an unknown reason.
fn for_collections() -> Condition {
    Condition::Any(vec![
        Condition::IsTrue("for_collection"),
        Condition::IsUnknown("for_collection"),
    ])
}

fn by_process(processes: &[ProcessPauses], case: &Case<'_>) -> Evidence {
    let selection = Selection::new(Table::DotnetPauses)
        .filter(for_collections())
        .group_by(&["process_row", "process_id"])
        .order(&[
            Order::descending("paused_ns"),
            Order::ascending("process_row").unknown_first(),
            Order::ascending("process_id"),
        ])
        .limit(SHOWN);
    let paused = "end_ns - start_ns";
    let evidence = Evidence::from_selection("Pauses for collections, by process", selection)
        .column(
            "process",
            "process",
            Unit::None,
            Expression::Process("process_row"),
        )
        .stored("process_id", "id", Unit::None)
        .column("pauses", "pauses", Unit::Count, Expression::Count)
        .column(
            "paused_ns",
            "paused",
            Unit::Duration,
            Expression::Formula(format!("CAST(sum({paused}) AS BIGINT)")),
        )
        .column(
            "longest_ns",
            "longest",
            Unit::Duration,
            Expression::Formula(format!("max({paused})")),
        )
        .column(
            "full",
            "full collections",
            Unit::Count,
            Expression::count_if(Condition::is("generation", 2)),
        );
    processes
        .iter()
        .take(SHOWN)
        .fold(evidence, |evidence, pauses| {
            evidence.row([
                case.process_label(pauses.process_row).map(Into::into),
                Some(pauses.process_id.into()),
                Some(pauses.count.into()),
                Some(pauses.total_ns.into()),
                pauses.longest.as_ref().map(|pause| pause.ns().into()),
                Some(pauses.full.into()),
            ])
        })
}

/// Returns evidence with the longest pause of a process.
fn longest_pauses(pauses: &ProcessPauses) -> Evidence {
    let selection = Selection::new(Table::DotnetPauses)
        .filter(for_collections())
        .filter(Condition::is("process_id", pauses.process_id))
        .filter(Condition::is_or_unknown("process_row", pauses.process_row))
        .order(&[Order::descending("paused_ns"), Order::ascending("start_ns")])
        .limit(1);
    let evidence = Evidence::from_selection("The longest pause", selection)
        .stored("start_ns", "from", Unit::Moment)
        .stored("end_ns", "to", Unit::Moment)
        .column(
            "paused_ns",
            "paused",
            Unit::Duration,
            Expression::Formula("end_ns - start_ns".to_owned()),
        )
        .stored("generation", "generation", Unit::None);
    let Some(pause) = &pauses.longest else {
        return evidence;
    };
    evidence.row([
        Some(pause.range.start.into()),
        Some(pause.range.end.into()),
        Some(pause.ns().into()),
        pause.generation.map(Into::into),
    ])
}
