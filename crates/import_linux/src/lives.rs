//! Processes and threads of a recording of Linux.

use linux::{Event, EventKind, Meaning, Recorder, Recording, ThreadName, Tracepoint};
use rustc_hash::FxHashMap;

use tables::{Processes, Threads};

use crate::proc_facts::ProcFacts;

/// Facts about processes and threads, collected from the events of a recording or of a part of it.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    facts: Vec<(i64, Fact)>,
    /// First sign of each thread in tracepoint events, by thread id.
    seen: FxHashMap<u32, FirstSign>,
    /// True if the recording does not have the ids of processes. trace-cmd records none, and a text
    /// may have none.
    lacks_processes: bool,
    /// True if the recording does not state whether a thread with a new name started a new program.
    lacks_execs: bool,
    /// Names of threads at the end of a recording without process ids, by thread id.
    names: FxHashMap<u32, String>,
}

/// Flag of the system call `clone`: the new thread belongs to the process of its creator.
const CLONE_THREAD: u64 = 0x1_0000;
/// Maximum length in bytes of a thread's name.
const LONGEST_NAME: usize = 15;

/// First sign of a thread: the time of the first event that shows the thread. Also has the process and the name of the
/// thread, if an event contains them.
#[derive(Clone, Debug)]
struct FirstSign {
    time_ns: i64,
    process_id: Option<u32>,
    name: Option<String>,
}

#[derive(Debug)]
enum Fact {
    /// A thread has this name from now on. If `is_exec` is true, its process started a new program, so this is the name
    /// of the process, too.
    Name {
        thread_id: u32,
        process_id: Option<u32>,
        name: String,
        is_exec: bool,
    },
    /// A thread exists. If `is_new` is true, the thread started at the time of this fact. Otherwise, the thread already
    /// existed when the recording began.
    Started {
        thread_id: u32,
        process_id: u32,
        creator: (u32, u32),
        is_new: bool,
    },
    /// A thread created a thread. The ids of their processes are not recorded.
    Created {
        thread_id: u32,
        creator_id: u32,
        is_of_same_process: bool,
    },
    /// A thread ended.
    Ended {
        thread_id: u32,
        process_id: Option<u32>,
    },
}

impl Lives {
    pub(crate) fn new(recording: &Recording) -> Lives {
        Lives {
            lacks_processes: recording.recorder() != Recorder::Perf,
            lacks_execs: !recording.marks_exec(),
            ..Lives::default()
        }
    }

