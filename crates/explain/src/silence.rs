//! When no CPU logged anything: the machine was suspended.

use std::ops::Range;

use tables::{InterruptsView, ReadyThreadsView, SamplesView, StoreError, StoredTable, Table};

use crate::ranges::overlap;
use crate::{Case, Column, Evidence, Unit};

/// A machine that runs does not keep silent for so long: the balance set manager alone wakes once
/// a second (Windows Internals, 7th edition, part 1, chapter 5).
const LONGEST_NS: i64 = 2_000_000_000;

/// Samples are taken of idle CPUs too: where there are any, this many of a CPU's do not fail to come
/// while the machine runs,
const SAMPLES: i64 = 100;

/// nor for less than this time do all events.
pub(crate) const SHORTEST_NS: i64 = 200_000_000;

/// When no CPU logged anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Silences {
    /// For at least so long.
    pub at_least_ns: i64,
    /// From when to when, in order.
    pub ranges: Vec<Range<i64>>,
}

impl Silences {
    /// The silences within the gaps given, in which no run of a thread ended.
    pub(crate) fn read(
        case: &Case<'_>,
        gaps: &[Range<i64>],
        all_cpus_ns: i64,
    ) -> Result<Silences, StoreError> {
        let samples = case.table(Table::Samples)?.rows() as i64;
        let apart_ns = all_cpus_ns.checked_div(samples).unwrap_or(LONGEST_NS);
        let at_least_ns = apart_ns.saturating_mul(SAMPLES);
        let at_least_ns = at_least_ns.clamp(SHORTEST_NS, LONGEST_NS);
        let mut ranges = Vec::new();
        for gap in gaps {
            if gap.end.saturating_sub(gap.start) >= at_least_ns {
                ranges.extend(without_other_events(case, gap.clone(), at_least_ns)?);
            }
        }
        Ok(Silences {
            at_least_ns,
            ranges,
        })
    }

    /// Those that lie in a stretch of time.
    pub(crate) fn within<'s>(
        &'s self,
        stretch: &'s Range<i64>,
    ) -> impl Iterator<Item = &'s Range<i64>> {
        let lies_in =
            |silence: &&Range<i64>| stretch.start <= silence.start && silence.end <= stretch.end;
        self.ranges.iter().filter(lies_in)
    }

    /// What of them reaches into a stretch of time.
    pub(crate) fn parts_in(&self, stretch: &Range<i64>) -> Vec<Range<i64>> {
        let first = (self.ranges).partition_point(|silence| silence.end <= stretch.start);
        let reaching = self.ranges[first..].iter();
        reaching
            .map_while(|silence| overlap(silence, stretch))
            .collect()
    }

    /// How long of a stretch of time the machine slept.
    pub(crate) fn asleep_ns(&self, stretch: &Range<i64>) -> i64 {
        let parts = self.parts_in(stretch).into_iter();
        parts.map(|part| part.end - part.start).sum()
    }

    /// Those within a stretch of time, as rows.
    pub(crate) fn evidence(&self, stretch: &Range<i64>) -> Evidence {
        const SHOWN: usize = 10;
        let Range { start, end } = stretch;
        let query = format!(
            "WITH seen AS (SELECT end_ns AS at_ns FROM cpu_runs UNION ALL SELECT start_ns FROM \
             interrupts UNION ALL SELECT end_ns FROM interrupts UNION ALL SELECT time_ns FROM \
             samples UNION ALL SELECT time_ns FROM ready_threads), gaps AS (SELECT lag(at_ns) OVER \
             (ORDER BY at_ns) AS from_ns, at_ns AS to_ns FROM seen WHERE at_ns BETWEEN {start} AND \
             {end}) SELECT from_ns, to_ns, to_ns - from_ns AS silent_ns FROM gaps WHERE to_ns - \
             from_ns >= {} ORDER BY from_ns LIMIT {SHOWN}",
            self.at_least_ns
        );
        let columns = [
            Column::new("from_ns", "from", Unit::Moment),
            Column::new("to_ns", "to", Unit::Moment),
            Column::new("silent_ns", "no CPU logged anything for", Unit::Duration),
        ];
        let mut evidence = Evidence::new("When no CPU logged anything", query, &columns);
        for silence in self.within(stretch).take(SHOWN) {
            let silent_ns = silence.end - silence.start;
            let cells = [silence.start, silence.end, silent_ns];
            evidence = evidence.row(cells.map(|ns| Some(ns.into())));
        }
        evidence
    }
}

/// How long the machine slept from one moment to another, in SQL.
pub(crate) fn asleep_sql(silences: &[Range<i64>], from: &str, to: &str) -> String {
    let parts = silences.iter().map(|Range { start, end }| {
        format!("greatest(0, least({to}, {end}) - greatest({from}, {start}))")
    });
    match silences {
        [] => "0".to_owned(),
        _ => parts.collect::<Vec<_>>().join(" + "),
    }
}

/// What is left of a time in which no run of a thread ended.
fn without_other_events(
    case: &Case<'_>,
    range: Range<i64>,
    at_least_ns: i64,
) -> Result<Vec<Range<i64>>, StoreError> {
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
        .filter(|silence| silence.end - silence.start >= at_least_ns)
        .collect())
}
