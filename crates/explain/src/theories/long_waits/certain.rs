//! The part of a wait that is certain, of one during which events are missing.

use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::{CpuRunsView, ReadyThreadsView, SamplesView, StoreError, Table};

use super::waiter::Waiter;
use super::weigh::Facts;
use crate::ranges::{overlap, union};
use crate::{Case, Column, Evidence, Unit, Value};

/// A CPU without a sample for so many times their mean distance may lack a buffer.
const SAMPLES: i64 = 10;

/// How many waits are looked at: each of them costs a pass over what was recorded meanwhile.
const LOOKED_AT: usize = 4;

/// When the last of each was that shows that a thread may have run unseen.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    /// Switches of a CPU contradicted each other.
    contradicted_ns: Option<i64>,
    /// A CPU had a sample again after it had had none for too long.
    sampled_ns: Option<i64>,
    /// Something made the thread ready: it had waited for something else before.
    readied_ns: Option<i64>,
}

/// Marks the waits during which a thread may have run unseen because events are lost. Of the longest,
/// leaves the part from which on it cannot have; the evidence of that goes with the wait.
///
/// # Errors
/// If a table cannot be read, or the user stopped it.
pub(super) fn narrow(
    case: &Case<'_>,
    facts: &Facts,
    waiters: &mut [Waiter],
) -> Result<(), StoreError> {
    let samples = case.table(Table::Samples)?.rows() as i64;
    let mean_ns = case.survey.all_cpus_ns().checked_div(samples);
    let apart_ns = mean_ns.unwrap_or(0).saturating_mul(SAMPLES);
    if facts.lacks_events() {
        let gaps = without_samples(case, apart_ns)?;
        for waiter in waiters.iter_mut() {
            let first = gaps.partition_point(|gap| gap.end <= waiter.range.start);
            let reaches_in = |gap: &Range<i64>| overlap(gap, &waiter.range).is_some();
            waiter.ran_unseen |= gaps.get(first).is_some_and(reaches_in);
        }
    }
    if !case.survey.clock_skews.is_empty() {
        return Ok(());
    }
    let mut uncertain: Vec<&mut Waiter> = waiters
        .iter_mut()
        .filter(|waiter| waiter.ran_unseen && waiter.wait.is_some())
        .collect();
    uncertain.sort_by_key(|waiter| std::cmp::Reverse(waiter.ready_ns()));
    for waiter in uncertain.into_iter().take(LOOKED_AT) {
        let range = waiter.range.clone();
        let complete = &case.survey.complete;
        if !complete.holds(range.start, range.end) {
            continue;
        }
        let last = Last {
            contradicted_ns: last_contradiction(case, &range)?,
            sampled_ns: last_without_samples(case, &range, apart_ns)?,
            readied_ns: last_readied(case, waiter)?,
        };
        let moments = [
            Some(range.start),
            last.contradicted_ns,
            last.sampled_ns,
            last.readied_ns,
        ];
        let from = moments.into_iter().flatten().max().unwrap_or(range.start);
        if from >= range.end {
            continue;
        }
        if from > range.start {
            waiter.certain = Some(evidence(waiter, last, apart_ns));
        }
        waiter.range.start = from;
        let priority = waiter.priority();
        waiter.priorities = vec![(waiter.range.clone(), priority)];
        waiter.ran_unseen = false;
    }
    Ok(())
}

/// When some CPU had no samples for so long, though its idle time is sampled, too: what it logged then
/// is lost, unless the machine slept.
fn without_samples(case: &Case<'_>, apart_ns: i64) -> Result<Vec<Range<i64>>, StoreError> {
    /// What is known of a CPU's samples.
    struct Sampled {
        last_ns: i64,
        is_idle_sampled: bool,
        gaps: Vec<Range<i64>>,
    }
    let span = &case.survey.span;
    let silences = &case.survey.silences;
    let is_gap = |gap: &Range<i64>| {
        let length = gap.end.saturating_sub(gap.start);
        length > apart_ns && length - silences.asleep_ns(gap) > apart_ns
    };
    let mut cpus: FxHashMap<u16, Sampled> = FxHashMap::default();
    let samples = case.table(Table::Samples)?;
    let columns = ["time_ns", "cpu", "thread_id"];
    for batch in case.batches(&samples, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = SamplesView::new(&batch)?;
        for row in 0..view.len() {
            let time_ns = view.time_ns[row];
            let sampled = cpus.entry(view.cpu[row]).or_insert(Sampled {
                last_ns: span.start,
                is_idle_sampled: false,
                gaps: Vec::new(),
            });
            let gap = sampled.last_ns..time_ns.max(sampled.last_ns);
            sampled.is_idle_sampled |= view.thread_id[row] == 0;
            sampled.last_ns = gap.end;
            sampled.gaps.extend(is_gap(&gap).then_some(gap));
        }
    }
    let idle_is_sampled = cpus.into_values().filter(|cpu| cpu.is_idle_sampled);
    let gaps = idle_is_sampled.flat_map(|cpu| {
        let to_the_end = cpu.last_ns..span.end.max(cpu.last_ns);
        let at_end = is_gap(&to_the_end).then_some(to_the_end);
        cpu.gaps.into_iter().chain(at_end)
    });
    Ok(union(gaps.collect()))
}

