//! Suspend gaps: times during which no CPU logged an event.

use std::ops::Range;

use tables::{InterruptsView, ReadyThreadsView, SamplesView, StoreError, StoredTable, Table};

use crate::ranges::overlap;
use crate::thresholds::{SUSPEND_MAX_NS, SUSPEND_MIN_NS, SUSPEND_SAMPLES};
use crate::{Column, Evidence, Reader, Unit};

/// Suspend gaps of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SuspendGaps {
    /// Minimum length of a suspend gap, in nanoseconds.
    pub at_least_ns: i64,
    /// Time ranges of the gaps, in order.
    pub ranges: Vec<Range<i64>>,
    /// True if events are missing, so that the machine may have run during the gaps.
    pub may_be_lost: bool,
}

impl SuspendGaps {
    /// Finds suspend gaps. They lie within `gaps`, which are the time ranges in which no run of a thread
    /// ended.
    pub(crate) fn read(
        reader: &Reader<'_>,
        gaps: &[Range<i64>],
        all_cpus_ns: i64,
        may_be_lost: bool,
    ) -> Result<SuspendGaps, StoreError> {
        let samples = reader.table(Table::Samples)?.rows() as i64;
        let apart_ns = all_cpus_ns.checked_div(samples).unwrap_or(SUSPEND_MAX_NS);
        let at_least_ns = apart_ns.saturating_mul(SUSPEND_SAMPLES);
        let at_least_ns = at_least_ns.clamp(SUSPEND_MIN_NS, SUSPEND_MAX_NS);
        let mut ranges = Vec::new();
        for gap in gaps {
            if gap.end.saturating_sub(gap.start) >= at_least_ns {
                ranges.extend(without_other_events(reader, gap.clone(), at_least_ns)?);
            }
        }
        Ok(SuspendGaps {
            at_least_ns,
            ranges,
            may_be_lost,
        })
    }

    /// Returns a clause that says why no CPU logged an event: `the machine was suspended`, if this is known.
    pub(crate) fn clause(&self) -> &'static str {
        if self.may_be_lost {
            "nothing was recorded"
        } else {
            "the machine was suspended"
        }
    }

    /// Returns the gaps that lie entirely in a range.
    pub(crate) fn within<'s>(
        &'s self,
        stretch: &'s Range<i64>,
    ) -> impl Iterator<Item = &'s Range<i64>> {
        let lies_in =
            |silence: &&Range<i64>| stretch.start <= silence.start && silence.end <= stretch.end;
        self.ranges.iter().filter(lies_in)
    }

    /// Returns the parts of gaps that lie in a range.
    pub(crate) fn parts_in(&self, stretch: &Range<i64>) -> Vec<Range<i64>> {
        let first = (self.ranges).partition_point(|silence| silence.end <= stretch.start);
        let reaching = self.ranges[first..].iter();
        reaching
            .map_while(|silence| overlap(silence, stretch))
            .collect()
    }

    /// Returns the time for which the machine was suspended within a range, in nanoseconds.
    pub(crate) fn asleep_ns(&self, stretch: &Range<i64>) -> i64 {
        let parts = self.parts_in(stretch).into_iter();
        parts.map(|part| part.end - part.start).sum()
    }

    /// Returns evidence with the gaps that lie within a range.
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
            Column::new("silent_ns", "no events for", Unit::Duration),
        ];
        let mut evidence = Evidence::new("Suspend gaps: no CPU logged an event", query, &columns);
        for silence in self.within(stretch).take(SHOWN) {
            let silent_ns = silence.end - silence.start;
            let cells = [silence.start, silence.end, silent_ns];
            evidence = evidence.row(cells.map(|ns| Some(ns.into())));
        }
        evidence
    }
}

/// Returns an SQL expression for the time of the gaps between two moments.
pub(crate) fn asleep_sql(silences: &[Range<i64>], from: &str, to: &str) -> String {
    let parts = silences.iter().map(|Range { start, end }| {
        format!("greatest(0, least({to}, {end}) - greatest({from}, {start}))")
    });
    match silences {
        [] => "0".to_owned(),
        _ => parts.collect::<Vec<_>>().join(" + "),
    }
}

/// Returns the parts of a range in which no table other than `cpu_runs` has an event. Only parts of at least
/// `at_least_ns` are returned.
fn without_other_events(
    reader: &Reader<'_>,
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
    let interrupts = reader.table(Table::Interrupts)?;
    for chunk in interrupts.chunks_within(around) {
        reader.check()?;
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
    let samples = reader.table(Table::Samples)?;
    for batch in reader.batches(&samples, range.clone(), &["time_ns"]) {
        let batch = batch?;
        SamplesView::new(&batch)?
            .time_ns
            .iter()
            .copied()
            .for_each(&mut add);
    }
    let ready = reader.table(Table::ReadyThreads)?;
    for batch in reader.batches(&ready, range.clone(), &["time_ns"]) {
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
