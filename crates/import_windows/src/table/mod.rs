//! Tables that traces of Windows fill. A new table needs a file, and two lines in this file.

mod context_switches;
mod cpus;
mod damages;
mod disk_io;
mod dotnet_pauses;
mod dotnet_pools;
mod event_kinds;
mod events;
mod file_io;
mod focus;
mod hard_faults;
pub(crate) mod images;
mod input;
mod interrupts;
mod marks;
mod network;
pub(crate) mod packets;
mod priorities;
mod process_freezes;
pub(crate) mod processes;
mod ready_threads;
pub(crate) mod samples;
mod sessions;
pub(crate) mod stacks;
mod system_config;
pub(crate) mod threads;
mod timer_requests;

/// Calls a macro with the tables in the form `module: Type`. There are two groups: `events` are made from the events of
/// time slices, `whole` from the whole trace. Processes, threads, images and stacks are always made.
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
                marks: Marks,
                events: Events,
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
            }
        }
    };
}
pub(crate) use for_each_table;
