//! An entry of the submission queue, before it has the form that an interface asks for.

use crate::Operation;

/// How thorough a flush is (`FILE_FLUSH_MODE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum FlushMode {
    /// Data and metadata, and the device is told to write what it holds.
    #[default]
    Default = 0,
    /// Data only.
    Data = 1,
    /// Data, and only the metadata without which it could not be read.
    MinimalMetadata = 2,
    /// Data and metadata, but the device is not told.
    NoSync = 3,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Nop,
    Read(Transfer),
    Write(Transfer),
    Flush(FileRef, FlushMode),
    /// The operation with this token.
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

/// Bytes from or to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) file: FileRef,
    pub(crate) memory: MemoryRef,
    pub(crate) length: u32,
    pub(crate) offset: u64,
}

/// A file's handle, or its place among the registered ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileRef {
    Raw(usize),
    Registered(u32),
}

/// Memory's address, or its place among the registered buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryRef {
    Raw(usize),
    Registered(u32),
}

/// An array that must stay where it is until the operation is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) address: usize,
    pub(crate) count: u32,
}

/// One row of the table of buffers, as the system reads it (`IORING_BUFFER_INFO`).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct BufferInfo {
    pub(crate) address: usize,
    pub(crate) length: u32,
}

/// A row of the completion queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompletionEntry {
    pub(crate) token: u64,
    pub(crate) code: i32,
    pub(crate) information: u64,
}
