//! Theory: threads had a rank other than 0. All threads of rank 0 run before these threads.

use selection::{Condition, Expression, Order, Selection};
use tables::{StoreError, Table};

use crate::survey::RankUse;
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Theory, Unit, counted, duration,
    grouped,
};

/// Theory about threads with ranks other than 0.
pub(crate) struct Outranked;

pub(super) static ABOUT: About = About {
    id: "outranked",
    name: "ranks",
    question: "Did threads have a rank above 0, so that every thread of rank 0 ran first?",
    tables: &[Table::CpuRuns],
    sources: &[
        Source {
            title: "Bruce Dawson: What Outranks Thread Priority? (randomascii.wordpress.com)",
            url: None,
        },
        Source {
            title: "Windows Internals, 7th edition, part 1, chapter 4: group-based scheduling",
            url: None,
        },
    ],
};

impl Theory for Outranked {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let survey = &case.survey;
        if survey.runs_with_rank == 0 {
            let why = if survey.cpus.is_empty() {
                "the trace has no context switches"
            } else {
                "the context switches in this trace do not contain ranks: only Windows 10 1709 \
                     and later record them"
            };
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        let known = grouped(survey.runs_with_rank);
        if survey.ranks.is_empty() {
            let because = format!("all {known} recorded ranks are 0");
            return Ok(Outcome::Against(because, Vec::new()));
        }
        let processes = survey.ranks.chunk_by(|a, b| a.process_row == b.process_row);
        Ok(Outcome::For(
            processes.map(|ranks| finding(case, ranks)).collect(),
        ))
    }
}

/// Describes the ranks of one process.
fn finding(case: &Case<'_>, ranks: &[RankUse]) -> Finding {
    let first = ranks[0];
    let (lowest, highest) = (first.rank, ranks[ranks.len() - 1].rank);
    let process = case.processes(first.process_row, first.process_id);
    let runs: u64 = ranks.iter().map(|used| used.runs).sum();
    let from = ranks.iter().map(|used| used.first_ns).min().unwrap_or(0);
    let to = ranks.iter().map(|used| used.last_ns).max().unwrap_or(0);
    let of_ranks = if lowest == highest {
        format!("rank {lowest}")
    } else {
        format!("ranks {lowest} to {highest}")
    };
    let selection = Selection::new(Table::CpuRuns)
        .filter(Condition::is_or_unknown("process_row", first.process_row))
        .filter(Condition::AtLeast("rank_out", 1))
        .group_by(&["rank_out"])
        .order(&[Order::ascending("rank_out")]);
    let rank = Expression::Column("rank_out");
    let cpu_ns = Expression::sum_if("cpu_ns", case.survey.doubtful.believed());
    let (first_ns, last_ns) = (Expression::Min("end_ns"), Expression::Max("end_ns"));
    let mut evidence = Evidence::from_selection(format!("Runs of {process} by rank"), selection)
        .column("rank", "rank", Unit::None, rank)
        .column("runs", "runs", Unit::Count, Expression::Count)
        .column("cpu_ns", "CPU time", Unit::Duration, cpu_ns)
        .column("first_ns", "first", Unit::Moment, first_ns)
        .column("last_ns", "last", Unit::Moment, last_ns);
    for used in ranks {
        evidence = evidence.row([
            Some(used.rank.into()),
            Some(used.runs.into()),
            Some(used.cpu_ns.into()),
            Some(used.first_ns.into()),
            Some(used.last_ns.into()),
        ]);
    }
    let sentence = format!(
        "Threads of {process} had {of_ranks} at {} {}: every ready thread of rank 0 runs before \
         them, regardless of priority.",
        counted(runs, "switch", "switches"),
        if from == to {
            format!("at {}", duration(from))
        } else {
            format!("between {} and {}", duration(from), duration(to))
        }
    );
    Finding::new(&ABOUT, Severity::Information, sentence)
        .during(from..to)
        .subjects(case.process_subject(first.process_row, first.process_id))
        .with(evidence)
}
