//! Errors of an export.

use std::error;
use std::io;
use std::path::PathBuf;

use session::FileError;
use tables::{StoreError, WrongType};

/// Reason why an export failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The trace cannot be read.
    #[error(transparent)]
    Session(#[from] session::Error),
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// A partition of the folder for Parquet files cannot be replaced.
    #[error("{}: {problem}", path.display())]
    Partition {
        /// Path of the partition's file.
        path: PathBuf,
        /// Reason why the partition cannot be replaced.
        problem: PartitionProblem,
    },
    /// A Parquet file cannot be written.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// Path of the file.
        path: PathBuf,
        /// Reason why the file cannot be written.
        source: Box<dyn error::Error + Send + Sync>,
    },
    /// The exported part of the trace has no packets.
    #[error(
        "no packets to write: the time range has none, or they were not recorded; record them with \
         `netsh trace start capture=yes` or `pktmon start --capture`"
    )]
    NoPackets,
}

/// Reason why a partition cannot be replaced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartitionProblem {
    /// The partition contains another trace with the same name.
    #[error("belongs to another trace called `{0}`; choose another name with --name")]
    OtherTrace(String),
    /// The file was not written by laglab.
    #[error("was not written by laglab; move it away, or choose another folder")]
    Foreign,
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

impl From<FileError> for Error {
    fn from(error: FileError) -> Error {
        Error::Session(error.into())
    }
}
