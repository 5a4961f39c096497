//! Files by key and time.

use std::borrow::Cow;
use std::collections::HashMap;

use events::kernel::FileName;

use crate::Table;
use crate::Volumes;
use crate::kept::KeptEvent;
use crate::unreadable::UnreadableEvents;

/// Opcodes of the events that name files.
const NAME: u8 = 0;
const FILE_CREATE: u8 = 32;

/// Finds the file that a key named at a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileTracker {
    /// What events say of each key, in the order of time.
    keys: HashMap<u64, Vec<Naming>>,
    paths: Vec<String>,
    volumes: Volumes,
}

/// An event that names a key.
#[derive(Clone, Copy, Debug)]
struct Naming {
    time_ns: i64,
    /// The key means that file from then on; else it did so before.
    begins: bool,
    /// Index of the path.
    path: u32,
}

impl FileTracker {
    /// Reads the events Name, FileCreate, FileDelete and FileRundown in time order.
    pub(crate) fn read(
        events: &[KeptEvent<'_>],
        volumes: &Volumes,
        unreadable: &mut UnreadableEvents,
    ) -> FileTracker {
        let mut tracker = FileTracker {
            volumes: volumes.clone(),
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
            let path = *indices.entry(nt_path).or_insert_with_key(|nt_path| {
                tracker.paths.push(volumes.to_dos(nt_path).into_owned());
                // Events are longer than 4 bytes each, and counted in 32 bits by their places.
                (tracker.paths.len() - 1) as u32
            });
            let of_key = tracker.keys.entry(name.file_object).or_default();
            of_key.push(Naming {
                time_ns: event.time_ns,
                begins: matches!(event.opcode(), NAME | FILE_CREATE),
                path,
            });
        }
        tracker
    }

    /// The path of the file that a key meant, with a drive letter where the trace maps its volume
    /// to one. A key keeps its file until it gets another, for what is written after its end.
    pub(crate) fn path(&self, key: u64, time_ns: i64) -> Option<&str> {
        let namings = self.keys.get(&key)?;
        let next = namings.partition_point(|naming| naming.time_ns <= time_ns);
        let told = match next.checked_sub(1) {
            Some(last) => namings[last],
            // Who is only told of later was there before, unless it began then.
            None => *namings.first().filter(|naming| !naming.begins)?,
        };
        self.paths.get(told.path as usize).map(String::as_str)
    }

    /// An NT path with a drive letter, if the trace maps its volume to one.
    pub(crate) fn to_dos<'p>(&self, nt_path: &'p str) -> Cow<'p, str> {
        self.volumes.to_dos(nt_path)
    }
}
