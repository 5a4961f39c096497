//! Theory: work of .NET programs waited, because all threads of their thread pools were blocked or busy.

use std::cmp::Reverse;
use std::ops::Range;

use rustc_hash::FxHashMap;
use selection::{Condition, Expression, Order, Selection};
use tables::{DotnetPoolsView, StoreError, Table};

use crate::chain::user_attention::UserAttention;
use crate::finding::Attention;
use crate::thresholds::{DISRUPTIVE_NS, POOL_GAP_NS, POOL_REPORTS};
use crate::{
    About, Case, Evidence, Finding, Outcome, Severity, Source, Theory, Unit, counted, duration,
    grouped, moment,
};

/// Theory about thread pools that starved.
pub(crate) struct Pools;

static ABOUT: About = About {
    id: "dotnet-thread-pool",
    name: "thread pool starvation",
    question: "Did work of .NET programs wait because their thread pools had no free thread?",
    tables: &[Table::DotnetPools, Table::Focus],
    sources: &[
        Source {
            title: "Microsoft: Debug ThreadPool Starvation (.NET)",
            url: Some(
                "https://learn.microsoft.com/dotnet/core/diagnostics/debug-threadpool-starvation",
            ),
        },
        Source {
            title: "Microsoft: .NET runtime thread pool events",
            url: Some(
                "https://learn.microsoft.com/dotnet/fundamentals/diagnostics/runtime-thread-events",
            ),
        },
    ],
};

/// Maximum number of rows of evidence.
const SHOWN: usize = 20;
/// Maximum number of findings.
const FINDINGS: usize = 3;

/// Thread pool of a process.
#[derive(Default)]
struct Pool {
    process_id: u32,
    process_row: Option<u32>,
    /// Reports of the runtime that the pool starved, in order of time. Each entry has the time in nanoseconds and the
    /// new number of threads.
    starved: Vec<(i64, u32)>,
}

impl Pool {
    /// Returns the time ranges in which several reports follow each other closely. A range lasts from its first to
    /// its last report. The pool began to starve before the first report.
    fn ranges(&self) -> Vec<Range<i64>> {
        let near = |a: &(i64, u32), b: &(i64, u32)| b.0 - a.0 <= POOL_GAP_NS;
        let together = self.starved.chunk_by(near);
        let ranges = together.map(|reports| reports[0].0..reports[reports.len() - 1].0);
        ranges.filter(|range| !range.is_empty()).collect()
    }
}

impl Theory for Pools {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn judge(&self, case: &Case<'_>) -> Result<Outcome, StoreError> {
        let (pools, changes) = read(case)?;
        if changes == 0 {
            let what = "there are no events of .NET thread pools: either no pool changed its number of \
                threads, or the events were not recorded";
            return Ok(Outcome::NotRecorded(what.to_owned()));
        }
        let noticed = case.noticed()?;
        let findings = pools.iter().filter_map(|pool| finding(case, noticed, pool));
        let findings: Vec<Finding> = findings.take(FINDINGS).collect();
        if !findings.is_empty() {
            return Ok(Outcome::For(findings));
        }
        let because = format!(
            "no thread pool starved for {}; {} of the {} of pools report starvation",
            duration(DISRUPTIVE_NS),
            grouped(pools.iter().map(|pool| pool.starved.len() as u64).sum()),
            counted(changes, "change", "changes")
        );
        Ok(Outcome::Against(because, Vec::new()))
    }
}

