//! Names of processes, and the processes of threads, if the trace contains them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use etl::{BufferReader, BufferRef, Event, Trace};
use events::ids::provider::KERNEL_PROCESS;
use events::{Decoder, Value};
use import_windows::{EventKind, learn};
use rayon::prelude::*;
use tables::{Cancelled, Options, ProcessesView, Store, StoreError, Table, ThreadsView};

use crate::lives::{Lives, Sign};

const PROCESS_GROUP: u8 = 0x03;
const THREAD_GROUP: u8 = 0x05;

/// Number of successive buffers that a thread reads as one unit of work.
const BUFFERS_AT_ONCE: usize = 64;

/// Buffers that must be read before events can be decoded and filtered.
#[derive(Debug, Default)]
struct Preparation {
    /// Buffers with descriptions of events.
    metadata: Vec<BufferRef>,
    /// Buffers with starts and ends of processes and threads.
    lives: Vec<BufferRef>,
}

impl Preparation {
    /// Searches the buffers of a trace.
    fn read(trace: &Trace, options: Options<'_>) -> Result<Preparation, Cancelled> {
        let done = AtomicU64::new(0);
        let read = |buffers: &[BufferRef]| {
            let mut reader = BufferReader::new(trace);
            let mut preparation = Preparation::default();
            for buffer in buffers {
                let (mut has_metadata, mut has_lives) = (false, false);
                for event in reader.read(buffer) {
                    has_metadata |= events::is_metadata(&event);
                    has_lives = has_lives || is_life(&event);
                }
                preparation.metadata.extend(has_metadata.then_some(*buffer));
                preparation.lives.extend(has_lives.then_some(*buffer));
                let bytes = u64::from(buffer.stored_size);
                let done = done.fetch_add(bytes, Ordering::Relaxed) + bytes;
                if !(options.progress)(done) {
                    return Err(Cancelled);
                }
            }
            Ok(preparation)
        };
        let parts = trace.buffers().par_chunks(BUFFERS_AT_ONCE).map(read);
        parts.try_reduce(Preparation::default, |mut one, other| {
            one.metadata.extend(other.metadata);
            one.lives.extend(other.lives);
            Ok(one)
        })
    }
}

/// Owner of an id: the subject of a start or end event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Process,
    Thread,
}

/// Returns true if an event is about the start, the end or the existence of a process or a thread.
pub fn is_life(event: &Event<'_>) -> bool {
    tells_of(event).is_some()
}

fn tells_of(event: &Event<'_>) -> Option<(Subject, Sign)> {
    let (group, opcode) = match event.hook() {
        Some(hook) => {
            let [group, opcode] = hook.to_be_bytes();
            (group, opcode)
        }
        None => match EventKind::new(event) {
            EventKind::Classic { guid, opcode, .. } => {
                (events::kernel::Class::of_guid(guid)?.group?, opcode)
            }
            EventKind::Provider { guid, id, .. } if guid == KERNEL_PROCESS => {
                return match id {
                    1 => Some((Subject::Process, Sign::Start)),
                    2 => Some((Subject::Process, Sign::End)),
                    15 => Some((Subject::Process, Sign::ThereAtBegin)),
                    _ => None,
                };
            }
            _ => return None,
        },
    };
    let subject = match group {
        PROCESS_GROUP => Subject::Process,
        THREAD_GROUP => Subject::Thread,
        _ => return None,
    };
    let sign = match opcode {
        1 => Sign::Start,
        2 => Sign::End,
        3 => Sign::ThereAtBegin,
        4 => Sign::ThereAtEnd,
        _ => return None,
    };
    Some((subject, sign))
}

/// Processes and threads, by id and time.
#[derive(Debug, Default)]
pub struct Processes {
    names: Lives<Arc<str>>,
    threads: Lives<u32>,
}

impl Processes {
    /// Reads all events about processes and threads in the trace. Adds all descriptions of events in the
    /// trace to `decoder`.
    ///
    /// # Errors
    /// Returns an error if the progress callback cancels the work.
    pub fn learn(
        decoder: &mut Decoder,
        trace: &Trace,
        options: Options<'_>,
    ) -> Result<Processes, Cancelled> {
        let preparation = Preparation::read(trace, options)?;
        learn(decoder, trace, preparation.metadata);
        Ok(Processes::read(decoder, trace, &preparation.lives))
    }

