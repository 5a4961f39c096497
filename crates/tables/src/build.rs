//! The passes over a trace that fill the tables asked for.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_array::RecordBatch;
use etl::{BufferRef, Damage, Trace};
use rayon::prelude::*;

use crate::event_rows::decoder_of;
use crate::intervals::span_of;
use crate::kept::{Kept, in_time_order};
use crate::plan::{Plan, Wanted};
use crate::recorded::Recorded;
use crate::scheduling::Scheduling;
use crate::schema::Rows;
use crate::slices::Slices;
use crate::stack_index::StackIndex;
use crate::stream::Stream;
use crate::tables::{Joiners, Slice};
use crate::trackers::FileTracker;
use crate::unreadable::{Unreadable, UnreadableEvents};
use crate::world::World;
use crate::{
    CpuRuns, Cpus, Damages, Focus, Images, Packets, ProcessFreezes, ProcessTracker, Processes,
    Sessions, SystemConfig, Table, Tables, Threads, Volumes,
};

/// How to build.
#[derive(Clone, Copy)]
pub struct Options<'o> {
    /// Called now and then, from several threads, with the stored bytes of the buffers read so
    /// far; compare with [`Trace::size_bytes`]. Building stops when it returns `false`.
    pub progress: &'o (dyn Fn(u64) -> bool + Sync),
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            progress: &|_| true,
        }
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").finish_non_exhaustive()
    }
}

/// The progress callback asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("reading the trace was cancelled")]
pub struct Cancelled;

/// What was met while tables were made.
#[derive(Debug, Default)]
pub struct Summary {
    /// What is lost or broken in the trace.
    pub damage: Damage,
    /// Events whose payload could not be read, by the table that they are missing from.
    pub unreadable: Vec<Unreadable>,
}

/// Why [`stream`] ended early.
#[derive(Debug)]
pub enum StreamError<E> {
    /// [`Options::progress`] asked to stop.
    Cancelled,
    /// The rows could not be taken.
    Taker(E),
}

impl<E> From<Cancelled> for StreamError<E> {
    fn from(_: Cancelled) -> Self {
        StreamError::Cancelled
    }
}

/// Reads a trace, its CPUs in parallel, and fills the tables asked for, in memory.
///
/// # Errors
/// When [`Options::progress`] asks to stop. Nothing in the trace is an error: what is unreadable
/// is in [`Tables::damage`] and [`Tables::unreadable`].
pub fn build(trace: &Trace, wanted: &[Table], options: Options<'_>) -> Result<Tables, Cancelled> {
    let mut rows = Tables::default();
    let take = &mut |part: Part| -> Result<(), Infallible> {
        match part {
            Part::Slice(slice) => rows.append(*slice, wanted),
            Part::Runs(runs) => Rows::append(&mut rows.cpu_runs, *runs),
        }
        Ok(())
    };
    match run(trace, Packets::default(), wanted, options, take) {
        Ok((mut whole, summary)) => {
            rows.take_whole(&mut whole);
            let asked = |table| wanted.contains(&table);
            if asked(Table::Processes) {
                rows.processes = whole.processes;
            }
            if asked(Table::Threads) {
                rows.threads = whole.threads;
            }
            if asked(Table::Images) {
                rows.images = whole.images;
            }
            if asked(Table::Stacks) {
                rows.stacks = whole.stacks;
            }
            rows.volumes = whole.volumes;
            rows.damage = summary.damage;
            rows.unreadable = summary.unreadable;
            Ok(rows)
        }
        Err(StreamError::Cancelled) => Err(Cancelled),
    }
}

/// Reads a trace, its CPUs in parallel, and gives the rows of the tables asked for away as they
/// are made: each table's batches in the order of its sorted column, of a bounded number of rows
/// however long the trace is. Two passes where rows are joined with what is only known at the end
/// of the trace.
///
/// # Errors
/// When [`Options::progress`] asks to stop, or what `give` fails with.
pub fn stream<E>(
    trace: &Trace,
    wanted: &[Table],
    options: Options<'_>,
    give: &mut (dyn FnMut(Table, RecordBatch) -> Result<(), E> + Send),
) -> Result<Summary, StreamError<E>>
where
    E: Send,
{
    stream_with(trace, Packets::default(), wanted, options, give)
}

