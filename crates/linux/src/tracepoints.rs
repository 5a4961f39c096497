//! Decoding of tracepoints that the crate knows.
//!
//! Sources: `include/trace/events/{sched,task,irq,power,timer,block,cgroup,vmscan,syscalls}.h` and
//! `arch/x86/include/asm/trace/{irq_vectors,exceptions}.h` of the kernel. The offsets of fields come from the
//! recording.

use std::fmt;

use rustc_hash::FxHashMap;

use crate::attribute::Attribute;
use crate::bytes::{Order, until_zero};
use crate::format::{Field, Format, Place};
use crate::thread_state::{StateBits, ThreadState};

/// One pass of a CPU through a tracepoint.
#[derive(Clone, Copy, Debug)]
pub struct Tracepoint<'r> {
    /// Id of the thread that ran on the CPU.
    pub thread_id: u32,
    /// True if the CPU was handling a hardware interrupt.
    pub in_interrupt: bool,
    /// True if the CPU was handling a softirq.
    pub in_softirq: bool,
    /// Kind of the tracepoint, with its decoded fields.
    pub meaning: Meaning<'r>,
    /// Undecoded data, in the layout of the tracepoint's [`Format`].
    pub data: &'r [u8],
}

/// Kind of a tracepoint, with its decoded fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning<'r> {
    /// `sched_switch`: a CPU switches from one thread to another.
    Switch(Switch<'r>),
    /// `sched_waking`: a thread is about to become ready.
    Waking(Woken<'r>),
    /// `sched_wakeup`: a thread is ready. Kernels before 4.3 have no `sched_waking`.
    Wakeup(Woken<'r>),
    /// `sched_wakeup_new`: a new thread becomes ready for the first time.
    WakeupNew(Woken<'r>),
    /// `sched_migrate_task`: a thread moves to another CPU.
    Migrate {
        /// Id of the thread.
        thread_id: u32,
        /// Priority of the thread, as in [`SwitchedThread::priority`].
        priority: i32,
        /// CPU that the thread leaves.
        from: u32,
        /// CPU to which the thread moves.
        to: u32,
    },
    /// `sched_pi_setprio`: the priority of a thread that holds a lock changes. The thread gets the priority of a
    /// thread that waits for the lock, or returns to its own priority.
    Inherit {
        /// Id of the thread that holds the lock.
        thread_id: u32,
        /// Priority before the change, as in [`SwitchedThread::priority`].
        from: i32,
        /// Priority after the change, as in [`SwitchedThread::priority`].
        to: i32,
    },
    /// `sched_process_exec`: a process starts a new program.
    Exec {
        /// Path of the program.
        path: &'r [u8],
        /// Id of the process.
        process_id: u32,
    },
    /// `sched_process_exit`: a thread ends.
    Exit {
        /// Id of the thread.
        thread_id: u32,
    },
    /// `task_newtask`: the running thread creates a thread.
    NewTask {
        /// Id of the new thread.
        thread_id: u32,
        /// Name of the new thread.
        name: &'r [u8],
        /// Flags of the system call `clone`. With `CLONE_THREAD` (0x10000), the new thread belongs to the process of
        /// its creator.
        flags: u64,
    },
    /// `task_rename`: a thread gets a new name.
    Rename {
        /// Id of the thread.
        thread_id: u32,
        /// New name of the thread.
        name: &'r [u8],
    },
    /// `irq_handler_entry`: the handler of a device's interrupt starts.
    InterruptEntry {
        /// Number of the interrupt.
        number: u32,
        /// Name of the device.
        name: &'r [u8],
    },
    /// `irq_handler_exit`: the handler of a device's interrupt ends.
    InterruptExit {
        /// Number of the interrupt.
        number: u32,
    },
    /// `softirq_entry`: a softirq starts.
    SoftirqEntry {
        /// Number of the softirq.
        vector: u32,
    },
    /// `softirq_exit`: a softirq ends.
    SoftirqExit {
        /// Number of the softirq.
        vector: u32,
    },
    /// `irq_vectors:*_entry`: an interrupt of the CPU's interrupt controller or of another CPU starts. Interrupts of
    /// devices have other tracepoints.
    VectorEntry {
        /// Id of the tracepoint.
        id: u16,
        /// Name of the tracepoint without `_entry`, for example `local_timer`.
        name: &'r str,
    },
    /// `irq_vectors:*_exit`: an interrupt of the CPU's interrupt controller or of another CPU ends.
    VectorExit {
        /// Name of the tracepoint without `_exit`, for example `local_timer`.
        name: &'r str,
    },
    /// `cpu_idle`: a CPU enters or leaves an idle state. Contains the index of the entered state, or `None` if the
    /// CPU leaves its state.
    Idle(Option<u32>),
    /// `hrtimer_start`: the running thread, or the kernel, starts a high-resolution timer.
    TimerStarts {
        /// Address of the timer.
        timer: u64,
        /// Time at which the timer is to expire, in nanoseconds of the timer's clock.
        due_ns: i64,
        /// Latest time at which the timer may expire, in nanoseconds of the timer's clock. The later expiry lets the
        /// timer share an interrupt with other timers.
        latest_ns: i64,
    },
    /// `hrtimer_expire_entry`: the function of a high-resolution timer starts.
    TimerExpires {
        /// Address of the function.
        function: u64,
        /// Address of the timer.
        timer: u64,
        /// Time at which the function starts, in nanoseconds of the timer's clock.
        now_ns: i64,
    },
    /// `sys_enter_futex`: a thread calls the kernel to wait for a lock, or to wake threads that wait for it.
    Futex {
        /// Address of the lock in the memory of the program.
        address: u64,
        /// Operation with its flags (`FUTEX_…`).
        operation: u32,
        /// Argument `val` of the call. For a wait, the thread sleeps only if the memory at the address has this value.
        /// For a wake, it is the maximum number of threads to wake.
        value: u32,
    },
    /// `block_bio_queue`: a request enters the block layer.
    DiskQueued(Request<'r>),
    /// `block_rq_issue`: a request goes to the driver of a disk.
    DiskIssued(Request<'r>),
    /// `block_rq_complete`: a request, or a part of it, is complete.
    DiskCompleted(Request<'r>),
    /// `page_fault_user`, `page_fault_kernel`: the code of a program or of the kernel caused a page fault.
    PageFault {
        /// Address whose access caused the page fault.
        address: u64,
    },
    /// `mm_vmscan_*_reclaim_begin`, `…_end`: a thread begins to free memory, or has finished freeing memory.
    Reclaim {
        /// True if a cgroup's limit is reached, false if the machine's memory is short.
        is_of_cgroup: bool,
        /// Number of freed pages; `None` for the begin.
        pages: Option<u64>,
    },
    /// `cgroup_notify_frozen`: all processes of a cgroup of version 2 are now frozen, or no longer frozen.
    CgroupFrozen {
        /// Id of the hierarchy of cgroups.
        root: i64,
        /// Path of the cgroup in the hierarchy.
        path: &'r [u8],
        /// True if the processes are now frozen.
        is_frozen: bool,
    },
    /// `cgroup_attach_task`: a process or a single thread moves to a cgroup.
    CgroupAttached {
        /// Id of the hierarchy of cgroups.
        root: i64,
        /// Path of the cgroup in the hierarchy.
        path: &'r [u8],
        /// Id of the moved thread; for a process, the id of its first thread.
        thread_id: u32,
    },
    /// A tracepoint that this crate does not decode.
    Other,
}

/// Fields of a disk request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'r> {
    /// Number of the disk or partition: the major number times 2²⁰ plus the minor number.
    pub device: u32,
    /// Number of the first sector. A sector has 512 bytes.
    pub sector: u64,
    /// Number of sectors.
    pub sectors: u32,
    /// Letters that state the kind of the request: R is a read, W a write, F a flush, D a discard.
    pub kind: &'r [u8],
}

/// Fields of `sched_switch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch<'r> {
    /// Thread that leaves the CPU; 0 is the idle thread.
    pub previous: SwitchedThread<'r>,
    /// New state of the previous thread (`prev_state`).
    pub previous_state: ThreadState,
    /// Thread that gets the CPU; 0 is the idle thread.
    pub next: SwitchedThread<'r>,
}

/// Thread that leaves or gets a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchedThread<'r> {
    /// Id of the thread.
    pub thread_id: u32,
    /// Effective priority in the kernel. −1 is a deadline thread. 0 to 98 are real-time threads, and 0 runs first.
    /// 100 to 139 are fair threads.
    pub priority: i32,
    /// Name of the thread.
    pub name: ThreadName<'r>,
}

/// Name of a thread in an event.
#[derive(Clone, Copy)]
pub struct ThreadName<'r>(&'r [u8]);

impl<'r> ThreadName<'r> {
    /// Returns the name without zero bytes, at most 15 bytes. The end of the name is found only here, because most readers
    /// of events need no names.
    pub fn bytes(self) -> &'r [u8] {
        until_zero(self.0)
    }
}

impl fmt::Debug for ThreadName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().fmt(f)
    }
}

