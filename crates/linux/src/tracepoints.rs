//! Meanings of tracepoints.
//!
//! Sources: `include/trace/events/{sched,task,irq,power}.h` and `arch/x86/include/asm/trace/irq_vectors.h` of the
//! kernel. Offsets come from the recording.

use std::collections::HashMap;

use crate::bytes::Order;
use crate::format::{Field, Format};

/// A tracepoint that a thread or an interrupt passed.
#[derive(Clone, Copy, Debug)]
pub struct Tracepoint<'r> {
    /// Thread that ran on the CPU.
    pub thread_id: u32,
    /// True if the CPU handled a hardware interrupt.
    pub in_interrupt: bool,
    /// True if the CPU handled a softirq.
    pub in_softirq: bool,
    /// Meaning.
    pub meaning: Meaning<'r>,
    /// Data in the layout of the tracepoint's [`Format`].
    pub data: &'r [u8],
}

/// Meaning of a tracepoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning<'r> {
    /// `sched_switch`: the CPU goes from one thread to another.
    Switch(Switch<'r>),
    /// `sched_waking`: a thread is about to become ready.
    Waking(Woken<'r>),
    /// `sched_wakeup_new`: a new thread becomes ready for the first time.
    WakeupNew(Woken<'r>),
    /// `sched_migrate_task`: a thread moves to another CPU.
    Migrate {
        /// The thread.
        thread_id: u32,
        /// Its priority.
        priority: i32,
        /// CPU before.
        from: u32,
        /// CPU after.
        to: u32,
    },
    /// `sched_pi_setprio`: a thread gets the priority of a thread that waits for its lock, or loses it.
    Inherit {
        /// The thread.
        thread_id: u32,
        /// Priority before.
        from: i32,
        /// Priority after.
        to: i32,
    },
    /// `sched_process_exec`: a process starts a new program.
    Exec {
        /// Path of the program.
        path: &'r [u8],
        /// Process.
        process_id: u32,
    },
    /// `sched_process_exit`: a thread ends.
    Exit {
        /// The thread.
        thread_id: u32,
    },
    /// `task_newtask`: a thread is created by the running thread.
    NewTask {
        /// The new thread.
        thread_id: u32,
        /// Its name.
        name: &'r [u8],
        /// Flags of `clone`. With `CLONE_THREAD` (0x10000), the thread belongs to its creator's process.
        flags: u64,
    },
    /// `task_rename`: a thread gets a new name.
    Rename {
        /// The thread.
        thread_id: u32,
        /// New name.
        name: &'r [u8],
    },
    /// `irq_handler_entry`: the handler of a device's interrupt starts.
    InterruptEntry {
        /// Number of the interrupt.
        number: u32,
        /// Name of the device.
        name: &'r [u8],
    },
    /// `irq_handler_exit`: the handler ends.
    InterruptExit {
        /// Number of the interrupt.
        number: u32,
    },
    /// `softirq_entry`: a softirq starts.
    SoftirqEntry {
        /// Number of the softirq.
        vector: u32,
    },
    /// `softirq_exit`: the softirq ends.
    SoftirqExit {
        /// Number of the softirq.
        vector: u32,
    },
    /// `irq_vectors:*_entry`: an interrupt of the machine itself starts, for example of the timer. The name of
    /// the tracepoint is in its [`Format`].
    VectorEntry,
    /// `irq_vectors:*_exit`: the interrupt ends.
    VectorExit,
    /// `cpu_idle`: the CPU enters an idle state (its index) or leaves it (`None`).
    Idle(Option<u32>),
    /// A tracepoint without a known meaning.
    Other,
}

/// Fields of `sched_switch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch<'r> {
    /// Thread that leaves the CPU; 0 is the idle thread.
    pub previous: SwitchedThread<'r>,
    /// State of the previous thread: 0 is ready, other bits are states of waiting.
    pub previous_state: i64,
    /// Thread that gets the CPU; 0 is the idle thread.
    pub next: SwitchedThread<'r>,
}

/// A thread of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchedThread<'r> {
    /// Thread id.
    pub thread_id: u32,
    /// Effective priority of the kernel: −1 deadline, 0 to 98 real time (0 first), 100 to 139 fair.
    pub priority: i32,
    /// Name, up to 15 bytes, without zero bytes.
    pub name: &'r [u8],
}

