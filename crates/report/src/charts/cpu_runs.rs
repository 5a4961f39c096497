//! CPU use, computed from the runs of threads.

use std::cmp::Reverse;
use std::ops::Range;

use explain::{Doubtful, Explanation};
use serde::Serialize;
use session::TraceTables;
use tables::{CpuRunsView, Table};
use views::{Intervals, Lane, Lanes, NULL, NULL_ID, Rows, Timeline};

use super::{CpuPlaces, Layer, LayerKind, PROCESSES, Stack, Time, left_over, process};
use crate::Error;

/// Maximum number of processes whose ranks are shown.
const RANKED: usize = 8;

/// Groups of priorities that share a layer: the lowest priority of each group, and its label.
const BANDS: [(i8, &str); 5] = [
    (0, "priority 0–3"),
    (4, "priority 4–7"),
    (8, "priority 8–11"),
    (12, "priority 12–15"),
    (16, "priority 16–31"),
];

/// Lane of the timeline for threads with a rank above 0. Their priority does not matter.
const OUTRANKED: u32 = BANDS.len() as u32;

/// Charts of CPU use, computed from the runs of threads.
pub(super) struct Runs {
    pub(super) processes: Stack,
    pub(super) priorities: Stack,
    /// Share of time with a thread other than the idle thread, by CPU and bucket.
    pub(super) busy: Vec<Vec<u32>>,
    /// Share of time without a known run, by CPU and bucket.
    pub(super) untold: Vec<Option<Vec<u32>>>,
    pub(super) ranks: Vec<RankLine>,
}

/// Ranks of the threads of a process over time.
#[derive(Debug, Serialize)]
pub(in super::super) struct RankLine {
    /// Name of the process.
    pub(in super::super) name: String,
    /// Maximum rank of a thread that was switched out, by bucket.
    ranks: Vec<Option<i64>>,
    /// Maximum rank in the whole time range.
    #[serde(skip)]
    pub(in super::super) highest: i64,
}

const COLUMNS: [&str; 9] = [
    "start_ns",
    "end_ns",
    "cpu_ns",
    "cpu",
    "planned_thread_id",
    "thread_id",
    "process_row",
    "priority",
    "rank_out",
];

