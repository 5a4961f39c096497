//! Why tables could not be made or read.

use std::io;
use std::path::PathBuf;

use crate::Table;

/// Why tables could not be made or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The trace cannot be opened.
    #[error(transparent)]
    Open(#[from] etl::OpenError),
    /// Two files tell what the same CPUs did at the same time.
    #[error(
        "{name} and {other} both tell what the same CPUs did at the same time, which is of two \
         machines, or of one twice; look at them one by one"
    )]
    RecordedTwice {
        /// A file.
        name: String,
        /// The file that was given before it.
        other: String,
    },
    /// A capture of packets cannot be read.
    #[error(transparent)]
    Capture(#[from] crate::CaptureError),
    /// Samples of a live probe cannot be read.
    #[error(transparent)]
    Samples(#[from] crate::SamplesError),
    /// The progress callback asked to stop.
    #[error(transparent)]
    Cancelled(#[from] crate::Cancelled),
    /// A kept table is not of the type that it is read as.
    #[error(transparent)]
    WrongType(#[from] crate::WrongType),
    /// There is no such column.
    #[error("the table `{table}` has no column `{column}`")]
    NoColumn {
        /// The table.
        table: Table,
        /// The column asked for.
        column: String,
    },
    /// A file of the trace cannot be read.
    #[error("{}: {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file of the trace changed while it was read.
    #[error("{}: it changed while it was read; copy the trace and look at the copy", file.display())]
    Changed {
        /// The file.
        file: PathBuf,
    },
    /// A table cannot be written, neither in the cache nor among the temporary files.
    #[error(
        "{}: the table `{table}` cannot be written there: {error}; free some space, or name another \
         folder by LAGLAB_CACHE or TMPDIR (TEMP on Windows)",
        folder.display()
    )]
    Write {
        /// The table.
        table: Table,
        /// The folder.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A kept table is damaged, and so was what was made again.
    #[error(
        "{}: the table `{table}` is damaged at byte {offset}: {what}; it was made again and still is, \
         so check the disk, or name another folder by LAGLAB_CACHE",
        file.display()
    )]
    Damaged {
        /// The table.
        table: Table,
        /// Its file; the folder of temporary files if it has no name.
        file: PathBuf,
        /// Offset in the file, in bytes.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
}