/// Fields of `sched_waking` and `sched_wakeup_new`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken<'r> {
    /// Thread that becomes ready.
    pub thread_id: u32,
    /// Effective priority of the kernel, as in [`SwitchedThread::priority`].
    pub priority: i32,
    /// Name, up to 15 bytes.
    pub name: &'r [u8],
    /// CPU whose queue the thread will be in.
    pub cpu: u32,
}

#[derive(Clone, Copy, Debug)]
enum Known {
    Switch,
    Waking,
    WakeupNew,
    Migrate,
    Inherit,
    Exec,
    Exit,
    NewTask,
    Rename,
    InterruptEntry,
    InterruptExit,
    SoftirqEntry,
    SoftirqExit,
    VectorEntry,
    VectorExit,
    Idle,
}

/// Known tracepoints: subsystem, name, and the fields that [`Reader::meaning`] reads, in order.
const KNOWN: &[(&str, &str, Known, &[&str])] = &[
    (
        "sched",
        "sched_switch",
        Known::Switch,
        &[
            "prev_pid",
            "prev_prio",
            "prev_comm",
            "prev_state",
            "next_pid",
            "next_prio",
            "next_comm",
        ],
    ),
    ("sched", "sched_waking", Known::Waking, WOKEN),
    ("sched", "sched_wakeup_new", Known::WakeupNew, WOKEN),
    (
        "sched",
        "sched_migrate_task",
        Known::Migrate,
        &["pid", "prio", "orig_cpu", "dest_cpu"],
    ),
    (
        "sched",
        "sched_pi_setprio",
        Known::Inherit,
        &["pid", "oldprio", "newprio"],
    ),
    (
        "sched",
        "sched_process_exec",
        Known::Exec,
        &["filename", "pid"],
    ),
    ("sched", "sched_process_exit", Known::Exit, &["pid"]),
    (
        "task",
        "task_newtask",
        Known::NewTask,
        &["pid", "comm", "clone_flags"],
    ),
    ("task", "task_rename", Known::Rename, &["pid", "newcomm"]),
    (
        "irq",
        "irq_handler_entry",
        Known::InterruptEntry,
        &["irq", "name"],
    ),
    ("irq", "irq_handler_exit", Known::InterruptExit, &["irq"]),
    ("irq", "softirq_entry", Known::SoftirqEntry, &["vec"]),
    ("irq", "softirq_exit", Known::SoftirqExit, &["vec"]),
    ("power", "cpu_idle", Known::Idle, &["state"]),
];

const WOKEN: &[&str] = &["pid", "prio", "comm", "target_cpu"];

/// Readers of the tracepoints of a recording, by id.
#[derive(Debug)]
pub(crate) struct Readers {
    readers: HashMap<u64, Reader>,
    order: Order,
}

/// Reader of a tracepoint.
#[derive(Debug)]
struct Reader {
    known: Option<Known>,
    fields: Vec<Field>,
    common: Option<[Field; 2]>,
}

impl Readers {
    pub(crate) fn new(formats: &[Format], order: Order) -> Readers {
        let readers = formats
            .iter()
            .map(|format| (format.id.into(), Reader::new(format)));
        Readers {
            readers: readers.collect(),
            order,
        }
    }

    /// Reads the data of a tracepoint; `None` if the recording does not describe it, or if it is too short.
    pub(crate) fn read<'r>(&self, id: u64, data: &'r [u8]) -> Option<Tracepoint<'r>> {
        self.readers.get(&id)?.read(data, self.order)
    }
}