/// Sums the runs. Returns `None` if there are no runs.
pub(super) fn read(
    tables: &TraceTables,
    explanation: &Explanation,
    time: &Time,
    places: &CpuPlaces,
) -> Result<Option<Runs>, Error> {
    let table = tables.table(Table::CpuRuns)?;
    if table.rows() == 0 {
        return Ok(None);
    }
    let names = &explanation.names;
    let idle = names.process_rows() as u32;
    let mut shown = greatest(explanation);
    shown.push(idle);
    let mut ranked: Vec<(u64, u32)> = Vec::new();
    for used in &explanation.survey.ranks {
        match ranked
            .iter_mut()
            .find(|(_, row)| used.process_row == Some(*row))
        {
            Some((runs, _)) => *runs += used.runs,
            None => ranked.extend(used.process_row.map(|row| (used.runs, row))),
        }
    }
    ranked.sort_by_key(|(runs, row)| (Reverse(*runs), *row));
    let ranked: Vec<u32> = ranked.iter().take(RANKED).map(|(_, row)| *row).collect();

    let buckets = time.buckets;
    let mut processes = Timeline::new(buckets, Lanes::of(&shown, idle + 1))?;
    let mut priorities = Timeline::new(buckets, Lanes::every(OUTRANKED + 1))?;
    let mut cpus = Timeline::new(buckets, Lanes::every(places.shown as u32))?;
    let mut covered = cpus.clone();
    let mut ranks = Timeline::new(buckets, Lanes::of(&ranked, idle))?;
    let survey = &explanation.survey;
    // The table is sorted by the ends of runs, which select the batches. Runs in progress at the trace's end have the
    // largest ends, so the range has no upper limit.
    for batch in tables.batches(&table, time.range().start..i64::MAX, &COLUMNS) {
        let batch = batch?;
        let runs = CpuRunsView::new(&batch)?;
        let parts = Parts::of(&runs, &survey.doubtful, &survey.suspend_gaps.ranges);
        let of = |key: &dyn Fn(usize) -> u32| -> Vec<u32> {
            parts.rows.iter().map(|row| key(*row)).collect()
        };
        let is_idle = |row: usize| runs.thread_id[row] == 0;
        let process = |row: usize| runs.process_row.get(row).unwrap_or(NULL_ID);
        let intervals = |keys| Intervals {
            starts: &parts.starts,
            ends: &parts.ends,
            keys,
        };
        let all = Rows::of(0..parts.rows.len());
        let busy = all.clone().keep_if(|part| !is_idle(parts.rows[part]));
        let of_process = of(&|row| if is_idle(row) { idle } else { process(row) });
        processes.add_intervals(intervals(&of_process), &all)?;
        let of_band = of(&|row| band(runs.priority.get(row), runs.rank_out.get(row)));
        priorities.add_intervals(intervals(&of_band), &busy)?;
        let of_cpu = of(&|row| places.of(runs.cpu[row]));
        cpus.add_intervals(intervals(&of_cpu), &busy)?;
        covered.add_intervals(intervals(&of_cpu), &all)?;
        if !ranked.is_empty() {
            let rank = |row| runs.rank_out.get(row).map_or(NULL, i64::from);
            let rank: Vec<i64> = (0..runs.len()).map(rank).collect();
            let ran = Rows::of(0..runs.len()).keep_if(|row| !is_idle(row));
            let whose: Vec<u32> = (0..runs.len()).map(process).collect();
            ranks.add_values(runs.end_ns, &whose, &rank, &ran)?;
        }
    }
    let all = places.all;
    let busy = time.by_cpu(&cpus.finish(), places.shown);
    Ok(Some(Runs {
        processes: stack_of_processes(processes, names, time, all, false),
        priorities: stack_of_priorities(priorities, time, all),
        busy: busy
            .into_iter()
            .map(|shares| shares.unwrap_or_else(|| vec![0; buckets.len()]))
            .collect(),
        untold: left_over(time.by_cpu(&covered.finish(), places.shown), buckets.len()),
        ranks: rank_lines(ranks, explanation),
    }))
}

/// Parts of credible runs. Time in which the machine was suspended is cut out, because no thread ran then.
struct Parts {
    /// Row of the run that contains each part.
    rows: Vec<usize>,
    starts: Vec<i64>,
    ends: Vec<i64>,
}

impl Parts {
    /// Cuts the time ranges `silences` out of all credible runs. The ranges must be sorted and disjoint.
    fn of(runs: &CpuRunsView<'_>, doubtful: &Doubtful, silences: &[Range<i64>]) -> Parts {
        let mut parts = Parts {
            rows: Vec::with_capacity(runs.len()),
            starts: Vec::with_capacity(runs.len()),
            ends: Vec::with_capacity(runs.len()),
        };
        for row in (0..runs.len()).filter(|row| !doubtful.is(runs, *row)) {
            let (mut start, end) = (runs.start_ns[row], runs.end_ns[row]);
            let first = silences.partition_point(|silence| silence.end <= start);
            let within = silences[first..].iter();
            for silence in within.take_while(|silence| silence.start < end) {
                parts.push(row, start, silence.start.min(end));
                start = silence.end;
            }
            parts.push(row, start, end);
        }
        parts
    }

    fn push(&mut self, row: usize, start: i64, end: i64) {
        if start < end {
            self.rows.push(row);
            self.starts.push(start);
            self.ends.push(end);
        }
    }
}

