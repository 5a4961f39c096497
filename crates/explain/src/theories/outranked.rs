//! Were threads held back by their rank?

use tables::{StoreError, Table};

use crate::survey::RankUse;
use crate::{
    About, Case, Column, Evidence, Finding, Outcome, Severity, Source, Theory, Unit, counted,
    duration, grouped,
};

/// Ranks other than 0.
pub(crate) struct Outranked;

static ABOUT: About = About {
    id: "outranked",
    question: "Did threads have a rank, behind which every thread of rank 0 goes first?",
    tables: &[Table::CpuRuns],
    sources: &[
        Source {
            title: "Bruce Dawson: What Outranks Thread Priority? (randomascii.wordpress.com)",
            url: "",
        },
        Source {
            title: "Windows Internals, 7th edition, part 1, chapter 4: group-based scheduling",
            url: "",
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
            let why = "no context switch carries a rank";
            return Ok(Outcome::NotRecorded(why.to_owned()));
        }
        let known = grouped(survey.runs_with_rank);
        if survey.ranks.is_empty() {
            let because = format!("all {known} recorded ranks are 0");
            return Ok(Outcome::Against(because, Vec::new()));
        }
        let processes = survey.ranks.chunk_by(|a, b| a.process_row == b.process_row);
        Ok(Outcome::For(
            processes.map(|ranks| found(case, ranks)).collect(),
        ))
    }
}

const COLUMNS: [Column; 5] = [
    Column::new("rank", "rank", Unit::None),
    Column::new("runs", "runs", Unit::Count),
    Column::new("cpu_ns", "CPU time", Unit::Duration),
    Column::new("first_ns", "first", Unit::Moment),
    Column::new("last_ns", "last", Unit::Moment),
];

/// What is to be said of the ranks of one process.
fn found(case: &Case<'_>, ranks: &[RankUse]) -> Finding {
    let first = ranks[0];
    let (lowest, highest) = (first.rank, ranks[ranks.len() - 1].rank);
    let process = case.processes(first.process_row, first.process_id);
    let runs: u64 = ranks.iter().map(|used| used.runs).sum();
    let from = ranks.iter().map(|used| used.first_ns).min().unwrap_or(0);
    let to = ranks.iter().map(|used| used.last_ns).max().unwrap_or(0);
    let of_ranks = match lowest == highest {
        true => format!("rank {lowest}"),
        false => format!("ranks {lowest} to {highest}"),
    };
    let is_that_process = match first.process_row {
        Some(row) => format!("process_row = {row}"),
        None => "process_row IS NULL".to_owned(),
    };
    let query = format!(
        "SELECT rank_out AS rank, count(*) AS runs, sum(cpu_ns) AS cpu_ns, min(end_ns) AS \
         first_ns, max(end_ns) AS last_ns FROM cpu_runs WHERE {is_that_process} AND rank_out > 0 \
         GROUP BY rank_out ORDER BY rank_out"
    );
    let mut evidence = Evidence::new(format!("Runs of {process} by rank"), query, &COLUMNS);
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
        "Threads of {process} had {of_ranks} at {} {}: every thread of rank 0 that is ready goes \
         before them, whatever the priorities.",
        counted(runs, "switch", "switches"),
        match from == to {
            true => format!("at {}", duration(from)),
            false => format!("between {} and {}", duration(from), duration(to)),
        }
    );
    Finding::new(&ABOUT, Severity::Information, sentence)
        .during(from..to)
        .with(evidence)
}