    /// Reads processes and threads from the tables of a trace.
    ///
    /// # Errors
    /// Returns an error if a table cannot be made or read.
    pub fn from_tables(store: &Store, options: Options<'_>) -> Result<Processes, StoreError> {
        let mut result = Processes::default();
        let start = |start_ns: Option<i64>, seen_ns: i64| match start_ns {
            Some(start_ns) => (start_ns, Sign::Start),
            None => (seen_ns, Sign::ThereAtBegin),
        };
        let processes = store.table(Table::Processes, options)?;
        for group in 0..processes.chunks().len() {
            let batch = processes.read_all(group)?;
            let view = ProcessesView::new(&batch)?;
            for row in 0..batch.num_rows() {
                let Some(name) = view.image_name.get(row) else {
                    continue;
                };
                let (id, name): (u32, Arc<str>) = (view.process_id[row], name.into());
                let (time_ns, sign) = start(view.start_ns.get(row), view.first_seen_ns[row]);
                result.names.note(id, time_ns, sign, Arc::clone(&name));
                if let Some(end_ns) = view.end_ns.get(row) {
                    result.names.note(id, end_ns, Sign::End, name);
                }
            }
        }
        let threads = store.table(Table::Threads, options)?;
        for group in 0..threads.chunks().len() {
            let batch = threads.read_all(group)?;
            let view = ThreadsView::new(&batch)?;
            for row in 0..batch.num_rows() {
                let Some(process) = view.process_id.get(row) else {
                    continue;
                };
                let id = view.thread_id[row];
                let (time_ns, sign) = start(view.start_ns.get(row), view.first_seen_ns[row]);
                result.threads.note(id, time_ns, sign, process);
                if let Some(end_ns) = view.end_ns.get(row) {
                    result.threads.note(id, end_ns, Sign::End, process);
                }
            }
        }
        result.names.settle();
        result.threads.settle();
        Ok(result)
    }

    /// Reads processes and threads from the given buffers.
    fn read(decoder: &Decoder, trace: &Trace, buffers: &[BufferRef]) -> Processes {
        let mut processes = Processes::default();
        let mut reader = BufferReader::new(trace);
        for buffer in buffers {
            for event in reader.read(buffer) {
                if let Some((subject, sign)) = tells_of(&event) {
                    processes.note(decoder, &event, subject, sign);
                }
            }
        }
        processes.names.settle();
        processes.threads.settle();
        processes
    }

    fn note(&mut self, decoder: &Decoder, event: &Event<'_>, subject: Subject, sign: Sign) {
        let fields = decoder.decode(event).fields;
        let number = |names: [&str; 2]| {
            let value = names.iter().find_map(|name| fields.get(name))?;
            u32::try_from(value.as_u64()?).ok()
        };
        let Some(pid) = number(["ProcessId", "ProcessID"]) else {
            return;
        };
        let time_ns = event.time_ns();
        match subject {
            Subject::Process => {
                let name = ["ImageFileName", "ImageName"]
                    .iter()
                    .find_map(|name| fields.get(name)?.as_str());
                if let Some(name) = name {
                    let file_name = name.rsplit('\\').next().unwrap_or(name);
                    self.names.note(pid, time_ns, sign, file_name.into());
                }
            }
            Subject::Thread => {
                if let Some(tid) = number(["TThreadId", "ThreadId"]) {
                    self.threads.note(tid, time_ns, sign, pid);
                }
            }
        }
    }

    /// Returns the name of a process at a time.
    pub fn name(&self, pid: u32, time_ns: i64) -> Option<&Arc<str>> {
        self.names.at(pid, time_ns)
    }

    /// Returns the process of a thread at a time.
    pub fn of_thread(&self, tid: u32, time_ns: i64) -> Option<u32> {
        self.threads.at(tid, time_ns).copied()
    }
}

/// Returns an id from an event header. Returns `None` if the id is the value that means "no process or
/// thread".
pub fn known_id(id: Option<u32>) -> Option<u32> {
    id.filter(|id| *id != u32::MAX)
}

/// Returns the ids of all threads in the fields of an event.
pub fn threads_in<'v>(fields: &'v [(Arc<str>, Value<'_>)]) -> impl Iterator<Item = u32> + 'v {
    const NAMES: [&str; 8] = [
        "ThreadId",
        "ThreadID",
        "TThreadId",
        "TTID",
        "StackThread",
        "NewThreadId",
        "OldThreadId",
        "IssuingThreadId",
    ];
    ids_in(fields, &NAMES)
}

/// Returns the ids of all threads in the fields of an event of Linux. A process has the id of its first thread.
pub(crate) fn linux_threads_in<'v>(
    fields: &'v [(Arc<str>, Value<'_>)],
) -> impl Iterator<Item = u32> + 'v {
    const NAMES: [&str; 6] = [
        "pid",
        "prev_pid",
        "next_pid",
        "parent_pid",
        "child_pid",
        "old_pid",
    ];
    ids_in(fields, &NAMES)
}

/// Returns the ids of all processes in the fields of an event.
pub fn processes_in<'v>(fields: &'v [(Arc<str>, Value<'_>)]) -> impl Iterator<Item = u32> + 'v {
    const NAMES: [&str; 4] = ["ProcessId", "ProcessID", "PID", "StackProcess"];
    ids_in(fields, &NAMES)
}

fn ids_in<'v>(
    fields: &'v [(Arc<str>, Value<'_>)],
    names: &'static [&'static str],
) -> impl Iterator<Item = u32> + 'v {
    fields
        .iter()
        .filter(|(name, _)| names.contains(&&**name))
        .filter_map(|(_, value)| u32::try_from(value.as_u64()?).ok())
        .filter(|id| *id != u32::MAX)
}
