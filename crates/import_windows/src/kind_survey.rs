//! Counts of events by kind. The kind of an event is determined from its header.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::atomic::{AtomicU64, Ordering};

use etl::{BufferReader, BufferRef, Damage, Event, Guid, HeaderKind, Place, Trace, ext_type, le};
use events::Decoder;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHasher};
use tables::{Cancelled, Options};

/// Maximum number of kinds that one thread counts separately. Real traces have thousands of kinds. If a trace
/// has more kinds, the events of the additional kinds are counted together.
const MAX_KINDS: usize = 1 << 18;

/// Number of consecutive buffers that one thread reads as one task.
const BUFFERS_AT_ONCE: usize = 64;

/// Maximum number of recent kinds. An event is first compared with these kinds. The hash map is used only if no recent
/// kind matches.
const MAX_RECENT: usize = 16;

/// Types of extended items that contain a stack: `STACK_TRACE32`, `STACK_TRACE64`, `STACK_KEY32`,
/// `STACK_KEY64`.
const STACK_ITEMS: [u16; 4] = [5, 6, 17, 18];

/// A kind of event. Events of one kind have the same provider, name and layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// Kernel event with a compact header.
    Kernel {
        /// Hook id: group in the high byte, opcode in the low byte.
        hook: u16,
        /// Version of the layout.
        version: u8,
    },
    /// Classic event with a class GUID in its header.
    Classic {
        /// GUID of the event class.
        guid: Guid,
        /// Opcode of the events.
        opcode: u8,
        /// Version of the layout.
        version: u8,
    },
    /// Manifest, TraceLogging or EventSource event.
    Provider {
        /// GUID of the provider.
        guid: Guid,
        /// Id of the events.
        id: u16,
        /// Version of the layout.
        version: u8,
        /// Opcode of the events.
        opcode: u8,
        /// Hash of the name and layout in a TraceLogging event.
        tracelogging: Option<u64>,
    },
    /// WPP message.
    Message {
        /// GUID of the message's source file.
        guid: Option<Guid>,
        /// Number of the message within the source file.
        number: u16,
    },
    /// Record of an old format, or an old instance event. Only the kind of the header is known.
    Bare,
    /// Events of all further kinds. They were found after the maximum number of kinds was reached.
    Further,
}

/// Number, size and times of the events of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindCount {
    /// Number of events of the kind.
    pub events: u64,
    /// Size of the records of these events in bytes: headers, extended items and payloads.
    pub bytes: u64,
    /// Number of extended items with a stack.
    pub stacks: u64,
    /// Size of the smallest payload, in bytes.
    pub payload_min: u32,
    /// Size of the largest payload, in bytes.
    pub payload_max: u32,
    /// Time of the first event, in nanoseconds since the trace's start.
    pub first_ns: i64,
    /// Time of the last event, in nanoseconds since the trace's start.
    pub last_ns: i64,
    /// Position of the kind's first event in the files.
    pub example: Place,
}

impl KindCount {
    fn add(&mut self, other: KindCount) {
        self.events += other.events;
        self.bytes += other.bytes;
        self.stacks += other.stacks;
        self.payload_min = self.payload_min.min(other.payload_min);
        self.payload_max = self.payload_max.max(other.payload_max);
        self.first_ns = self.first_ns.min(other.first_ns);
        self.last_ns = self.last_ns.max(other.last_ns);
        self.example = self.example.min(other.example);
    }
}

/// Counts of the events of a trace.
#[derive(Debug, Default)]
pub struct KindSurvey {
    /// Counts by kind of header and kind of event.
    pub kinds: FxHashMap<(HeaderKind, EventKind), KindCount>,
    /// Number of extended items by type.
    pub extended_items: BTreeMap<u16, u64>,
    /// Buffers that contain descriptions of events.
    pub metadata: Vec<BufferRef>,
    /// Recent kinds of the buffer that is being read. To compare an event with a few kinds is faster than to
    /// hash the event.
    recent: Vec<(Fingerprint, EventKind, KindCount)>,
}

