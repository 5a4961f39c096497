//! The ways to read files that are compared.

use std::fmt;
use std::str::FromStr;

use ioring::{Interface, Library};

use super::drive;
use super::opening::Access;
use super::ring::RingQueue;
use super::sums::Sums;
use super::watch::{ReadTime, Times};
use super::{CacheState, FileSet, FilesError, positional};
use crate::Clock;

/// A way to read files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesMethod {
    /// One call per piece that returns when it is done (`pread`, `ReadFile`), in so many threads.
    Positional {
        /// How many files are read at a time.
        threads: u32,
    },
    /// Files are mapped into memory.
    Mapped,
    /// Linux: `io_uring`.
    Uring {
        /// Reads under way at once.
        depth: u32,
        /// Completions that are waited for at a time.
        batch: u32,
        /// What of it is used.
        mode: UringMode,
    },
    /// Windows: overlapped reads with completion routines.
    ReadFileEx {
        /// Reads under way at once.
        depth: u32,
    },
    /// Windows: overlapped reads with a completion port.
    CompletionPort {
        /// Reads under way at once.
        depth: u32,
    },
    /// Windows: an I/O ring.
    IoRing {
        /// The way to it.
        interface: Interface,
        /// Reads under way at once.
        depth: u32,
        /// Completions that are waited for at a time.
        batch: u32,
        /// Whether files and buffers are registered first.
        registered: bool,
    },
}

/// What of `io_uring` is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UringMode {
    /// Submission and completion queues, no more.
    Plain,
    /// Registered files.
    Files,
    /// Registered files and buffers.
    Buffers,
    /// As `Buffers`, and one thread submits, which also does the kernel's work of completions
    /// when it waits for them (`SINGLE_ISSUER`, `DEFER_TASKRUN`).
    Deferred,
    /// As `Buffers`, and a thread of the kernel looks for submissions (`SQPOLL`).
    Polled,
}

#[cfg(target_os = "linux")]
impl UringMode {
    pub(super) fn registers_files(self) -> bool {
        self != UringMode::Plain
    }

    pub(super) fn registers_buffers(self) -> bool {
        !matches!(self, UringMode::Plain | UringMode::Files)
    }
}

const fn threads(threads: u32) -> FilesMethod {
    FilesMethod::Positional { threads }
}

#[cfg(target_os = "linux")]
const fn uring(depth: u32, batch: u32, mode: UringMode) -> FilesMethod {
    FilesMethod::Uring { depth, batch, mode }
}

#[cfg(windows)]
const fn io_ring(interface: Interface, registered: bool) -> FilesMethod {
    FilesMethod::IoRing {
        interface,
        depth: 128,
        batch: 32,
        registered,
    }
}

/// The methods of each system and their names, the one that the others are compared to first.
#[cfg(not(windows))]
const METHODS: &[(&str, FilesMethod)] = &[
    ("pread", threads(1)),
    ("pread-2", threads(2)),
    ("pread-8", threads(8)),
    ("pread-32", threads(32)),
    ("mmap", FilesMethod::Mapped),
    #[cfg(target_os = "linux")]
    ("io_uring-1", uring(1, 1, UringMode::Plain)),
    #[cfg(target_os = "linux")]
    ("io_uring-32", uring(32, 1, UringMode::Plain)),
    #[cfg(target_os = "linux")]
    ("io_uring-128", uring(128, 32, UringMode::Plain)),
    #[cfg(target_os = "linux")]
    ("io_uring-files", uring(128, 32, UringMode::Files)),
    #[cfg(target_os = "linux")]
    ("io_uring-buffers", uring(128, 32, UringMode::Buffers)),
    #[cfg(target_os = "linux")]
    ("io_uring-deferred", uring(128, 32, UringMode::Deferred)),
    #[cfg(target_os = "linux")]
    ("io_uring-polled", uring(128, 32, UringMode::Polled)),
];
#[cfg(windows)]
const METHODS: &[(&str, FilesMethod)] = &[
    ("ReadFile", threads(1)),
    ("ReadFile-2", threads(2)),
    ("ReadFile-8", threads(8)),
    ("ReadFile-32", threads(32)),
    ("ReadFileEx", FilesMethod::ReadFileEx { depth: 128 }),
    ("IOCP", FilesMethod::CompletionPort { depth: 128 }),
    ("ioring", io_ring(Interface::KernelBase, false)),
    ("ioring-registered", io_ring(Interface::KernelBase, true)),
    ("ioring-nt", io_ring(Interface::Nt, false)),
    ("ioring-nt-registered", io_ring(Interface::Nt, true)),
];

