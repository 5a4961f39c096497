//! `dotnet_pauses`: time ranges in which .NET stopped the threads of programs.

use crate::column::Nullable;
use crate::register::{Reader, Register};
use crate::schema::table;
use crate::table::Table;

table! {
    /// One row per time range in which the .NET runtime of a process stopped the threads that run managed code. The
    /// runtime does this for garbage collections and for other reasons.
    ///
    /// A background collection stops the threads several times, so it can have several rows. Rows of collections of
    /// younger generations can be between these rows.
    DotnetPauses, DotnetPausesView = "dotnet_pauses" sorted by start_ns
        title ".NET Pauses"
        record "pauses of .NET (provider Microsoft-Windows-DotNETRuntime with keyword 0x1)"
        lasts start_ns to end_ns
    {
        /// Time at which the runtime began to stop threads, or the trace's start.
        start_ns: Vec<i64> = "DotNETRuntime GC/SuspendEEStart: header time",
        /// Time at which all threads could go on, or the trace's end.
        end_ns: Vec<i64> = "DotNETRuntime GC/RestartEEStop: header time",
        /// True if an event reports the stop at `start_ns`.
        starts_at_event: Vec<bool> = "an event at start_ns",
        /// True if an event reports the restart at `end_ns`.
        ends_at_event: Vec<bool> = "an event at end_ns",
        /// Process whose threads were stopped.
        process_id: Vec<u32> = "header: process of the event",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and start_ns in `processes`",
        /// True if the runtime stopped the threads for a collection, or for a part of a collection. False for other
        /// reasons, such as a debugger.
        for_collection: Nullable<bool> = "GC/SuspendEEStart: Reason 1 or 6",
        /// Number of the first collection that began during the pause. The runtime counts the collections.
        collection: Nullable<u32> = "GC/Start: Count",
        /// Generation of the collection in `collection`: 0, 1 or 2. Generation 2 is a full collection.
        generation: Nullable<u32> = "GC/Start: Depth",
        /// Kind of the collection in `collection`: 0 blocking, 1 background, 2 blocking during a background collection.
        collection_kind: Nullable<u32> = "GC/Start: Type",
        /// Cause of the collection in `collection`: 0 small objects allocated, 1 induced, 2 memory is low, 4 large
        /// objects allocated, 5 and 6 out of space, 7 induced but not forced as blocking.
        collection_reason: Nullable<u32> = "GC/Start: Reason",
    }
}

impl Register for DotnetPauses {
    const NEEDS: &'static [Reader] = &[Reader::Table(Table::Processes)];
}