impl KindSurvey {
    /// Counts the events of a trace on several threads. Also returns the damage that was found.
    ///
    /// # Errors
    /// Returns an error if [`Options::progress`] asks to stop.
    pub fn read(trace: &Trace, options: Options<'_>) -> Result<(KindSurvey, Damage), Cancelled> {
        let done = AtomicU64::new(0);
        let read = |buffers: &[BufferRef]| {
            let mut survey = KindSurvey::default();
            let mut reader = BufferReader::new(trace);
            for buffer in buffers {
                let mut has_metadata = false;
                for event in reader.read(buffer) {
                    has_metadata |= events::is_metadata(&event);
                    survey.count(&event);
                }
                survey.end_buffer();
                survey.metadata.extend(has_metadata.then_some(*buffer));
                let bytes = u64::from(buffer.stored_size);
                let done = done.fetch_add(bytes, Ordering::Relaxed) + bytes;
                if !(options.progress)(done) {
                    return Err(Cancelled);
                }
            }
            Ok((survey, reader.take_damage()))
        };
        let parts = trace.buffers().par_chunks(BUFFERS_AT_ONCE).map(read);
        parts.try_reduce(Default::default, |mut one, other| {
            one.0.merge(other.0);
            one.1.merge(other.1);
            Ok(one)
        })
    }

    /// Returns the number of events of all kinds.
    pub fn total_events(&self) -> u64 {
        self.kinds.values().map(|count| count.events).sum()
    }

    /// Returns the counts by kind of event.
    pub fn by_kind(&self) -> FxHashMap<EventKind, KindCount> {
        let mut kinds: FxHashMap<EventKind, KindCount> = FxHashMap::default();
        for ((_, kind), count) in &self.kinds {
            kinds
                .entry(*kind)
                .and_modify(|known| known.add(*count))
                .or_insert(*count);
        }
        kinds
    }

    /// Returns the number of events by kind of header.
    pub fn by_header(&self) -> BTreeMap<HeaderKind, u64> {
        let mut headers = BTreeMap::new();
        for ((header, _), count) in &self.kinds {
            *headers.entry(*header).or_default() += count.events;
        }
        headers
    }

    /// Calls `visit` with the first event of each kind for which `wanted` returns true. Each buffer that
    /// contains such events is read once.
    pub fn visit_examples(
        &self,
        trace: &Trace,
        wanted: impl Fn(&EventKind) -> bool,
        mut visit: impl FnMut(HeaderKind, EventKind, &Event<'_>),
    ) {
        let kinds = self.kinds.iter().filter(|((_, kind), _)| wanted(kind));
        let mut examples: Vec<(Place, HeaderKind, EventKind)> = kinds
            .map(|((header, kind), count)| (count.example, *header, *kind))
            .collect();
        examples.sort_unstable();
        let buffers: FxHashMap<(u16, u64), &BufferRef> = (trace.buffers().iter())
            .map(|buffer| ((buffer.segment, buffer.offset), buffer))
            .collect();
        let mut reader = BufferReader::new(trace);
        let buffer_of = |place: &Place| (place.segment, place.buffer_offset);
        for group in examples.chunk_by(|a, b| buffer_of(&a.0) == buffer_of(&b.0)) {
            let Some(buffer) = buffers.get(&buffer_of(&group[0].0)) else {
                continue;
            };
            let mut rest = group.iter().peekable();
            for event in reader.read(buffer) {
                while let Some((_, header, kind)) = rest.next_if(|next| next.0 == event.place()) {
                    visit(*header, *kind, &event);
                }
            }
        }
    }

    /// Counts an event of the buffer that is being read.
    pub(crate) fn count(&mut self, event: &Event<'_>) {
        let mut stacks = 0;
        for item in event.extended_items() {
            *self.extended_items.entry(item.ext_type).or_default() += 1;
            stacks += u64::from(STACK_ITEMS.contains(&item.ext_type));
        }
        let payload = event.payload().len() as u32;
        let time_ns = event.time_ns();
        let count = KindCount {
            events: 1,
            bytes: event.record().len() as u64,
            stacks,
            payload_min: payload,
            payload_max: payload,
            first_ns: time_ns,
            last_ns: time_ns,
            example: event.place(),
        };
        let Some(fingerprint) = Fingerprint::new(event) else {
            return self.add((event.kind(), EventKind::new(event)), count);
        };
        match (self.recent.iter_mut()).find(|(recent, ..)| *recent == fingerprint) {
            Some((.., known)) => known.add(count),
            None => {
                if self.recent.len() == MAX_RECENT {
                    self.end_buffer();
                }
                self.recent
                    .push((fingerprint, EventKind::new(event), count));
            }
        }
    }

    /// Adds the counts of the recent kinds to the counts of all kinds.
    pub(crate) fn end_buffer(&mut self) {
        let mut recent = std::mem::take(&mut self.recent);
        for (fingerprint, kind, count) in recent.drain(..) {
            self.add((fingerprint.header, kind), count);
        }
        self.recent = recent;
    }

    fn add(&mut self, (header, mut kind): (HeaderKind, EventKind), count: KindCount) {
        if self.kinds.len() >= MAX_KINDS && !self.kinds.contains_key(&(header, kind)) {
            kind = EventKind::Further;
        }
        self.kinds
            .entry((header, kind))
            .and_modify(|known| known.add(count))
            .or_insert(count);
    }

    pub(crate) fn merge(&mut self, other: KindSurvey) {
        for (key, count) in other.kinds {
            self.add(key, count);
        }
        for (ext_type, count) in other.extended_items {
            *self.extended_items.entry(ext_type).or_default() += count;
        }
        self.metadata.extend(other.metadata);
    }
}

/// Reads the descriptions of events in the buffers `buffers`, beginning with the earliest buffer. Adds the
/// descriptions to a decoder.
pub fn learn(decoder: &mut Decoder, trace: &Trace, mut buffers: Vec<BufferRef>) {
    buffers.sort_by_key(|buffer| (buffer.segment, buffer.first_time, buffer.offset));
    let mut reader = BufferReader::new(trace);
    for buffer in &buffers {
        for event in reader.read(buffer).filter(events::is_metadata) {
            decoder.learn(&event);
        }
    }
    decoder.finish_learning();
}

/// Bytes of a header that determine the kind of an event. To compare two fingerprints is much faster than to
/// make an `EventKind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint {
    header: HeaderKind,
    id: u64,
    guid: u128,
}

