//! What can go wrong, in words.

use std::{fmt, io};

use crate::{Interface, Memory, Operation, Version};

/// Why a ring did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system has no I/O rings.
    #[error("I/O rings are not available here: {0}")]
    NotAvailable(&'static str),
    /// A DLL could not be loaded.
    #[error("{dll} cannot be loaded")]
    Load {
        /// The DLL's name or path.
        dll: String,
        /// The system's reason.
        source: io::Error,
    },
    /// This version of rings lacks the operation.
    #[error("a ring of version {version} has no {operation}, which came with version {}", operation.since())]
    Unsupported {
        /// What was asked for.
        operation: Operation,
        /// The ring's version.
        version: Version,
    },
    /// A call to the system failed.
    #[error("{call} failed with {code}")]
    System {
        /// The function that was called.
        call: &'static str,
        /// What it returned.
        code: Code,
    },
    /// There is no room for another operation: submit, wait and fetch completions first.
    #[error("the ring has no room for another operation until some are complete")]
    Full,
    /// What was asked for must wait until nothing is under way.
    #[error("the ring has {in_flight} operations under way; wait for them first")]
    Busy {
        /// Operations that are not complete.
        in_flight: usize,
    },
    /// No such registered file or buffer.
    #[error("{what} {index} is not registered: there are {count}")]
    NotRegistered {
        /// A file or a buffer.
        what: &'static str,
        /// The index that was asked for.
        index: u32,
        /// How many there are.
        count: usize,
    },
    /// A registered buffer that an operation uses already.
    #[error("registered buffer {index} is used by an operation that is not complete")]
    InUse {
        /// The buffer's index.
        index: u32,
    },
    /// An operation asked for more bytes than its memory has.
    #[error("{length} bytes do not fit into a buffer of {capacity}")]
    TooLong {
        /// The bytes asked for.
        length: u32,
        /// The bytes there are.
        capacity: usize,
    },
    /// The operation of this ticket is complete, or of another ring.
    #[error("the operation to cancel is not under way")]
    NotInFlight,
    /// The system did not answer in time.
    #[error("{0} was not complete after {1} s")]
    TimedOut(Operation, u64),
    /// What the NT calls gave is not laid out as expected.
    #[error(
        "the layout of NT rings of version {version} is not known: {why}; use {}",
        Interface::KernelBase
    )]
    LayoutUnknown {
        /// The newest version that the kernel has.
        version: Version,
        /// What was found.
        why: &'static str,
    },
    /// A completion of an operation that this ring did not begin, or a queue that makes no sense.
    #[error("the completion queue is corrupt: {0}")]
    Corrupt(&'static str),
    /// An ordinary read, needed to prove the NT layout, failed.
    #[error("the running program cannot be read to prove the layout of NT rings")]
    Proof(#[source] io::Error),
}

/// An operation that was not queued, with the memory that was handed over for it.
#[derive(Debug)]
pub struct Refused {
    /// Why.
    pub error: Error,
    /// What was handed over.
    pub memory: Memory,
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        refused.error
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// An `HRESULT` or `NTSTATUS` that says why something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub i32);

impl Code {
    /// Whether it says failure rather than success.
    pub fn is_failure(self) -> bool {
        self.0 < 0
    }

    /// Whether an operation began past the end of its file.
    pub fn is_end_of_file(self) -> bool {
        // ERROR_HANDLE_EOF, STATUS_END_OF_FILE, and the latter as an HRESULT.
        matches!(self.unsigned(), 0x8007_0026 | 0xC000_0011 | 0xD000_0011)
    }

    /// Whether an operation was cancelled.
    pub fn is_cancelled(self) -> bool {
        // ERROR_OPERATION_ABORTED, STATUS_CANCELLED, and the latter as an HRESULT.
        matches!(self.unsigned(), 0x8007_03E3 | 0xC000_0120 | 0xD000_0120)
    }

    /// Whether a wait ended because its time was over.
    #[cfg(all(windows, target_pointer_width = "64"))]
    pub(crate) fn is_time_out(self) -> bool {
        // STATUS_TIMEOUT, WAIT_TIMEOUT and ERROR_TIMEOUT.
        matches!(self.unsigned(), 0x102 | 0x8007_0102 | 0x8007_05B4)
    }

    /// Whether it says that the submission queue has no room.
    pub(crate) fn is_queue_full(self) -> bool {
        self.unsigned() == 0x8046_0002
    }

    fn unsigned(self) -> u32 {
        self.0.cast_unsigned()
    }

    /// What the codes that rings give mean (`winerror.h`).
    fn meaning(self) -> Option<&'static str> {
        Some(match self.unsigned() {
            0x8046_0001 => "a required flag is not supported",
            0x8046_0002 => "the submission queue is full",
            0x8046_0003 => "the version is not supported",
            0x8046_0004 => "the submission queue is too big",
            0x8046_0005 => "the completion queue is too big",
            0x8046_0006 => "a submission is in progress",
            0x8046_0007 => "the ring is corrupt",
            0x8046_0008 => "the completion queue is too full",
            0x8007_0005 | 0xC000_0022 => "access denied",
            0x8007_0006 | 0xC000_0008 => "invalid handle",
            0x8007_0057 | 0xC000_000D => {
                "invalid parameter; is the file bound to a completion port?"
            }
            _ if self.is_end_of_file() => "end of file",
            _ if self.is_cancelled() => "cancelled",
            _ => return None,
        })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08X}", self.unsigned())?;
        match self.meaning() {
            Some(meaning) => write!(f, " ({meaning})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Code {}
