//! Lanes of CPUs. A lane shows the threads and interrupt routines that ran on its CPU.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tables::{CpusView, StoreError, Table};
use ts_rs::TS;
use views::{Intervals, Lane, Lanes, NULL, NULL_ID, Rows, TimeBuckets, TimeRange, Timeline};

use crate::context::{Context, check_bounds, range_of};
use crate::decoded_columns::{Keys, RowIntervals};
use crate::query::RangeRule;
use crate::selected_rows::SelectedRows;
use crate::timeline::MAX_BUCKETS;
use crate::{Condition, ExploreError, Id};

/// Request for the lanes of CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[serde(deny_unknown_fields)]
#[ts(optional_fields = nullable)]
pub struct LanesRequest {
    /// Time range `[start, end]` in nanoseconds; the whole trace if absent.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// Width of the lanes in pixels, 1 to 4000.
    pub width: u32,
    /// Numbers of the requested CPUs; all CPUs if absent.
    #[serde(default)]
    pub cpus: Option<Vec<u16>>,
}

/// Lanes of CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
pub struct LanesAnswer {
    /// Start of the time range, in nanoseconds since the trace's start.
    pub start_ns: i64,
    /// End of the time range, in nanoseconds since the trace's start.
    pub end_ns: i64,
    /// Lanes, in the order of CPU numbers.
    pub cpus: Vec<CpuLane>,
    /// Labels of the ids in lanes and wakes.
    pub labels: LaneLabels,
    /// Wakes that led to the returned runs; empty if `exact` is false.
    pub wakes: Vec<Wake>,
    /// True if `runs` contains actual runs, cut to the time range. If false, each entry of `runs` is one pixel wide and
    /// shows the process that ran longest during this pixel.
    pub exact: bool,
    /// True if `interrupts` contains actual interrupts, cut to the time range. If false, each entry of `interrupts` is
    /// one pixel wide and shows the kind of interrupt that ran longest during this pixel.
    pub interrupts_exact: bool,
    /// Number of CPUs that are omitted because there are too many.
    pub left_out: usize,
}

/// Lane of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct CpuLane {
    /// Number of the CPU.
    pub cpu: u16,
    /// Runs of threads, without idle threads.
    pub runs: RunSpans,
    /// Deferred procedure calls and interrupt service routines.
    pub interrupts: InterruptSpans,
    /// Start of the time in which the trace has all events of this CPU; `null` if it is the trace's start.
    pub recorded_from_ns: Option<i64>,
    /// End of the time in which the trace has all events of this CPU; `null` if it is the trace's end.
    pub recorded_until_ns: Option<i64>,
    /// Times of doubtful runs. It is unknown which threads ran at these times, so `runs` does not contain
    /// them.
    pub doubtful: Spans,
}

/// Time ranges, stored as columns. If the gap between two ranges is smaller than a pixel, they are merged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Spans {
    /// Start of each time range.
    pub start: Vec<i64>,
    /// End of each time range.
    pub end: Vec<i64>,
}

/// Runs of threads, stored as columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct RunSpans {
    /// Start of each run.
    pub start: Vec<i64>,
    /// End of each run.
    pub end: Vec<i64>,
    /// Process of each run: its row in `processes`.
    pub process: Vec<Id>,
    /// Thread of each run: its row in `threads`; `null` if the runs are not exact.
    pub thread: Vec<Id>,
    /// Share of the time from `start` to `end` in which the CPU ran threads other than idle threads, from 0 to 1. The
    /// share is 1 if the runs are exact.
    pub busy: Vec<f32>,
}

/// Interrupts, stored as columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
pub struct InterruptSpans {
    /// Start of each interrupt.
    pub start: Vec<i64>,
    /// End of each interrupt.
    pub end: Vec<i64>,
    /// Kind of each interrupt: the text in the table `interrupts`.
    pub kind: Vec<String>,
    /// Image of each interrupt routine: its row in `images`.
    pub image: Vec<Id>,
    /// Share of the time from `start` to `end` in which interrupt routines ran, from 0 to 1. The share is 1 if the
    /// interrupts are exact.
    pub busy: Vec<f32>,
}

