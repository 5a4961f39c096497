//! Names for ids and addresses at a moment.

use rustc_hash::FxHashMap;
use serde::Serialize;
use tables::{ImageTracker, ProcessTracker, Tables, ThreadTracker};

use crate::module_name::module_name;

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
        module_name(images.path.get(row), images.original_file_name.get(row))
    }

    /// File name of the kernel's module at an address.
    pub(super) fn kernel_module(&self, address: u64, time_ns: i64) -> Option<&'t str> {
        self.module(self.image(0, address, time_ns)?)
    }
}

/// Sums per process, found by thread or process id and time. Names are looked up once per id.
pub(super) struct PerProcess<'n, 't, T> {
    names: &'n Names<'t>,
    sums: Vec<(Process, T)>,
    by_process: FxHashMap<Process, usize>,
    by_thread: FxHashMap<(u32, Option<u32>), usize>,
}

impl<'n, 't, T: Default> PerProcess<'n, 't, T> {
    pub(super) fn new(names: &'n Names<'t>) -> PerProcess<'n, 't, T> {
        PerProcess {
            names,
            sums: Vec::new(),
            by_process: FxHashMap::default(),
            by_thread: FxHashMap::default(),
        }
    }

    /// The sum of the process that a thread belongs to.
    pub(super) fn of_thread(&mut self, thread_id: u32, time_ns: i64) -> &mut T {
        let process_id = self.names.process_of(thread_id, time_ns);
        // A reused process id has another name, but not while one thread lives.
        let key = (thread_id, process_id);
        let index = match self.by_thread.get(&key) {
            Some(index) => *index,
            None => {
                let index = self.index(self.names.process(process_id, time_ns));
                self.by_thread.insert(key, index);
                index
            }
        };
        &mut self.sums[index].1
    }

    /// The sum of a process that no thread is known of.
    pub(super) fn of_unknown(&mut self) -> &mut T {
        let index = self.index(Process {
            process_id: None,
            name: None,
        });
        &mut self.sums[index].1
    }

    fn index(&mut self, process: Process) -> usize {
        *self
            .by_process
            .entry(process)
            .or_insert_with_key(|process| {
                self.sums.push((process.clone(), T::default()));
                self.sums.len() - 1
            })
    }

    /// The processes with their sums, in the order in which they were met.
    pub(super) fn into_sums(self) -> Vec<(Process, T)> {
        self.sums
    }
}