impl Fingerprint {
    /// Returns the fingerprint of an event. Returns `None` if the header does not determine the kind of the
    /// event.
    #[inline]
    fn new(event: &Event<'_>) -> Option<Fingerprint> {
        let header = event.kind();
        if let Some(hook) = event.hook() {
            let id = u64::from(hook) << 8 | u64::from(event.version()?);
            return Some(Fingerprint {
                header,
                id,
                guid: 0,
            });
        }
        let id = match header {
            // These eight bytes are the id, version, channel, level, opcode and task.
            HeaderKind::EventHeader32 | HeaderKind::EventHeader64
                if event.header_flags() == Some(0) =>
            {
                le::u64(event.record(), 40)?
            }
            HeaderKind::Full32 | HeaderKind::Full64 => {
                u64::from(event.opcode()?) << 8 | u64::from(event.version()?)
            }
            _ => return None,
        };
        let guid = u128::from_le_bytes(event.guid()?.0);
        Some(Fingerprint { header, id, guid })
    }
}

impl EventKind {
    /// Returns the kind of an event.
    pub fn new(event: &Event<'_>) -> EventKind {
        let (opcode, version) = (event.opcode(), event.version());
        if let (Some(hook), Some(version)) = (event.hook(), version) {
            return EventKind::Kernel { hook, version };
        }
        if let Some(number) = event.message_number() {
            let guid = event.guid();
            return EventKind::Message { guid, number };
        }
        match (event.guid(), event.descriptor(), opcode, version) {
            (Some(guid), Some(descriptor), ..) => EventKind::Provider {
                guid,
                id: descriptor.id,
                version: descriptor.version,
                opcode: descriptor.opcode,
                tracelogging: tracelogging_schema(event).map(hash),
            },
            (Some(guid), None, Some(opcode), Some(version)) => EventKind::Classic {
                guid,
                opcode,
                version,
            },
            _ => EventKind::Bare,
        }
    }
}

/// Returns the bytes of the name and layout in a TraceLogging event.
pub fn tracelogging_schema<'a>(event: &Event<'a>) -> Option<&'a [u8]> {
    event
        .extended_items()
        .find(|item| item.ext_type == ext_type::TRACELOGGING_SCHEMA)
        .map(|item| item.data)
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(bytes);
    hasher.finish()
}
