//! Who ran on each CPU.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tables::{CpusView, StoreError, Table};
use views::{Intervals, Lane, Lanes, NULL, NULL_ID, Rows, TimeBuckets, TimeRange, Timeline};

use crate::columns::{Keys, Measures};
use crate::selection::{Ask, Selection, Within, bounded, range_of};
use crate::timeline::MOST_BUCKETS;
use crate::{Condition, ExploreError, Id};

/// Asks who ran on each CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanesRequest {
    /// The stretch of time; the whole trace if there is none.
    #[serde(default)]
    pub range: Option<[i64; 2]>,
    /// How many pixels it has, 1 to 4000.
    pub width: u32,
    /// Which CPUs; all if nothing is said.
    #[serde(default)]
    pub cpus: Option<Vec<u16>>,
}

/// Who ran on each CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LanesAnswer {
    /// Where the stretch begins.
    pub start_ns: i64,
    /// Where it ends.
    pub end_ns: i64,
    /// By CPU, in the order of their numbers.
    pub cpus: Vec<CpuLane>,
    /// What ids stand for.
    pub labels: LaneLabels,
    /// Who made whose run possible; only where runs are exact.
    pub wakes: Vec<Wake>,
    /// Every run is given as it was, cut to the stretch; else each is what ran longest during a
    /// pixel.
    pub exact: bool,
    /// The same of routines.
    pub interrupts_exact: bool,
    /// CPUs left out because there are too many.
    pub left_out: usize,
}

/// What one CPU did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuLane {
    /// Its number.
    pub cpu: u16,
    /// Threads, idle ones left out.
    pub runs: RunSpans,
    /// Deferred procedure calls and service routines.
    pub interrupts: InterruptSpans,
    /// From when on the trace holds all that it did, where that is not from the trace's begin.
    pub recorded_from_ns: Option<i64>,
    /// Until when it does, where that is not to the trace's end.
    pub recorded_until_ns: Option<i64>,
    /// When runs are doubtful, which are none of the runs: who had the CPU is not known.
    pub doubtful: Spans,
}

/// Stretches of time, by column. What is nearer than a pixel is one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spans {
    /// From when.
    pub start: Vec<i64>,
    /// Until when.
    pub end: Vec<i64>,
}

/// Runs of threads, by column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSpans {
    /// From when.
    pub start: Vec<i64>,
    /// Until when.
    pub end: Vec<i64>,
    /// Whose, by row of `processes`.
    pub process: Vec<Id>,
    /// Which thread, by row of `threads`; `null` where runs are not exact.
    pub thread: Vec<Id>,
    /// How much of the span the CPU was busy with threads, whosesoever: 1 where runs are exact.
    pub busy: Vec<f32>,
}

/// Runs of routines, by column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InterruptSpans {
    /// From when.
    pub start: Vec<i64>,
    /// Until when.
    pub end: Vec<i64>,
    /// What ran, as in `interrupts`.
    pub kind: Vec<String>,
    /// In which image, by row of `images`.
    pub image: Vec<Id>,
    /// How much of the span routines took: 1 where they are exact.
    pub busy: Vec<f32>,
}

/// What ids stand for, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneLabels {
    /// Processes.
    pub process: BTreeMap<i64, String>,
    /// Threads.
    pub thread: BTreeMap<i64, String>,
    /// Modules.
    pub image: BTreeMap<i64, String>,
}

/// A thread made another ready, which then ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wake {
    /// Where it was made ready.
    pub from_cpu: u16,
    /// When.
    pub at_ns: i64,
    /// Where it ran.
    pub to_cpu: u16,
    /// From when.
    pub run_start_ns: i64,
    /// Who made it ready, by row of `threads`.
    pub readying_thread: Id,
    /// A deferred procedure call did, while that thread was interrupted.
    pub by_dpc: bool,
    /// Who ran, by row of `threads`.
    pub thread: Id,
}

/// Runs that are given as they were, at most, and routines.
const MOST_EXACT: u64 = 10_000;
/// CPUs that are shown, at most.
const MOST_CPUS: usize = 1_024;
/// Cells of CPUs, kinds of routines and pixels, at most: of very many CPUs pixels are wider.
const MOST_CELLS: usize = 1 << 20;
/// Wakes that are shown, at most: more are a carpet.
const MOST_WAKES: usize = 2_000;

