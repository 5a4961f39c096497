//! The tables that can be asked for, and those of a trace.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use arrow_array::RecordBatch;
use etl::Damage;

use crate::column::{Known, Place};
use crate::disk_io::DiskStarts;
use crate::file_io::FileEvents;
use crate::join::Join;
use crate::schema::Rows;
use crate::stream::Stream;
use crate::unreadable::Unreadable;
use crate::world::World;
use crate::{
    ContextSwitches, CpuRuns, Cpus, Damages, DiskIo, Events, FileIo, Focus, HardFaults, Images,
    Input, Interrupts, LatencySamples, Marks, Network, Packets, Priorities, ProcessFreezes,
    Processes, ReadyThreads, Samples, Sessions, Stacks, SystemConfig, TableSchema, Threads,
    TimerRequests, Volumes,
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
            pub(crate) end_ns: i64,
        }

        /// What the tables of events carry from one slice to the next.
        #[derive(Default)]
        pub(crate) struct Joiners {
            $(pub(crate) $event_field: <$event as Join>::State,)+
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
            pub(crate) fn join(&mut self, joiners: &mut Joiners, world: &World<'_>) {
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
            pub(crate) fn is_of_events(self) -> bool {
                matches!(self, Table::CpuRuns $(| Table::$event)+)
            }
        }

        impl Tables {
            /// Takes those tables of another that come whole and are no lifetimes; they are made
            /// only if they are asked for.
            pub(crate) fn take_whole(&mut self, other: &mut Tables) {
                $(self.$whole_field = std::mem::take(&mut other.$whole_field);)+
            }

            /// Adds the rows of a slice that are asked for.
            pub(crate) fn append(&mut self, slice: Slice, wanted: &[Table]) {
                $(if wanted.contains(&Table::$event) && !slice.$event_field.is_empty() {
                    let rows = [slice.$event_field];
                    let mut cpus: BTreeMap<u16, Vec<Place>> = BTreeMap::new();
                    for row in 0..rows[0].len() {
                        let places = cpus.entry(cpu_of(&rows[0].cpu, row)).or_default();
                        places.push(Place { part: 0, row: row as u32 });
                    }
                    for (cpu, order) in cpus {
                        let part = $event::gather(&rows, &order);
                        let of_cpu = |of: &$event| cpu_of(&of.cpu, 0);
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
            pub(crate) fn give<E>(
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
        LatencySamples: latency_samples = "latency_samples",
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
    /// Samples of live probes, which no trace has: only a [`Store`](crate::Store) reads them.
    pub latency_samples: LatencySamples,
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

/// The CPU of a row; the greatest number if it is unknown.
fn cpu_of(cpus: &impl Known<u16>, row: usize) -> u16 {
    cpus.known(row).unwrap_or(u16::MAX)
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