    pub(crate) fn add(&mut self, time_ns: i64, event: &Event<'_>) {
        match &event.kind {
            EventKind::Name { name, .. } if self.lacks_processes => {
                self.names
                    .extend(event.thread_id.map(|id| (id, name.clone())));
            }
            EventKind::Name { name, is_exec } => {
                if let Some(thread_id) = event.thread_id {
                    // perf prints the last name of the first thread, too, if execs are not marked.
                    let is_first = event.process_id == Some(thread_id);
                    let fact = Fact::Name {
                        thread_id,
                        process_id: event.process_id,
                        name: name.clone(),
                        is_exec: *is_exec || self.lacks_execs && is_first,
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
                    let process_id = event.process_id;
                    let fact = Fact::Ended {
                        thread_id,
                        process_id,
                    };
                    self.facts.push((time_ns, fact));
                }
            }
            EventKind::Tracepoint { tracepoint, .. } => {
                if let Some(thread_id) = event.thread_id {
                    self.see(time_ns, thread_id, event.process_id, None);
                }
                if self.lacks_processes {
                    self.add_process(time_ns, tracepoint);
                }
                self.add_meaning(time_ns, tracepoint.meaning);
            }
            _ => {}
        }
    }

    /// Adds a fact about a process. Only recordings without process ids need this. Other recordings have these facts as
    /// separate records.
    fn add_process(&mut self, time_ns: i64, tracepoint: &Tracepoint<'_>) {
        let fact = match tracepoint.meaning {
            Meaning::NewTask {
                thread_id, flags, ..
            } => Fact::Created {
                thread_id,
                creator_id: tracepoint.thread_id,
                is_of_same_process: flags & CLONE_THREAD != 0,
            },
            Meaning::Exec { path, process_id } => {
                let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
                let name = &name[..name.len().min(LONGEST_NAME)];
                Fact::Name {
                    thread_id: process_id,
                    process_id: Some(process_id),
                    name: String::from_utf8_lossy(name).into_owned(),
                    is_exec: true,
                }
            }
            _ => return,
        };
        self.facts.push((time_ns, fact));
    }

    fn add_meaning(&mut self, time_ns: i64, meaning: Meaning<'_>) {
        match meaning {
            Meaning::Switch(switch) => {
                for thread in [switch.previous, switch.next] {
                    self.see(time_ns, thread.thread_id, None, Some(thread.name));
                }
            }
            Meaning::Waking(woken) | Meaning::Wakeup(woken) | Meaning::WakeupNew(woken) => {
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
                let fact = Fact::Ended {
                    thread_id,
                    process_id: None,
                };
                self.facts.push((time_ns, fact));
            }
            _ => {}
        }
    }

    fn see(
        &mut self,
        time_ns: i64,
        thread_id: u32,
        process_id: Option<u32>,
        name: Option<ThreadName<'_>>,
    ) {
        let seen = self.seen.entry(thread_id).or_insert(FirstSign {
            time_ns,
            process_id: None,
            name: None,
        });
        seen.time_ns = seen.time_ns.min(time_ns);
        seen.process_id = seen.process_id.or(process_id);
        if seen.name.is_none() {
            seen.name = name.map(|name| String::from_utf8_lossy(name.bytes()).into_owned());
        }
    }

    /// Adds the facts of another part of the recording.
    pub(crate) fn merge(&mut self, other: Lives) {
        self.lacks_processes |= other.lacks_processes;
        self.facts.extend(other.facts);
        self.names.extend(other.names);
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
    pub(crate) fn into_tables(mut self, facts: &ProcFacts) -> (Processes, Threads) {
        self.facts.sort_by_key(|(time_ns, _)| *time_ns);
        let mut known = Owners {
            processes_of: self.lacks_processes.then_some(&facts.processes),
            ..Owners::default()
        };
        for (time_ns, fact) in self.facts {
            known.take(time_ns, fact);
        }
        let mut seen: Vec<_> = self.seen.into_iter().filter(|(id, _)| *id != 0).collect();
        seen.sort_by_key(|(id, seen)| (seen.time_ns, *id));
        // The first sign of a thread id belongs to the first thread with this id.
        let rows = known.threads.iter().enumerate().rev();
        let first: FxHashMap<u32, usize> = rows.map(|(row, life)| (life.id, row)).collect();
        for (thread_id, mut seen) in seen {
            let row = first.get(&thread_id).copied();
            if row == known.latest_threads.get(&thread_id).copied() {
                seen.name = seen.name.or_else(|| self.names.remove(&thread_id));
            }
            known.see(thread_id, row, seen);
        }
        known.into_tables(facts)
    }
}

/// A process or a thread.
#[derive(Debug)]
struct Life {
    first_seen_ns: i64,
    start_ns: Option<i64>,
    end_ns: Option<i64>,
    id: u32,
    /// For a thread, the id of its process. For a process, the id of its parent.
    process_id: Option<u32>,
    /// Ids of the process and the thread that started this thread. `None` for a process.
    creator: Option<(u32, u32)>,
    name: Option<String>,
}

/// Processes and threads found so far.
#[derive(Debug, Default)]
struct Owners<'f> {
    /// Processes of threads, by thread id. `None` if the recording has the ids of processes.
    processes_of: Option<&'f FxHashMap<u32, u32>>,
    threads: Vec<Life>,
    processes: Vec<Life>,
    /// Index in `threads` of the latest thread with each id.
    latest_threads: FxHashMap<u32, usize>,
    /// Index in `processes` of the latest process with each id.
    latest_processes: FxHashMap<u32, usize>,
}

/// Returns the process or thread that has the id and has not ended. Adds the process or thread if it does not exist.
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

impl Owners<'_> {
    fn thread(&mut self, id: u32, time_ns: i64) -> &mut Life {
        living(&mut self.threads, &mut self.latest_threads, id, time_ns)
    }

    fn process(&mut self, id: u32, time_ns: i64) -> &mut Life {
        living(&mut self.processes, &mut self.latest_processes, id, time_ns)
    }

    /// Returns the assumed process of a thread if the recording has no process ids. If the process of the thread is not
    /// known from any source, the thread counts as the only thread of a process.
    fn assumed_process(&self, thread_id: u32) -> Option<u32> {
        let processes = self.processes_of?;
        let latest = self.latest_threads.get(&thread_id);
        let recorded = latest.and_then(|row| self.threads[*row].process_id);
        let process_id = recorded.or_else(|| processes.get(&thread_id).copied());
        process_id.or(Some(thread_id))
    }

