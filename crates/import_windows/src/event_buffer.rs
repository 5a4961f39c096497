//! Copies of rare events. All copies are kept until the streams of all CPUs are read. Then the copies are
//! interpreted in time order over all CPUs.

use std::ops::Range;

use tables::EventPlace;

use crate::place_of;
use crate::register::IncomingEvent;

/// Copies of events of one CPU stream.
#[derive(Debug, Default)]
pub(crate) struct EventBuffer {
    heads: Vec<Head>,
    payloads: Vec<u8>,
}

#[derive(Debug)]
struct Head {
    event: BufferedEvent<'static>,
    payload: Range<usize>,
}

/// A copy of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferedEvent<'a> {
    /// Nanoseconds since the trace's start.
    pub(crate) time_ns: i64,
    /// Hook id of a kernel event.
    pub(crate) hook: Option<u16>,
    /// Id of the event. It is the hook id of a kernel event, the event id of a manifest event, or the opcode
    /// of another classic event.
    pub(crate) id: u16,
    /// Version of the payload's layout.
    pub(crate) version: u8,
    /// Size of a pointer in the payload, in bytes.
    pub(crate) pointer_size: usize,
    /// Thread that logged the event, if known.
    pub(crate) thread_id: Option<u32>,
    /// Process that logged the event, if known.
    pub(crate) process_id: Option<u32>,
    /// Position of the event in the trace.
    pub(crate) place: EventPlace,
    pub(crate) payload: &'a [u8],
}

impl BufferedEvent<'_> {
    /// Returns the opcode of a kernel or classic event. The opcode is the low byte of [`BufferedEvent::id`].
    pub(crate) fn opcode(&self) -> u8 {
        self.id as u8
    }
}

impl EventBuffer {
    /// Copies an event.
    pub(crate) fn push(&mut self, incoming: &IncomingEvent<'_, '_>) {
        let event = incoming.event;
        // Rundown events list existing objects. The ids in their headers are `u32::MAX`, which means that they are
        // unknown.
        let known = |id: Option<u32>| id.filter(|id| *id != u32::MAX);
        let from = self.payloads.len();
        self.payloads.extend_from_slice(event.payload());
        self.heads.push(Head {
            event: BufferedEvent {
                time_ns: event.time_ns(),
                hook: incoming.hook,
                id: incoming.id(),
                version: event.version().unwrap_or(0),
                pointer_size: event.pointer_size(),
                thread_id: known(event.thread_id()),
                process_id: known(event.process_id()),
                place: place_of(event),
                payload: &[],
            },
            payload: from..self.payloads.len(),
        });
    }

    fn iter(&self) -> impl Iterator<Item = BufferedEvent<'_>> {
        self.heads.iter().map(|head| BufferedEvent {
            payload: &self.payloads[head.payload.clone()],
            ..head.event
        })
    }
}

/// Returns the events of all streams in time order. Events of equal time stay in the order of the streams.
pub(crate) fn in_time_order<'b>(
    streams: impl Iterator<Item = &'b EventBuffer>,
) -> Vec<BufferedEvent<'b>> {
    let mut events: Vec<BufferedEvent<'b>> = streams.flat_map(EventBuffer::iter).collect();
    events.sort_by_key(|event| event.time_ns);
    events
}
