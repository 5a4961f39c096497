//! Events that are few enough to be kept whole until all CPUs are read, because their meaning
//! hangs on their order over all CPUs.

use std::ops::Range;

use etl::{Event, Place};

/// Copies of events of one CPU stream.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    heads: Vec<Head>,
    payloads: Vec<u8>,
}

#[derive(Debug)]
struct Head {
    event: KeptEvent<'static>,
    payload: Range<usize>,
}

/// A kept event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeptEvent<'a> {
    /// Nanoseconds since the trace's start.
    pub(crate) time_ns: i64,
    /// Which event it is: a hook id, or the opcode of a class that has none.
    pub(crate) id: u16,
    /// Version of the payload's layout.
    pub(crate) version: u8,
    /// Bytes of a pointer in the payload.
    pub(crate) pointer_size: usize,
    /// The logging thread, if known.
    pub(crate) thread_id: Option<u32>,
    /// The logging process, if known.
    pub(crate) process_id: Option<u32>,
    /// Where it lies.
    pub(crate) place: Place,
    /// The payload.
    pub(crate) payload: &'a [u8],
}

impl KeptEvent<'_> {
    /// The low byte of [`KeptEvent::id`].
    pub(crate) fn opcode(&self) -> u8 {
        self.id as u8
    }
}

impl Kept {
    /// Keeps an event; always succeeds, as every payload is kept.
    pub(crate) fn push(&mut self, id: u16, event: &Event<'_>) -> Option<()> {
        // Rundown events name no thread.
        let known = |id: Option<u32>| id.filter(|id| *id != u32::MAX);
        let from = self.payloads.len();
        self.payloads.extend_from_slice(event.payload());
        self.heads.push(Head {
            event: KeptEvent {
                time_ns: event.time_ns(),
                id,
                version: event.version().unwrap_or(0),
                pointer_size: event.pointer_size(),
                thread_id: known(event.thread_id()),
                process_id: known(event.process_id()),
                place: event.place(),
                payload: &[],
            },
            payload: from..self.payloads.len(),
        });
        Some(())
    }

    fn iter(&self) -> impl Iterator<Item = KeptEvent<'_>> {
        self.heads.iter().map(|head| KeptEvent {
            payload: &self.payloads[head.payload.clone()],
            ..head.event
        })
    }
}

/// The kept events of all streams, in time order; events of equal time stay in stream order.
pub(crate) fn in_time_order<'k>(streams: impl Iterator<Item = &'k Kept>) -> Vec<KeptEvent<'k>> {
    let mut events: Vec<KeptEvent<'k>> = streams.flat_map(Kept::iter).collect();
    events.sort_by_key(|event| event.time_ns);
    events
}
