//! Errors of a report.

use std::io;

use session::SymbolOptionsError;
use tables::{StoreError, WrongType};

/// Reason why a report cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The trace cannot be read, or lacks data that the report needs.
    #[error(transparent)]
    Session(#[from] session::Error),
    /// The report cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// The requested intervals are too short.
    #[error(
        "cannot make {count} intervals: too many; choose longer ones, or a part of the trace with \
         --from and --to"
    )]
    TooManyIntervals {
        /// Number of intervals.
        count: usize,
    },
    /// The report has several tables, but CSV can hold only one.
    #[error(
        "cannot write several tables as CSV; choose one of --summary, --histogram, --interval or \
         --bucket, or use --json"
    )]
    SeveralTables,
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        Error::Session(error.into())
    }
}

impl From<WrongType> for Error {
    fn from(error: WrongType) -> Error {
        Error::Session(error.into())
    }
}

impl From<SymbolOptionsError> for Error {
    fn from(error: SymbolOptionsError) -> Error {
        Error::Session(error.into())
    }
}
