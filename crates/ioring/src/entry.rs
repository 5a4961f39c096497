//! Entries of the submission and completion queues of a ring, in a form that both interfaces share.

use crate::Operation;

/// Extent of a flush. The values are equal to the values of the Windows enumeration `FILE_FLUSH_MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum FlushMode {
    /// Writes the file's data and metadata, and makes the device write its cache.
    #[default]
    Default = 0,
    /// Writes the file's data, but no metadata.
    Data = 1,
    /// Writes the file's data, and the metadata that is needed to read this data.
    MinimalMetadata = 2,
    /// Writes the file's data and metadata, but does not make the device write its cache.
    NoSync = 3,
}

/// Entry of the submission queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Nop,
    Read(Transfer),
    Write(Transfer),
    Flush(FileRef, FlushMode),
    /// Cancels the operation with this token.
    Cancel(FileRef, u64),
    RegisterFiles(Table),
    RegisterBuffers(Table),
}

impl Entry {
    pub(crate) fn operation(&self) -> Operation {
        match self {
            Self::Nop => Operation::Nop,
            Self::Read(_) => Operation::Read,
            Self::Write(_) => Operation::Write,
            Self::Flush(..) => Operation::Flush,
            Self::Cancel(..) => Operation::Cancel,
            Self::RegisterFiles(_) => Operation::RegisterFiles,
            Self::RegisterBuffers(_) => Operation::RegisterBuffers,
        }
    }
}

/// Parameters of a read or a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) file: FileRef,
    pub(crate) memory: MemoryRef,
    pub(crate) length: u32,
    pub(crate) offset: u64,
}

/// File of an operation: a handle, or the index of a registered file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileRef {
    Raw(usize),
    Registered(u32),
}

/// Memory of an operation: an address, or the index of a registered buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryRef {
    Raw(usize),
    Registered(u32),
}

/// Array of file handles or of `BufferInfo` rows to register. The array must not move until the registration
/// completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) address: usize,
    pub(crate) count: u32,
}

/// Row of the table of buffers to register, in the layout of the Windows structure
/// `IORING_BUFFER_INFO`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct BufferInfo {
    pub(crate) address: usize,
    pub(crate) length: u32,
}

/// Entry of the completion queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompletionEntry {
    pub(crate) token: u64,
    pub(crate) code: i32,
    pub(crate) information: u64,
}
