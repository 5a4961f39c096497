//! Processes and threads of a recording of Linux.

use linux::{Event, EventKind, Meaning};
use rustc_hash::FxHashMap;

use crate::{Processes, Threads};

/// Facts about threads and processes, in the order in which they were found.
#[derive(Debug, Default)]
pub(super) struct Lives {
    facts: Vec<(i64, Fact)>,
    /// Threads that ran or became ready: when first, and their process or name if an event has it.
    seen: FxHashMap<u32, Seen>,
}

/// First sign of a thread.
#[derive(Clone, Debug)]
struct Seen {
    time_ns: i64,
    process_id: Option<u32>,
    name: Option<String>,
}

#[derive(Debug)]
enum Fact {
    /// A thread has a name, or gets a new one. With `is_exec`, its process started a new program.
    Name {
        thread_id: u32,
        process_id: Option<u32>,
        name: String,
        is_exec: bool,
    },
    /// A thread exists, or started if the time is known.
    Started {
        thread_id: u32,
        process_id: u32,
        creator: (u32, u32),
        is_new: bool,
    },
    /// A thread ended.
    Ended { thread_id: u32 },
}

impl Lives {
    pub(super) fn add(&mut self, time_ns: i64, event: &Event<'_>) {
        match &event.kind {
            EventKind::Name { name, is_exec } => {
                if let Some(thread_id) = event.thread_id {
                    let fact = Fact::Name {
                        thread_id,
                        process_id: event.process_id,
                        name: name.clone(),
                        is_exec: *is_exec,
                    };
                    self.facts.push((time_ns, fact));
                }
            }
            EventKind::Started {
                parent_process_id,
                parent_thread_id,
            } => {
                if let Some((process_id, thread_id)) = event.process_id.zip(event.thread_id) {
                    let fact = Fact::Started {
                        thread_id,
                        process_id,
                        creator: (*parent_process_id, *parent_thread_id),
                        is_new: event.time_ns.is_some(),
                    };
                    self.facts.push((time_ns, fact));
                }
            }
            EventKind::Ended => {
                if let Some(thread_id) = event.thread_id {
                    self.facts.push((time_ns, Fact::Ended { thread_id }));
                }
            }
            EventKind::Tracepoint { tracepoint, .. } => {
                if let Some(thread_id) = event.thread_id {
                    self.see(time_ns, thread_id, event.process_id, None);
                }
                self.add_meaning(time_ns, tracepoint.meaning);
            }
            _ => {}
        }
    }

    fn add_meaning(&mut self, time_ns: i64, meaning: Meaning<'_>) {
        match meaning {
            Meaning::Switch(switch) => {
                for thread in [switch.previous, switch.next] {
                    self.see(time_ns, thread.thread_id, None, Some(thread.name));
                }
            }
            Meaning::Waking(woken) | Meaning::WakeupNew(woken) => {
                self.see(time_ns, woken.thread_id, None, Some(woken.name));
            }
            Meaning::Rename { thread_id, name } => {
                let fact = Fact::Name {
                    thread_id,
                    process_id: None,
                    name: String::from_utf8_lossy(name).into_owned(),
                    is_exec: false,
                };
                self.facts.push((time_ns, fact));
            }
            Meaning::Exit { thread_id } => {
                self.facts.push((time_ns, Fact::Ended { thread_id }));
            }
            _ => {}
        }
    }

    fn see(&mut self, time_ns: i64, thread_id: u32, process_id: Option<u32>, name: Option<&[u8]>) {
        let seen = self.seen.entry(thread_id).or_insert(Seen {
            time_ns,
            process_id: None,
            name: None,
        });
        seen.time_ns = seen.time_ns.min(time_ns);
        seen.process_id = seen.process_id.or(process_id);
        if seen.name.is_none() {
            seen.name = name.map(|name| String::from_utf8_lossy(name).into_owned());
        }
    }