/// Labels of ids, which are rows of tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct LaneLabels {
    /// Labels of processes.
    pub process: BTreeMap<i64, String>,
    /// Labels of threads.
    pub thread: BTreeMap<i64, String>,
    /// Labels of modules.
    pub image: BTreeMap<i64, String>,
}

/// Wake: an event in which one thread readied another thread, which then ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Wake {
    /// CPU on which the thread was readied.
    pub from_cpu: u16,
    /// Time at which the thread was readied.
    pub at_ns: i64,
    /// CPU on which the thread ran.
    pub to_cpu: u16,
    /// Start of the run.
    pub run_start_ns: i64,
    /// Thread that readied the other thread: its row in `threads`.
    pub readying_thread: Id,
    /// True if a deferred procedure call readied the thread. The call had interrupted `readying_thread`.
    pub by_dpc: bool,
    /// Thread that was readied and ran: its row in `threads`.
    pub thread: Id,
}

/// Maximum number of runs that are returned one by one. The same maximum applies to interrupts.
const MAX_EXACT: u64 = 10_000;
/// Maximum number of CPUs in an answer.
const MAX_CPUS: usize = 1_024;
/// Maximum of the product of CPUs, kinds of interrupts and pixels. If the product is larger, pixels are made wider.
const MAX_CELLS: usize = 1 << 20;
/// Maximum number of wakes in an answer. A picture with more wakes would be unreadable.
const MAX_WAKES: usize = 2_000;

/// Sets the start and the end of the time in which the trace has all events of each CPU.
fn add_recorded_times(
    context: Context<'_>,
    lanes: &mut BTreeMap<u16, CpuLane>,
) -> Result<(), ExploreError> {
    let cpus = context.trace.table(Table::Cpus, context.cancel)?;
    for chunk in 0..cpus.chunks().len() {
        let batch = cpus.read(chunk, &["cpu", "recorded_from_ns", "recorded_until_ns"])?;
        let view = CpusView::new(&batch).map_err(StoreError::from)?;
        for row in 0..view.len() {
            if let Some(lane) = lanes.get_mut(&view.cpu[row]) {
                lane.recorded_from_ns = view.recorded_from_ns.get(row);
                lane.recorded_until_ns = view.recorded_until_ns.get(row);
            }
        }
    }
    Ok(())
}

pub(crate) fn answer(
    context: Context<'_>,
    request: &LanesRequest,
) -> Result<LanesAnswer, ExploreError> {
    check_bounds("width", request.width.into(), 1, MAX_BUCKETS)?;
    if let Some(cpus) = &request.cpus {
        check_bounds("cpus", cpus.len() as u64, 0, MAX_CPUS as u64)?;
    }
    range_of(request.range)?;
    let span = context.open(Table::CpuRuns.name())?.span(request.range)?;
    let filter = of_cpus(request);
    let runs = IntervalRows::read(
        context,
        Table::CpuRuns,
        span,
        &[&filter[..], &[not_idle(), doubtful(false)]].concat(),
    )?;
    let routines = IntervalRows::read(context, Table::Interrupts, span, &filter)?;
    let (mut cpus, left_out) = lanes(request, &[&runs, &routines]);
    add_recorded_times(context, &mut cpus)?;
    if !context.trace.doubtful_runs(context.cancel)?.are_none() {
        let filter = [&filter[..], &[doubtful(true)]].concat();
        let doubtful = IntervalRows::read(context, Table::CpuRuns, span, &filter)?;
        let pixel_ns = (span.end() - span.start()) / i64::from(request.width);
        doubtful.each(span, |cpu, (start, end), _| {
            if let Some(lane) = cpus.get_mut(&cpu) {
                lane.doubtful.push(start, end, pixel_ns);
            }
        })?;
    }
    let processes = runs.keys("process")?;
    let threads = runs.keys("thread")?;
    let kinds = routines.keys("kind")?;
    let cells = cpus.len().max(1) * (kinds.bound() as usize + 1);
    let pixels = TimeBuckets::new(span, (request.width as usize).min(MAX_CELLS / cells).max(1));
    let exact = runs.selected.count()? <= MAX_EXACT;
    if exact {
        runs.each(span, |cpu, (start, end), (chunk, row)| {
            if let Some(lane) = cpus.get_mut(&cpu) {
                let process = processes.names.id(processes.chunks[chunk][row]);
                let thread = threads.names.id(threads.chunks[chunk][row]);
                lane.runs.push(start, end, process, thread, 1.0);
            }
        })?;
    } else {
        runs.longest_per_pixel(&pixels, &processes, |cpu, pixel, key, busy| {
            if let Some(lane) = cpus.get_mut(&cpu) {
                let process = processes.names.id(key);
                lane.runs
                    .push(pixel.start(), pixel.end(), process, None, busy);
            }
        })?;
    }
    let interrupts_exact = routines.selected.count()? <= MAX_EXACT;
    if interrupts_exact {
        let images = routines.selected.table.stored_numbers("image_row")?;
        routines.each(span, |cpu, (start, end), (chunk, row)| {
            if let Some(lane) = cpus.get_mut(&cpu) {
                let kind = kinds.names.label(kinds.chunks[chunk][row]).into_owned();
                let image = Some(images.chunks[chunk][row]).filter(|image| *image != NULL);
                lane.interrupts.push(start, end, kind, image, 1.0);
            }
        })?;
    } else {
        routines.add_longest_kinds(&pixels, &kinds, &mut cpus)?;
    }
    let wakes = if exact {
        wakes(&runs, &threads, span)?
    } else {
        Vec::new()
    };
    let mut cpus: Vec<CpuLane> = cpus.into_values().collect();
    for lane in &mut cpus {
        lane.interrupts.sort();
    }
    let labels = labels(context, &cpus, &wakes, &processes, &threads)?;
    Ok(LanesAnswer {
        start_ns: span.start(),
        end_ns: span.end(),
        cpus,
        labels,
        wakes,
        exact,
        interrupts_exact,
        left_out,
    })
}

