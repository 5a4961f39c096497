//! `dotnet_pools`: changes of the number of threads in the thread pools of .NET.

use crate::column::Nullable;
use crate::providers::{DOTNET_RUNTIME, buffered_fields, number};
use crate::register::{Reader, Reads, Register, TraceFacts, WholeTable};
use crate::schema::table;
use crate::table::Table;
use crate::unreadable::UnreadableEvents;

table! {
    /// One row per change of the number of worker threads in the thread pool of a .NET process.
    DotnetPools, DotnetPoolsView = "dotnet_pools" sorted by time_ns
        title ".NET Thread Pools"
        record "thread pools of .NET (provider Microsoft-Windows-DotNETRuntime with keyword 0x10000)"
    {
        /// Time of the change.
        time_ns: Vec<i64> = "header time",
        /// Process of the thread pool.
        process_id: Vec<u32> = "header: process of the event",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// New number of worker threads.
        threads: Vec<u32> = "DotNETRuntime ThreadPoolWorkerThreadAdjustment/Adjustment: NewWorkerThreadCount",
        /// Reason of the change: 0 warmup, 1 initializing, 2 random move, 3 climbing move, 4 change point,
        /// 5 stabilizing, 6 starvation, 7 a thread timed out, 8 a thread blocked.
        reason: Vec<u32> = "DotNETRuntime ThreadPoolWorkerThreadAdjustment/Adjustment: Reason",
        /// True if the pool starved: queued work made no progress, because all threads of the pool were
        /// blocked or busy.
        starved: Vec<bool> = "reason: 6",
    }
}

/// Id of the event that reports a change of the number of threads.
const ADJUSTED: u16 = 55;
/// Reason of a change: the pool starved.
const STARVATION: u32 = 6;

impl Register for DotnetPools {
    const READS: Reads = Reads {
        providers: &[(DOTNET_RUNTIME, &[ADJUSTED..=ADJUSTED])],
        ..Reads::NOTHING
    };
    const NEEDS: &'static [Reader] = &[Reader::Table(Table::Processes)];
}

impl WholeTable for DotnetPools {
    fn build(facts: &TraceFacts<'_>, unreadable: &mut UnreadableEvents) -> DotnetPools {
        let mut table = DotnetPools::default();
        for event in &facts.events(Table::DotnetPools) {
            let change = buffered_fields(DOTNET_RUNTIME, event).and_then(|fields| {
                Some((
                    event.process_id?,
                    number(&fields, "NewWorkerThreadCount")?,
                    number(&fields, "Reason")?,
                ))
            });
            let Some((id, threads, reason)) = change else {
                unreadable.add(Table::DotnetPools, event.place);
                continue;
            };
            table.time_ns.push(event.time_ns);
            table.process_id.push(id);
            let row = facts.processes.lookup(id, event.time_ns);
            table
                .process_row
                .push(row.and_then(|row| u32::try_from(row).ok()));
            table.threads.push(threads);
            table.reason.push(reason);
            table.starved.push(reason == STARVATION);
        }
        table
    }
}
