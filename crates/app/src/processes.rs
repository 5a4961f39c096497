//! Names of processes and the processes of threads, as far as a trace tells.

use std::sync::Arc;

use etl::{BufferReader, Event, Events, Guid, Trace};
use events::{Decoder, Value};

use crate::key::Key;
use crate::lives::{Lives, Sign};
use crate::metadata;
use crate::pass::{self, Collect};
use crate::watch::{Interrupted, Watch};

const PROCESS_GROUP: u8 = 0x03;
const THREAD_GROUP: u8 = 0x05;

const KERNEL_PROCESS: Guid = Guid::new(
    0x22fb_2cd6,
    0x0e7b,
    0x422b,
    [0xa0, 0xc7, 0x2f, 0xad, 0x1f, 0xd0, 0xe7, 0x16],
);

/// Buffers, by number, that must be read before events can be shown: those with metadata, and
/// those that tell of processes and threads.
#[derive(Debug, Default)]
pub(crate) struct Preparation {
    /// With events that say what others mean.
    pub(crate) metadata: Vec<u32>,
    /// With beginnings and ends of processes and threads.
    pub(crate) lives: Vec<u32>,
}

impl Collect for Preparation {
    fn buffer(&mut self, buffer: u32, events: Events<'_>) {
        for event in events {
            if events::is_metadata(&event) && self.metadata.last() != Some(&buffer) {
                self.metadata.push(buffer);
            }
            if self.lives.last() != Some(&buffer) && tells_of(&event).is_some() {
                self.lives.push(buffer);
            }
        }
    }

    fn merge(&mut self, other: Preparation) {
        self.metadata.extend(other.metadata);
        self.lives.extend(other.lives);
    }
}

/// What an event tells of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Process,
    Thread,
}

/// Whether an event tells of a beginning or an end of a process or a thread.
pub(crate) fn is_life(event: &Event<'_>) -> bool {
    tells_of(event).is_some()
}

fn tells_of(event: &Event<'_>) -> Option<(Subject, Sign)> {
    let (group, opcode) = match event.hook() {
        Some(hook) => {
            let [group, opcode] = hook.to_be_bytes();
            (group, opcode)
        }
        None => match Key::of(event) {
            Key::Classic { guid, opcode, .. } => {
                (events::kernel::Class::of_guid(guid)?.group?, opcode)
            }
            Key::Provider { guid, id, .. } if guid == KERNEL_PROCESS => {
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

/// Processes and threads by id and time.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    names: Lives<Arc<str>>,
    threads: Lives<u32>,
}

impl Processes {
    /// Learns what the trace says about processes and, for `decoder`, about meanings, wherever in it
    /// that stands.
    ///
    /// # Errors
    /// If the user wants the work to stop.
    pub(crate) fn learn(decoder: &mut Decoder, trace: &Trace) -> Result<Processes, Interrupted> {
        let watch = Watch::new("looking for metadata", trace.size_bytes());
        let (preparation, _) = pass::collect::<Preparation>(trace, &watch)?;
        metadata::learn(decoder, trace, preparation.metadata);
        Ok(Processes::read(decoder, trace, &preparation.lives))
    }

    /// Reads them from the given buffers.
    pub(crate) fn read(decoder: &Decoder, trace: &Trace, buffers: &[u32]) -> Processes {
        let mut processes = Processes::default();
        let mut reader = BufferReader::new(trace);
        for buffer in buffers
            .iter()
            .filter_map(|i| trace.buffers().get(*i as usize))
        {
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

    /// The name of a process at a time.
    pub(crate) fn name(&self, pid: u32, time_ns: i64) -> Option<&Arc<str>> {
        self.names.at(pid, time_ns)
    }

    /// The process of a thread at a time.
    pub(crate) fn of_thread(&self, tid: u32, time_ns: i64) -> Option<u32> {
        self.threads.at(tid, time_ns).copied()
    }
}

/// An id from a header, unless it is the placeholder of events that nobody in particular logged.
pub(crate) fn known_id(id: Option<u32>) -> Option<u32> {
    id.filter(|id| *id != u32::MAX)
}

/// Threads that an event's fields name.
pub(crate) fn threads_in<'v>(
    fields: &'v [(Arc<str>, Value<'_>)],
) -> impl Iterator<Item = u32> + 'v {
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

/// Processes that an event's fields name.
pub(crate) fn processes_in<'v>(
    fields: &'v [(Arc<str>, Value<'_>)],
) -> impl Iterator<Item = u32> + 'v {
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