/// Reads the pools that starved, the pool that starved longest first. Also returns the number of changes of all pools.
fn read(case: &Case<'_>) -> Result<(Vec<Pool>, u64), StoreError> {
    let mut pools: FxHashMap<(Option<u32>, u32), Pool> = FxHashMap::default();
    let mut changes = 0;
    let table = case.table(Table::DotnetPools)?;
    for chunk in 0..table.chunks().len() {
        let batch = table.read_all(chunk)?;
        let view = DotnetPoolsView::new(&batch)?;
        changes += view.len() as u64;
        for row in (0..view.len()).filter(|row| view.starved.get(*row) == Some(true)) {
            let (id, process_row) = (view.process_id[row], view.process_row.get(row));
            let pool = pools.entry((process_row, id)).or_default();
            (pool.process_id, pool.process_row) = (id, process_row);
            pool.starved.push((view.time_ns[row], view.threads[row]));
        }
    }
    let mut pools: Vec<Pool> = pools.into_values().collect();
    let starved_ns = |pool: &Pool| -> i64 {
        let ranges = pool.ranges();
        ranges.iter().map(|range| range.end - range.start).sum()
    };
    pools.sort_by_key(|pool| (Reverse(starved_ns(pool)), pool.process_row, pool.process_id));
    Ok((pools, changes))
}

/// Describes a pool, if it starved for a disruptive time.
fn finding(case: &Case<'_>, noticed: &UserAttention, pool: &Pool) -> Option<Finding> {
    let ranges = pool.ranges();
    let gaps = &case.survey.suspend_gaps;
    let lengths = ranges
        .iter()
        .map(|range| range.end - range.start - gaps.asleep_ns(range));
    let starved_ns: i64 = lengths.sum();
    let (first, last) = (*pool.starved.first()?, *pool.starved.last()?);
    if starved_ns < DISRUPTIVE_NS || pool.starved.len() < POOL_REPORTS {
        return None;
    }
    let longest = ranges
        .into_iter()
        .max_by_key(|range| range.end - range.start)?;
    let attention = noticed.attention(pool.process_row, &longest);
    let severity = match attention {
        Some(Attention::Background) => Severity::Warning,
        _ => Severity::Problem,
    };
    let process = case.process(pool.process_row, Some(pool.process_id));
    let sentence = format!(
        "The .NET thread pool of {process} had no free thread for {} in total, from {} to {}: its queued \
         work waited.",
        duration(starved_ns),
        moment(first.0),
        moment(last.0)
    );
    let because = format!(
        "The runtime reported {} that the pool starved, and added threads until there were {}. It does \
         this if queued work makes no progress, because all threads of the pool are blocked or busy.",
        counted(pool.starved.len() as u64, "time", "times"),
        last.1
    );
    let (from_ms, to_ms) = (longest.start / 1_000_000, longest.end / 1_000_000 + 1);
    let finding = Finding::new(&ABOUT, severity, sentence)
        .because(because)
        .subjects(case.process_subject(pool.process_row, Some(pool.process_id)))
        .attention(attention)
        .during(longest)
        .delay(
            starved_ns,
            format!("of {process}, whose queued work waited for a thread"),
        )
        .with(evidence(pool))
        .remedy(format!(
            "Do not block threads of the pool: use `await` instead of Task.Wait, Task.Result, \
             Thread.Sleep and synchronous I/O. `laglab explain TRACE --process {} --from {from_ms}ms \
             --to {to_ms}ms` shows what the threads waited for",
            pool.process_id
        ))
        .remedy(
            "Until the program is changed, a higher minimum (ThreadPool.SetMinThreads) lets the runtime \
             add threads at once",
        )
        .doubt("How long work had waited before the first report is unknown");
    Some(finding)
}

/// Returns evidence with the reports of the runtime that the pool starved.
fn evidence(pool: &Pool) -> Evidence {
    let selection = Selection::new(Table::DotnetPools)
        .filter(Condition::IsTrue("starved"))
        .filter(Condition::is("process_id", pool.process_id))
        .filter(Condition::is_or_unknown("process_row", pool.process_row))
        .order(&[Order::ascending("time_ns")])
        .limit(SHOWN);
    let threads = Expression::Column("threads");
    let evidence = Evidence::from_selection("Reports that the thread pool starved", selection)
        .stored("time_ns", "at", Unit::Moment)
        .column("threads", "threads from then on", Unit::Count, threads);
    let reports = pool.starved.iter().take(SHOWN);
    reports.fold(evidence, |evidence, (time_ns, threads)| {
        evidence.row([Some((*time_ns).into()), Some((*threads).into())])
    })
}
