//! Processes and threads of a profile. A thread is added when it is first used.

use fxprof_processed_profile::{ProcessHandle, Profile, ThreadHandle, Timestamp};
use rustc_hash::FxHashMap;

use super::moment;
use crate::roster::Roster;

/// Thread to which an event belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Who {
    /// Idle thread of a CPU.
    Cpu(u16),
    /// Thread in a row of the table `threads`.
    Row(u32),
    /// Thread that has no row. The number is the id of the thread.
    Unknown(u32),
}

impl Who {
    /// Returns the thread to which an event on a CPU belongs. Thread id 0 means the CPU's idle
    /// thread.
    pub(super) fn new(thread_id: u32, thread_row: Option<u32>, cpu: impl Into<Option<u16>>) -> Who {
        match (thread_id, thread_row, cpu.into()) {
            (0, _, Some(cpu)) => Who::Cpu(cpu),
            (_, Some(row), _) => Who::Row(row),
            (id, None, _) => Who::Unknown(id),
        }
    }
}

/// Threads of a profile.
pub(super) struct Threads<'r> {
    roster: &'r Roster,
    /// Processes of the profile, indexed by `process_row`.
    processes: Vec<ProcessHandle>,
    /// Row of the first thread of each process, which becomes its main thread.
    main_threads: Vec<Option<usize>>,
    idle: Option<ProcessHandle>,
    unknown: Option<ProcessHandle>,
    threads: FxHashMap<Who, ThreadHandle>,
}

impl<'r> Threads<'r> {
    /// Adds all processes to the profile. The profiler hides processes without threads.
    pub(super) fn new(roster: &'r Roster, profile: &mut Profile) -> Threads<'r> {
        let mut idle = None;
        let mut processes = Vec::with_capacity(roster.processes.len());
        for process in &roster.processes {
            let start = moment(process.start_ns.unwrap_or(0));
            let handle = profile.add_process(&process.name, process.process_id, start);
            if let Some(end_ns) = process.end_ns {
                profile.set_process_end_time(handle, moment(end_ns));
            }
            if process.process_id == 0 {
                idle = Some(handle);
            }
            processes.push(handle);
        }
        let mut main_threads = vec![None; roster.processes.len()];
        for (row, thread) in roster.threads.iter().enumerate() {
            if let Some(process) = thread.process_row {
                main_threads[process].get_or_insert(row);
            }
        }
        Threads {
            roster,
            processes,
            main_threads,
            idle,
            unknown: None,
            threads: FxHashMap::default(),
        }
    }

    /// Returns the profile's process for a row of the table `processes`.
    pub(super) fn process(&self, row: usize) -> Option<ProcessHandle> {
        self.processes.get(row).copied()
    }

    /// Returns the profile's thread for a thread of the trace. Adds the thread to the profile on first use.
    pub(super) fn handle(&mut self, who: Who, profile: &mut Profile) -> ThreadHandle {
        if let Some(handle) = self.threads.get(&who) {
            return *handle;
        }
        let handle = self.add(who, profile);
        self.threads.insert(who, handle);
        handle
    }

    fn add(&mut self, who: Who, profile: &mut Profile) -> ThreadHandle {
        let begin = moment(0);
        let row = match who {
            Who::Cpu(cpu) => {
                let process = *self
                    .idle
                    .get_or_insert_with(|| profile.add_process("Idle", 0, begin));
                return named(profile, process, u32::from(cpu), &format!("CPU {cpu}"));
            }
            Who::Row(row) => row as usize,
            Who::Unknown(id) => return self.add_unknown(id, profile),
        };
        let Some(thread) = self.roster.threads.get(row) else {
            return self.add_unknown(0, profile);
        };
        let process_row = thread.process_row;
        let process = match process_row {
            Some(row) => self.processes[row],
            None => self.unknown(profile, begin),
        };
        let is_main = process_row.is_some_and(|process| self.main_threads[process] == Some(row));
        let start = moment(thread.start_ns.unwrap_or(0));
        let handle = profile.add_thread(process, thread.thread_id, start, is_main);
        if let Some(end_ns) = thread.end_ns {
            profile.set_thread_end_time(handle, moment(end_ns));
        }
        let name = thread.name.as_deref().filter(|name| !name.is_empty());
        let name = name.map_or_else(|| format!("thread {}", thread.thread_id), str::to_owned);
        profile.set_thread_name(handle, &name);
        handle
    }

    fn add_unknown(&mut self, thread_id: u32, profile: &mut Profile) -> ThreadHandle {
        let process = self.unknown(profile, moment(0));
        named(profile, process, thread_id, &format!("thread {thread_id}"))
    }

    /// Returns the profile's process for all threads whose process is unknown.
    fn unknown(&mut self, profile: &mut Profile, begin: Timestamp) -> ProcessHandle {
        *self
            .unknown
            .get_or_insert_with(|| profile.add_process("unknown process", u32::MAX, begin))
    }
}

fn named(profile: &mut Profile, process: ProcessHandle, id: u32, name: &str) -> ThreadHandle {
    let handle = profile.add_thread(process, id, moment(0), false);
    profile.set_thread_name(handle, name);
    handle
}
