//! Errors of an opened trace.

use tables::{Cancelled, StoreError, WrongType};

use crate::{FileError, NotRecorded, SymbolOptionsError};

/// Error of work on an opened trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The trace cannot be opened, or a table cannot be made or read.
    #[error(transparent)]
    Store(StoreError),
    /// The trace has no rows of a table.
    #[error("{0}")]
    NotRecorded(NotRecorded),
    /// The symbol path is wrong.
    #[error(transparent)]
    Symbols(#[from] SymbolOptionsError),
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The user cancelled the work.
    #[error("cancelled")]
    Cancelled,
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        match error {
            StoreError::Cancelled(_) => Error::Cancelled,
            other => Error::Store(other),
        }
    }
}

impl From<WrongType> for Error {
    fn from(error: WrongType) -> Error {
        Error::Store(error.into())
    }
}

impl From<Cancelled> for Error {
    fn from(_: Cancelled) -> Error {
        Error::Cancelled
    }
}