fn last_contradiction(case: &Case<'_>, range: &Range<i64>) -> Result<Option<i64>, StoreError> {
    let runs = case.table(Table::CpuRuns)?;
    let mut last = None;
    for batch in case.batches(&runs, range.clone(), &["end_ns", "planned_thread_id"]) {
        let batch = batch?;
        let view = CpuRunsView::new(&batch)?;
        let contradicted = (0..view.len())
            .filter(|row| view.planned_thread_id.get(*row).is_some())
            .map(|row| view.end_ns[row])
            .filter(|at| range.start < *at && *at <= range.end);
        last = last.max(contradicted.max());
    }
    Ok(last)
}

/// The moment at which the last stretch ends that is without samples of some CPU.
fn last_without_samples(
    case: &Case<'_>,
    range: &Range<i64>,
    apart_ns: i64,
) -> Result<Option<i64>, StoreError> {
    let samples = case.table(Table::Samples)?;
    // Of each CPU, its last sample.
    let cpus = case.survey.cpus.iter();
    let mut before: FxHashMap<u16, i64> = cpus.map(|cpu| (cpu.cpu, range.start)).collect();
    let mut last = None;
    for batch in case.batches(&samples, range.clone(), &["time_ns", "cpu"]) {
        let batch = batch?;
        let view = SamplesView::new(&batch)?;
        for row in 0..view.len() {
            let time = view.time_ns[row];
            if !(range.start..=range.end).contains(&time) {
                continue;
            }
            let before = before.entry(view.cpu[row]).or_insert(range.start);
            if time - *before > apart_ns {
                last = last.max(Some(time));
            }
            *before = time;
        }
    }
    let is_dumb = before.values().any(|ns| range.end - ns > apart_ns);
    Ok(match is_dumb {
        true => Some(range.end),
        false => last,
    })
}

fn last_readied(case: &Case<'_>, waiter: &Waiter) -> Result<Option<i64>, StoreError> {
    let ready = case.table(Table::ReadyThreads)?;
    let range = &waiter.range;
    let mut last = None;
    for batch in case.batches(&ready, range.clone(), &["time_ns", "thread_id"]) {
        let batch = batch?;
        let view = ReadyThreadsView::new(&batch)?;
        let readied = (0..view.len())
            .filter(|row| view.thread_id[*row] == waiter.thread_id)
            .map(|row| view.time_ns[row])
            .filter(|at| range.start < *at && *at < range.end);
        last = last.max(readied.max());
    }
    Ok(last)
}

fn evidence(waiter: &Waiter, last: Last, apart_ns: i64) -> Evidence {
    let Range { start, end } = waiter.range;
    let query = format!(
        "SELECT (SELECT max(end_ns) FROM cpu_runs WHERE planned_thread_id IS NOT NULL AND end_ns > \
         {start} AND end_ns <= {end}) AS contradicted_ns, (SELECT max(time_ns) FROM (SELECT time_ns, \
         time_ns - coalesce(lag(time_ns) OVER (PARTITION BY cpu ORDER BY time_ns), \
         {start}) AS apart_ns FROM samples WHERE time_ns >= {start} AND time_ns <= {end}) AS apart \
         WHERE apart_ns > {apart_ns}) AS sampled_ns, (SELECT max(time_ns) \
         FROM ready_threads WHERE thread_id = {} AND time_ns > {start} AND time_ns < {end}) AS \
         readied_ns",
        waiter.thread_id
    );
    let columns = [
        Column::new(
            "contradicted_ns",
            "switches contradict each other",
            Unit::Moment,
        ),
        Column::new(
            "sampled_ns",
            "samples of a CPU are missing before",
            Unit::Moment,
        ),
        Column::new(
            "readied_ns",
            "the thread was made ready again",
            Unit::Moment,
        ),
    ];
    let title = format!(
        "The last of what tells that thread {} may have run unseen, from when it was made ready on",
        waiter.thread_id
    );
    let cells = [last.contradicted_ns, last.sampled_ns, last.readied_ns];
    Evidence::new(title, query, &columns).row(cells.map(|ns| ns.map(Value::from)))
}