/// Returns the condition that the thread is not idle.
fn not_idle() -> Condition {
    Condition {
        column: "thread_id".to_owned(),
        not_in: Some(vec![Some(0)]),
        ..Condition::default()
    }
}

/// Returns the condition that the run is doubtful if `wanted` is true. Otherwise, returns the condition that
/// the run is not doubtful.
fn doubtful(wanted: bool) -> Condition {
    let passes = vec!["true".to_owned()];
    let (is, is_not) = if wanted {
        (Some(passes), None)
    } else {
        (None, Some(passes))
    };
    Condition {
        column: "doubtful".to_owned(),
        is,
        is_not,
        ..Condition::default()
    }
}

/// Returns the conditions that select the requested CPUs.
fn of_cpus(request: &LanesRequest) -> Vec<Condition> {
    let cpus = request.cpus.iter().map(|cpus| Condition {
        column: "cpu".to_owned(),
        within: Some(cpus.iter().map(|cpu| Some(i64::from(*cpu))).collect()),
        ..Condition::default()
    });
    cpus.collect()
}

/// Returns an empty lane for each requested CPU that occurs in the tables, and the number of omitted CPUs.
/// An idle CPU also gets a lane.
fn lanes(request: &LanesRequest, tables: &[&IntervalRows<'_>]) -> (BTreeMap<u16, CpuLane>, usize) {
    let mut numbers: BTreeSet<u16> = BTreeSet::new();
    for table in tables {
        let names = &table.cpus.names;
        let known = (0..names.len() as u32).filter_map(|dense| names.number(dense));
        numbers.extend(known.filter_map(|cpu| u16::try_from(cpu).ok()));
    }
    if let Some(cpus) = &request.cpus {
        numbers.retain(|cpu| cpus.contains(cpu));
    }
    let left_out = numbers.len().saturating_sub(MAX_CPUS);
    let lane = |cpu: u16| CpuLane {
        cpu,
        ..CpuLane::default()
    };
    let lanes = numbers.into_iter().take(MAX_CPUS);
    (lanes.map(|cpu| (cpu, lane(cpu))).collect(), left_out)
}

impl Spans {
    /// Adds a time range. It must not start before the last time range. If the gap between both is small, the
    /// last time range is extended instead.
    fn push(&mut self, start: i64, end: i64, max_gap_ns: i64) {
        match self.end.last_mut() {
            Some(last) if start <= last.saturating_add(max_gap_ns) => *last = end.max(*last),
            _ => {
                self.start.push(start);
                self.end.push(end);
            }
        }
    }
}

impl RunSpans {
    fn push(&mut self, start: i64, end: i64, process: Id, thread: Id, busy: f32) {
        self.start.push(start);
        self.end.push(end);
        self.process.push(process);
        self.thread.push(thread);
        self.busy.push(busy);
    }
}

impl InterruptSpans {
    fn push(&mut self, start: i64, end: i64, kind: String, image: Id, busy: f32) {
        self.start.push(start);
        self.end.push(end);
        self.kind.push(kind);
        self.image.push(image);
        self.busy.push(busy);
    }

    /// Sorts the interrupts by their start. The rows of the table are sorted by their end.
    fn sort(&mut self) {
        if self.start.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..self.start.len()).collect();
        order.sort_by_key(|place| self.start[*place]);
        let mut sorted = InterruptSpans::default();
        for place in order {
            let kind = std::mem::take(&mut self.kind[place]);
            let (start, end) = (self.start[place], self.end[place]);
            sorted.push(start, end, kind, self.image[place], self.busy[place]);
        }
        *self = sorted;
    }
}

