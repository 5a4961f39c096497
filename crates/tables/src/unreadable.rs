//! Events that are missing from tables because their payloads are unreadable.

use crate::Table;

/// Position of an event in a recording. A format uses the parts that it has; the others are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventPlace {
    /// Index of the part of the recording that one session wrote.
    pub segment: u16,
    /// Offset of the event's buffer in the file, in bytes.
    pub buffer_offset: u64,
    /// Offset of the event in the decompressed buffer, in bytes.
    pub offset: u32,
}

/// Events that are missing from a table, because their payloads are unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Table in which the events are missing.
    pub table: Table,
    /// Number of missing events.
    pub count: u64,
    /// Position in the trace of one event that is missing from the table.
    pub place: EventPlace,
}

/// Counts of unreadable events by table.
#[derive(Debug, Default)]
pub struct UnreadableEvents(Vec<Unreadable>);

impl UnreadableEvents {
    /// Counts one event.
    #[cold]
    pub fn add(&mut self, table: Table, place: EventPlace) {
        self.merge_one(Unreadable {
            table,
            count: 1,
            place,
        });
    }

    /// Adds the counts of another part of the trace.
    pub fn merge(&mut self, other: UnreadableEvents) {
        other.0.into_iter().for_each(|one| self.merge_one(one));
    }

    /// Returns the counts in the order of tables.
    pub fn into_sorted(mut self) -> Vec<Unreadable> {
        self.0.sort_by_key(|one| one.table);
        self.0
    }

    fn merge_one(&mut self, one: Unreadable) {
        match self.0.iter_mut().find(|known| known.table == one.table) {
            Some(known) => known.count += one.count,
            None => self.0.push(one),
        }
    }
}
