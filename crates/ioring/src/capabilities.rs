//! Versions, operations and capabilities of I/O rings.

use std::fmt;

/// Interface through which a program uses the kernel's rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interface {
    /// The documented functions of `KernelBase.dll`.
    KernelBase,
    /// The system calls in `ntdll.dll` on which the functions of `KernelBase.dll` are based. With this
    /// interface, the program accesses the queues directly, in memory that the program shares with the
    /// kernel.
    Nt,
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KernelBase => "KernelBase",
            Self::Nt => "NT",
        })
    }
}

/// Version of a ring, or the newest version that a kernel supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u32);

impl Version {
    /// Version of Windows 11 21H2 (build 22000), with read, cancel, and registered files and
    /// buffers.
    pub const V1: Self = Self(1);
    /// Version that fixes a race of version 1. The race could leave a thread waiting forever.
    pub const V2: Self = Self(2);
    /// Version of Windows 11 22H2, which adds write and flush.
    pub const V3: Self = Self(300);
    /// Version that adds scattered reads and gathered writes.
    pub const V4: Self = Self(400);
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            // Since version 3, the number is 100 times the version.
            Self(number) if number >= 300 => write!(f, "{}", f64::from(number) / 100.0),
            Self(number) => write!(f, "{number}"),
        }
    }
}

/// Operation of an entry in the submission queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Operation {
    /// Does nothing; the entry only completes.
    Nop = 0,
    /// Reads from a file.
    Read = 1,
    /// Replaces the table of registered files.
    RegisterFiles = 2,
    /// Replaces the table of registered buffers.
    RegisterBuffers = 3,
    /// Cancels another operation.
    Cancel = 4,
    /// Writes to a file.
    Write = 5,
    /// Flushes a file.
    Flush = 6,
    /// Reads into several buffers.
    ReadScatter = 7,
    /// Writes from several buffers.
    WriteGather = 8,
}

impl Operation {
    /// Returns the first ring version with this operation (source: comments in `ntioring_x.h`).
    pub fn since(self) -> Version {
        match self {
            Self::Nop | Self::Read | Self::RegisterFiles | Self::RegisterBuffers | Self::Cancel => {
                Version::V1
            }
            Self::Write | Self::Flush => Version::V3,
            Self::ReadScatter | Self::WriteGather => Version::V4,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nop => "nop",
            Self::Read => "read",
            Self::RegisterFiles => "register files",
            Self::RegisterBuffers => "register buffers",
            Self::Cancel => "cancel",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::ReadScatter => "scattered read",
            Self::WriteGather => "gathered write",
        })
    }
}

/// Capabilities that the kernel reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Newest ring version that the kernel supports.
    pub newest: Version,
    /// Maximum number of entries in a submission queue.
    pub submission_entries: u32,
    /// Maximum number of entries in a completion queue.
    pub completion_entries: u32,
    /// True if the system emulates rings in user mode instead of in the kernel.
    pub is_emulated: bool,
    /// True if a ring can signal an event when an operation completes.
    pub has_completion_event: bool,
}

impl Capabilities {
    /// Creates the capabilities from the values that both interfaces report. `newest` is the newest version,
    /// `submission` and `completion` are the maximum numbers of entries, and `features` contains the bits of
    /// `IORING_FEATURE_FLAGS`.
    #[cfg(all(windows, target_pointer_width = "64"))]
    pub(crate) fn new(newest: u32, submission: u32, completion: u32, features: u32) -> Self {
        Self {
            newest: Version(newest),
            submission_entries: submission,
            completion_entries: completion,
            is_emulated: features & 1 != 0,
            has_completion_event: features & 2 != 0,
        }
    }
}