    fn take(&mut self, time_ns: i64, fact: Fact) {
        match fact {
            Fact::Created {
                thread_id,
                creator_id,
                is_of_same_process,
            } => {
                let creator_process = self.assumed_process(creator_id).unwrap_or(creator_id);
                let started = Fact::Started {
                    thread_id,
                    process_id: if is_of_same_process {
                        creator_process
                    } else {
                        thread_id
                    },
                    creator: (creator_process, creator_id),
                    is_new: true,
                };
                self.take(time_ns, started);
            }
            Fact::Started {
                thread_id,
                process_id,
                creator,
                is_new,
            } => {
                let start_ns = is_new.then_some(time_ns);
                // A new thread has the name of its creator until it gets its own.
                let creating = self.latest_threads.get(&creator.1).filter(|_| is_new);
                let name = creating.and_then(|row| self.threads[*row].name.clone());
                let thread = self.thread(thread_id, time_ns);
                thread.name = thread.name.take().or(name);
                thread.start_ns = thread.start_ns.or(start_ns);
                thread.process_id = Some(process_id);
                thread.creator = is_new.then_some(creator);
                let is_process = thread_id == process_id;
                let process = self.process(process_id, time_ns);
                if is_process {
                    process.start_ns = process.start_ns.or(start_ns);
                    process.process_id = Some(creator.0);
                    // A new process has the name of its parent until it starts another program. A process that existed
                    // before the recording does not get the name of its parent.
                    let parent = self.latest_processes.get(&creator.0).filter(|_| is_new);
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
            Fact::Ended {
                thread_id,
                process_id,
            } => {
                // A thread has two records of its end if its tracepoint is recorded, so an ended thread is not added again.
                if !self.latest_threads.contains_key(&thread_id) {
                    self.thread(thread_id, time_ns);
                    if let Some(process_id) = process_id
                        && !self.latest_processes.contains_key(&process_id)
                    {
                        self.process(process_id, time_ns);
                    }
                }
                let thread = &mut self.threads[self.latest_threads[&thread_id]];
                thread.process_id = thread.process_id.or(process_id);
                thread.end_ns = thread.end_ns.or(Some(time_ns));
                // A process counts as ended when its first thread ends. This is wrong if other threads of the process
                // still run, but few programs end their first thread early.
                if thread.process_id == Some(thread_id)
                    && let Some(row) = self.latest_processes.get(&thread_id)
                {
                    let process = &mut self.processes[*row];
                    process.end_ns = process.end_ns.or(Some(time_ns));
                }
            }
        }
    }

    /// Adds the first sign of the thread in a row. Adds the thread and its process if they do not exist. Sets the process
    /// and the name of the thread if they are unknown.
    fn see(&mut self, thread_id: u32, row: Option<usize>, seen: FirstSign) {
        let row = row.unwrap_or_else(|| {
            self.thread(thread_id, seen.time_ns);
            self.latest_threads[&thread_id]
        });
        let assumed = self.assumed_process(thread_id);
        let thread = &mut self.threads[row];
        if thread.start_ns.is_none() {
            thread.first_seen_ns = thread.first_seen_ns.min(seen.time_ns);
        }
        thread.process_id = thread.process_id.or(seen.process_id).or(assumed);
        thread.name = thread.name.take().or(seen.name);
        let (process_id, name, end_ns) = (thread.process_id, thread.name.clone(), thread.end_ns);
        if let Some(process_id) = process_id
            && !self.latest_processes.contains_key(&process_id)
        {
            let process = self.process(process_id, seen.time_ns);
            // The first thread of the process gives its name and its end.
            if process_id == thread_id {
                (process.name, process.end_ns) = (name, end_ns);
            }
        }
    }

    fn into_tables(mut self, facts: &ProcFacts) -> (Processes, Threads) {
        self.threads.sort_by_key(|life| life.first_seen_ns);
        self.processes.sort_by_key(|life| life.first_seen_ns);
        let mut threads = Threads::default();
        for life in &self.threads {
            push_thread(&mut threads, life, facts);
        }
        let mut processes = Processes::default();
        for life in &self.processes {
            push_process(&mut processes, life, facts);
        }
        (processes, threads)
    }
}

fn push_thread(threads: &mut Threads, life: &Life, facts: &ProcFacts) {
    threads.first_seen_ns.push(life.first_seen_ns);
    threads.start_ns.push(life.start_ns);
    threads.end_ns.push(life.end_ns);
    threads.thread_id.push(life.id);
    threads.process_id.push(life.process_id);
    threads
        .creator_process_id
        .push(life.creator.map(|(process, _)| process));
    threads
        .creator_thread_id
        .push(life.creator.map(|(_, thread)| thread));
    threads.name.push(life.name.as_deref());
    let affinity = facts.affinities.get(&life.id);
    threads.affinity.push(affinity.copied());
    let scheduling = facts.scheduling.get(&life.id);
    threads.policy.push(scheduling.map(|it| it.policy));
    threads.nice.push(scheduling.map(|it| it.nice));
}

fn push_process(processes: &mut Processes, life: &Life, facts: &ProcFacts) {
    processes.first_seen_ns.push(life.first_seen_ns);
    processes.start_ns.push(life.start_ns);
    processes.end_ns.push(life.end_ns);
    processes.process_id.push(life.id);
    // Only processes that lived when the facts were read have these facts. A later process can have the same id.
    let parent = facts.parents.get(&life.id).copied();
    let parent = life
        .process_id
        .or(parent.filter(|_| life.start_ns.is_none()));
    processes.parent_id.push(parent.unwrap_or_default());
    processes.image_name.push(life.name.as_deref());
    processes.cgroup.push(facts.cpu_cgroup(life.id));
}