/// Selected rows with their starts, ends and CPUs.
struct IntervalRows<'a> {
    selected: SelectedRows<'a>,
    rows: RowIntervals,
    cpus: Arc<Keys>,
}

impl<'a> IntervalRows<'a> {
    fn read(
        context: Context<'a>,
        table: Table,
        span: TimeRange,
        filter: &[Condition],
    ) -> Result<IntervalRows<'a>, ExploreError> {
        let table = context.open(table.name())?;
        let selected = SelectedRows::new(&table, RangeRule::Overlap, Some(span), filter)?;
        let rows = table
            .intervals()?
            .expect("rows of this table have a duration");
        let cpus = table.keys(table.def.key("cpu")?)?;
        Ok(IntervalRows {
            rows,
            cpus,
            selected,
        })
    }

    fn keys(&self, name: &str) -> Result<Arc<Keys>, ExploreError> {
        let table = &self.selected.table;
        table.keys(table.def.key(name)?)
    }

    /// Calls `give` for each row with its CPU, its start and end within the time range, and its chunk and
    /// index.
    fn each(
        &self,
        span: TimeRange,
        mut give: impl FnMut(u16, (i64, i64), (usize, usize)),
    ) -> Result<(), ExploreError> {
        let numbers = self.numbers();
        for chunk in self.selected.chunks() {
            let (starts, ends) = (
                &self.rows.starts.chunks[*chunk],
                &self.rows.ends.chunks[*chunk],
            );
            let cpus = &self.cpus.chunks[*chunk];
            self.selected.rows(*chunk)?.each(|row| {
                let time = (starts[row].max(span.start()), ends[row].min(span.end()));
                if let Some(Some(cpu)) = numbers.get(cpus[row] as usize)
                    && time.0 <= time.1
                {
                    give(*cpu, time, (*chunk, row));
                }
            })?;
        }
        Ok(())
    }

    /// Returns the CPU number for each dense id.
    fn numbers(&self) -> Vec<Option<u16>> {
        let names = &self.cpus.names;
        let number = |dense: u32| u16::try_from(names.number(dense)?).ok();
        (0..names.len() as u32).map(number).collect()
    }

    /// Calls `give` for each CPU and pixel, with two values: the key that ran longest, and the share of the
    /// pixel in which the CPU was busy. Rows of a CPU should not overlap. If they do, the part of a row
    /// before the current pixel is ignored.
    fn longest_per_pixel(
        &self,
        pixels: &TimeBuckets,
        keys: &Keys,
        mut give: impl FnMut(u16, TimeRange, u32, f32),
    ) -> Result<(), ExploreError> {
        let range = pixels.range();
        let numbers = self.numbers();
        let mut current: Vec<PixelTimes> = vec![PixelTimes::default(); numbers.len()];
        for chunk in self.selected.chunks() {
            let (starts, ends) = (
                &self.rows.starts.chunks[*chunk],
                &self.rows.ends.chunks[*chunk],
            );
            let (cpus, keys) = (&self.cpus.chunks[*chunk], &keys.chunks[*chunk]);
            self.selected.rows(*chunk)?.each(|row| {
                let (mut start, end) = (starts[row].max(range.start()), ends[row].min(range.end()));
                let Some(times) = current.get_mut(cpus[row] as usize) else {
                    return;
                };
                let Some(cpu) = numbers[cpus[row] as usize] else {
                    return;
                };
                start = start.max(times.pixel.start());
                while start < end {
                    if !times.pixel.contains(start) {
                        times.finish(|pixel, key, busy| give(cpu, pixel, key, busy));
                        let Some(next) = pixels.index(start) else {
                            return;
                        };
                        times.pixel = pixels.bucket(next);
                    }
                    let until = end.min(times.pixel.end());
                    times.add(keys[row], until.saturating_sub(start));
                    start = until;
                }
            })?;
        }
        for (times, cpu) in current.iter_mut().zip(numbers) {
            if let Some(cpu) = cpu {
                times.finish(|pixel, key, busy| give(cpu, pixel, key, busy));
            }
        }
        Ok(())
    }

    /// Adds the kind of interrupt that ran longest in each pixel to the lanes. Interrupts can be nested.
    fn add_longest_kinds(
        &self,
        pixels: &TimeBuckets,
        kinds: &Keys,
        cpus: &mut BTreeMap<u16, CpuLane>,
    ) -> Result<(), ExploreError> {
        let all_kinds = kinds.bound() + 1;
        let numbers = self.numbers();
        let every = Lanes::every((numbers.len() as u32).saturating_mul(all_kinds));
        let make = || Ok((Timeline::new(*pixels, every.clone())?, Vec::new()));
        let add = |(timeline, ids): &mut (Timeline, Vec<u32>), chunk: usize, rows: &Rows<'_>| {
            let pairs = self.cpus.chunks[chunk].iter().zip(&kinds.chunks[chunk]);
            ids.clear();
            ids.extend(pairs.map(|(cpu, kind)| match *cpu {
                NULL_ID => NULL_ID,
                cpu => cpu * all_kinds + (*kind).min(kinds.bound()),
            }));
            let intervals = Intervals {
                starts: &self.rows.starts.chunks[chunk],
                ends: &self.rows.ends.chunks[chunk],
                keys: ids,
            };
            timeline.add_intervals(intervals, rows)?;
            Ok(())
        };
        let (timeline, _) = self
            .selected
            .pass(make, add, |all, more| all.0.merge(&more.0))?;
        // Values by CPU and pixel: the kind that ran longest, its time, and the time of all kinds.
        let mut most: BTreeMap<(u16, usize), (u32, i64, i64)> = BTreeMap::new();
        for series in timeline.finish() {
            let Lane::Id(id) = series.lane else {
                continue;
            };
            let (cpu, kind) = (numbers[(id / all_kinds) as usize], id % all_kinds);
            let Some(cpu) = cpu else {
                continue;
            };
            for (pixel, ns) in series.buckets.iter().enumerate() {
                let ns = ns.sum().unwrap_or(0);
                if ns > 0 {
                    let most = most.entry((cpu, pixel)).or_insert((kind, ns, 0));
                    if ns > most.1 {
                        (most.0, most.1) = (kind, ns);
                    }
                    most.2 = most.2.saturating_add(ns);
                }
            }
        }
        for ((cpu, pixel), (kind, _, all)) in most {
            let pixel = pixels.bucket(pixel);
            if let Some(lane) = cpus.get_mut(&cpu) {
                let kind = kinds.names.label(kind).into_owned();
                let busy = share(all, pixel);
                lane.interrupts
                    .push(pixel.start(), pixel.end(), kind, None, busy);
            }
        }
        Ok(())
    }
}

