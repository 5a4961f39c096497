//! Counts of everything in a trace, by kind of event.

use std::collections::BTreeMap;

use etl::{Event, Events, HeaderKind};
use rustc_hash::FxHashMap;

use crate::key::{Fingerprint, Key};
use crate::pass::Collect;

/// Kinds told apart by one thread; real traces have thousands. Further ones are counted as one.
const MAX_KINDS: usize = 1 << 18;

/// Kinds of one buffer that are compared before they are hashed.
const MAX_RECENT: usize = 16;

/// How often a kind of event occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    /// Events.
    pub(crate) events: u64,
    /// Bytes of their records: headers, extended items and payloads.
    pub(crate) bytes: u64,
    /// Bytes of the smallest payload.
    pub(crate) payload_min: u32,
    /// Bytes of the largest payload.
    pub(crate) payload_max: u32,
    /// Where the first of them is.
    pub(crate) example: Position,
}

impl Count {
    fn add(&mut self, other: Count) {
        self.events += other.events;
        self.bytes += other.bytes;
        self.payload_min = self.payload_min.min(other.payload_min);
        self.payload_max = self.payload_max.max(other.payload_max);
        self.example = self.example.min(other.example);
    }
}

/// An event's place: number of its buffer in the trace, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// Index into [`etl::Trace::buffers`].
    pub(crate) buffer: u32,
    /// Index among the buffer's events.
    pub(crate) event: u32,
}

/// What is in a trace, by kind.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Events of each kind.
    pub(crate) kinds: FxHashMap<Key, Count>,
    /// Events per kind of header.
    pub(crate) header_kinds: BTreeMap<HeaderKind, u64>,
    /// Extended items per type.
    pub(crate) extended_items: BTreeMap<u16, u64>,
    /// Buffers, by number, with events that say what others mean.
    pub(crate) metadata_buffers: Vec<u32>,
    /// Kinds met in the present buffer: comparing a few is cheaper than hashing one.
    recent: Vec<(Fingerprint, HeaderKind, Key, Count)>,
}

impl Survey {
    /// Events of all kinds.
    pub(crate) fn total_events(&self) -> u64 {
        self.header_kinds.values().sum()
    }

    /// Counts one event of the present buffer.
    pub(crate) fn count(&mut self, at: Position, event: &Event<'_>) {
        for item in event.extended_items() {
            *self.extended_items.entry(item.ext_type).or_default() += 1;
        }
        if events::is_metadata(event) && self.metadata_buffers.last() != Some(&at.buffer) {
            self.metadata_buffers.push(at.buffer);
        }
        let payload = event.payload().len() as u32;
        let count = Count {
            events: 1,
            bytes: event.record().len() as u64,
            payload_min: payload,
            payload_max: payload,
            example: at,
        };
        let Some(fingerprint) = Fingerprint::of(event) else {
            *self.header_kinds.entry(event.kind()).or_default() += 1;
            return self.add(Key::of(event), count);
        };
        match self
            .recent
            .iter_mut()
            .find(|(recent, ..)| *recent == fingerprint)
        {
            Some((.., known)) => known.add(count),
            None => {
                if self.recent.len() == MAX_RECENT {
                    self.end_buffer();
                }
                self.recent
                    .push((fingerprint, event.kind(), Key::of(event), count));
            }
        }
    }

    /// Takes in what was counted of the present buffer.
    pub(crate) fn end_buffer(&mut self) {
        let mut recent = std::mem::take(&mut self.recent);
        for (_, kind, key, count) in recent.drain(..) {
            *self.header_kinds.entry(kind).or_default() += count.events;
            self.add(key, count);
        }
        self.recent = recent;
    }

    fn add(&mut self, mut key: Key, count: Count) {
        if self.kinds.len() >= MAX_KINDS && !self.kinds.contains_key(&key) {
            key = Key::Further;
        }
        self.kinds
            .entry(key)
            .and_modify(|known| known.add(count))
            .or_insert(count);
    }
}

impl Collect for Survey {
    fn buffer(&mut self, buffer: u32, events: Events<'_>) {
        for (event, index) in events.zip(0..) {
            let at = Position {
                buffer,
                event: index,
            };
            self.count(at, &event);
        }
        self.end_buffer();
    }

    fn merge(&mut self, other: Survey) {
        for (key, count) in other.kinds {
            self.add(key, count);
        }
        for (kind, count) in other.header_kinds {
            *self.header_kinds.entry(kind).or_default() += count;
        }
        for (ext_type, count) in other.extended_items {
            *self.extended_items.entry(ext_type).or_default() += count;
        }
        self.metadata_buffers.extend(other.metadata_buffers);
    }
}