impl PartialEq for ThreadName<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for ThreadName<'_> {}

/// Fields of `sched_waking`, `sched_wakeup` and `sched_wakeup_new`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken<'r> {
    /// Id of the thread that becomes ready.
    pub thread_id: u32,
    /// Effective priority in the kernel, as in [`SwitchedThread::priority`].
    pub priority: i32,
    /// Name of the thread.
    pub name: ThreadName<'r>,
    /// CPU whose queue receives the thread.
    pub cpu: u32,
}

#[derive(Clone, Copy, Debug)]
enum Known {
    Switch,
    Waking,
    Wakeup,
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
    TimerStarts,
    TimerExpires,
    Futex,
    DiskQueued,
    DiskIssued,
    DiskCompleted,
    PageFault,
    CgroupFrozen,
    CgroupAttached,
    DirectReclaimBegin,
    DirectReclaimEnd,
    CgroupReclaimBegin,
    CgroupReclaimEnd,
}

/// Tracepoints that the crate decodes. Each entry has the subsystem, the name, the kind, and the fields in the order
/// in which `Reader::meaning` uses them.
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
    ("sched", "sched_wakeup", Known::Wakeup, WOKEN),
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
    (
        "timer",
        "hrtimer_expire_entry",
        Known::TimerExpires,
        &["function", "hrtimer", "now"],
    ),
    (
        "timer",
        "hrtimer_start",
        Known::TimerStarts,
        &["hrtimer", "softexpires", "expires"],
    ),
    (
        "syscalls",
        "sys_enter_futex",
        Known::Futex,
        &["uaddr", "op", "val"],
    ),
    ("block", "block_bio_queue", Known::DiskQueued, REQUEST),
    ("block", "block_rq_issue", Known::DiskIssued, REQUEST),
    ("block", "block_rq_complete", Known::DiskCompleted, REQUEST),
    (
        "exceptions",
        "page_fault_user",
        Known::PageFault,
        &["address"],
    ),
    (
        "exceptions",
        "page_fault_kernel",
        Known::PageFault,
        &["address"],
    ),
    (
        "cgroup",
        "cgroup_notify_frozen",
        Known::CgroupFrozen,
        &["root", "path", "val"],
    ),
    (
        "cgroup",
        "cgroup_attach_task",
        Known::CgroupAttached,
        &["dst_root", "dst_path", "pid"],
    ),
    (
        "vmscan",
        "mm_vmscan_direct_reclaim_begin",
        Known::DirectReclaimBegin,
        &[],
    ),
    (
        "vmscan",
        "mm_vmscan_direct_reclaim_end",
        Known::DirectReclaimEnd,
        &["nr_reclaimed"],
    ),
    (
        "vmscan",
        "mm_vmscan_memcg_reclaim_begin",
        Known::CgroupReclaimBegin,
        &[],
    ),
    (
        "vmscan",
        "mm_vmscan_memcg_reclaim_end",
        Known::CgroupReclaimEnd,
        &["nr_reclaimed"],
    ),
];

