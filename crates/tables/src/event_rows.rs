//! `events`: what any provider says, decoded.

use etl::{BufferReader, BufferRef, Event, Trace};
use events::Decoder;

use crate::column::{Nullable, Text};
use crate::join::Join;
use crate::provider_events::logged_by;
use crate::schema::table;
use crate::world::{ThreadFinder, World};

table! {
    /// One row per event of a provider, decoded by what the trace says about itself and by what is
    /// publicly known; and per kernel event that is of no other table.
    Events, EventsView = "events" sorted by time_ns {
        /// When it was logged.
        time_ns: Vec<i64> = "header time" wpa "Time (s)",
        /// The CPU that logged it.
        cpu: Vec<u16> = "CPU of the buffer" wpa "Cpu",
        /// Who logged it: name of the provider; of WPP messages the module.
        provider: Text = "metadata; provider traits" wpa "Provider Name",
        /// GUID of the provider or event class.
        provider_guid: Text = "header GUID" wpa "Provider Id",
        /// Name of the event.
        event: Text = "metadata; TraceLogging name" wpa "Task Name",
        /// Number of the event within the provider; of WPP the number of the message.
        id: Nullable<u16> = "EVENT_DESCRIPTOR Id; message number" wpa "Id",
        /// Version of the event's layout.
        version: Nullable<u8> = "header version" wpa "Version",
        /// Opcode.
        opcode: Nullable<u8> = "header opcode" wpa "Opcode",
        /// Level: 1 critical, 2 error, 3 warning, 4 information, 5 verbose.
        level: Nullable<u8> = "header level" wpa "Level",
        /// Number of the task.
        task: Nullable<u16> = "EVENT_DESCRIPTOR Task",
        /// Keyword bits.
        keyword: Nullable<u64> = "EVENT_DESCRIPTOR Keyword" wpa "Keyword",
        /// The thread that logged it.
        thread_id: Nullable<u32> = "header thread" wpa "Thread Id",
        /// Row of its thread in `threads`.
        thread_row: Nullable<u32> = "thread_id and time_ns in `threads`",
        /// The process that logged it.
        process_id: Nullable<u32> = "header process" wpa "Process Id",
        /// Row of its process in `processes`.
        process_row: Nullable<u32> = "process_id and time_ns in `processes`",
        /// The activity that it belongs to, a GUID.
        activity_id: Text = "EVENT_HEADER ActivityId",
        /// Text of a WPP message, or of an event that is one string.
        message: Text = "payload",
        /// The fields as a JSON object, by name. Addresses and codes are hexadecimal text.
        fields: Text = "payload",
        /// Bytes at the payload's end that nothing describes.
        undescribed_bytes: Vec<u32> = "payload",
        /// The stack of the thread that logged it.
        stack_id: Nullable<u32> = "the stack of the event" wpa "Stack",
    }
}

impl Events {
    /// Adds a row.
    pub(crate) fn push(&mut self, event: &Event<'_>, decoder: &Decoder) {
        let decoded = decoder.decode(event);
        let (descriptor, identity) = (event.descriptor(), &decoded.identity);
        let (thread_id, process_id) = logged_by(event);
        self.time_ns.push(event.time_ns());
        self.cpu.push(event.cpu());
        self.provider.push(identity.provider.as_deref());
        let guid = identity.guid.map(|guid| guid.to_string());
        self.provider_guid.push(guid.as_deref());
        self.event.push(identity.name.as_deref());
        let id = descriptor.map(|d| d.id);
        self.id.push(id.or_else(|| event.message_number()));
        self.version.push(event.version());
        self.opcode.push(event.opcode());
        self.level.push(event.level());
        self.task.push(descriptor.map(|d| d.task));
        self.keyword.push(descriptor.map(|d| d.keyword));
        self.thread_id.push(thread_id);
        self.process_id.push(process_id);
        let activity = event.activity_id().map(|guid| guid.to_string());
        self.activity_id.push(activity.as_deref());
        self.message.push(decoded.message.as_deref());
        let has_fields = !decoded.fields.values.is_empty();
        let fields = has_fields.then(|| serde_json::to_string(&decoded.fields));
        let fields = fields.and_then(Result::ok);
        self.fields.push(fields.as_deref());
        // Records are shorter than 64 KiB.
        self.undescribed_bytes
            .push(decoded.fields.tail.len() as u32);
    }
}

impl Join for Events {
    type State = ThreadFinder;

    fn join(&mut self, threads: &mut ThreadFinder, world: &World<'_>) {
        let (ids, processes) = (&self.thread_id, &self.process_id);
        (self.thread_row, self.process_row) = threads.rows(world, ids, processes, &self.time_ns);
        let moments = self.time_ns.iter().zip(&self.cpu);
        let stack = |(thread, (time, cpu)): (Option<u32>, (&i64, &u16))| {
            world.stacks.find(*time, thread?, *cpu)
        };
        self.stack_id = self.thread_id.iter().zip(moments).map(stack).collect();
    }
}

/// A decoder that has learned what the trace says about the meaning of its events, in the given
/// buffers.
pub(crate) fn decoder_of(trace: &Trace, mut buffers: Vec<BufferRef>) -> Decoder {
    buffers.sort_by_key(|buffer| (buffer.segment, buffer.first_time, buffer.offset));
    let mut decoder = Decoder::new();
    let mut reader = BufferReader::new(trace);
    for buffer in &buffers {
        for event in reader.read(buffer).filter(events::is_metadata) {
            decoder.learn(&event);
        }
    }
    decoder.finish_learning();
    decoder
}