    /// Adds the facts of another part of the recording.
    pub(super) fn merge(&mut self, other: Lives) {
        self.facts.extend(other.facts);
        for (thread_id, found) in other.seen {
            match self.seen.get_mut(&thread_id) {
                Some(seen) => {
                    seen.time_ns = seen.time_ns.min(found.time_ns);
                    seen.process_id = seen.process_id.or(found.process_id);
                    seen.name = seen.name.take().or(found.name);
                }
                None => {
                    self.seen.insert(thread_id, found);
                }
            }
        }
    }

    /// Makes the tables of processes and threads.
    pub(super) fn into_tables(mut self) -> (Processes, Threads) {
        self.facts.sort_by_key(|(time_ns, _)| *time_ns);
        let mut known = Known::default();
        for (time_ns, fact) in self.facts {
            known.take(time_ns, fact);
        }
        let mut seen: Vec<_> = self.seen.into_iter().filter(|(id, _)| *id != 0).collect();
        seen.sort_by_key(|(id, seen)| (seen.time_ns, *id));
        for (thread_id, seen) in seen {
            known.see(thread_id, seen);
        }
        known.into_tables()
    }
}

/// A process or a thread.
#[derive(Debug)]
struct Life {
    first_seen_ns: i64,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
    id: u32,
    /// Process of a thread; parent of a process.
    process_id: Option<u32>,
    /// Process and thread that started it.
    creator: Option<(u32, u32)>,
    name: Option<String>,
}

/// Processes and threads found so far.
#[derive(Debug, Default)]
struct Known {
    threads: Vec<Life>,
    processes: Vec<Life>,
    /// Latest thread and latest process of each id.
    latest_threads: FxHashMap<u32, usize>,
    latest_processes: FxHashMap<u32, usize>,
}

/// Finds the living row of an id, or adds a row.
fn living<'l>(
    lives: &'l mut Vec<Life>,
    latest: &mut FxHashMap<u32, usize>,
    id: u32,
    time_ns: i64,
) -> &'l mut Life {
    let row = latest.get(&id).copied();
    let row = row.filter(|row| lives[*row].end_ns.is_none());
    let row = row.unwrap_or_else(|| {
        lives.push(Life {
            first_seen_ns: time_ns,
            start_ns: None,
            end_ns: None,
            id,
            process_id: None,
            creator: None,
            name: None,
        });
        latest.insert(id, lives.len() - 1);
        lives.len() - 1
    });
    &mut lives[row]
}

impl Known {
    fn thread(&mut self, id: u32, time_ns: i64) -> &mut Life {
        living(&mut self.threads, &mut self.latest_threads, id, time_ns)
    }

    fn process(&mut self, id: u32, time_ns: i64) -> &mut Life {
        living(&mut self.processes, &mut self.latest_processes, id, time_ns)
    }

    fn take(&mut self, time_ns: i64, fact: Fact) {
        match fact {
            Fact::Started {
                thread_id,
                process_id,
                creator,
                is_new,
            } => {
                let start_ns = is_new.then_some(time_ns);
                let thread = self.thread(thread_id, time_ns);
                thread.start_ns = thread.start_ns.or(start_ns);
                thread.process_id = Some(process_id);
                thread.creator = is_new.then_some(creator);
                let is_process = thread_id == process_id;
                let process = self.process(process_id, time_ns);
                if is_process {
                    process.start_ns = process.start_ns.or(start_ns);
                    process.process_id = Some(creator.0);
                    // A new process has the program of its parent until it starts another one.
                    let parent = self.latest_processes.get(&creator.0);
                    let name = parent.and_then(|row| self.processes[*row].name.clone());
                    let process = self.process(process_id, time_ns);
                    process.name = process.name.take().or(name);
                }
            }
            Fact::Name {
                thread_id,
                process_id,
                name,
                is_exec,
            } => {
                let thread = self.thread(thread_id, time_ns);
                thread.name = Some(name.clone());
                thread.process_id = thread.process_id.or(process_id);
                let process_id = thread.process_id;
                if let Some(process_id) = process_id {
                    let process = self.process(process_id, time_ns);
                    if is_exec || process.name.is_none() && thread_id == process_id {
                        process.name = Some(name);
                    }
                }
            }
            Fact::Ended { thread_id } => {
                let Some(row) = self.latest_threads.get(&thread_id) else {
                    return;
                };
                let thread = &mut self.threads[*row];
                thread.end_ns = thread.end_ns.or(Some(time_ns));
                // A process ends with its first thread, except for rare programs that end this thread early.
                if thread.process_id == Some(thread_id)
                    && let Some(row) = self.latest_processes.get(&thread_id)
                {
                    let process = &mut self.processes[*row];
                    process.end_ns = process.end_ns.or(Some(time_ns));
                }
            }
        }
    }