const WOKEN: &[&str] = &["pid", "prio", "comm", "target_cpu"];
const REQUEST: &[&str] = &["dev", "sector", "nr_sector", "rwbs"];

/// Readers of all tracepoints that the recording describes.
#[derive(Debug)]
pub(crate) struct Readers {
    readers: Vec<Reader>,
    /// Index in `readers` for each event of the recording. `None` if the event is not a tracepoint, or not described.
    of_attributes: Vec<Option<usize>>,
    order: Order,
}

/// Reader of the data of one tracepoint.
#[derive(Debug)]
struct Reader {
    known: Option<Known>,
    id: u16,
    /// For `irq_vectors`: name of the tracepoint without `_entry` or `_exit`.
    vector: String,
    fields: Vec<Place>,
    /// For `sched_switch`: meaning of the bits of a state.
    states: Option<StateBits>,
    common: Option<[Place; 2]>,
}

impl Readers {
    pub(crate) fn new(attributes: &[Attribute], formats: &[Format], order: Order) -> Readers {
        let ids = formats.iter().enumerate().rev();
        let by_id: FxHashMap<u64, usize> = ids
            .map(|(index, format)| (format.id.into(), index))
            .collect();
        let of_attributes = attributes.iter().map(|attribute| {
            let index = by_id.get(&attribute.config).copied();
            index.filter(|_| attribute.is_tracepoint())
        });
        Readers {
            readers: formats.iter().map(Reader::new).collect(),
            of_attributes: of_attributes.collect(),
            order,
        }
    }

