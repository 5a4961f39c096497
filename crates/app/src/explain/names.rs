//! Names for ids and addresses at a moment.

use serde::Serialize;
use tables::{ImageTracker, ProcessTracker, Tables, ThreadTracker};

/// Finds processes, threads and modules in the tables.
pub(super) struct Names<'t> {
    tables: &'t Tables,
    processes: ProcessTracker<'t>,
    threads: ThreadTracker<'t>,
    images: ImageTracker,
}

/// A process as far as the trace tells it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub(crate) struct Process {
    /// Its id; `None` if the trace does not say which process a thread belongs to.
    pub(crate) process_id: Option<u32>,
    /// Its image's file name.
    pub(crate) name: Option<String>,
}

impl Process {
    /// How it is called for people.
    pub(crate) fn label(&self) -> String {
        match (&self.name, self.process_id) {
            (Some(name), Some(id)) => format!("{name} ({id})"),
            (None, Some(id)) => format!("process {id}"),
            _ => "unknown process".to_owned(),
        }
    }
}

impl<'t> Names<'t> {
    pub(super) fn new(tables: &'t Tables) -> Names<'t> {
        Names {
            tables,
            processes: ProcessTracker::new(&tables.processes),
            threads: ThreadTracker::new(&tables.threads),
            images: ImageTracker::new(&tables.images),
        }
    }

    /// The process of a thread.
    pub(super) fn process_of(&self, thread_id: u32, time_ns: i64) -> Option<u32> {
        self.threads.process_id(thread_id, time_ns)
    }

    /// A process by its id.
    pub(super) fn process(&self, process_id: Option<u32>, time_ns: i64) -> Process {
        let name = process_id.and_then(|id| self.processes.name(id, time_ns));
        Process {
            process_id,
            name: name.map(str::to_owned),
        }
    }

    /// The process that a thread belongs to.
    pub(super) fn owner(&self, thread_id: u32, time_ns: i64) -> Process {
        self.process(self.process_of(thread_id, time_ns), time_ns)
    }

    /// The row in the table of images of the module at an address of a process.
    pub(super) fn image(&self, process_id: u32, address: u64, time_ns: i64) -> Option<usize> {
        self.images.lookup(process_id, address, time_ns)
    }

    /// File name of a module, by its row in the table of images.
    pub(super) fn module(&self, row: usize) -> Option<&'t str> {
        let images = &self.tables.images;
        let path = images
            .path
            .get(row)
            .or(images.original_file_name.get(row))?;
        Some(path.rsplit(['\\', '/']).next().unwrap_or(path))
    }

    /// File name of the kernel's module at an address.
    pub(super) fn kernel_module(&self, address: u64, time_ns: i64) -> Option<&'t str> {
        self.module(self.image(0, address, time_ns)?)
    }
}