    /// Adds what switches and wake-ups tell of a thread.
    fn see(&mut self, thread_id: u32, seen: Seen) {
        if !self.latest_threads.contains_key(&thread_id) {
            self.thread(thread_id, seen.time_ns);
        }
        let row = self.latest_threads[&thread_id];
        let thread = &mut self.threads[row];
        thread.process_id = thread.process_id.or(seen.process_id);
        thread.name = thread.name.take().or(seen.name);
        let (process_id, name) = (thread.process_id, thread.name.clone());
        if let Some(process_id) = process_id
            && !self.latest_processes.contains_key(&process_id)
        {
            let process = self.process(process_id, seen.time_ns);
            process.name = name.filter(|_| process_id == thread_id);
        }
    }

    fn into_tables(mut self) -> (Processes, Threads) {
        // A thread without a known process is not in the tables, because every thread there has one.
        self.threads.retain(|thread| thread.process_id.is_some());
        self.threads.sort_by_key(|life| life.first_seen_ns);
        self.processes.sort_by_key(|life| life.first_seen_ns);
        let mut threads = Threads::default();
        for life in &self.threads {
            threads.push_of_linux(life);
        }
        let mut processes = Processes::default();
        for life in &self.processes {
            processes.push_of_linux(life);
        }
        (processes, threads)
    }
}

impl Threads {
    fn push_of_linux(&mut self, life: &Life) {
        self.first_seen_ns.push(life.first_seen_ns);
        self.start_ns.push(life.start_ns);
        self.end_ns.push(life.end_ns);
        self.thread_id.push(life.id);
        self.process_id.push(life.process_id.unwrap_or_default());
        self.creator_process_id
            .push(life.creator.map(|(process, _)| process));
        self.creator_thread_id
            .push(life.creator.map(|(_, thread)| thread));
        self.name.push(life.name.as_deref());
        self.win32_start_address.push(None);
        self.start_address.push(None);
        self.affinity.push(None);
        self.stack_base.push(None);
        self.stack_limit.push(None);
        self.user_stack_base.push(None);
        self.user_stack_limit.push(None);
        self.teb.push(None);
        self.sub_process_tag.push(None);
        self.service.push(None);
        self.base_priority.push(None);
        self.page_priority.push(None);
        self.io_priority.push(None);
    }
}

impl Processes {
    fn push_of_linux(&mut self, life: &Life) {
        self.first_seen_ns.push(life.first_seen_ns);
        self.start_ns.push(life.start_ns);
        self.end_ns.push(life.end_ns);
        self.last_thread_end_ns.push(None);
        self.process_id.push(life.id);
        self.parent_id.push(life.process_id.unwrap_or_default());
        self.session_id.push(None);
        self.image_name.push(life.name.as_deref());
        self.command_line.push(None);
        self.package_full_name.push(None);
        self.application_id.push(None);
        self.user_sid.push(None);
        self.flags.push(None);
        self.exit_status.push(None);
        self.unique_key.push(None);
        self.directory_table_base.push(None);
        self.defunct_ns.push(None);
    }
}