/// Returns the share of a pixel that `ns` nanoseconds take.
fn share(ns: i64, pixel: TimeRange) -> f32 {
    // The times of nested interrupts can add up to more than the length of the pixel.
    (ns as f32 / pixel.span().max(1) as f32).min(1.0)
}

/// Current pixel of a CPU, and the time that each key ran in this pixel.
#[derive(Clone)]
struct PixelTimes {
    pixel: TimeRange,
    times: Vec<(u32, i64)>,
}

impl Default for PixelTimes {
    fn default() -> PixelTimes {
        PixelTimes {
            pixel: TimeRange::new(i64::MIN, i64::MIN),
            times: Vec::new(),
        }
    }
}

impl PixelTimes {
    fn add(&mut self, key: u32, ns: i64) {
        match self.times.iter_mut().find(|(known, _)| *known == key) {
            Some((_, sum)) => *sum = sum.saturating_add(ns),
            None => self.times.push((key, ns)),
        }
    }

    /// Calls `give` for the current pixel if something ran in it. Then clears the times.
    fn finish(&mut self, give: impl FnOnce(TimeRange, u32, f32)) {
        let longest = self
            .times
            .iter()
            .max_by_key(|(key, ns)| (*ns, Reverse(*key)));
        if let Some((key, _)) = longest {
            let all = self
                .times
                .iter()
                .fold(0, |all: i64, (_, ns)| all.saturating_add(*ns));
            give(self.pixel, *key, share(all, self.pixel));
        }
        self.times.clear();
    }
}

