//! Look-up of files by key and time.

use std::borrow::Cow;
use std::collections::HashMap;

use events::ids::hook;
use events::kernel::FileName;

use crate::Table;
use crate::event_buffer::BufferedEvent;
use crate::register::Reads;
use crate::unreadable::UnreadableEvents;
use crate::volumes::Volumes;

/// Events that give the path of a file. They are Name, FileCreate, FileDelete and FileRundown.
pub(crate) const FILE_NAME_EVENTS: Reads = Reads {
    hooks: &[
        hook::FILE_NAME..=hook::FILE_NAME,
        hook::FILE_NAME_CREATE..=hook::FILE_NAME_CREATE,
        hook::FILE_NAME_DELETE..=hook::FILE_NAME_RUNDOWN,
    ],
    ..Reads::NOTHING
};

/// Look-up of files. It finds the file to which a key belonged at a given time.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileTracker {
    /// Events about each key, in time order.
    keys: HashMap<u64, Vec<Naming>>,
    paths: Vec<String>,
    volumes: Volumes,
}

/// Event that states the file to which a key belongs.
#[derive(Clone, Copy, Debug)]
struct Naming {
    time_ns: i64,
    /// True if the key belongs to the file from the time of the event on. False if the key belonged to the
    /// file before this time.
    begins: bool,
    /// Index of the file's path in `paths`.
    path: u32,
}

impl FileTracker {
    /// Reads the buffered events of [`FILE_NAME_EVENTS`] in time order.
    pub(crate) fn read(
        events: &[BufferedEvent<'_>],
        volumes: Volumes,
        unreadable: &mut UnreadableEvents,
    ) -> FileTracker {
        let mut tracker = FileTracker {
            volumes,
            ..FileTracker::default()
        };
        let mut indices: HashMap<String, u32> = HashMap::new();
        for event in events {
            let name = FileName::read(event.payload, event.version, event.pointer_size);
            let Some(name) = name else {
                unreadable.add(Table::FileIo, event.place);
                continue;
            };
            let nt_path = name.name.to_string();
            let (paths, volumes) = (&mut tracker.paths, &tracker.volumes);
            let path = *indices.entry(nt_path).or_insert_with_key(|nt_path| {
                paths.push(volumes.to_dos(nt_path).into_owned());
                // The cast is safe, because there are fewer than 2^32 events.
                (paths.len() - 1) as u32
            });
            let namings = tracker.keys.entry(name.file_object).or_default();
            namings.push(Naming {
                time_ns: event.time_ns,
                begins: matches!(event.id, hook::FILE_NAME | hook::FILE_NAME_CREATE),
                path,
            });
        }
        tracker
    }

    /// Returns the path of the file to which a key belonged at a given time. The path has a drive letter if
    /// the trace maps the volume to a drive letter. A key belongs to a file until an event gives the key to
    /// another file.
    pub(crate) fn path(&self, key: u64, time_ns: i64) -> Option<&str> {
        let namings = self.keys.get(&key)?;
        let next = namings.partition_point(|naming| naming.time_ns <= time_ns);
        let naming = match next.checked_sub(1) {
            Some(last) => namings[last],
            // All events about the key are later than the given time. If the first event states the file to which the
            // key belonged before, this file is the result. If the first event gives the key to a file, the earlier
            // file is unknown.
            None => *namings.first().filter(|naming| !naming.begins)?,
        };
        self.paths.get(naming.path as usize).map(String::as_str)
    }

    /// Converts an NT path to a path with a drive letter. The path stays unchanged if the trace does not map
    /// its volume to a drive letter.
    pub(crate) fn to_dos<'p>(&self, nt_path: &'p str) -> Cow<'p, str> {
        self.volumes.to_dos(nt_path)
    }
}