/// As [`stream`], with the sorted packets of captures beside the trace.
pub(crate) fn stream_with<E>(
    trace: &Trace,
    captured: Packets,
    wanted: &[Table],
    options: Options<'_>,
    give: &mut (dyn FnMut(Table, RecordBatch) -> Result<(), E> + Send),
) -> Result<Summary, StreamError<E>>
where
    E: Send,
{
    let (mut whole, summary) = {
        let take = &mut |part: Part| match part {
            Part::Slice(slice) => slice.give(wanted, give),
            Part::Runs(runs) if runs.is_empty() => Ok(()),
            Part::Runs(runs) => give(Table::CpuRuns, runs.into_batch()),
        };
        run(trace, captured, wanted, options, take)?
    };
    for table in wanted.iter().filter(|table| !table.is_of_events()) {
        for batch in whole.take_batches(*table) {
            give(*table, batch).map_err(StreamError::Taker)?;
        }
    }
    Ok(summary)
}

/// Rows that are ready.
enum Part {
    Slice(Box<Slice>),
    Runs(Box<CpuRuns>),
}

/// The passes over a trace. Gives the tables that are not of events, and what was met.
fn run<E: Send>(
    trace: &Trace,
    captured: Packets,
    wanted: &[Table],
    options: Options<'_>,
    take: &mut (dyn FnMut(Part) -> Result<(), E> + Send),
) -> Result<(Tables, Summary), StreamError<E>> {
    let plan = Plan::new(wanted);
    let passes = u64::from(!plan.whole.is_empty()) + u64::from(!plan.events.is_empty());
    let (done, stopped) = (AtomicU64::new(0), AtomicBool::new(false));
    let progress = |bytes: u64| {
        let done = done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if !(options.progress)(done / passes.max(1)) {
            stopped.store(true, Ordering::Relaxed);
        }
        !stopped.load(Ordering::Relaxed)
    };
    let mut unreadable = UnreadableEvents::default();
    let mut first = Pass::default();
    if !plan.whole.is_empty() {
        let streams = trace
            .streams()
            .into_par_iter()
            .map(|stream| Stream::read(&stream, trace.segments(), plan.whole, &progress))
            .collect::<Result<Vec<Stream>, Cancelled>>()?;
        first = join(streams, trace, plan.whole, &mut unreadable);
    }
    if !plan.events.is_empty() {
        let metadata = std::mem::take(&mut first.metadata);
        let decoder =
            (plan.events.has(Table::Events)).then(|| Arc::new(decoder_of(trace, metadata)));
        let tables = &first.tables;
        let world = World::new(
            &tables.processes,
            &tables.threads,
            &tables.images,
            &first.stacks,
            &first.files,
            first.sampling_interval_ns,
        );
        let slices = Slices::new(trace, plan.events, decoder);
        let recorded = &first.recorded;
        let streams = events(slices, captured, plan, (&world, recorded), &progress, take)?;
        first.tables.damage = Damage::default();
        for stream in streams {
            first.tables.damage.merge(stream.damage);
            unreadable.merge(stream.unreadable);
        }
    }
    let mut damage = std::mem::take(&mut first.tables.damage);
    damage.merge(trace.damage().clone());
    if wanted.contains(&Table::Sessions) {
        first.tables.sessions = Sessions::build(trace);
    }
    if wanted.contains(&Table::Damages) {
        first.tables.damages = Damages::build(trace, &damage);
    }
    let summary = Summary {
        damage,
        unreadable: unreadable.into_sorted(),
    };
    Ok((first.tables, summary))
}

