//! List of the tables. A new table needs a separate file, and two lines in this file.

use std::fmt;
use std::str::FromStr;

use store::TableSpec;

use crate::TableSchema;

pub(crate) mod context_switches;
pub(crate) mod cpu_runs;
pub(crate) mod cpus;
pub(crate) mod damages;
pub(crate) mod disk_io;
pub(crate) mod dotnet_pauses;
pub(crate) mod dotnet_pools;
pub(crate) mod event_kinds;
pub(crate) mod events;
pub(crate) mod file_io;
pub(crate) mod focus;
pub(crate) mod futex_waits;
pub(crate) mod hard_faults;
pub(crate) mod images;
pub(crate) mod input;
pub(crate) mod interrupts;
pub(crate) mod latency_samples;
pub(crate) mod limit_periods;
pub(crate) mod marks;
pub(crate) mod memory_reclaims;
pub(crate) mod network;
pub(crate) mod packets;
pub(crate) mod priorities;
pub(crate) mod process_freezes;
pub(crate) mod processes;
pub(crate) mod ready_threads;
pub(crate) mod samples;
pub(crate) mod sessions;
pub(crate) mod slack_timers;
pub(crate) mod stacks;
pub(crate) mod system_config;
pub(crate) mod threads;
pub(crate) mod timer_requests;

/// Calls a macro with all tables in the form `module: Type`. There are four groups of tables:
///
/// - `events`: made from the events of time slices, see [`EventTable`](crate::register::EventTable);
/// - `lifetimes`: made from events of the whole trace, and joined with the rows of other tables;
/// - `whole`: made from the whole trace, see [`WholeTable`](crate::register::WholeTable);
/// - `derived`: made from other tables or from trackers.
macro_rules! for_each_table {
    ($callback:ident) => {
        $callback! {
            events {
                context_switches: ContextSwitches,
                ready_threads: ReadyThreads,
                samples: Samples,
                interrupts: Interrupts,
                disk_io: DiskIo,
                hard_faults: HardFaults,
                file_io: FileIo,
                network: Network,
                priorities: Priorities,
                packets: Packets,
                input: Input,
                timer_requests: TimerRequests,
                limit_periods: LimitPeriods,
                memory_reclaims: MemoryReclaims,
                futex_waits: FutexWaits,
                slack_timers: SlackTimers,
                marks: Marks,
                events: Events,
            }
            lifetimes {
                processes: Processes,
                threads: Threads,
                images: Images,
            }
            whole {
                sessions: Sessions,
                cpus: Cpus,
                system_config: SystemConfig,
                damages: Damages,
                focus: Focus,
                process_freezes: ProcessFreezes,
                dotnet_pauses: DotnetPauses,
                dotnet_pools: DotnetPools,
                event_kinds: EventKinds,
                latency_samples: LatencySamples,
            }
            derived {
                cpu_runs: CpuRuns,
                stacks: Stacks,
            }
        }
    };
}
pub(crate) use for_each_table;

macro_rules! declare {
    ($($group:ident { $($module:ident: $table:ident,)+ })+) => {
        $($(pub use self::$module::*;)+)+

        /// The structs of all tables.
        pub(crate) mod rows {
            $($(pub(crate) use super::$module::$table;)+)+
        }

        /// Names of the tables.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Table {
            $($(#[doc = concat!("[`", stringify!($table), "`](struct@crate::", stringify!($table), ").")] $table,)+)+
        }

        impl Table {
            /// All tables, in the order of their documentation.
            pub const ALL: &'static [Table] = &[$($(Table::$table,)+)+];

            /// Returns the name of the table. SQL and all other parts of the program use this name.
            pub const fn name(self) -> &'static str {
                match self {
                    $($(Table::$table => $table::NAME,)+)+
                }
            }

            /// Returns the declaration of the table.
            pub fn schema(self) -> TableSchema {
                match self {
                    $($(Table::$table => $table::schema(),)+)+
                }
            }
        }
    };
}

for_each_table!(declare);

impl Table {
    /// Returns the description of the table. The table file needs this description.
    pub(crate) fn spec(self) -> TableSpec {
        let schema = self.schema();
        TableSpec {
            name: schema.name,
            schema: schema.arrow().into(),
            sorted_by: schema.sorted_by,
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Error for a name that no table has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no table `{0}`")]
pub struct UnknownTable(String);

impl FromStr for Table {
    type Err = UnknownTable;

    fn from_str(name: &str) -> Result<Table, UnknownTable> {
        let table = Table::ALL.iter().find(|table| table.name() == name);
        table.copied().ok_or_else(|| UnknownTable(name.to_owned()))
    }
}
