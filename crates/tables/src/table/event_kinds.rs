//! `event_kinds`: number and size of the events of each kind.

use etl::HeaderKind;
use events::Decoder;
use events::kernel::Class;
use rustc_hash::FxHashMap;

use crate::column::{Named, Names, Nullable, Text};
use crate::kind_survey::{EventKind, KindCount, learn};
use crate::register::{Reader, Register, TraceFacts, WholeTable};
use crate::schema::table;
use crate::unreadable::UnreadableEvents;

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

impl WholeTable for EventKinds {
    fn build(facts: &TraceFacts<'_>, _: &mut UnreadableEvents) -> EventKinds {
        let survey = facts.kinds;
        let mut decoder = Decoder::new();
        learn(&mut decoder, facts.trace, facts.metadata());
        let mut identities = FxHashMap::default();
        survey.visit_examples(
            facts.trace,
            |_| true,
            |header, kind, event| {
                identities.insert((header, kind), decoder.identify(event));
            },
        );
        let mut kinds: Vec<_> = survey.kinds.iter().collect();
        kinds.sort_by_key(|(key, count)| (count.first_ns, **key));
        let files: Vec<&str> = facts.trace.files().map(crate::file_name).collect();
        let mut rows = EventKinds::default();
        for (key, count) in kinds {
            let identity = identities.get(key);
            rows.provider
                .push(identity.and_then(|i| i.provider.as_deref()));
            rows.event.push(identity.and_then(|i| i.name.as_deref()));
            rows.push_kind(key.0, key.1);
            rows.push_count(count);
            let segment = &facts.trace.segments()[usize::from(count.example.segment)];
            rows.file
                .push(files.get(usize::from(segment.file)).copied());
        }
        rows
    }
}

impl EventKinds {
    fn push_kind(&mut self, header: HeaderKind, kind: EventKind) {
        let (format, guid) = match kind {
            EventKind::Kernel { .. } => (EventFormat::Kernel, None),
            EventKind::Classic { guid, .. } => (EventFormat::Classic, Some(guid)),
            EventKind::Provider {
                guid, tracelogging, ..
            } => match tracelogging {
                Some(_) => (EventFormat::Tracelogging, Some(guid)),
                None => (EventFormat::Manifest, Some(guid)),
            },
            EventKind::Message { guid, .. } => (EventFormat::Wpp, guid),
            EventKind::Bare | EventKind::Further => (EventFormat::Other, None),
        };
        let class = match kind {
            EventKind::Kernel { hook, .. } => Class::of_group(hook.to_be_bytes()[0]),
            EventKind::Classic { guid, .. } => Class::of_guid(guid),
            _ => None,
        };
        let (hook, id, version, opcode) = match kind {
            EventKind::Kernel { hook, version } => {
                (Some(hook), None, Some(version), Some(hook as u8))
            }
            EventKind::Classic {
                opcode, version, ..
            } => {
                let group = class.and_then(|class| class.group);
                let hook = group.map(|group| u16::from_be_bytes([group, opcode]));
                (hook, None, Some(version), Some(opcode))
            }
            EventKind::Provider {
                id,
                version,
                opcode,
                ..
            } => (None, Some(id), Some(version), Some(opcode)),
            EventKind::Message { number, .. } => (None, Some(number), None, None),
            EventKind::Bare | EventKind::Further => (None, None, None, None),
        };
        self.format.0.push(format);
        self.class.push(class.map(|class| class.name));
        self.header.push(Some(header.name()));
        let guid = guid.map(|guid| guid.to_string());
        self.provider_guid.push(guid.as_deref());
        self.hook.push(hook);
        self.id.push(id);
        self.version.push(version);
        self.opcode.push(opcode);
    }

    fn push_count(&mut self, count: &KindCount) {
        self.first_ns.push(count.first_ns);
        self.last_ns.push(count.last_ns);
        self.count.push(count.events);
        self.size_bytes.push(count.bytes);
        self.least_payload_bytes.push(count.payload_min);
        self.greatest_payload_bytes.push(count.payload_max);
        self.stacks.push(count.stacks);
        self.buffer_offset_bytes.push(count.example.buffer_offset);
        self.record_offset_bytes.push(count.example.offset);
    }
}
