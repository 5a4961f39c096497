//! `dotnet_pools`: changes of the number of threads in the thread pools of .NET.

use crate::column::Nullable;
use crate::register::{Reader, Register};
use crate::schema::table;
use crate::table::Table;

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

impl Register for DotnetPools {
    const NEEDS: &'static [Reader] = &[Reader::Table(Table::Processes)];
}
