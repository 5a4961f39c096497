//! Look-up of files by key and time.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::volumes::Volumes;

/// Look-up of files. It finds the file to which a key belonged at a given time.
#[derive(Clone, Debug, Default)]
pub struct FileTracker {
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
    /// Creates a tracker without files.
    pub fn new(volumes: Volumes) -> FileTracker {
        FileTracker {
            volumes,
            ..FileTracker::default()
        }
    }

    /// Adds a path and returns its number.
    pub fn add_path(&mut self, nt_path: &str) -> u32 {
        self.paths.push(self.volumes.to_dos(nt_path).into_owned());
        // The cast is safe, because there are fewer than 2^32 events.
        (self.paths.len() - 1) as u32
    }

    /// Adds an event that states the file of a key. The events of a key must be added in time order. If `begins` is
    /// true, the key belongs to the file from the time of the event on, otherwise before this time. `path` is the number
    /// of the path.
    pub fn add(&mut self, key: u64, time_ns: i64, begins: bool, path: u32) {
        let namings = self.keys.entry(key).or_default();
        namings.push(Naming {
            time_ns,
            begins,
            path,
        });
    }

    /// Returns the path of the file to which a key belonged at a given time. The path has a drive letter if
    /// the trace maps the volume to a drive letter. A key belongs to a file until an event gives the key to
    /// another file.
    pub fn path(&self, key: u64, time_ns: i64) -> Option<&str> {
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
    pub fn to_dos<'p>(&self, nt_path: &'p str) -> Cow<'p, str> {
        self.volumes.to_dos(nt_path)
    }
}
