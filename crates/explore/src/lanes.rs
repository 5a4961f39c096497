//! Who ran on each CPU.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use tables::Table;
use views::{NULL, NULL_ID, TimeRange};

use crate::columns::{Keys, Measures};
use crate::selection::{Ask, Selection, Within, bounded};
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
/// Wakes that are shown, at most: more are a carpet.
const MOST_WAKES: usize = 2_000;

pub(crate) fn answer(ask: Ask<'_>, request: &LanesRequest) -> Result<LanesAnswer, ExploreError> {
    bounded("width", request.width.into(), 1, MOST_BUCKETS)?;
    if let Some(cpus) = &request.cpus {
        bounded("cpus", cpus.len() as u64, 0, MOST_CPUS as u64)?;
    }
    let span = ask.span(request.range)?;
    let pixels = Pixels::new(span, request.width);
    let mut cpus = BTreeMap::new();
    let mut left_out = FxHashSet::default();
    let runs = Lasting::read(ask, Table::CpuRuns, span, request, "process", true)?;
    // CPUs that did nothing have a lane too.
    let table = &runs.selection.table;
    let known = ask.keys(table, table.def.key("cpu")?)?;
    let known =
        (0..known.bound()).filter_map(|dense| u16::try_from(known.names.number(dense)?).ok());
    for cpu in known {
        if request
            .cpus
            .as_ref()
            .is_none_or(|asked| asked.contains(&cpu))
        {
            lane(&mut cpus, &mut left_out, cpu);
        }
    }
    let exact = runs.selection.count()? <= MOST_EXACT;
    let threads = ask.keys(
        &runs.selection.table,
        runs.selection.table.def.key("thread")?,
    )?;
    runs.each_span(&pixels, exact, |cpu, span, place| {
        let Some(lane) = lane(&mut cpus, &mut left_out, cpu) else {
            return;
        };
        lane.runs.start.push(span.start);
        lane.runs.end.push(span.end);
        lane.runs.process.push(runs.keys.names.id(span.key));
        let thread = place.map_or(NULL_ID, |(chunk, row)| threads.chunks[chunk][row]);
        lane.runs.thread.push(threads.names.id(thread));
        lane.runs.busy.push(span.busy);
    })?;
    let routines = Lasting::read(ask, Table::Interrupts, span, request, "kind", false)?;
    let interrupts_exact = routines.selection.count()? <= MOST_EXACT;
    let images = ask
        .columns
        .stored(&routines.selection.table, "image_row", ask.cancel)?;
    routines.each_span(&pixels, interrupts_exact, |cpu, span, place| {
        let Some(lane) = lane(&mut cpus, &mut left_out, cpu) else {
            return;
        };
        let kind = routines.keys.names.label(span.key).into_owned();
        lane.interrupts.start.push(span.start);
        lane.interrupts.end.push(span.end);
        lane.interrupts.kind.push(kind);
        let image = place.map_or(NULL, |(chunk, row)| images.chunks[chunk][row]);
        lane.interrupts.image.push((image != NULL).then_some(image));
        lane.interrupts.busy.push(span.busy);
    })?;
    let wakes = match exact {
        true => wakes(ask, &runs, &threads, span)?,
        false => Vec::new(),
    };
    let mut cpus: Vec<CpuLane> = cpus.into_values().collect();
    for lane in &mut cpus {
        lane.sort();
    }
    let labels = labels(ask, &cpus, &wakes, &runs.keys, &threads)?;
    Ok(LanesAnswer {
        start_ns: span.start(),
        end_ns: span.end(),
        cpus,
        labels,
        wakes,
        exact,
        interrupts_exact,
        left_out: left_out.len(),
    })
}

/// The lane of a CPU, unless there are too many.
fn lane<'c>(
    cpus: &'c mut BTreeMap<u16, CpuLane>,
    left_out: &mut FxHashSet<u16>,
    cpu: u16,
) -> Option<&'c mut CpuLane> {
    let is_full = cpus.len() >= MOST_CPUS;
    match cpus.entry(cpu) {
        Entry::Occupied(lane) => Some(lane.into_mut()),
        Entry::Vacant(_) if is_full => {
            left_out.insert(cpu);
            None
        }
        Entry::Vacant(place) => Some(place.insert(CpuLane {
            cpu,
            ..CpuLane::default()
        })),
    }
}

impl CpuLane {
    /// Spans in the order of their begins: routines come in that of their ends.
    fn sort(&mut self) {
        let spans = &mut self.interrupts;
        if spans.start.is_sorted() {
            return;
        }
        let mut order: Vec<usize> = (0..spans.start.len()).collect();
        order.sort_by_key(|place| spans.start[*place]);
        let sorted = InterruptSpans {
            start: order.iter().map(|place| spans.start[*place]).collect(),
            end: order.iter().map(|place| spans.end[*place]).collect(),
            kind: order
                .iter()
                .map(|place| spans.kind[*place].clone())
                .collect(),
            image: order.iter().map(|place| spans.image[*place]).collect(),
            busy: order.iter().map(|place| spans.busy[*place]).collect(),
        };
        *spans = sorted;
    }
}

/// A stretch of time cut into pixels.
struct Pixels {
    start: i64,
    end: i64,
    width: i64,
}

impl Pixels {
    fn new(span: TimeRange, count: u32) -> Pixels {
        let width = span.span().div_ceil(u64::from(count)).max(1);
        Pixels {
            start: span.start(),
            end: span.end(),
            width: i64::try_from(width).unwrap_or(i64::MAX),
        }
    }

    fn of(&self, time: i64) -> i64 {
        time.saturating_sub(self.start) / self.width
    }

