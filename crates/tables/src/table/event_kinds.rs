//! `event_kinds`: number and size of the events of each kind.

use crate::column::{Named, Names, Nullable, Text};
use crate::register::{Reader, Register};
use crate::schema::table;

table! {
    /// One row per kind of event. Events of one kind have the same header, provider, id, version and layout.
    /// The table shows what a trace contains.
    EventKinds, EventKindsView = "event_kinds" sorted by first_ns
        title "Event Kinds"
        lasts first_ns to last_ns
    {
        /// Time of the first event of the kind.
        first_ns: Vec<i64> = "header time",
        /// Time of the last event of the kind.
        last_ns: Vec<i64> = "header time",
        /// Format of the events: `kernel`, `classic`, `manifest`, `tracelogging`, `wpp`, on Linux
        /// `tracepoint` and `perf_event`, or `other`. The format `other` means records without a kind. It also
        /// means all kinds that were found after the maximum number of kinds was reached.
        format: Names<EventFormat> = "header",
        /// Kind of header: `SYSTEM64`, `COMPACT64`, `EVENT_HEADER64`, …
        header: Text = "header type",
        /// Name of the provider. For WPP messages, this is the name of the module. For tracepoints, this is the
        /// subsystem.
        provider: Text = "metadata; provider traits",
        /// Class of a kernel event or another classic event: `Thread`, `DiskIo`, `ImageId`, …
        class: Text = "hook group; class GUID",
        /// GUID of the provider or event class.
        provider_guid: Text = "header GUID",
        /// Name of the event.
        event: Text = "metadata; TraceLogging name",
        /// Hook id of kernel events: the group in the high byte, the opcode in the low byte. Classic events
        /// of a kernel class have the hook id that the kernel uses for these events.
        hook: Nullable<u16> = "HookId; class GUID and opcode",
        /// Event id. For tracepoints, this id differs between kernels. For WPP messages, this is the number of the
        /// message.
        id: Nullable<u16> = "EVENT_DESCRIPTOR Id; message number",
        /// Version of the event's layout.
        version: Nullable<u8> = "header version",
        /// Opcode of the event.
        opcode: Nullable<u8> = "header opcode",
        /// Number of events of the kind.
        count: Vec<u64> = "number of events",
        /// Total size of the records of all events of the kind: headers, extended items and payloads.
        size_bytes: Vec<u64> = "size of the records",
        /// Size of the smallest payload.
        least_payload_bytes: Vec<u32> = "size of the payloads",
        /// Size of the largest payload.
        greatest_payload_bytes: Vec<u32> = "size of the payloads",
        /// Number of stacks inside the events. Stacks in separate events are not counted.
        stacks: Vec<u64> = "extended items STACK_TRACE and STACK_KEY",
        /// Name of the file with the first event.
        file: Text = "the file",
        /// Offset of the buffer that contains the first event, in the file.
        buffer_offset_bytes: Vec<u64> = "offset of the buffer",
        /// Offset of the first event in its decompressed buffer.
        record_offset_bytes: Vec<u32> = "offset of the record",
    }
}

/// Format of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventFormat {
    /// Kernel event with a compact header.
    Kernel,
    /// Classic event with a class GUID.
    Classic,
    /// Event of a provider. A manifest or other events describe it.
    Manifest,
    /// Event that contains its own description.
    Tracelogging,
    /// WPP message.
    Wpp,
    /// Tracepoint of Linux.
    Tracepoint,
    /// Other event of Linux that perf samples: a clock, a counter, a page fault.
    PerfEvent,
    /// Record without a kind. Also a record of a kind that was found after the maximum number of kinds was
    /// reached.
    Other,
}

impl Named for EventFormat {
    const NAMES: &'static [&'static str] = &[
        "kernel",
        "classic",
        "manifest",
        "tracelogging",
        "wpp",
        "tracepoint",
        "perf_event",
        "other",
    ];

    fn code(self) -> i8 {
        self as i8
    }
}

/// The survey of kinds counts every event. So this table registers no events here.
impl Register for EventKinds {
    const NEEDS: &'static [Reader] = &[Reader::Metadata];
}
