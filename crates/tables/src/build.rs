//! The passes over a trace that fill the tables asked for.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_array::RecordBatch;
use etl::{BufferReader, BufferRef, CpuStream, Damage, Event, HeaderKind, Segment, Trace, le};
use events::Decoder;
use events::kernel::Class;
use rayon::prelude::*;

use crate::column::Place;
use crate::cpus::{NUMA_NODE, PROCESSOR_GROUP, PROCESSOR_NUMBER, PROCESSORS};
use crate::disk_io::DiskStarts;
use crate::event_rows::decoder_of;
use crate::file_io::FileEvents;
use crate::images::IMAGE_ID;
use crate::intervals::span_of;
use crate::join::Join;
use crate::kept::{Kept, in_time_order};
use crate::marks::MARK;
use crate::packets::Fragments;
use crate::priorities::is_priority;
use crate::provider_events;
use crate::scheduling::Scheduling;
use crate::schema::Rows;
use crate::slices::Slices;
use crate::stack_index::{StackEvents, StackIndex};
use crate::threads::{SERVICE, SET_NAME};
use crate::trackers::FileTracker;
use crate::unreadable::{Unreadable, UnreadableEvents};
use crate::volumes::{SYS_CONFIG_EX, VOLUME_MAPPING};
use crate::world::World;
use crate::{
    ContextSwitches, CpuRuns, Cpus, Damages, DiskIo, Events, FileIo, Focus, HardFaults, Images,
    Input, Interrupts, Marks, Network, Nullable, Packets, Priorities, ProcessFreezes,
    ProcessTracker, Processes, ReadyThreads, Samples, Sessions, Stacks, SystemConfig, TableSchema,
    Threads, TimerRequests, Volumes,
};

