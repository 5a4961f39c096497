//! File reading methods.

use std::fmt;
use std::str::FromStr;

use ioring::Interface;

use crate::UnknownName;

/// A file reading method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesMethod {
    /// One blocking call per piece of a file (`pread`, `ReadFile`), on one or several threads.
    Positional {
        /// Number of threads. Each thread reads one file at a time.
        threads: u32,
    },
    /// Memory-mapped files. One file after the other is mapped, and its bytes are summed. If the system
    /// supports it (`MAP_POPULATE`), mapping also loads the content.
    Mapped,
    /// `io_uring` of Linux.
    Uring {
        /// Maximum number of reads in flight.
        depth: u32,
        /// Minimum number of completions per wait.
        batch: u32,
        /// Features in use.
        mode: UringMode,
    },
    /// Overlapped reads of Windows with completion routines.
    ReadFileEx {
        /// Maximum number of reads in flight.
        depth: u32,
    },
    /// Overlapped reads of Windows with a completion port.
    CompletionPort {
        /// Maximum number of reads in flight.
        depth: u32,
    },
    /// I/O ring of Windows.
    IoRing {
        /// Interface through which the ring is used.
        interface: Interface,
        /// Maximum number of reads in flight.
        depth: u32,
        /// Minimum number of completions per wait.
        batch: u32,
        /// True if files and buffers are registered first.
        registered: bool,
    },
}

/// Features of `io_uring` that a method uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UringMode {
    /// Submission and completion queues only.
    Plain,
    /// Registered files.
    Files,
    /// Registered files and buffers.
    Buffers,
    /// Registered files and buffers, and a single thread that submits reads. This thread also does the kernel's
    /// completion work while it waits (`SINGLE_ISSUER`, `DEFER_TASKRUN`).
    Deferred,
    /// Registered files and buffers, and a kernel thread that polls for submissions (`SQPOLL`).
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

/// Methods of this system with their names. The first method is the reference for the other methods.
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

/// Names of the methods that other systems have.
const OTHER_SYSTEMS: &[(&str, &[&str])] = &[
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
    /// Returns the methods of this system. The first method is the reference for the other methods.
    pub fn all() -> impl Iterator<Item = FilesMethod> {
        METHODS.iter().map(|(_, method)| *method)
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        let entry = METHODS.iter().find(|(_, method)| *method == self);
        entry.map_or("a method of another system", |(name, _)| name)
    }

    /// Returns true if the method is safe on files that other programs may change. Mapping is not safe on
    /// such files: if a mapped file is truncated, this program ends.
    pub fn tolerates_changes(self) -> bool {
        self != FilesMethod::Mapped
    }

    /// Returns true if several threads read.
    pub(crate) fn has_threads(self) -> bool {
        matches!(self, FilesMethod::Positional { threads: 2.. })
    }
}

impl fmt::Display for FilesMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FilesMethod {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<FilesMethod, UnknownName> {
        let is_it = |known: &str| known.eq_ignore_ascii_case(name);
        let entry = METHODS.iter().find(|(known, _)| is_it(known));
        entry.map(|(_, method)| *method).ok_or_else(|| {
            let systems = OTHER_SYSTEMS
                .iter()
                .find(|(_, names)| names.iter().any(|known| is_it(known)))
                .map(|(systems, _)| *systems);
            let known = METHODS.iter().map(|(known, _)| *known);
            UnknownName::new("method", name, known).elsewhere(systems)
        })
    }
}
