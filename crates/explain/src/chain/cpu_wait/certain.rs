//! The certain part of a wait during which events are missing: the part in which the thread cannot
//! have run unseen.

use std::ops::Range;

use rustc_hash::FxHashMap;
use tables::{CpuRunsView, ReadyThreadsView, SamplesView, StoreError, Table};

use super::weigh::Facts;
use crate::chain::waiter::Waiter;
use crate::ranges::{overlap, union};
use crate::thresholds::LOST_SAMPLES;
use crate::{Case, Column, Evidence, Unit, Value};

/// Maximum number of waits that are examined. The limit bounds the cost: each examination reads all rows in the time
/// range of the wait.
const LOOKED_AT: usize = 4;

/// Times of the last signs that a waiting thread may have run unseen.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    /// Time of the last contradicting context switch.
    contradicted_ns: Option<i64>,
    /// Time of a CPU's first sample after the last gap in the samples of this CPU.
    sampled_ns: Option<i64>,
    /// Time of the last event that readied the thread once more. Before this time, the thread waited for something
    /// other than a CPU.
    readied_ns: Option<i64>,
}

/// Marks the waits during which a thread may have run unseen because events are lost. Shortens the longest of these
/// waits to the certain part: the part in which the thread cannot have run unseen. Adds evidence for the certain part.
///
/// # Errors
/// Returns an error if a table cannot be read, or the user cancelled.
pub(crate) fn narrow(
    case: &Case<'_>,
    facts: &Facts,
    waiters: &mut [Waiter],
) -> Result<(), StoreError> {
    let samples = case.table(Table::Samples)?.rows() as i64;
    let mean_ns = case.survey.all_cpus_ns().checked_div(samples);
    let apart_ns = mean_ns.unwrap_or(0).saturating_mul(LOST_SAMPLES);
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

/// Finds times during which a CPU had no samples although its idle time is sampled. At these times,
/// events of the CPU are lost. Times during which the machine was suspended do not count.
fn without_samples(case: &Case<'_>, apart_ns: i64) -> Result<Vec<Range<i64>>, StoreError> {
    /// State of reading the samples of one CPU.
    struct SampledCpu {
        last_ns: i64,
        is_idle_sampled: bool,
        gaps: Vec<Range<i64>>,
    }
    let span = &case.survey.span;
    let silences = &case.survey.suspend_gaps;
    let is_gap = |gap: &Range<i64>| {
        let length = gap.end.saturating_sub(gap.start);
        length > apart_ns && length - silences.asleep_ns(gap) > apart_ns
    };
    let mut cpus: FxHashMap<Option<u16>, SampledCpu> = FxHashMap::default();
    let samples = case.table(Table::Samples)?;
    let columns = ["time_ns", "cpu", "thread_id"];
    for batch in case.batches(&samples, i64::MIN..i64::MAX, &columns) {
        let batch = batch?;
        let view = SamplesView::new(&batch)?;
        for row in 0..view.len() {
            let time_ns = view.time_ns[row];
            let sampled = cpus.entry(view.cpu.get(row)).or_insert(SampledCpu {
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

/// Returns the end of the last time during which a CPU had no samples.
fn last_without_samples(
    case: &Case<'_>,
    range: &Range<i64>,
    apart_ns: i64,
) -> Result<Option<i64>, StoreError> {
    let samples = case.table(Table::Samples)?;
    // Time of the last sample of each CPU so far.
    let cpus = case.survey.cpus.iter();
    let mut before: FxHashMap<Option<u16>, i64> =
        cpus.map(|cpu| (Some(cpu.cpu), range.start)).collect();
    let mut last = None;
    for batch in case.batches(&samples, range.clone(), &["time_ns", "cpu"]) {
        let batch = batch?;
        let view = SamplesView::new(&batch)?;
        for row in 0..view.len() {
            let time = view.time_ns[row];
            if !(range.start..=range.end).contains(&time) {
                continue;
            }
            let before = before.entry(view.cpu.get(row)).or_insert(range.start);
            if time - *before > apart_ns {
                last = last.max(Some(time));
            }
            *before = time;
        }
    }
    let is_dumb = before.values().any(|ns| range.end - ns > apart_ns);
    Ok(if is_dumb { Some(range.end) } else { last })
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
        Column::new("contradicted_ns", "contradicting switch", Unit::Moment),
        Column::new(
            "sampled_ns",
            "missing samples of a CPU before",
            Unit::Moment,
        ),
        Column::new("readied_ns", "the thread was readied again", Unit::Moment),
    ];
    let title = format!(
        "Last signs that thread {} may have run unseen after it was readied",
        waiter.thread_id
    );
    let cells = [last.contradicted_ns, last.sampled_ns, last.readied_ns];
    Evidence::new(title, query, &columns).row(cells.map(|ns| ns.map(Value::from)))
}