/// Declares [`Table`] and how a [`Tables`] gives a table's batches.
macro_rules! tables {
    (
        events { $($event:ident: $event_field:ident,)+ }
        lifetimes { $($life:ident: $life_field:ident,)+ }
        whole { $($whole:ident: $whole_field:ident = $whole_name:literal,)+ }
        joined { $($joined:ident: $joined_field:ident,)+ }
    ) => {
        /// A table that can be asked for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Table {
            $(#[doc = concat!("[`", stringify!($event), "`].")] $event,)+
            $(#[doc = concat!("[`", stringify!($life), "`].")] $life,)+
            $(#[doc = concat!("[`", stringify!($whole), "`].")] $whole,)+
            $(#[doc = concat!("[`", stringify!($joined), "`](crate::", stringify!($joined), ").")] $joined,)+
        }

        impl Table {
            /// All tables, in the order of their documentation.
            pub const ALL: &'static [Table] = &[
                $(Table::$event,)+ $(Table::$life,)+ $(Table::$whole,)+ $(Table::$joined,)+
            ];

            /// Its name in SQL and everywhere else.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Table::$event => stringify!($event_field),)+
                    $(Table::$life => stringify!($life_field),)+
                    $(Table::$whole => $whole_name,)+
                    $(Table::$joined => stringify!($joined_field),)+
                }
            }

            /// Its declaration.
            pub fn schema(self) -> TableSchema {
                match self {
                    $(Table::$event => $event::schema(),)+
                    $(Table::$life => $life::schema(),)+
                    $(Table::$whole => $whole::schema(),)+
                    $(Table::$joined => crate::$joined::schema(),)+
                }
            }
        }

        /// The rows of the tables of events that lie in one slice of time, sorted.
        #[derive(Debug, Default)]
        pub(crate) struct Slice {
            $(pub(crate) $event_field: $event,)+
            pub(crate) disk_starts: DiskStarts,
            pub(crate) file_events: FileEvents,
            /// Where it ends.
            end_ns: i64,
        }

        /// What the tables of events carry from one slice to the next.
        #[derive(Default)]
        struct Joiners {
            $($event_field: <$event as Join>::State,)+
        }

        impl Slice {
            /// Takes what the streams hold from before `end_ns`.
            pub(crate) fn take(mut streams: Vec<&mut Stream>, end_ns: i64) -> Slice {
                let mut slice = Slice {
                    end_ns,
                    ..Slice::default()
                };
                $(let $event_field: Vec<$event> = streams
                    .iter_mut()
                    .map(|stream| before(&mut stream.$event_field, end_ns))
                    .collect();)+
                let disk_starts: Vec<DiskStarts> = streams
                    .iter_mut()
                    .map(|stream| before(&mut stream.disk_starts, end_ns))
                    .collect();
                let file_events: Vec<FileEvents> = streams
                    .iter_mut()
                    .map(|stream| before(&mut stream.file_events, end_ns))
                    .collect();
                rayon::scope(|scope| {
                    $(scope.spawn(|_| slice.$event_field = Rows::merge($event_field));)+
                    scope.spawn(|_| slice.disk_starts = Rows::merge(disk_starts));
                    scope.spawn(|_| slice.file_events = Rows::merge(file_events));
                });
                slice
            }

            /// Joins all rows but those of scheduling.
            fn join(&mut self, joiners: &mut Joiners, world: &World<'_>) {
                joiners.disk_io.starts = std::mem::take(&mut self.disk_starts);
                let file_events = std::mem::take(&mut self.file_events);
                self.file_io = joiners.file_io.take(file_events, world);
                rayon::scope(|scope| {
                    $(if !self.$event_field.is_empty() {
                        let (rows, state) = (&mut self.$event_field, &mut joiners.$event_field);
                        scope.spawn(move |_| rows.join(state, world));
                    })+
                });
            }
        }

        impl Table {
            /// Whether its rows are events, which come slice by slice of time.
            fn is_of_events(self) -> bool {
                matches!(self, Table::CpuRuns $(| Table::$event)+)
            }
        }

        impl Tables {
            /// Takes those tables of another that come whole and are no lifetimes; they are made
            /// only if they are asked for.
            fn take_whole(&mut self, other: &mut Tables) {
                $(self.$whole_field = std::mem::take(&mut other.$whole_field);)+
            }

            /// Adds the rows of a slice that are asked for.
            fn append(&mut self, slice: Slice, wanted: &[Table]) {
                $(if wanted.contains(&Table::$event) && !slice.$event_field.is_empty() {
                    let rows = [slice.$event_field];
                    let mut cpus: BTreeMap<u16, Vec<Place>> = BTreeMap::new();
                    for row in 0..rows[0].len() {
                        let places = cpus.entry(rows[0].cpu.cpu_of(row)).or_default();
                        places.push(Place { part: 0, row: row as u32 });
                    }
                    for (cpu, order) in cpus {
                        let part = $event::gather(&rows, &order);
                        let of_cpu = |of: &$event| of.cpu.cpu_of(0);
                        match self.$event_field.binary_search_by_key(&cpu, of_cpu) {
                            Ok(at) => Rows::append(&mut self.$event_field[at], part),
                            Err(at) => self.$event_field.insert(at, part),
                        }
                    }
                })+
            }

            /// Takes a table's rows out as Arrow record batches, which moves them: one batch per
            /// CPU that has any, each sorted by time. None if the trace has no such rows or the
            /// table was not asked for.
            pub fn take_batches(&mut self, table: Table) -> Vec<RecordBatch> {
                match table {
                    $(Table::$event => std::mem::take(&mut self.$event_field)
                        .into_iter()
                        .map($event::into_batch)
                        .collect(),)+
                    $(Table::$life => Some(std::mem::take(&mut self.$life_field))
                        .filter(|table| !table.is_empty())
                        .map($life::into_batch)
                        .into_iter()
                        .collect(),)+
                    $(Table::$whole => Some(std::mem::take(&mut self.$whole_field))
                        .filter(|table| !table.is_empty())
                        .map($whole::into_batch)
                        .into_iter()
                        .collect(),)+
                    $(Table::$joined => Some(std::mem::take(&mut self.$joined_field))
                        .filter(|table| !table.is_empty())
                        .map(crate::$joined::into_batch)
                        .into_iter()
                        .collect(),)+
                }
            }
        }

        impl Slice {
            /// Gives the rows of the tables asked for away as record batches.
            fn give<E>(
                self,
                wanted: &[Table],
                give: &mut dyn FnMut(Table, RecordBatch) -> Result<(), E>,
            ) -> Result<(), E> {
                $(if wanted.contains(&Table::$event) && !self.$event_field.is_empty() {
                    give(Table::$event, self.$event_field.into_batch())?;
                })+
                Ok(())
            }
        }
    };
}