/// The names of the methods that other systems have.
const ELSEWHERE: &[(&str, &[&str])] = &[
    #[cfg(not(windows))]
    (
        "Windows",
        &[
            "ReadFile",
            "ReadFile-2",
            "ReadFile-8",
            "ReadFile-32",
            "ReadFileEx",
            "IOCP",
            "ioring",
            "ioring-registered",
            "ioring-nt",
            "ioring-nt-registered",
        ],
    ),
    #[cfg(windows)]
    (
        "Linux and macOS",
        &["pread", "pread-2", "pread-8", "pread-32", "mmap"],
    ),
    #[cfg(not(target_os = "linux"))]
    (
        "Linux",
        &[
            "io_uring-1",
            "io_uring-32",
            "io_uring-128",
            "io_uring-files",
            "io_uring-buffers",
            "io_uring-deferred",
            "io_uring-polled",
        ],
    ),
];

impl FilesMethod {
    /// The methods of this system, the one that the others are compared to first.
    pub fn all() -> impl Iterator<Item = FilesMethod> {
        METHODS.iter().map(|(_, method)| *method)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        let found = METHODS.iter().find(|(_, method)| *method == self);
        found.map_or("a method of another system", |(name, _)| name)
    }

    /// Whether it is safe to use on files that others may change: a file that is cut short while it
    /// is mapped ends the program.
    pub fn bears_changes(self) -> bool {
        self != FilesMethod::Mapped
    }

    /// Reads all files once.
    pub(super) fn run(self, conditions: &Conditions<'_>) -> Result<Run, FilesError> {
        match self {
            FilesMethod::Positional { threads } => {
                positional::run(conditions, threads.max(1) as usize)
            }
            #[cfg(unix)]
            FilesMethod::Mapped => super::mapped::run(conditions),
            #[cfg(target_os = "linux")]
            FilesMethod::Uring { depth, batch, mode } => {
                let make = |files| super::uring::UringQueue::new(files, depth, mode);
                drive::run(conditions, Access::Synchronous, batch as usize, make)
            }
            #[cfg(windows)]
            FilesMethod::ReadFileEx { depth } => {
                let make = |files| Ok(super::overlapped::RoutineQueue::new(files, depth));
                drive::run(conditions, Access::Overlapped, 1, make)
            }
            #[cfg(windows)]
            FilesMethod::CompletionPort { depth } => {
                let make = |files| super::overlapped::PortQueue::new(files, depth);
                drive::run(conditions, Access::Overlapped, 1, make)
            }
            FilesMethod::IoRing {
                interface,
                depth,
                batch,
                registered,
            } => {
                let rings = conditions.rings;
                let make = |files| RingQueue::new(files, rings, interface, depth, registered);
                drive::run(conditions, Access::Overlapped, batch as usize, make)
            }
            #[allow(
                unreachable_patterns,
                reason = "on Linux only those of Windows are left"
            )]
            _ => Err(FilesError::NotHere(
                "it is one of another system".to_owned(),
            )),
        }
    }
}

impl fmt::Display for FilesMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FilesMethod {
    type Err = String;

    fn from_str(name: &str) -> Result<FilesMethod, String> {
        let found = METHODS
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        let known = || {
            METHODS
                .iter()
                .map(|(name, _)| *name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let elsewhere = || {
            let is_it = |other: &&str| other.eq_ignore_ascii_case(name);
            let (system, _) = ELSEWHERE
                .iter()
                .find(|(_, names)| names.iter().any(is_it))?;
            Some(format!(
                "{name} is one of {system}; here there are {}",
                known()
            ))
        };
        found
            .map(|(_, method)| *method)
            .ok_or_else(|| elsewhere().unwrap_or_else(|| format!("{name} is none of {}", known())))
    }
}

/// What a run is made under.
pub(super) struct Conditions<'c> {
    pub(super) set: &'c FileSet,
    pub(super) cache: CacheState,
    pub(super) clock: &'c Clock,
    /// Where I/O rings come from, if not from the system.
    pub(super) rings: Option<Library>,
}

/// What came of a run.
pub(super) struct Run {
    pub(super) times: Times,
    pub(super) sums: Sums,
    /// Every read, in the order they were seen to be complete (of several threads, by thread).
    pub(super) reads: Vec<ReadTime>,
}
