//! Events of the .NET runtime. Steps of the scenario's programs cause these events.

use std::io::{Seek, Write};

use super::Model;

/// State of the .NET runtime of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Runtime {
    /// Number of garbage collections so far.
    collections: u32,
    /// Generation of the last garbage collection.
    generation: u32,
}

impl<W: Write + Seek> Model<W> {
    /// Starts a garbage collection of the given generation in the process of the running thread. If `generation` is
    /// `None`, ends the last garbage collection.
    pub(super) fn collection(&mut self, c: usize, generation: Option<u8>) {
        let t = self.cpus[c].thread;
        let by = self.who(t);
        let process = self.threads[t].process;
        let runtime = &mut self.processes[process].runtime;
        let (cpu, now) = (c as u16, self.now);
        if let Some(generation) = generation {
            runtime.collections += 1;
            runtime.generation = generation.into();
            let (number, generation) = (runtime.collections, runtime.generation);
            self.log.collection_begins(cpu, now, by, number, generation);
            self.moment("collection", Some(process), Some(generation.into()));
        } else {
            let (number, generation) = (runtime.collections, runtime.generation);
            self.log.collection_ends(cpu, now, by, number, generation);
            self.moment("collected", Some(process), None);
        }
    }

    /// Changes the number of threads in the pool of the running thread's process.
    pub(super) fn pool_threads(&mut self, c: usize, threads: u32, starved: bool) {
        let t = self.cpus[c].thread;
        let by = self.who(t);
        self.log
            .pool_threads(c as u16, self.now, by, threads, starved);
        let what = if starved {
            "pool_starved"
        } else {
            "pool_threads"
        };
        let process = self.threads[t].process;
        self.moment(what, Some(process), Some(threads.into()));
    }
}