tables! {
    events {
        ContextSwitches: context_switches,
        ReadyThreads: ready_threads,
        Samples: samples,
        Interrupts: interrupts,
        DiskIo: disk_io,
        HardFaults: hard_faults,
        FileIo: file_io,
        Network: network,
        Priorities: priorities,
        Packets: packets,
        Input: input,
        TimerRequests: timer_requests,
        Marks: marks,
        Events: events,
    }
    lifetimes {
        Processes: processes,
        Threads: threads,
        Images: images,
    }
    whole {
        Sessions: sessions = "trace",
        Cpus: cpus = "cpus",
        SystemConfig: system_config = "system_config",
        Damages: damages = "damage",
        Focus: focus = "focus",
        ProcessFreezes: process_freezes = "process_freezes",
    }
    joined {
        CpuRuns: cpu_runs,
        Stacks: stacks,
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No table has that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no table `{0}`")]
pub struct UnknownTable(String);

impl FromStr for Table {
    type Err = UnknownTable;

    fn from_str(name: &str) -> Result<Table, UnknownTable> {
        let found = Table::ALL.iter().find(|table| table.name() == name);
        found.copied().ok_or_else(|| UnknownTable(name.to_owned()))
    }
}

/// The tables of a trace; those not asked for are empty.
///
/// Tables of events have one element per CPU that has rows, in the order of CPUs, each sorted by
/// time.
#[derive(Debug, Default)]
pub struct Tables {
    /// Context switches, per CPU.
    pub context_switches: Vec<ContextSwitches>,
    /// Threads made ready, per CPU.
    pub ready_threads: Vec<ReadyThreads>,
    /// Samples of the profile timer, per CPU.
    pub samples: Vec<Samples>,
    /// Service routines and DPCs, per CPU.
    pub interrupts: Vec<Interrupts>,
    /// Requests to disks, per CPU.
    pub disk_io: Vec<DiskIo>,
    /// Hard page faults, per CPU.
    pub hard_faults: Vec<HardFaults>,
    /// Operations on files, per CPU.
    pub file_io: Vec<FileIo>,
    /// What TCP and UDP sent and received, per CPU.
    pub network: Vec<Network>,
    /// Changes of priorities, per CPU.
    pub priorities: Vec<Priorities>,
    /// Captured packets, per CPU.
    pub packets: Vec<Packets>,
    /// Input of the user, per CPU.
    pub input: Vec<Input>,
    /// Requests for timer resolutions, per CPU.
    pub timer_requests: Vec<TimerRequests>,
    /// Marks, per CPU.
    pub marks: Vec<Marks>,
    /// What any provider says, per CPU.
    pub events: Vec<Events>,
    /// Processes.
    pub processes: Processes,
    /// Threads.
    pub threads: Threads,
    /// Images.
    pub images: Images,
    /// Sessions that recorded the trace.
    pub sessions: Sessions,
    /// The machine's processors.
    pub cpus: Cpus,
    /// What the trace says about the machine.
    pub system_config: SystemConfig,
    /// Losses and faults.
    pub damages: Damages,
    /// Who had the focus.
    pub focus: Focus,
    /// When processes were frozen.
    pub process_freezes: ProcessFreezes,
    /// Runs of threads on CPUs, sorted by their end.
    pub cpu_runs: CpuRuns,
    /// Distinct call stacks.
    pub stacks: Stacks,
    /// Drive letters of volumes; read with [`Table::Images`].
    pub volumes: Volumes,
    /// What is lost or broken in the trace.
    pub damage: Damage,
    /// Events whose payload was too short for their version, or of an unknown old version, by the
    /// table that they are missing from.
    pub unreadable: Vec<Unreadable>,
}

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
        let streams = events(slices, captured, plan, &world, &progress, take)?;
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
    world: &World<'_>,
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
        let begin_ns = slices.first_ns();
        let scheduling = scheduling.get_or_insert_with(|| Scheduling::new(begin_ns));
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
    if wanted.has(Table::Cpus) {
        tables.cpus = Cpus::build(trace, &kept(|s| &s.cpus), unreadable);
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
        tables,
        stacks,
        files,
        sampling_interval_ns,
    }
}

/// What is to be read for the tables asked for.
#[derive(Clone, Copy)]
struct Plan {
    /// In the pass for what lived during the trace, which rows of events are joined with.
    whole: Wanted,
    /// In the pass for events.
    events: Wanted,
    /// Context switches and ready events are put in order.
    schedules: bool,
    /// Runs are made of them.
    runs: bool,
}

impl Plan {
    fn new(wanted: &[Table]) -> Plan {
        let of_events = |table: &&Table| table.is_of_events();
        let mut whole = Wanted::default();
        let mut events = Wanted::default();
        for table in wanted.iter().filter(|table| !of_events(table)) {
            match table {
                // Headers tell all of it.
                Table::Sessions => {}
                Table::Focus | Table::ProcessFreezes => {
                    whole.add(Table::Processes);
                    whole.add(*table);
                }
                _ => whole.add(*table),
            }
        }
        for table in wanted.iter().filter(of_events) {
            events.add(*table);
            // What its rows are joined with.
            let with: &[Table] = match table {
                Table::ContextSwitches => &[],
                Table::Interrupts => &[Table::Images],
                Table::HardFaults
                | Table::Network
                | Table::Priorities
                | Table::Packets
                | Table::Input
                | Table::TimerRequests
                | Table::Marks => &[Table::Processes, Table::Threads],
                _ => &[
                    Table::Processes,
                    Table::Threads,
                    Table::Images,
                    Table::Stacks,
                ],
            };
            with.iter().for_each(|table| whole.add(*table));
            if matches!(table, Table::DiskIo | Table::HardFaults | Table::FileIo) {
                whole.0 |= Wanted::FILE_NAMES;
            }
            if *table == Table::Events {
                whole.0 |= Wanted::METADATA;
            }
        }
        let runs = events.has(Table::CpuRuns);
        let schedules = runs || events.has(Table::ReadyThreads);
        if schedules {
            events.add(Table::ContextSwitches);
            events.add(Table::ReadyThreads);
        }
        Plan {
            whole,
            events,
            schedules,
            runs,
        }
    }
}

/// The CPUs that rows are of.
trait CpuColumn {
    /// The CPU of a row; the greatest number if it is unknown.
    fn cpu_of(&self, row: usize) -> u16;
}

impl CpuColumn for Vec<u16> {
    fn cpu_of(&self, row: usize) -> u16 {
        self[row]
    }
}

impl CpuColumn for Nullable<u16> {
    fn cpu_of(&self, row: usize) -> u16 {
        self.get(row).unwrap_or(u16::MAX)
    }
}

/// The rows of one stream from before `end_ns`, sorted; the others stay.
fn before<T: Rows>(rows: &mut T, end_ns: i64) -> T {
    rows.sort();
    let rest = match end_ns {
        i64::MAX => T::default(),
        _ => {
            let mut rest = rows.split_off(end_ns);
            // The next slice holds about as many.
            rest.reserve(rows.rows());
            rest
        }
    };
    std::mem::replace(rows, rest)
}

/// Tables, as bits.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wanted(u32);

impl Wanted {
    /// The names of files, which are of no table but of rows of several.
    const FILE_NAMES: u32 = 1 << 31;
    /// Where the trace says what its events mean.
    const METADATA: u32 = 1 << 30;

    fn add(&mut self, table: Table) {
        self.0 |= 1 << table as u32;
    }

    #[inline]
    fn has(self, table: Table) -> bool {
        self.0 >> table as u32 & 1 != 0
    }

    fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// What one CPU stream holds.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    context_switches: ContextSwitches,
    ready_threads: ReadyThreads,
    samples: Samples,
    interrupts: Interrupts,
    disk_io: DiskIo,
    hard_faults: HardFaults,
    packets: Packets,
    fragments: Fragments,
    file_io: FileIo,
    file_events: FileEvents,
    events: Events,
    /// Knows what events mean, if they are wanted.
    decoder: Option<Arc<Decoder>>,
    metadata: Vec<BufferRef>,
    network: Network,
    priorities: Priorities,
    input: Input,
    timer_requests: TimerRequests,
    marks: Marks,
    disk_starts: DiskStarts,
    stacks: StackEvents,
    /// When and to what the profile timer was set first.
    sampling_interval: Option<(i64, i64)>,
    /// The first and the last event.
    pub(crate) span_ns: Option<(i64, i64)>,
    processes: Kept,
    threads: Kept,
    images: Kept,
    image_ids: Kept,
    volumes: Kept,
    file_names: Kept,
    focus: Kept,
    process_freezes: Kept,
    system_config: Kept,
    cpus: Kept,
    pub(crate) damage: Damage,
    unreadable: UnreadableEvents,
}

impl Stream {
    /// A stream whose events are decoded too, if there is a decoder.
    pub(crate) fn decoding(decoder: Option<Arc<Decoder>>) -> Stream {
        Stream {
            decoder,
            ..Stream::default()
        }
    }

    fn read(
        stream: &CpuStream<'_>,
        segments: &[Segment],
        wanted: Wanted,
        progress: &(dyn Fn(u64) -> bool + Sync),
    ) -> Result<Stream, Cancelled> {
        let mut found = Stream::default();
        let mut reader = stream.reader();
        for buffer in stream.buffers() {
            found.read_buffer(&mut reader, buffer, segments, wanted);
            if !progress(buffer.stored_size.into()) {
                return Err(Cancelled);
            }
        }
        found.damage = reader.take_damage();
        Ok(found)
    }

    /// Takes the events of a buffer.
    pub(crate) fn read_buffer(
        &mut self,
        reader: &mut BufferReader<'_>,
        buffer: &BufferRef,
        segments: &[Segment],
        wanted: Wanted,
    ) {
        let header = segments[usize::from(buffer.segment)].header.as_ref();
        // Where the header is unreadable, a present-day system is likelier than an old one.
        let system = header.map_or((10, 0), |header| header.os_version);
        let mut has_metadata = false;
        for event in reader.read(buffer) {
            has_metadata |= wanted.0 & Wanted::METADATA != 0 && events::is_metadata(&event);
            self.take(&event, wanted, system);
        }
        if has_metadata {
            self.metadata.push(*buffer);
        }
    }

    /// Puts an event into its table, if that is wanted.
    #[inline]
    fn take(&mut self, event: &Event<'_>, wanted: Wanted, system: (u8, u8)) {
        let Some(hook) = event.hook().or_else(|| classic_hook(event)) else {
            return self.take_metadata(event, wanted);
        };
        // The log's own header tells when the session began, which rings have long forgotten.
        if hook >> 8 != 0 {
            let time_ns = event.time_ns();
            let (first, last) = self.span_ns.unwrap_or((time_ns, time_ns));
            self.span_ns = Some((first.min(time_ns), last.max(time_ns)));
        }
        let table = match hook {
            0x0524 => Table::ContextSwitches,
            0x0532 => Table::ReadyThreads,
            0x0F2E => Table::Samples,
            0x0F32 | 0x0F42..=0x0F46 | 0x0F5F => Table::Interrupts,
            0x010A..=0x010F | 0x0137..=0x013C => Table::DiskIo,
            0x0220 => Table::HardFaults,
            _ if StackEvents::has(hook) => Table::Stacks,
            0x0F48..=0x0F4A => return self.set_interval(event),
            0x0301..=0x0304 | 0x030B | 0x0327 => Table::Processes,
            0x0501..=0x0504 | SET_NAME => Table::Threads,
            0x0B00..=0x0BFF => return self.take_machine(hook, event, wanted),
            MARK => Table::Marks,
            0x0440..=0x0451 => Table::FileIo,
            0x0400 | 0x0420 | 0x0423 | 0x0424 => return self.take_file_name(hook, event, wanted),
            0x060A..=0x0610 | 0x0612 | 0x061A..=0x0620 | 0x0622 => Table::Network,
            0x080A | 0x080B | 0x081A | 0x081B => Table::Network,
            _ if is_priority(hook) => Table::Priorities,
            0x030A | 0x1402..=0x1404 | 0x140A => Table::Images,
            _ => return self.take_any(event),
        };
        if !wanted.has(table) {
            return;
        }
        let read = match table {
            Table::ContextSwitches => self.context_switches.push(event),
            Table::ReadyThreads => self.ready_threads.push(event),
            Table::Samples => self.samples.push(event, system),
            Table::Interrupts => self.interrupts.push(event),
            Table::HardFaults => self.hard_faults.push(event),
            Table::DiskIo => match hook {
                0x010C | 0x010D | 0x010F | 0x013A..=0x013C => self.disk_starts.push(event),
                _ => self.disk_io.push(event),
            },
            Table::Processes => self.processes.push(hook, event),
            Table::Threads => self.threads.push(hook, event),
            Table::Images => self.images.push(hook, event),
            Table::Stacks => self.stacks.push(hook, event),
            Table::Marks => self.marks.push_kernel(event),
            Table::FileIo => self.file_events.push(event),
            Table::Network => self.network.push_kernel(hook, event),
            Table::Priorities => self.priorities.push_kernel(hook, event),
            _ => Some(()),
        };
        if read.is_none() {
            self.unreadable.add(table, event.place());
        }
    }

    /// Notes what the profile timer is set to: source 0, in units of 100 ns.
    fn set_interval(&mut self, event: &Event<'_>) {
        let payload = event.payload();
        let (Some(0), Some(interval)) = (le::u32(payload, 0), le::u32(payload, 4)) else {
            return;
        };
        let set = (event.time_ns(), i64::from(interval) * 100);
        self.sampling_interval.get_or_insert(set);
    }

    /// Keeps what names a file.
    fn take_file_name(&mut self, hook: u16, event: &Event<'_>, wanted: Wanted) {
        if wanted.0 & Wanted::FILE_NAMES != 0 {
            self.file_names.push(hook, event);
        }
    }

    /// Keeps what the kernel says about the machine.
    fn take_machine(&mut self, hook: u16, event: &Event<'_>, wanted: Wanted) {
        // Threads carry the tags of services.
        if hook == SERVICE && wanted.has(Table::Threads) {
            self.threads.push(hook, event);
        }
        if wanted.has(Table::SystemConfig) {
            self.system_config.push(hook, event);
        }
        let is_of_cpus = matches!(
            hook,
            NUMA_NODE | PROCESSOR_GROUP | PROCESSOR_NUMBER | PROCESSORS
        );
        if is_of_cpus && wanted.has(Table::Cpus) {
            self.cpus.push(hook, event);
        }
    }

    /// Keeps what the merge step of Windows' tools says about images, volumes and the machine.
    fn take_metadata(&mut self, event: &Event<'_>, wanted: Wanted) {
        if event.descriptor().is_some() {
            self.take_any(event);
            return self.take_provider_event(event, wanted);
        }
        if !is_classic(event) {
            return self.take_any(event);
        }
        let (Some(guid), Some(opcode)) = (event.guid(), event.opcode()) else {
            return;
        };
        if guid == IMAGE_ID && wanted.has(Table::Images) {
            self.image_ids.push(opcode.into(), event);
        } else if guid == SYS_CONFIG_EX {
            let maps = wanted.has(Table::Images) || wanted.0 & Wanted::FILE_NAMES != 0;
            if opcode == VOLUME_MAPPING && maps {
                self.volumes.push(opcode.into(), event);
            }
            if wanted.has(Table::SystemConfig) {
                self.system_config.push(opcode.into(), event);
            }
        } else if guid != IMAGE_ID && !events::is_metadata(event) {
            self.take_any(event);
        }
    }

    /// Puts an event that is of no kernel table among the decoded ones, if they are wanted.
    fn take_any(&mut self, event: &Event<'_>) {
        if let Some(decoder) = &self.decoder {
            self.events.push(event, decoder);
        }
    }

    /// Puts an event of a manifest provider into its table, if that is wanted.
    fn take_provider_event(&mut self, event: &Event<'_>, wanted: Wanted) {
        let (Some(provider), Some(descriptor)) = (event.guid(), event.descriptor()) else {
            return;
        };
        let table = provider_events::table_of(provider, descriptor.id);
        let Some(table) = table.filter(|table| wanted.has(*table)) else {
            return;
        };
        let read = match table {
            Table::Focus => self.focus.push(descriptor.id, event),
            Table::ProcessFreezes => self.process_freezes.push(descriptor.id, event),
            Table::Input => self.input.push(event),
            Table::TimerRequests => self.timer_requests.push(event),
            Table::Marks => self.marks.push_uiforetw(event),
            Table::Network => self.network.push_provider(event),
            Table::Priorities => self.priorities.push_provider(event),
            Table::Packets => self.fragments.take(event, &mut self.packets),
            _ => Some(()),
        };
        if read.is_none() {
            self.unreadable.add(table, event.place());
        }
    }
}

/// Whether the event has the header of classic providers, as kernel events have that were written
/// by tools or by systems before Windows 7.
#[inline]
fn is_classic(event: &Event<'_>) -> bool {
    matches!(event.kind(), HeaderKind::Full32 | HeaderKind::Full64)
}

/// The hook id that a kernel event with a class GUID would have.
fn classic_hook(event: &Event<'_>) -> Option<u16> {
    if !is_classic(event) {
        return None;
    }
    let group = Class::of_guid(event.guid()?)?.group?;
    Some(u16::from_be_bytes([group, event.opcode()?]))
}
