//! Paths of files by key.

use std::collections::HashMap;

use events::ids::hook;
use events::kernel::FileName;
use tables::Table;
use tables::import::{FileTracker, UnreadableEvents, Volumes};

use crate::event_buffer::BufferedEvent;
use crate::register::Reads;

/// Events that give the path of a file. They are Name, FileCreate, FileDelete and FileRundown.
pub(crate) const EVENTS: Reads = Reads {
    hooks: &[
        hook::FILE_NAME..=hook::FILE_NAME,
        hook::FILE_NAME_CREATE..=hook::FILE_NAME_CREATE,
        hook::FILE_NAME_DELETE..=hook::FILE_NAME_RUNDOWN,
    ],
    ..Reads::NOTHING
};

/// Reads the buffered events of [`EVENTS`] in time order.
pub(crate) fn read(
    events: &[BufferedEvent<'_>],
    volumes: Volumes,
    unreadable: &mut UnreadableEvents,
) -> FileTracker {
    let mut tracker = FileTracker::new(volumes);
    let mut paths: HashMap<String, u32> = HashMap::new();
    for event in events {
        let name = FileName::read(event.payload, event.version, event.pointer_size);
        let Some(name) = name else {
            unreadable.add(Table::FileIo, event.place);
            continue;
        };
        let path = *(paths.entry(name.name.to_string()))
            .or_insert_with_key(|nt_path| tracker.add_path(nt_path));
        let begins = matches!(event.id, hook::FILE_NAME | hook::FILE_NAME_CREATE);
        tracker.add(name.file_object, event.time_ns, begins, path);
    }
    tracker
}
