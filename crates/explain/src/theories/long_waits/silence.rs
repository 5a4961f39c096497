//! When no CPU logged anything: the machine was suspended.

use std::ops::Range;

use tables::{
    CpuRunsView, InterruptsView, ReadyThreadsView, SamplesView, StoreError, StoredTable, Table,
};

use crate::{Case, Column, Evidence, Unit};

/// A machine that runs does not keep silent for so long: the balance set manager alone wakes once
/// a second (Windows Internals, 7th edition, part 1, chapter 5).
pub(super) const SILENCE_NS: i64 = 2_000_000_000;

/// The silences that begin within the stretches of time given, which are apart and in order.
pub(super) fn read(
    case: &Case<'_>,
    stretches: &[Range<i64>],
) -> Result<Vec<Range<i64>>, StoreError> {
    let mut silences = Vec::new();
    let runs = case.table(Table::CpuRuns)?;
    for stretch in stretches {
        if stretch.end.saturating_sub(stretch.start) < SILENCE_NS {
            continue;
        }
        let mut last = stretch.start;
        let mut ends = Vec::new();
        for batch in case.batches(&runs, stretch.clone(), &["end_ns"]) {
            let batch = batch?;
            for end in CpuRunsView::new(&batch)?.end_ns {
                let end = (*end).min(stretch.end);
                if end.saturating_sub(last) >= SILENCE_NS {
                    ends.push(last..end);
                }
                last = last.max(end);
            }
        }
        for silence in ends {
            silences.extend(without_other_events(case, silence)?);
        }
    }
    Ok(silences)
}

/// What is left of a time in which no run of a thread ended.
fn without_other_events(case: &Case<'_>, range: Range<i64>) -> Result<Vec<Range<i64>>, StoreError> {
    let mut times = vec![range.start, range.end];
    let mut add = |time: i64| {
        if range.contains(&time) {
            times.push(time);
        }
    };
    let around = range.start..i64::MAX;
    let over = |table: &StoredTable, chunk: usize| table.chunks()[chunk].first > range.end;
    let interrupts = case.table(Table::Interrupts)?;
    for chunk in interrupts.chunks_within(around) {
        case.check()?;
        let batch = interrupts.read(chunk, &["start_ns", "end_ns"])?;
        let view = InterruptsView::new(&batch)?;
        for row in 0..view.len() {
            add(view.end_ns[row]);
            if let Some(start) = view.start_ns.get(row) {
                add(start);
            }
        }
        if over(&interrupts, chunk) {
            break;
        }
    }
    let samples = case.table(Table::Samples)?;
    for batch in case.batches(&samples, range.clone(), &["time_ns"]) {
        let batch = batch?;
        SamplesView::new(&batch)?
            .time_ns
            .iter()
            .copied()
            .for_each(&mut add);
    }
    let ready = case.table(Table::ReadyThreads)?;
    for batch in case.batches(&ready, range.clone(), &["time_ns"]) {
        let batch = batch?;
        ReadyThreadsView::new(&batch)?
            .time_ns
            .iter()
            .copied()
            .for_each(&mut add);
    }
    times.sort_unstable();
    let pairs = times.windows(2).map(|pair| pair[0]..pair[1]);
    Ok(pairs
        .filter(|silence| silence.end - silence.start >= SILENCE_NS)
        .collect())
}

/// The silences within a wait.
pub(super) fn evidence(silences: &[Range<i64>], wait: &Range<i64>) -> Evidence {
    let Range { start, end } = wait;
    let query = format!(
        "WITH seen AS (SELECT end_ns AS at_ns FROM cpu_runs UNION ALL SELECT start_ns FROM \
         interrupts UNION ALL SELECT end_ns FROM interrupts UNION ALL SELECT time_ns FROM samples \
         UNION ALL SELECT time_ns FROM ready_threads), gaps AS (SELECT lag(at_ns) OVER (ORDER BY \
         at_ns) AS from_ns, at_ns AS to_ns FROM seen WHERE at_ns BETWEEN {start} AND {end}) SELECT \
         from_ns, to_ns, to_ns - from_ns AS silent_ns FROM gaps WHERE to_ns - from_ns >= \
         {SILENCE_NS} ORDER BY from_ns"
    );
    let columns = [
        Column::new("from_ns", "from", Unit::Moment),
        Column::new("to_ns", "to", Unit::Moment),
        Column::new("silent_ns", "no CPU logged anything for", Unit::Duration),
    ];
    let mut evidence = Evidence::new("When no CPU logged anything", query, &columns);
    for silence in within(silences, wait) {
        let silent_ns = silence.end - silence.start;
        let cells = [silence.start, silence.end, silent_ns];
        evidence = evidence.row(cells.map(|ns| Some(ns.into())));
    }
    evidence
}

/// Those that lie in a wait.
pub(super) fn within<'s>(
    silences: &'s [Range<i64>],
    wait: &'s Range<i64>,
) -> impl Iterator<Item = &'s Range<i64>> {
    let lies_in = |silence: &&Range<i64>| wait.start <= silence.start && silence.end <= wait.end;
    silences.iter().filter(lies_in)
}