    /// Reads the data of a tracepoint. `attribute` is its index in the recording's attributes. Returns `None` if the
    /// recording does not describe the tracepoint or if the data is too short.
    #[inline]
    pub(crate) fn read<'r>(&'r self, attribute: usize, data: &'r [u8]) -> Option<Tracepoint<'r>> {
        let reader = self.of_attributes.get(attribute).copied().flatten()?;
        self.readers[reader].read(data, self.order)
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
        let place = |name| format.field(name).map(Field::place);
        let fields: Option<Vec<Place>> = names.iter().copied().map(place).collect();
        Reader {
            known: known.filter(|_| fields.is_some()),
            id: format.id,
            vector: (format.name.rsplit_once('_')).map_or_else(String::new, |it| it.0.to_owned()),
            fields: fields.unwrap_or_default(),
            states: matches!(known, Some(Known::Switch)).then(|| StateBits::read(&format.printed)),
            common: place("common_flags")
                .zip(place("common_pid"))
                .map(|(a, b)| [a, b]),
        }
    }

    #[inline]
    fn read<'r>(&'r self, data: &'r [u8], order: Order) -> Option<Tracepoint<'r>> {
        let [flags, thread] = self.common.as_ref()?;
        let flags = flags.number(data, order)?;
        let values = Values {
            fields: &self.fields,
            data,
            order,
        };
        Some(Tracepoint {
            thread_id: thread.number(data, order)? as u32,
            in_interrupt: flags & 0x08 != 0,
            in_softirq: flags & 0x10 != 0,
            meaning: match self.known {
                Some(known) => self.meaning(known, &values)?,
                None => Meaning::Other,
            },
            data,
        })
    }

