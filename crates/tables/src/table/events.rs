//! `events`: decoded events of any provider.

use events::Decoded;

use crate::column::{Nullable, Text};
use crate::providers::logged_by;
use crate::register::{EventTable, Incoming, Reader, Register};
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

/// The rows come from the events for which [`Incoming::is_generic`] returns true.
impl Register for Events {
    const NEEDS: &'static [Reader] = &[
        Reader::Table(Table::Processes),
        Reader::Table(Table::Threads),
        Reader::Table(Table::Stacks),
        Reader::Metadata,
    ];
}

impl Events {
    /// Adds an event of Linux, except for the columns that refer to other tables.
    pub(crate) fn push_of_linux(
        &mut self,
        (time_ns, cpu): (i64, u16),
        decoded: &Decoded<'_>,
        id: Option<u16>,
        (thread_id, process_id): (Option<u32>, Option<u32>),
    ) {
        self.time_ns.push(time_ns);
        self.cpu.push(cpu);
        self.provider.push(decoded.identity.provider.as_deref());
        self.provider_guid.push(None);
        self.event.push(decoded.identity.name.as_deref());
        self.id.push(id);
        self.version.push(None);
        self.opcode.push(None);
        self.level.push(None);
        self.task.push(None);
        self.keyword.push(None);
        self.thread_id.push(thread_id);
        self.process_id.push(process_id);
        self.activity_id.push(None);
        self.message.push(None);
        self.push_fields(decoded);
    }

    fn push_fields(&mut self, decoded: &Decoded<'_>) {
        let has_fields = !decoded.fields.values.is_empty();
        let fields = has_fields.then(|| serde_json::to_string(&decoded.fields));
        let fields = fields.and_then(Result::ok);
        self.fields.push(fields.as_deref());
        // The cast is safe, because records are shorter than 64 KiB.
        self.undescribed_bytes
            .push(decoded.fields.tail.len() as u32);
    }
}

impl EventTable for Events {
    type Raw = Events;
    type State = ThreadFinder;

    fn push(raw: &mut Events, incoming: &Incoming<'_, '_>) -> Option<()> {
        let event = incoming.event;
        let decoded = incoming.decoder?.decode(event);
        let (descriptor, identity) = (event.descriptor(), &decoded.identity);
        let (thread_id, process_id) = logged_by(event);
        raw.time_ns.push(event.time_ns());
        raw.cpu.push(event.cpu());
        raw.provider.push(identity.provider.as_deref());
        let guid = identity.guid.map(|guid| guid.to_string());
        raw.provider_guid.push(guid.as_deref());
        raw.event.push(identity.name.as_deref());
        let id = descriptor.map(|d| d.id);
        raw.id.push(id.or_else(|| event.message_number()));
        raw.version.push(event.version());
        raw.opcode.push(event.opcode());
        raw.level.push(event.level());
        raw.task.push(descriptor.map(|d| d.task));
        raw.keyword.push(descriptor.map(|d| d.keyword));
        raw.thread_id.push(thread_id);
        raw.process_id.push(process_id);
        let activity = event.activity_id().map(|guid| guid.to_string());
        raw.activity_id.push(activity.as_deref());
        raw.message.push(decoded.message.as_deref());
        raw.push_fields(&decoded);
        Some(())
    }

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