/// Returns the rows of the processes with the most CPU time.
fn greatest(explanation: &Explanation) -> Vec<u32> {
    let rows = explanation.names.process_rows();
    let used = explanation.survey.processes.iter().take(rows);
    let mut used: Vec<(i64, u32)> = used
        .map(|used| used.cpu_ns)
        .zip(0..)
        .filter(|(ns, _)| *ns > 0)
        .collect();
    used.sort_by_key(|(ns, row)| (Reverse(*ns), *row));
    used.iter().take(PROCESSES).map(|(_, row)| *row).collect()
}

fn band(priority: Option<i8>, rank: Option<u8>) -> u32 {
    if rank.is_some_and(|rank| rank > 0) {
        return OUTRANKED;
    }
    let Some(priority) = priority else {
        return NULL_ID;
    };
    let above = BANDS.iter().filter(|(least, _)| *least <= priority).count();
    (above as u32).checked_sub(1).unwrap_or(NULL_ID)
}

/// Converts a timeline, whose lanes are rows of processes, to a stack. The lane after the last row is idle
/// time.
pub(super) fn stack_of_processes(
    timeline: Timeline,
    names: &tables::Identities,
    time: &Time,
    cpus: usize,
    is_sampled: bool,
) -> Stack {
    let idle = names.process_rows() as u32;
    let mut place = 0;
    let mut layers: Vec<Layer> = Vec::new();
    for series in timeline.finish() {
        let (name, kind) = match series.lane {
            Lane::Id(row) if row == idle => ("idle".to_owned(), LayerKind::Idle),
            Lane::Id(row) => {
                place += 1;
                (process(names, row), LayerKind::One(place - 1))
            }
            Lane::Other => ("other processes".to_owned(), LayerKind::Other),
            Lane::Unknown => ("unknown processes".to_owned(), LayerKind::Unknown),
        };
        layers.push(time.layer(name, kind, &series, cpus));
    }
    // Idle time becomes the top layer.
    layers.sort_by_key(|layer| layer.kind == LayerKind::Idle);
    Stack { is_sampled, layers }.with_untold()
}

fn stack_of_priorities(timeline: Timeline, time: &Time, cpus: usize) -> Stack {
    let mut series = timeline.finish();
    // Layers are ordered by the preference of the scheduler, from bottom to top. The highest priority is at
    // the bottom.
    series.sort_by_key(|series| match series.lane {
        Lane::Id(OUTRANKED) => (1, 0),
        Lane::Id(band) => (0, u32::MAX - band),
        Lane::Other | Lane::Unknown => (2, 0),
    });
    let layers = series.iter().map(|series| {
        let (name, kind) = match series.lane {
            Lane::Id(OUTRANKED) => ("rank above 0", LayerKind::One(BANDS.len())),
            Lane::Id(band) => (BANDS[band as usize].1, LayerKind::One(band as usize)),
            Lane::Other | Lane::Unknown => ("priority unknown", LayerKind::Unknown),
        };
        time.layer(name.to_owned(), kind, series, cpus)
    });
    Stack {
        is_sampled: false,
        layers: layers.collect(),
    }
}

fn rank_lines(timeline: Timeline, explanation: &Explanation) -> Vec<RankLine> {
    let series = timeline.finish().into_iter();
    series
        .filter_map(|series| {
            let Lane::Id(row) = series.lane else {
                return None;
            };
            Some(RankLine {
                name: process(&explanation.names, row),
                ranks: series.buckets.iter().map(views::Summary::max).collect(),
                highest: series.total.max().unwrap_or(0),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_above_0_goes_before_the_priority() {
        assert_eq!(band(Some(0), None), 0);
        assert_eq!(band(Some(3), Some(0)), 0);
        assert_eq!(band(Some(8), Some(0)), 2);
        assert_eq!(band(Some(15), None), 3);
        assert_eq!(band(Some(31), None), 4);
        assert_eq!(band(Some(13), Some(2)), OUTRANKED);
        assert_eq!(band(None, None), NULL_ID);
        assert_eq!(band(Some(-1), None), NULL_ID);
    }
}
