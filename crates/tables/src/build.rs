//! One pass over a trace that fills the tables asked for.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_array::RecordBatch;
use etl::{CpuStream, Damage, Event, HeaderKind, Segment, Trace};
use events::kernel::Class;
use rayon::prelude::*;

use crate::cpus::{NUMA_NODE, PROCESSOR_GROUP, PROCESSOR_NUMBER, PROCESSORS};
use crate::images::IMAGE_ID;
use crate::intervals::span_of;
use crate::kept::{Kept, in_time_order};
use crate::marks::MARK;
use crate::provider_events;
use crate::schema::Rows;
use crate::threads::{SERVICE, SET_NAME};
use crate::unreadable::{Unreadable, UnreadableEvents};
use crate::volumes::{SYS_CONFIG_EX, VOLUME_MAPPING};
use crate::{
    ContextSwitches, Cpus, Damages, DiskIo, Focus, HardFaults, Images, Input, Interrupts, Marks,
    ProcessFreezes, ProcessTracker, Processes, ReadyThreads, Samples, Sessions, SystemConfig,
    TableSchema, Threads, TimerRequests, Volumes,
};

/// Declares [`Table`] and how a [`Tables`] gives a table's batches.
macro_rules! tables {
    (
        events { $($event:ident: $event_field:ident,)+ }
        lifetimes { $($life:ident: $life_field:ident,)+ }
        whole { $($whole:ident: $whole_field:ident = $whole_name:literal,)+ }
        joined { $($joined:ident: $joined_name:literal,)+ }
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
                    $(Table::$joined => $joined_name,)+
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

        impl Tables {
            /// Takes a table's rows out as Arrow record batches, which moves them: one batch per
            /// CPU stream that has any, each sorted by time. None if the trace has no such rows or
            /// the table was not asked for.
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
                    $(Table::$joined => Vec::new(),)+
                }
            }

            /// Takes a table's rows out as one batch in order of time, if there are any.
            pub(crate) fn take_sorted(&mut self, table: Table) -> Vec<RecordBatch> {
                match table {
                    $(Table::$event => {
                        let mut all = $event::default();
                        for part in std::mem::take(&mut self.$event_field) {
                            Rows::append(&mut all, part);
                        }
                        Rows::sort(&mut all);
                        Some(all).filter(|all| !all.is_empty()).map($event::into_batch).into_iter().collect()
                    })+
                    _ => self.take_batches(table),
                }
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
        Input: input,
        TimerRequests: timer_requests,
        Marks: marks,
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
        CpuRuns: "cpu_runs",
        Stacks: "stacks",
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
/// Tables of events have one element per CPU stream that has rows, in the order of
/// [`Trace::streams`], each sorted by time.
#[derive(Debug, Default)]
pub struct Tables {
    /// Context switches, per CPU stream.
    pub context_switches: Vec<ContextSwitches>,
    /// Threads made ready, per CPU stream.
    pub ready_threads: Vec<ReadyThreads>,
    /// Samples of the profile timer, per CPU stream.
    pub samples: Vec<Samples>,
    /// Service routines and DPCs, per CPU stream.
    pub interrupts: Vec<Interrupts>,
    /// Requests to disks, per CPU stream.
    pub disk_io: Vec<DiskIo>,
    /// Hard page faults, per CPU stream.
    pub hard_faults: Vec<HardFaults>,
    /// Input of the user, per CPU stream.
    pub input: Vec<Input>,
    /// Requests for timer resolutions, per CPU stream.
    pub timer_requests: Vec<TimerRequests>,
    /// Marks, per CPU stream.
    pub marks: Vec<Marks>,
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

/// Reads a trace once, its CPUs in parallel, and fills the tables asked for.
///
/// # Errors
/// When [`Options::progress`] asks to stop. Nothing in the trace is an error: what is unreadable
/// is in [`Tables::damage`] and [`Tables::unreadable`].
pub fn build(trace: &Trace, wanted: &[Table], options: Options<'_>) -> Result<Tables, Cancelled> {
    let wanted = Wanted::new(wanted);
    let (done, stopped) = (AtomicU64::new(0), AtomicBool::new(false));
    let progress = |bytes: u64| {
        let done = done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if !(options.progress)(done) {
            stopped.store(true, Ordering::Relaxed);
        }
        !stopped.load(Ordering::Relaxed)
    };
    let streams = trace
        .streams()
        .into_par_iter()
        .map(|stream| Stream::read(&stream, trace.segments(), wanted, &progress))
        .collect::<Result<Vec<Stream>, Cancelled>>()?;
    let mut tables = join(streams, trace, wanted);
    tables.damage.merge(trace.damage().clone());
    if wanted.has(Table::Sessions) {
        tables.sessions = Sessions::build(trace);
    }
    if wanted.has(Table::Damages) {
        tables.damages = Damages::build(trace, &tables.damage);
    }
    Ok(tables)
}

/// Joins what the streams hold.
fn join(mut streams: Vec<Stream>, trace: &Trace, wanted: Wanted) -> Tables {
    let mut tables = Tables::default();
    let mut unreadable = UnreadableEvents::default();
    let mut disk_io: Vec<DiskIo> = streams
        .iter_mut()
        .map(|stream| std::mem::take(&mut stream.disk_io))
        .collect();
    let kept = |of: fn(&Stream) -> &Kept| in_time_order(streams.iter().map(of));
    tables.processes = Processes::build(&kept(|s| &s.processes), trace.segments(), &mut unreadable);
    tables.threads = Threads::build(&kept(|s| &s.threads), &mut unreadable);
    tables.volumes = Volumes::read(&kept(|s| &s.volumes), &mut unreadable);
    tables.images = Images::build(
        &kept(|s| &s.images),
        &kept(|s| &s.image_ids),
        &tables.volumes,
        &mut unreadable,
    );
    let processes = ProcessTracker::new(&tables.processes);
    let (span, focus) = (span_of(trace), kept(|s| &s.focus));
    tables.focus = Focus::build(&focus, span, &processes, &mut unreadable);
    let freezes = kept(|s| &s.process_freezes);
    tables.process_freezes = ProcessFreezes::build(&freezes, span, &processes, &mut unreadable);
    let machine = kept(|s| &s.system_config);
    tables.system_config = SystemConfig::build(&machine, &mut unreadable);
    if wanted.has(Table::Cpus) {
        tables.cpus = Cpus::build(trace, &kept(|s| &s.cpus), &mut unreadable);
    }
    DiskIo::join(&mut disk_io, &kept(|s| &s.disk_starts), &mut unreadable);
    tables.disk_io = disk_io;
    for stream in streams {
        tables.context_switches.push(stream.context_switches);
        tables.ready_threads.push(stream.ready_threads);
        tables.samples.push(stream.samples);
        tables.interrupts.push(stream.interrupts);
        tables.hard_faults.push(stream.hard_faults);
        tables.input.push(stream.input);
        tables.timer_requests.push(stream.timer_requests);
        tables.marks.push(stream.marks);
        tables.damage.merge(stream.damage);
        unreadable.merge(stream.unreadable);
    }
    tables.context_switches.retain(|table| !table.is_empty());
    tables.ready_threads.retain(|table| !table.is_empty());
    tables.samples.retain(|table| !table.is_empty());
    tables.interrupts.retain(|table| !table.is_empty());
    tables.disk_io.retain(|table| !table.is_empty());
    tables.hard_faults.retain(|table| !table.is_empty());
    tables.input.retain(|table| !table.is_empty());
    tables.timer_requests.retain(|table| !table.is_empty());
    tables.marks.retain(|table| !table.is_empty());
    tables.unreadable = unreadable.into_sorted();
    tables
}

/// The tables asked for, as bits.
#[derive(Clone, Copy)]
struct Wanted(u32);

impl Wanted {
    fn new(tables: &[Table]) -> Wanted {
        Wanted(
            tables
                .iter()
                .fold(0, |bits, table| bits | 1 << *table as u32),
        )
    }

    #[inline]
    fn has(self, table: Table) -> bool {
        self.0 >> table as u32 & 1 != 0
    }
}

/// What one CPU stream holds.
#[derive(Debug, Default)]
struct Stream {
    context_switches: ContextSwitches,
    ready_threads: ReadyThreads,
    samples: Samples,
    interrupts: Interrupts,
    disk_io: DiskIo,
    hard_faults: HardFaults,
    input: Input,
    timer_requests: TimerRequests,
    marks: Marks,
    disk_starts: Kept,
    processes: Kept,
    threads: Kept,
    images: Kept,
    image_ids: Kept,
    volumes: Kept,
    focus: Kept,
    process_freezes: Kept,
    system_config: Kept,
    cpus: Kept,
    damage: Damage,
    unreadable: UnreadableEvents,
}

impl Stream {
    fn read(
        stream: &CpuStream<'_>,
        segments: &[Segment],
        wanted: Wanted,
        progress: &(dyn Fn(u64) -> bool + Sync),
    ) -> Result<Stream, Cancelled> {
        let mut found = Stream::default();
        let mut reader = stream.reader();
        for buffer in stream.buffers() {
            let header = segments[usize::from(buffer.segment)].header.as_ref();
            // Where the header is unreadable, a present-day system is likelier than an old one.
            let system = header.map_or((10, 0), |header| header.os_version);
            for event in reader.read(buffer) {
                found.take(&event, wanted, system);
            }
            if !progress(buffer.stored_size.into()) {
                return Err(Cancelled);
            }
        }
        found.damage = reader.take_damage();
        found.context_switches.sort();
        found.ready_threads.sort();
        found.samples.sort();
        found.interrupts.sort();
        found.interrupts.nest();
        found.disk_io.sort();
        found.hard_faults.sort();
        found.input.sort();
        found.timer_requests.sort();
        found.marks.sort();
        Ok(found)
    }

    /// Puts an event into its table, if that is wanted.
    #[inline]
    fn take(&mut self, event: &Event<'_>, wanted: Wanted, system: (u8, u8)) {
        let Some(hook) = event.hook().or_else(|| classic_hook(event)) else {
            return self.take_metadata(event, wanted);
        };
        let table = match hook {
            0x0524 => Table::ContextSwitches,
            0x0532 => Table::ReadyThreads,
            0x0F2E => Table::Samples,
            0x0F32 | 0x0F42..=0x0F46 | 0x0F5F => Table::Interrupts,
            0x010A..=0x010F | 0x0137..=0x013C => Table::DiskIo,
            0x0220 => Table::HardFaults,
            0x0301..=0x0304 | 0x030B | 0x0327 => Table::Processes,
            0x0501..=0x0504 | SET_NAME | SERVICE => Table::Threads,
            0x030A | 0x1402..=0x1404 | 0x140A => Table::Images,
            0x0B00..=0x0BFF => return self.take_machine(hook, event, wanted),
            MARK => Table::Marks,
            _ => return,
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
                0x010C | 0x010D | 0x010F | 0x013A..=0x013C => self.disk_starts.push(hook, event),
                _ => self.disk_io.push(event),
            },
            Table::Processes => self.processes.push(hook, event),
            Table::Threads => self.threads.push(hook, event),
            Table::Images => self.images.push(hook, event),
            Table::Marks => self.marks.push_kernel(event),
            _ => Some(()),
        };
        if read.is_none() {
            self.unreadable.add(table, event.place());
        }
    }

    /// Keeps what the kernel says about the machine.
    fn take_machine(&mut self, hook: u16, event: &Event<'_>, wanted: Wanted) {
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
            return self.take_provider_event(event, wanted);
        }
        if !is_classic(event) {
            return;
        }
        let (Some(guid), Some(opcode)) = (event.guid(), event.opcode()) else {
            return;
        };
        if guid == IMAGE_ID && wanted.has(Table::Images) {
            self.image_ids.push(opcode.into(), event);
        } else if guid == SYS_CONFIG_EX {
            if opcode == VOLUME_MAPPING && wanted.has(Table::Images) {
                self.volumes.push(opcode.into(), event);
            }
            if wanted.has(Table::SystemConfig) {
                self.system_config.push(opcode.into(), event);
            }
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
