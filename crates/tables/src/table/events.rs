//! `events`: decoded events of any provider.

use crate::column::{Nullable, Text};
use crate::register::{EventTable, Reader, Register};
use crate::schema::table;
use crate::table::Table;
use crate::trackers::{ThreadFinder, Trackers};

table! {
    /// One row per event of a provider. Also one row per kernel event that no other table contains. Events
    /// are decoded with the descriptions in the trace and with the publicly known descriptions. On Linux, the
    /// rows are the tracepoints that no other table contains.
    Events, EventsView = "events" sorted by time_ns
        title "Generic Events"
        record "providers (xperf -start … -on PROVIDER, or a WPR profile that names them)"
    {
        /// Time of the event.
        time_ns: Vec<i64> = "header time" wpa "Time (s)",
        /// CPU that logged the event.
        cpu: Vec<u16> = "CPU of the buffer" wpa "Cpu",
        /// Name of the provider. For WPP messages, this is the name of the module. On Linux, this is the subsystem.
        provider: Text = "metadata; provider traits" wpa "Provider Name",
        /// GUID of the provider or event class.
        provider_guid: Text = "header GUID" wpa "Provider Id",
        /// Name of the event.
        event: Text = "metadata; TraceLogging name" wpa "Task Name",
        /// Id of the event. The id is unique within the provider. For WPP messages, this is the number of the
        /// message.
        id: Nullable<u16> = "EVENT_DESCRIPTOR Id; message number" wpa "Id",
        /// Version of the event's layout.
        version: Nullable<u8> = "header version" wpa "Version",
        /// Opcode of the event.
        opcode: Nullable<u8> = "header opcode" wpa "Opcode",
        /// Level: 1 critical, 2 error, 3 warning, 4 information, 5 verbose.
        level: Nullable<u8> = "header level" wpa "Level",
        /// Number of the task.
        task: Nullable<u16> = "EVENT_DESCRIPTOR Task",
        /// Keywords of the event, as a bit mask.
        keyword: Nullable<u64> = "EVENT_DESCRIPTOR Keyword" wpa "Keyword",
        /// Thread that logged the event.
        thread_id: Nullable<u32> = "header thread" wpa "Thread Id",
        /// Row of the thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// Process that logged the event.
        process_id: Nullable<u32> = "header process" wpa "Process Id",
        /// Row of the process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// GUID of the activity that the event belongs to.
        activity_id: Text = "EVENT_HEADER ActivityId",
        /// Text of a WPP message, or of an event whose payload is one string.
        message: Text = "payload",
        /// Names and values of the fields, as a JSON object. Addresses and codes are hexadecimal text.
        fields: Text = "payload",
        /// Number of bytes at the end of the payload that the event's description does not cover.
        undescribed_bytes: Vec<u32> = "payload",
        /// Stack of the thread that logged the event.
        stack_id: Nullable<u32> = "the stack of the event" wpa "Stack",
    }
}

/// The rows come from events of providers, and from events that no other table has.
impl Register for Events {
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
        Reader::Table(Table::Stacks),
        Reader::Metadata,
    ];
}

impl EventTable for Events {
    type Raw = Events;
    type State = ThreadFinder;

    fn join(raw: &mut Events, threads: &mut ThreadFinder, trackers: &Trackers<'_>) -> Events {
        let mut rows = std::mem::take(raw);
        let (ids, processes) = (&rows.thread_id, &rows.process_id);
        (rows.thread_row, rows.process_row) =
            threads.find_rows(trackers, ids, processes, &rows.time_ns);
        let places = rows.time_ns.iter().zip(&rows.cpu);
        let stack = |(thread, (time, cpu)): (Option<u32>, (&i64, &u16))| {
            trackers.stacks.find(*time, thread?, *cpu)
        };
        rows.stack_id = rows.thread_id.iter().zip(places).map(stack).collect();
        rows
    }
}
