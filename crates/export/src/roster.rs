//! Processes and threads of a trace, indexed by their rows in the tables.

use rustc_hash::FxHashSet;
use tables::{Life, Lifetimes, ProcessesView, Table, ThreadsView};

use super::part::Part;
use crate::Error;

/// Processes and threads of a trace.
#[derive(Debug, Default)]
pub(super) struct Roster {
    /// Processes, indexed by `process_row`.
    pub(super) processes: Vec<Process>,
    /// Threads, indexed by `thread_row`.
    pub(super) threads: Vec<Thread>,
    lifetimes: Lifetimes,
}

/// A process of the trace.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) process_id: u32,
    /// Unique id in the export: the process id, or an unused id if an earlier process has the same
    /// process id.
    pub(super) unique_id: u32,
    pub(super) parent_id: u32,
    pub(super) name: String,
    pub(super) command_line: Option<String>,
    pub(super) first_seen_ns: i64,
    pub(super) start_ns: Option<i64>,
    pub(super) end_ns: Option<i64>,
}

/// A thread of the trace.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) thread_id: u32,
    /// Unique id in the export: the thread id, or an unused id if an earlier thread has the same thread id. Idle
    /// threads have 0.
    pub(super) unique_id: u32,
    pub(super) process_id: u32,
    /// Row of the thread's process, if it is known.
    pub(super) process_row: Option<usize>,
    pub(super) name: Option<String>,
    pub(super) start_ns: Option<i64>,
    pub(super) end_ns: Option<i64>,
}

impl Roster {
    /// Reads the processes and threads of the trace.
    ///
    /// # Errors
    /// Returns an error if the tables cannot be read.
    pub(super) fn read(part: &Part<'_>) -> Result<Roster, Error> {
        let mut roster = Roster::default();
        let columns = [
            "first_seen_ns",
            "start_ns",
            "end_ns",
            "process_id",
            "parent_id",
            "image_name",
            "command_line",
        ];
        for batch in part.rows(Table::Processes, &columns)? {
            let batch = batch?;
            let view = ProcessesView::new(&batch)?;
            roster
                .processes
                .extend((0..batch.num_rows()).map(|row| Process {
                    process_id: view.process_id[row],
                    unique_id: 0,
                    parent_id: view.parent_id[row],
                    name: process_name(view.process_id[row], view.image_name.get(row)),
                    command_line: view.command_line.get(row).map(str::to_owned),
                    first_seen_ns: view.first_seen_ns[row],
                    start_ns: view.start_ns.get(row),
                    end_ns: view.end_ns.get(row),
                }));
        }
        let columns = [
            "first_seen_ns",
            "start_ns",
            "end_ns",
            "thread_id",
            "process_id",
            "name",
        ];
        roster.lifetimes = lifetimes(&roster.processes);
        for batch in part.rows(Table::Threads, &columns)? {
            let batch = batch?;
            let view = ThreadsView::new(&batch)?;
            let lifetimes = &roster.lifetimes;
            roster.threads.extend((0..batch.num_rows()).map(|row| {
                // A thread of an unknown process is exported as the thread of a process with the same id.
                let process_id = view.process_id.get(row).unwrap_or(view.thread_id[row]);
                Thread {
                    thread_id: view.thread_id[row],
                    unique_id: 0,
                    process_id,
                    process_row: lifetimes.at_or_first(process_id, view.first_seen_ns[row]),
                    name: view.name.get(row).map(str::to_owned),
                    start_ns: view.start_ns.get(row),
                    end_ns: view.end_ns.get(row),
                }
            }));
        }
        roster.tell_apart();
        Ok(roster)
    }

    /// Gives each process and thread a unique id. As in Windows, processes and threads get their ids from one
    /// common pool.
    fn tell_apart(&mut self) {
        let processes = self.processes.iter().map(|process| process.process_id);
        let threads = self.threads.iter().map(|thread| thread.thread_id);
        let in_trace: FxHashSet<u32> = processes.chain(threads).collect();
        let mut fresh = in_trace.iter().max().copied().unwrap_or(0);
        let mut ids = FxHashSet::default();
        let mut unique = |id: u32| {
            if id == 0 || ids.insert(id) {
                return id;
            }
            loop {
                fresh = fresh.wrapping_add(1);
                if fresh != 0 && !in_trace.contains(&fresh) && ids.insert(fresh) {
                    return fresh;
                }
            }
        };
        for process in &mut self.processes {
            process.unique_id = unique(process.process_id);
        }
        for thread in &mut self.threads {
            thread.unique_id = unique(thread.thread_id);
        }
    }