/// Says of lanes from when and until when the trace holds what the CPUs did.
fn recorded(ask: Ask<'_>, lanes: &mut BTreeMap<u16, CpuLane>) -> Result<(), ExploreError> {
    let cpus = ask.trace.table(Table::Cpus, ask.cancel)?;
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

pub(crate) fn answer(ask: Ask<'_>, request: &LanesRequest) -> Result<LanesAnswer, ExploreError> {
    bounded("width", request.width.into(), 1, MOST_BUCKETS)?;
    if let Some(cpus) = &request.cpus {
        bounded("cpus", cpus.len() as u64, 0, MOST_CPUS as u64)?;
    }
    range_of(request.range)?;
    let span = ask.span(request.range, &ask.open(Table::CpuRuns.name())?)?;
    let filter = of_cpus(request);
    let runs = Lasting::read(
        ask,
        Table::CpuRuns,
        span,
        &[&filter[..], &[not_idle(), doubtful(false)]].concat(),
    )?;
    let routines = Lasting::read(ask, Table::Interrupts, span, &filter)?;
    let (mut cpus, left_out) = lanes(request, &[&runs, &routines]);
    recorded(ask, &mut cpus)?;
    if !ask.trace.doubtful_runs(ask.cancel)?.are_none() {
        let filter = [&filter[..], &[doubtful(true)]].concat();
        let doubtful = Lasting::read(ask, Table::CpuRuns, span, &filter)?;
        let pixel_ns = (span.end() - span.start()) / i64::from(request.width);
        doubtful.each(span, |cpu, (start, end), _| {
            if let Some(lane) = cpus.get_mut(&cpu) {
                lane.doubtful.push(start, end, pixel_ns);
            }
        })?;
    }
    let processes = runs.keys(ask, "process")?;
    let threads = runs.keys(ask, "thread")?;
    let kinds = routines.keys(ask, "kind")?;
    let cells = cpus.len().max(1) * (kinds.bound() as usize + 1);
    let pixels = TimeBuckets::new(
        span,
        (request.width as usize).min(MOST_CELLS / cells).max(1),
    );
    let exact = runs.selection.count()? <= MOST_EXACT;
    if exact {
        runs.each(span, |cpu, (start, end), (chunk, row)| {
            if let Some(lane) = cpus.get_mut(&cpu) {
                let process = processes.names.id(processes.chunks[chunk][row]);
                let thread = threads.names.id(threads.chunks[chunk][row]);
                lane.runs.push(start, end, process, thread, 1.0);
            }
        })?;
    } else {
        runs.who_ran_longest(&pixels, &processes, |cpu, pixel, key, busy| {
            if let Some(lane) = cpus.get_mut(&cpu) {
                let process = processes.names.id(key);
                lane.runs
                    .push(pixel.start(), pixel.end(), process, None, busy);
            }
        })?;
    }
    let interrupts_exact = routines.selection.count()? <= MOST_EXACT;
    if interrupts_exact {
        let images = ask
            .columns
            .stored(&routines.selection.table, "image_row", ask.cancel)?;
        routines.each(span, |cpu, (start, end), (chunk, row)| {
            if let Some(lane) = cpus.get_mut(&cpu) {
                let kind = kinds.names.label(kinds.chunks[chunk][row]).into_owned();
                let image = Some(images.chunks[chunk][row]).filter(|image| *image != NULL);
                lane.interrupts.push(start, end, kind, image, 1.0);
            }
        })?;
    } else {
        routines.what_ran_longest(&pixels, &kinds, &mut cpus)?;
    }
    let wakes = match exact {
        true => wakes(ask, &runs, &threads, span)?,
        false => Vec::new(),
    };
    let mut cpus: Vec<CpuLane> = cpus.into_values().collect();
    for lane in &mut cpus {
        lane.interrupts.sort();
    }
    let labels = labels(ask, &cpus, &wakes, &processes, &threads)?;
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

/// Runs of other than idle threads.
fn not_idle() -> Condition {
    Condition {
        column: "thread_id".to_owned(),
        not_in: Some(vec![Some(0)]),
        ..Condition::default()
    }
}

/// Runs that are doubtful, or those that are not.
fn doubtful(wanted: bool) -> Condition {
    let passes = vec!["true".to_owned()];
    let (is, is_not) = match wanted {
        true => (Some(passes), None),
        false => (None, Some(passes)),
    };
    Condition {
        column: "doubtful".to_owned(),
        is,
        is_not,
        ..Condition::default()
    }
}

/// Rows of the CPUs asked for.
fn of_cpus(request: &LanesRequest) -> Vec<Condition> {
    let cpus = request.cpus.iter().map(|cpus| Condition {
        column: "cpu".to_owned(),
        within: Some(cpus.iter().map(|cpu| Some(i64::from(*cpu))).collect()),
        ..Condition::default()
    });
    cpus.collect()
}

/// Empty lanes of all CPUs that are in the tables and asked for, and how many are left out: one that
/// did nothing has a lane too.
fn lanes(request: &LanesRequest, tables: &[&Lasting<'_>]) -> (BTreeMap<u16, CpuLane>, usize) {
    let mut numbers: BTreeSet<u16> = BTreeSet::new();
    for table in tables {
        let names = &table.cpus.names;
        let known = (0..names.len() as u32).filter_map(|dense| names.number(dense));
        numbers.extend(known.filter_map(|cpu| u16::try_from(cpu).ok()));
    }
    if let Some(cpus) = &request.cpus {
        numbers.retain(|cpu| cpus.contains(cpu));
    }
    let left_out = numbers.len().saturating_sub(MOST_CPUS);
    let lane = |cpu: u16| CpuLane {
        cpu,
        ..CpuLane::default()
    };
    let lanes = numbers.into_iter().take(MOST_CPUS);
    (lanes.map(|cpu| (cpu, lane(cpu))).collect(), left_out)
}

impl Spans {
    /// Adds a stretch that begins after those before, or prolongs the last.
    fn push(&mut self, start: i64, end: i64, nearness_ns: i64) {
        match self.end.last_mut() {
            Some(last) if start <= last.saturating_add(nearness_ns) => *last = end.max(*last),
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

    /// Puts them in the order of their begins: routines come in that of their ends.
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

/// Rows that last, on CPUs.
struct Lasting<'a> {
    selection: Selection<'a>,
    starts: Arc<Measures>,
    ends: Arc<Measures>,
    cpus: Arc<Keys>,
}

impl<'a> Lasting<'a> {
    fn read(
        ask: Ask<'a>,
        table: Table,
        span: TimeRange,
        filter: &[Condition],
    ) -> Result<Lasting<'a>, ExploreError> {
        let table = ask.open(table.name())?;
        let selection = Selection::new(ask, &table, Within::Overlap, Some(span), filter)?;
        let intervals = ask.columns.intervals(&table, ask.cancel)?;
        let (starts, ends) = intervals.expect("a table whose rows last");
        let cpus = ask.keys(&table, table.def.key("cpu")?)?;
        Ok(Lasting {
            starts,
            ends,
            cpus,
            selection,
        })
    }

    fn keys(&self, ask: Ask<'_>, name: &str) -> Result<Arc<Keys>, ExploreError> {
        let table = &self.selection.table;
        ask.keys(table, table.def.key(name)?)
    }

    /// Gives each row as it was: its CPU, its time within the stretch, and its place.
    fn each(
        &self,
        span: TimeRange,
        mut give: impl FnMut(u16, (i64, i64), (usize, usize)),
    ) -> Result<(), ExploreError> {
        let numbers = self.numbers();
        for chunk in self.selection.chunks() {
            let (starts, ends) = (&self.starts.chunks[*chunk], &self.ends.chunks[*chunk]);
            let cpus = &self.cpus.chunks[*chunk];
            self.selection.rows(*chunk)?.each(|row| {
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

    /// The CPUs' numbers by their dense ids.
    fn numbers(&self) -> Vec<Option<u16>> {
        let names = &self.cpus.names;
        let number = |dense: u32| u16::try_from(names.number(dense)?).ok();
        (0..names.len() as u32).map(number).collect()
    }

    /// Gives by CPU and pixel the key that had most of it, and how much all had. Rows of a CPU must
    /// not overlap; of those that do one that reaches further back counts from where the last was.
    fn who_ran_longest(
        &self,
        pixels: &TimeBuckets,
        keys: &Keys,
        mut give: impl FnMut(u16, TimeRange, u32, f32),
    ) -> Result<(), ExploreError> {
        let range = pixels.range();
        let numbers = self.numbers();
        let mut filling: Vec<Filling> = vec![Filling::default(); numbers.len()];
        for chunk in self.selection.chunks() {
            let (starts, ends) = (&self.starts.chunks[*chunk], &self.ends.chunks[*chunk]);
            let (cpus, keys) = (&self.cpus.chunks[*chunk], &keys.chunks[*chunk]);
            self.selection.rows(*chunk)?.each(|row| {
                let (mut start, end) = (starts[row].max(range.start()), ends[row].min(range.end()));
                let Some(filling) = filling.get_mut(cpus[row] as usize) else {
                    return;
                };
                let Some(cpu) = numbers[cpus[row] as usize] else {
                    return;
                };
                start = start.max(filling.pixel.start());
                while start < end {
                    if !filling.pixel.contains(start) {
                        filling.finish(|pixel, key, busy| give(cpu, pixel, key, busy));
                        let Some(next) = pixels.index(start) else {
                            return;
                        };
                        filling.pixel = pixels.bucket(next);
                    }
                    let until = end.min(filling.pixel.end());
                    filling.add(keys[row], until.saturating_sub(start));
                    start = until;
                }
            })?;
        }
        for (filling, cpu) in filling.iter_mut().zip(numbers) {
            if let Some(cpu) = cpu {
                filling.finish(|pixel, key, busy| give(cpu, pixel, key, busy));
            }
        }
        Ok(())
    }

    /// Gives by CPU and pixel the kind of routine that had most of it. Routines nest.
    fn what_ran_longest(
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
                starts: &self.starts.chunks[chunk],
                ends: &self.ends.chunks[chunk],
                keys: ids,
            };
            timeline.add_intervals(intervals, rows)?;
            Ok(())
        };
        let (timeline, _) = self
            .selection
            .pass(make, add, |all, more| all.0.merge(&more.0))?;
        // By CPU and pixel the kind that had most, and what all had.
        let mut most: BTreeMap<(u16, usize), (u32, i64, i64)> = BTreeMap::new();
        for series in timeline.finish(usize::MAX) {
            let Lane::Id(id) = series.lane else {
                continue;
            };
            let (cpu, kind) = (numbers[(id / all_kinds) as usize], id % all_kinds);
            let Some(cpu) = cpu else {
                continue;
            };
            for (pixel, had) in series.buckets.iter().enumerate() {
                let had = had.sum().unwrap_or(0);
                if had > 0 {
                    let most = most.entry((cpu, pixel)).or_insert((kind, had, 0));
                    if had > most.1 {
                        (most.0, most.1) = (kind, had);
                    }
                    most.2 = most.2.saturating_add(had);
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

/// What part of a pixel some time is.
fn share(ns: i64, pixel: TimeRange) -> f32 {
    // What nests can have more than there is.
    (ns as f32 / pixel.span().max(1) as f32).min(1.0)
}

/// The pixel that is being filled on a CPU: who was there how long.
#[derive(Clone)]
struct Filling {
    pixel: TimeRange,
    had: Vec<(u32, i64)>,
}

impl Default for Filling {
    fn default() -> Filling {
        Filling {
            pixel: TimeRange::new(i64::MIN, i64::MIN),
            had: Vec::new(),
        }
    }
}

impl Filling {
    fn add(&mut self, key: u32, ns: i64) {
        match self.had.iter_mut().find(|(known, _)| *known == key) {
            Some((_, had)) => *had = had.saturating_add(ns),
            None => self.had.push((key, ns)),
        }
    }

    /// Gives the pixel, if anybody was there, and begins anew.
    fn finish(&mut self, give: impl FnOnce(TimeRange, u32, f32)) {
        let longest = self.had.iter().max_by_key(|(key, ns)| (*ns, Reverse(*key)));
        if let Some((key, _)) = longest {
            let all = self
                .had
                .iter()
                .fold(0, |all: i64, (_, ns)| all.saturating_add(*ns));
            give(self.pixel, *key, share(all, self.pixel));
        }
        self.had.clear();
    }
}

/// Who made the runs possible that began in the stretch.
fn wakes(
    ask: Ask<'_>,
    runs: &Lasting<'_>,
    threads: &Keys,
    span: TimeRange,
) -> Result<Vec<Wake>, ExploreError> {
    let table = &runs.selection.table;
    let stored = |name| ask.columns.stored(table, name, ask.cancel);
    let (readied, from) = (stored("readied_ns")?, stored("readying_cpu")?);
    let readiers = ask.keys(table, table.def.key("readying_thread")?)?;
    let dpcs = ask.keys(table, table.def.key("readied_by_dpc")?)?;
    let numbers = runs.numbers();
    let mut wakes = Vec::new();
    for chunk in runs.selection.chunks() {
        let chunk = *chunk;
        runs.selection.rows(chunk)?.each(|row| {
            let at_ns = readied.chunks[chunk][row];
            let run_start_ns = runs.starts.chunks[chunk][row];
            let to_cpu = numbers.get(runs.cpus.chunks[chunk][row] as usize);
            let from_cpu = u16::try_from(from.chunks[chunk][row]);
            let (Ok(from_cpu), Some(Some(to_cpu))) = (from_cpu, to_cpu) else {
                return;
            };
            if at_ns == NULL || !span.contains(run_start_ns) || wakes.len() >= MOST_WAKES {
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

fn labels(
    ask: Ask<'_>,
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
    let identities = ask.trace.identities(ask.cancel)?;
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
