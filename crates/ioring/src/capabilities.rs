//! What an I/O ring can do here.

use std::fmt;

/// The way to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interface {
    /// The documented functions of `KernelBase.dll`.
    KernelBase,
    /// The calls of `ntdll.dll` that those use, and the queues themselves.
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

/// The version of the rings that a kernel has, or of one ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u32);

impl Version {
    /// Windows 11 21H2 (build 22000): read, cancel, registered files and buffers.
    pub const V1: Self = Self(1);
    /// The same without a race that could leave a waiting thread waiting.
    pub const V2: Self = Self(2);
    /// Windows 11 22H2: write and flush.
    pub const V3: Self = Self(300);
    /// Reads into and writes from several pieces of memory.
    pub const V4: Self = Self(400);
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            // From the third on, the number is a hundred times the version.
            Self(number) if number >= 300 => write!(f, "{}", f64::from(number) / 100.0),
            Self(number) => write!(f, "{number}"),
        }
    }
}

/// What an entry of the submission queue asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Operation {
    /// Nothing; it only completes.
    Nop = 0,
    /// Read a part of a file.
    Read = 1,
    /// Replace the table of registered files.
    RegisterFiles = 2,
    /// Replace the table of registered buffers.
    RegisterBuffers = 3,
    /// Cancel another operation.
    Cancel = 4,
    /// Write a part of a file.
    Write = 5,
    /// Flush a file.
    Flush = 6,
    /// Read into several pieces of memory.
    ReadScatter = 7,
    /// Write from several pieces of memory.
    WriteGather = 8,
}

impl Operation {
    /// The first version that knows it (comments of `ntioring_x.h`).
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

/// What the kernel says it can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// The newest version of rings.
    pub newest: Version,
    /// The most entries of a submission queue.
    pub submission_entries: u32,
    /// The most entries of a completion queue.
    pub completion_entries: u32,
    /// Whether rings are only emulated, by ordinary calls of the program itself.
    pub is_emulated: bool,
    /// Whether an event can be signalled when something completes.
    pub has_completion_event: bool,
}

impl Capabilities {
    /// The feature bits of `IORING_FEATURE_FLAGS`.
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