impl Reader {
    fn new(format: &Format) -> Reader {
        let known = KNOWN
            .iter()
            .find(|(system, name, ..)| (*system, *name) == (&*format.system, &*format.name));
        let (known, names) = match known {
            Some((.., known, names)) => (Some(*known), *names),
            None => (vector(format), &[][..]),
        };
        let fields = names.iter().map(|name| format.field(name).cloned());
        let fields: Option<Vec<Field>> = fields.collect();
        let common = |name| format.field(name).cloned();
        Reader {
            known: known.filter(|_| fields.is_some()),
            fields: fields.unwrap_or_default(),
            common: common("common_flags")
                .zip(common("common_pid"))
                .map(|(a, b)| [a, b]),
        }
    }

    fn read<'r>(&self, data: &'r [u8], order: Order) -> Option<Tracepoint<'r>> {
        let [flags, thread] = self.common.as_ref()?;
        let flags = flags.number(data, order)?;
        Some(Tracepoint {
            thread_id: thread.number(data, order)? as u32,
            in_interrupt: flags & 0x08 != 0,
            in_softirq: flags & 0x10 != 0,
            meaning: self.meaning(data, order)?,
            data,
        })
    }

    fn meaning<'r>(&self, data: &'r [u8], order: Order) -> Option<Meaning<'r>> {
        let number = |field: usize| self.fields.get(field)?.number(data, order);
        let id = |field: usize| number(field).map(|id| id as u32);
        let priority = |field: usize| number(field).map(|priority| priority as i32);
        let text = |field: usize| self.fields.get(field)?.text(data, order);
        let thread = |first: usize| {
            Some(SwitchedThread {
                thread_id: id(first)?,
                priority: priority(first + 1)?,
                name: text(first + 2)?,
            })
        };
        let woken = || {
            Some(Woken {
                thread_id: id(0)?,
                priority: priority(1)?,
                name: text(2)?,
                cpu: id(3)?,
            })
        };
        let Some(known) = self.known else {
            return Some(Meaning::Other);
        };
        Some(match known {
            Known::Switch => Meaning::Switch(Switch {
                previous: thread(0)?,
                previous_state: number(3)?,
                next: thread(4)?,
            }),
            Known::Waking => Meaning::Waking(woken()?),
            Known::WakeupNew => Meaning::WakeupNew(woken()?),
            Known::Migrate => Meaning::Migrate {
                thread_id: id(0)?,
                priority: priority(1)?,
                from: id(2)?,
                to: id(3)?,
            },
            Known::Inherit => Meaning::Inherit {
                thread_id: id(0)?,
                from: priority(1)?,
                to: priority(2)?,
            },
            Known::Exec => Meaning::Exec {
                path: text(0)?,
                process_id: id(1)?,
            },
            Known::Exit => Meaning::Exit { thread_id: id(0)? },
            Known::NewTask => Meaning::NewTask {
                thread_id: id(0)?,
                name: text(1)?,
                flags: number(2)?.cast_unsigned(),
            },
            Known::Rename => Meaning::Rename {
                thread_id: id(0)?,
                name: text(1)?,
            },
            Known::InterruptEntry => Meaning::InterruptEntry {
                number: id(0)?,
                name: text(1)?,
            },
            Known::InterruptExit => Meaning::InterruptExit { number: id(0)? },
            Known::SoftirqEntry => Meaning::SoftirqEntry { vector: id(0)? },
            Known::SoftirqExit => Meaning::SoftirqExit { vector: id(0)? },
            Known::VectorEntry => Meaning::VectorEntry,
            Known::VectorExit => Meaning::VectorExit,
            // The state is 0xFFFF_FFFF when the CPU leaves it (PWR_EVENT_EXIT).
            Known::Idle => Meaning::Idle(id(0).filter(|state| *state != u32::MAX)),
        })
    }
}

/// Returns the meaning of a tracepoint of `irq_vectors`.
fn vector(format: &Format) -> Option<Known> {
    if format.system != "irq_vectors" {
        return None;
    }
    match format.name.rsplit_once('_')?.1 {
        "entry" => Some(Known::VectorEntry),
        "exit" => Some(Known::VectorExit),
        _ => None,
    }
}