    /// Returns the unique id of the thread in a row. If the row is not known, returns `thread_id`.
    pub(super) fn unique_thread_id(&self, thread_row: Option<u32>, thread_id: u32) -> u32 {
        let known = thread_row.and_then(|row| self.threads.get(row as usize));
        known.map_or(thread_id, |thread| thread.unique_id)
    }

    /// Returns the row of the process that had the id at a time. If the time is before the first process with the id,
    /// returns the row of this first process.
    pub(super) fn process_row(&self, process_id: u32, time_ns: i64) -> Option<usize> {
        self.lifetimes.at_or_first(process_id, time_ns)
    }

    /// Returns the process of the thread in a row.
    pub(super) fn process_of(&self, thread_row: u32) -> Option<&Process> {
        let thread = self.threads.get(thread_row as usize)?;
        self.processes.get(thread.process_row?)
    }
}

/// Returns the name of a process. On every machine, the ids 0 and 4 mean the processes Idle and
/// System.
pub(super) fn process_name(process_id: u32, image_name: Option<&str>) -> String {
    match (process_id, image_name) {
        (0, _) => "Idle".to_owned(),
        (_, Some(name)) if !name.is_empty() => name.to_owned(),
        (4, _) => "System".to_owned(),
        _ => format!("process {process_id}"),
    }
}

/// Returns the lifetimes of processes. Rundowns report threads before their processes. A thread
/// that is seen before any process with its process id therefore belongs to the first such process.
fn lifetimes(processes: &[Process]) -> Lifetimes {
    Lifetimes::new(processes.iter().map(|process| Life {
        id: process.process_id,
        first_seen_ns: process.first_seen_ns,
        start_ns: process.start_ns,
        end_ns: process.end_ns,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(process_id: u32, start_ns: Option<i64>, first_seen_ns: i64) -> Process {
        Process {
            process_id,
            unique_id: 0,
            parent_id: 0,
            name: String::new(),
            command_line: None,
            first_seen_ns,
            start_ns,
            end_ns: None,
        }
    }

    #[test]
    fn no_two_have_one_id() {
        let thread = |thread_id| Thread {
            thread_id,
            unique_id: 0,
            process_id: 8,
            process_row: None,
            name: None,
            start_ns: None,
            end_ns: None,
        };
        let mut roster = Roster {
            processes: vec![process(8, None, 0), process(8, Some(5), 5)],
            threads: [0, 12, 12, 8, u32::MAX, 0].map(thread).into(),
            lifetimes: Lifetimes::default(),
        };
        roster.tell_apart();
        let processes: Vec<u32> = roster.processes.iter().map(|p| p.unique_id).collect();
        let threads: Vec<u32> = roster.threads.iter().map(|t| t.unique_id).collect();
        // The first process keeps its id. After the maximum, ids start again at 1.
        assert_eq!(processes, [8, 1]);
        assert_eq!(threads, [0, 12, 2, 3, u32::MAX, 0]);
        assert_eq!(roster.unique_thread_id(Some(2), 12), 2);
        assert_eq!(roster.unique_thread_id(None, 44), 44);
    }

    #[test]
    fn a_thread_is_of_the_process_that_lived_then() {
        let processes = [
            process(8, None, 3),
            process(8, Some(10), 10),
            process(9, Some(7), 7),
        ];
        let lifetimes = lifetimes(&processes);
        assert_eq!(lifetimes.at_or_first(8, 0), Some(0));
        assert_eq!(lifetimes.at_or_first(8, 9), Some(0));
        assert_eq!(lifetimes.at_or_first(8, 10), Some(1));
        assert_eq!(lifetimes.at_or_first(9, 0), Some(2));
        assert_eq!(lifetimes.at_or_first(10, 0), None);
    }
}