/// Returns the wakes that led to the runs that started in the time range.
fn wakes(
    runs: &IntervalRows<'_>,
    threads: &Keys,
    span: TimeRange,
) -> Result<Vec<Wake>, ExploreError> {
    let table = &runs.selected.table;
    let readied = table.stored_numbers("readied_ns")?;
    let from = table.stored_numbers("readying_cpu")?;
    let readiers = runs.keys("readying_thread")?;
    let dpcs = runs.keys("readied_by_dpc")?;
    let numbers = runs.numbers();
    let mut wakes = Vec::new();
    for chunk in runs.selected.chunks() {
        let chunk = *chunk;
        runs.selected.rows(chunk)?.each(|row| {
            let at_ns = readied.chunks[chunk][row];
            let run_start_ns = runs.rows.starts.chunks[chunk][row];
            let to_cpu = numbers.get(runs.cpus.chunks[chunk][row] as usize);
            let from_cpu = u16::try_from(from.chunks[chunk][row]);
            let (Ok(from_cpu), Some(Some(to_cpu))) = (from_cpu, to_cpu) else {
                return;
            };
            if at_ns == NULL || !span.contains(run_start_ns) || wakes.len() >= MAX_WAKES {
                return;
            }
            wakes.push(Wake {
                from_cpu,
                at_ns,
                to_cpu: *to_cpu,
                run_start_ns,
                readying_thread: readiers.names.id(readiers.chunks[chunk][row]),
                by_dpc: dpcs.chunks[chunk][row] == 1,
                thread: threads.names.id(threads.chunks[chunk][row]),
            });
        })?;
    }
    Ok(wakes)
}

/// Returns the labels of all ids in lanes and wakes.
fn labels(
    context: Context<'_>,
    cpus: &[CpuLane],
    wakes: &[Wake],
    processes: &Keys,
    threads: &Keys,
) -> Result<LaneLabels, ExploreError> {
    let mut labels = LaneLabels::default();
    let label = |keys: &Keys, id: i64| {
        let dense = keys.names.dense(Some(id)).unwrap_or(NULL_ID);
        keys.names.label(dense).into_owned()
    };
    let identities = context.trace.identities(context.cancel)?;
    for lane in cpus {
        for id in lane.runs.process.iter().flatten() {
            let entry = labels.process.entry(*id);
            entry.or_insert_with(|| label(processes, *id));
        }
        for id in lane.runs.thread.iter().flatten() {
            let entry = labels.thread.entry(*id);
            entry.or_insert_with(|| label(threads, *id));
        }
        for id in lane.interrupts.image.iter().flatten() {
            let row = u32::try_from(*id).ok();
            let module = || {
                identities
                    .module_label(row)
                    .unwrap_or(crate::names::UNKNOWN)
            };
            let entry = labels.image.entry(*id);
            entry.or_insert_with(|| module().to_owned());
        }
    }
    for id in wakes.iter().filter_map(|wake| wake.readying_thread) {
        let entry = labels.thread.entry(id);
        entry.or_insert_with(|| label(threads, id));
    }
    Ok(labels)
}