    fn start_of(&self, pixel: i64) -> i64 {
        let offset = pixel.saturating_mul(self.width);
        self.start.saturating_add(offset).min(self.end)
    }
}

/// What is shown of a CPU for some time.
struct Span {
    start: i64,
    end: i64,
    key: u32,
    busy: f32,
}

/// Rows that last, on CPUs.
struct Lasting<'a> {
    selection: Selection<'a>,
    starts: Arc<Measures>,
    ends: Arc<Measures>,
    cpus: Arc<Measures>,
    keys: Arc<Keys>,
}

/// The pixel that is being filled on a CPU: who was there how long.
#[derive(Default)]
struct Filling {
    pixel: i64,
    had: Vec<(u32, i64)>,
}

impl<'a> Lasting<'a> {
    fn read(
        ask: Ask<'a>,
        table: Table,
        span: TimeRange,
        request: &LanesRequest,
        key: &str,
        without_idle: bool,
    ) -> Result<Lasting<'a>, ExploreError> {
        let table = ask.open(table.name())?;
        let mut filter = Vec::new();
        if without_idle {
            filter.push(Condition {
                column: "thread_id".to_owned(),
                not_in: Some(vec![Some(0)]),
                ..Condition::default()
            });
        }
        if let Some(cpus) = &request.cpus {
            filter.push(Condition {
                column: "cpu".to_owned(),
                within: Some(cpus.iter().map(|cpu| Some(i64::from(*cpu))).collect()),
                ..Condition::default()
            });
        }
        let selection = Selection::new(ask, &table, Within::Overlap, Some(span), &filter)?;
        let intervals = ask.columns.intervals(&table, ask.cancel)?;
        let (starts, ends) = intervals.expect("a table whose rows last");
        Ok(Lasting {
            starts,
            ends,
            cpus: ask.columns.stored(&table, "cpu", ask.cancel)?,
            keys: ask.keys(&table, table.def.key(key)?)?,
            selection,
        })
    }

    /// Gives each row as it was, with its place; or by CPU and pixel that key's rows which took
    /// most of it.
    fn each_span(
        &self,
        pixels: &Pixels,
        exact: bool,
        mut give: impl FnMut(u16, Span, Option<(usize, usize)>),
    ) -> Result<(), ExploreError> {
        let mut filling: BTreeMap<u16, Filling> = BTreeMap::new();
        for chunk in self.selection.chunks() {
            let (starts, ends) = (&self.starts.chunks[*chunk], &self.ends.chunks[*chunk]);
            let (cpus, keys) = (&self.cpus.chunks[*chunk], &self.keys.chunks[*chunk]);
            self.selection.rows(*chunk)?.each(|row| {
                let (start, end) = (starts[row].max(pixels.start), ends[row].min(pixels.end));
                let Ok(cpu) = u16::try_from(cpus[row]) else {
                    return;
                };
                if start > end {
                    return;
                }
                if exact {
                    let key = keys[row];
                    let busy = 1.0;
                    give(
                        cpu,
                        Span {
                            start,
                            end,
                            key,
                            busy,
                        },
                        Some((*chunk, row)),
                    );
                    return;
                }
                let filling = filling.entry(cpu).or_default();
                // Rows of a CPU come by their ends; one that reaches further back counts where
                // the last one was.
                let last = pixels.of(end.saturating_sub(1).max(start));
                let first = pixels
                    .of(start)
                    .max(filling.pixel)
                    .min(last.max(filling.pixel));
                for pixel in first..=last.max(first) {
                    if pixel != filling.pixel {
                        filling.finish(pixels, |span| give(cpu, span, None));
                        filling.pixel = pixel;
                    }
                    let from = start.max(pixels.start_of(pixel));
                    let to = end.min(pixels.start_of(pixel + 1));
                    filling.add(keys[row], to.saturating_sub(from).max(0));
                }
            })?;
        }
        for (cpu, mut filling) in filling {
            filling.finish(pixels, |span| give(cpu, span, None));
        }
        Ok(())
    }
}

impl Filling {
    fn add(&mut self, key: u32, ns: i64) {
        match self.had.iter_mut().find(|(known, _)| *known == key) {
            Some((_, had)) => *had = had.saturating_add(ns),
            None => self.had.push((key, ns)),
        }
    }

    fn finish(&mut self, pixels: &Pixels, give: impl FnOnce(Span)) {
        let longest = self
            .had
            .iter()
            .copied()
            .max_by_key(|(key, ns)| (*ns, std::cmp::Reverse(*key)));
        let all = self
            .had
            .iter()
            .fold(0, |all: i64, (_, ns)| all.saturating_add(*ns));
        self.had.clear();
        let Some((key, _)) = longest.filter(|_| all > 0) else {
            return;
        };
        let (start, end) = (pixels.start_of(self.pixel), pixels.start_of(self.pixel + 1));
        let width = end.saturating_sub(start).max(1);
        give(Span {
            start,
            end,
            key,
            // Routines nest: together they can have more than there is.
            busy: (all as f32 / width as f32).min(1.0),
        });
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
    let mut wakes = Vec::new();
    for chunk in runs.selection.chunks() {
        let chunk = *chunk;
        runs.selection.rows(chunk)?.each(|row| {
            let at_ns = readied.chunks[chunk][row];
            let run_start_ns = runs.starts.chunks[chunk][row];
            let cpus = (from.chunks[chunk][row], runs.cpus.chunks[chunk][row]);
            let (Ok(from_cpu), Ok(to_cpu)) = (u16::try_from(cpus.0), u16::try_from(cpus.1)) else {
                return;
            };
            if at_ns == NULL || !span.contains(run_start_ns) || wakes.len() >= MOST_WAKES {
                return;
            }
            wakes.push(Wake {
                from_cpu,
                at_ns,
                to_cpu,
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