    fn meaning<'r>(&'r self, known: Known, values: &Values<'r>) -> Option<Meaning<'r>> {
        Some(match known {
            Known::Switch => Meaning::Switch(Switch {
                previous: values.thread(0)?,
                previous_state: self.states.as_ref()?.state(values.number(3)?),
                next: values.thread(4)?,
            }),
            Known::Waking => Meaning::Waking(values.woken()?),
            Known::Wakeup => Meaning::Wakeup(values.woken()?),
            Known::WakeupNew => Meaning::WakeupNew(values.woken()?),
            Known::Migrate => Meaning::Migrate {
                thread_id: values.id(0)?,
                priority: values.priority(1)?,
                from: values.id(2)?,
                to: values.id(3)?,
            },
            Known::Inherit => Meaning::Inherit {
                thread_id: values.id(0)?,
                from: values.priority(1)?,
                to: values.priority(2)?,
            },
            Known::Exec => Meaning::Exec {
                path: values.text(0)?,
                process_id: values.id(1)?,
            },
            Known::Exit => Meaning::Exit {
                thread_id: values.id(0)?,
            },
            Known::NewTask => Meaning::NewTask {
                thread_id: values.id(0)?,
                name: values.text(1)?,
                flags: values.number(2)?.cast_unsigned(),
            },
            Known::Rename => Meaning::Rename {
                thread_id: values.id(0)?,
                name: values.text(1)?,
            },
            Known::InterruptEntry => Meaning::InterruptEntry {
                number: values.id(0)?,
                name: values.text(1)?,
            },
            Known::InterruptExit => Meaning::InterruptExit {
                number: values.id(0)?,
            },
            Known::SoftirqEntry => Meaning::SoftirqEntry {
                vector: values.id(0)?,
            },
            Known::SoftirqExit => Meaning::SoftirqExit {
                vector: values.id(0)?,
            },
            Known::VectorEntry => Meaning::VectorEntry {
                id: self.id,
                name: &self.vector,
            },
            Known::VectorExit => Meaning::VectorExit { name: &self.vector },
            // When the CPU leaves an idle state, the field is 0xFFFF_FFFF (PWR_EVENT_EXIT).
            Known::Idle => Meaning::Idle(values.id(0).filter(|state| *state != u32::MAX)),
            Known::TimerExpires => Meaning::TimerExpires {
                function: values.number(0)?.cast_unsigned(),
                timer: values.number(1)?.cast_unsigned(),
                now_ns: values.number(2)?,
            },
            Known::TimerStarts => Meaning::TimerStarts {
                timer: values.number(0)?.cast_unsigned(),
                due_ns: values.number(1)?,
                latest_ns: values.number(2)?,
            },
            Known::Futex => Meaning::Futex {
                address: values.number(0)?.cast_unsigned(),
                operation: values.id(1)?,
                value: values.id(2)?,
            },
            Known::DiskQueued => Meaning::DiskQueued(values.request()?),
            Known::DiskIssued => Meaning::DiskIssued(values.request()?),
            Known::DiskCompleted => Meaning::DiskCompleted(values.request()?),
            Known::PageFault => Meaning::PageFault {
                address: values.number(0)?.cast_unsigned(),
            },
            Known::DirectReclaimBegin | Known::CgroupReclaimBegin => Meaning::Reclaim {
                is_of_cgroup: matches!(known, Known::CgroupReclaimBegin),
                pages: None,
            },
            Known::DirectReclaimEnd | Known::CgroupReclaimEnd => Meaning::Reclaim {
                is_of_cgroup: matches!(known, Known::CgroupReclaimEnd),
                pages: Some(values.number(0)?.cast_unsigned()),
            },
            Known::CgroupFrozen => Meaning::CgroupFrozen {
                root: values.number(0)?,
                path: values.text(1)?,
                is_frozen: values.number(2)? != 0,
            },
            Known::CgroupAttached => Meaning::CgroupAttached {
                root: values.number(0)?,
                path: values.text(1)?,
                thread_id: values.id(2)?,
            },
        })
    }
}

/// Values of a tracepoint's fields, by the index of the field in its [`Reader`]. A value is `None` if the data is too
/// short.
struct Values<'r> {
    fields: &'r [Place],
    data: &'r [u8],
    order: Order,
}

impl<'r> Values<'r> {
    #[inline]
    fn number(&self, field: usize) -> Option<i64> {
        self.fields.get(field)?.number(self.data, self.order)
    }

    #[inline]
    fn id(&self, field: usize) -> Option<u32> {
        self.number(field).map(|id| id as u32)
    }

    #[inline]
    fn priority(&self, field: usize) -> Option<i32> {
        self.number(field).map(|priority| priority as i32)
    }

    fn text(&self, field: usize) -> Option<&'r [u8]> {
        self.fields.get(field)?.text(self.data, self.order)
    }

    #[inline]
    fn name(&self, field: usize) -> Option<ThreadName<'r>> {
        let content = self.fields.get(field)?.content(self.data, self.order);
        content.map(ThreadName)
    }

    /// Returns the thread whose id, priority and name are in the fields from `first`. It is always inlined for the same
    /// reason as the reader of samples: a result in memory is slow to read.
    #[inline(always)]
    fn thread(&self, first: usize) -> Option<SwitchedThread<'r>> {
        Some(SwitchedThread {
            thread_id: self.id(first)?,
            priority: self.priority(first + 1)?,
            name: self.name(first + 2)?,
        })
    }

    /// Returns the values of the fields [`WOKEN`].
    #[inline(always)]
    fn woken(&self) -> Option<Woken<'r>> {
        Some(Woken {
            thread_id: self.id(0)?,
            priority: self.priority(1)?,
            name: self.name(2)?,
            cpu: self.id(3)?,
        })
    }

    /// Returns the values of the fields [`REQUEST`].
    fn request(&self) -> Option<Request<'r>> {
        Some(Request {
            device: self.id(0)?,
            sector: self.number(1)?.cast_unsigned(),
            sectors: self.id(2)?,
            kind: self.text(3)?,
        })
    }
}

/// Returns the kind of a tracepoint of the subsystem `irq_vectors`. Returns `None` for other tracepoints.
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
