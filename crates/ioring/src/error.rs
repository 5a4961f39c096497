//! Errors and result codes.

use std::{fmt, io};

use crate::{Interface, Memory, Operation, Version};

/// Error of a ring.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system has no I/O rings. The text gives the reason.
    #[error("I/O rings are not available: {0}")]
    NotAvailable(&'static str),
    /// A DLL cannot be loaded.
    #[error("cannot load {dll}: {source}")]
    Load {
        /// Name or path of the DLL.
        dll: String,
        /// Error that the system reported.
        source: io::Error,
    },
    /// The version of the ring does not support the operation.
    #[error(
        "a ring of version {version} does not support {operation}; it needs version {}",
        operation.since()
    )]
    Unsupported {
        /// Requested operation.
        operation: Operation,
        /// Version of the ring.
        version: Version,
    },
    /// A system call failed.
    #[error("{call} failed: {code}")]
    System {
        /// Name of the function.
        call: &'static str,
        /// Result code that the function returned.
        code: Code,
    },
    /// The ring has no room for another operation. Submit the queued operations, wait, and fetch
    /// completions first.
    #[error("the ring is full; fetch completions first")]
    Full,
    /// The call is possible only if no operation is in flight.
    #[error("the ring has {in_flight} operations in flight; wait for them first")]
    Busy {
        /// Number of operations in flight.
        in_flight: usize,
    },
    /// No registered file or buffer has this index.
    #[error("there is no registered {what} {index}; the number of registered entries is {count}")]
    NotRegistered {
        /// Kind of entry that is missing: "file" or "buffer".
        what: &'static str,
        /// Requested index.
        index: u32,
        /// Number of registered files or buffers.
        count: usize,
    },
    /// An operation in flight uses the registered buffer.
    #[error("registered buffer {index} is in use by an operation in flight")]
    InUse {
        /// Index of the buffer.
        index: u32,
    },
    /// The requested length exceeds the size of the memory for the operation.
    #[error("{length} bytes do not fit into a buffer of {capacity} bytes")]
    TooLong {
        /// Requested length in bytes.
        length: u32,
        /// Size of the memory in bytes.
        capacity: usize,
    },
    /// The operation of the ticket has completed, or the ticket belongs to another ring.
    #[error("the operation to cancel is not in flight")]
    NotInFlight,
    /// The operation did not complete within this number of seconds.
    #[error("{0} did not complete within {1} s")]
    TimedOut(Operation, u64),
    /// The NT structures do not have the expected layout.
    #[error(
        "unknown layout of NT rings of version {version}: {why}; use {}",
        Interface::KernelBase
    )]
    LayoutUnknown {
        /// Newest ring version that the kernel supports.
        version: Version,
        /// Description of the difference from the expected layout.
        why: &'static str,
    },
    /// The completion queue is in an impossible state, or contains a completion that belongs to no
    /// operation.
    #[error("the completion queue is corrupt: {0}")]
    Corrupt(&'static str),
    /// The program's own executable file, which is read to verify the NT layout, cannot be read.
    #[error("cannot read the program's file to verify the layout of NT rings: {0}")]
    VerifyLayout(#[source] io::Error),
}

/// A refused operation, with the memory that was passed for it.
#[derive(Debug)]
pub struct Refused {
    /// Reason for the refusal.
    pub error: Error,
    /// Memory that was passed for the operation. It is returned to the caller.
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

/// Result code of a system function: an `HRESULT` or an `NTSTATUS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub i32);

impl Code {
    /// Returns true if the code means failure.
    pub fn is_failure(self) -> bool {
        self.0 < 0
    }

    /// Returns true if the code means that an operation started past the end of its file.
    pub fn is_end_of_file(self) -> bool {
        // The three codes are, in this order, ERROR_HANDLE_EOF as an HRESULT, STATUS_END_OF_FILE, and
        // STATUS_END_OF_FILE as an HRESULT.
        matches!(self.unsigned(), 0x8007_0026 | 0xC000_0011 | 0xD000_0011)
    }

    /// Returns true if the code means that an operation was cancelled.
    pub fn is_cancelled(self) -> bool {
        // The three codes are, in this order, ERROR_OPERATION_ABORTED as an HRESULT, STATUS_CANCELLED, and
        // STATUS_CANCELLED as an HRESULT.
        matches!(self.unsigned(), 0x8007_03E3 | 0xC000_0120 | 0xD000_0120)
    }

    /// Returns true if the code means that a wait timed out.
    #[cfg(all(windows, target_pointer_width = "64"))]
    pub(crate) fn is_timeout(self) -> bool {
        // The three codes are, in this order, STATUS_TIMEOUT, and then WAIT_TIMEOUT and ERROR_TIMEOUT as
        // HRESULTs.
        matches!(self.unsigned(), 0x102 | 0x8007_0102 | 0x8007_05B4)
    }

    /// Returns true if the code means that the submission queue is full.
    pub(crate) fn is_queue_full(self) -> bool {
        self.unsigned() == 0x8046_0002
    }

    fn unsigned(self) -> u32 {
        self.0.cast_unsigned()
    }

    /// Returns a description of a code that the ring functions return (source: `winerror.h`). Returns `None`
    /// for other codes.
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
                "invalid parameter; the file may be bound to a completion port"
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