/// The pass that makes the rows of events. While one slice is joined and given away, the next is
/// read.
fn events<E: Send>(
    mut slices: Slices<'_>,
    mut captured: Packets,
    plan: Plan,
    (world, recorded): (&World<'_>, &Recorded),
    progress: &(dyn Fn(u64) -> bool + Sync),
    take: &mut (dyn FnMut(Part) -> Result<(), E> + Send),
) -> Result<Vec<Stream>, StreamError<E>> {
    let mut joiners = Joiners::default();
    let mut scheduling: Option<Scheduling> = None;
    let mut next = slices.next(progress)?;
    while let Some(mut slice) = next.take() {
        let later = captured.split_off(slice.end_ns);
        let due = std::mem::replace(&mut captured, later);
        if plan.events.has(Table::Packets) && !due.is_empty() {
            let packets = std::mem::take(&mut slice.packets);
            slice.packets = Rows::merge(vec![packets, due]);
        }
        let scheduling = scheduling.get_or_insert_with(|| Scheduling::new(recorded.clone()));
        let (read, taken) = rayon::join(
            || slices.next(progress),
            || {
                slice.join(&mut joiners, world);
                if plan.schedules {
                    let (switches, ready) = (&slice.context_switches, &mut slice.ready_threads);
                    let runs = scheduling.join(switches, ready, world);
                    if plan.runs {
                        take(Part::Runs(runs.into()))?;
                    }
                }
                take(Part::Slice(slice.into()))
            },
        );
        taken.map_err(StreamError::Taker)?;
        next = read?;
    }
    if plan.events.has(Table::FileIo) {
        let rest = Slice {
            file_io: joiners.file_io.finish(slices.last_ns(), world),
            ..Slice::default()
        };
        take(Part::Slice(rest.into())).map_err(StreamError::Taker)?;
    }
    if let Some(scheduling) = scheduling.filter(|_| plan.runs) {
        let runs = scheduling.finish(slices.last_ns(), world);
        take(Part::Runs(runs.into())).map_err(StreamError::Taker)?;
    }
    Ok(slices.into_streams())
}

/// What the tables that are not of events are made of, joined.
#[derive(Default)]
struct Pass {
    tables: Tables,
    stacks: StackIndex,
    files: FileTracker,
    recorded: Recorded,
    /// Buffers in which the trace says what its events mean.
    metadata: Vec<BufferRef>,
    sampling_interval_ns: Option<i64>,
}

/// Joins what the streams hold.
fn join(
    mut streams: Vec<Stream>,
    trace: &Trace,
    wanted: Wanted,
    unreadable: &mut UnreadableEvents,
) -> Pass {
    let mut tables = Tables::default();
    let stacks = streams.iter_mut().map(|s| std::mem::take(&mut s.stacks));
    let (stacks, distinct) = StackIndex::build(stacks.collect());
    tables.stacks = distinct;
    let kept = |of: fn(&Stream) -> &Kept| in_time_order(streams.iter().map(of));
    tables.processes = Processes::build(&kept(|s| &s.processes), trace.segments(), unreadable);
    tables.threads = Threads::build(&kept(|s| &s.threads), unreadable);
    tables.volumes = Volumes::read(&kept(|s| &s.volumes), unreadable);
    tables.images = Images::build(
        &kept(|s| &s.images),
        &kept(|s| &s.image_ids),
        &tables.volumes,
        unreadable,
    );
    let names = kept(|s| &s.file_names);
    let files = FileTracker::read(&names, &tables.volumes, unreadable);
    let processes = ProcessTracker::new(&tables.processes);
    let (span, focus) = (span_of(trace), kept(|s| &s.focus));
    tables.focus = Focus::build(&focus, span, &processes, unreadable);
    let freezes = kept(|s| &s.process_freezes);
    tables.process_freezes = ProcessFreezes::build(&freezes, span, &processes, unreadable);
    tables.system_config = SystemConfig::build(&kept(|s| &s.system_config), unreadable);
    let spans_ns = streams.iter().map(|stream| stream.span_ns);
    let spans_ns: Vec<_> = trace.streams().into_iter().zip(spans_ns).collect();
    let recorded = Recorded::new(trace, &spans_ns);
    if wanted.has(Table::Cpus) {
        tables.cpus = Cpus::build(trace, &kept(|s| &s.cpus), &recorded, unreadable);
    }
    let intervals = streams.iter().filter_map(|s| s.sampling_interval);
    let sampling_interval_ns = intervals.min().map(|(_, interval)| interval);
    let mut metadata = Vec::new();
    for stream in streams {
        tables.damage.merge(stream.damage);
        unreadable.merge(stream.unreadable);
        metadata.extend(stream.metadata);
    }
    Pass {
        metadata,
        recorded,
        tables,
        stacks,
        files,
        sampling_interval_ns,
    }
}
