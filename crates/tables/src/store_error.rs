//! Errors of opening traces and of making or reading their tables.

use crate::Table;

/// A failure to open a trace, or to make or read its tables.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The trace cannot be opened.
    #[error(transparent)]
    Open(#[from] etl::OpenError),
    /// Two files record the same CPUs at the same time.
    #[error(
        "{name} and {other} record the same CPUs at the same time; they are from two machines, or \
         one is a copy of the other; open them one by one"
    )]
    RecordedTwice {
        /// Name of a file.
        name: String,
        /// Name of another file. The user gave this file before the file `name`.
        other: String,
    },
    /// A packet capture cannot be read.
    #[error(transparent)]
    Capture(#[from] crate::CaptureError),
    /// Samples of a live probe cannot be read.
    #[error(transparent)]
    Samples(#[from] crate::SamplesError),
    /// A recording of Linux cannot be opened.
    #[error("cannot open {}: {source}", file.display())]
    Recording {
        /// Path of the file.
        file: std::path::PathBuf,
        /// Reason why the recording cannot be opened.
        source: linux::OpenError,
    },
    /// A recording of Linux was given together with other files.
    #[error("{}: a recording of Linux cannot be opened together with other files; give only this file", file.display())]
    RecordingNotAlone {
        /// Path of the file.
        file: std::path::PathBuf,
    },
    /// The progress callback asked to stop.
    #[error(transparent)]
    Cancelled(#[from] crate::Cancelled),
    /// A column of a stored table has an unexpected type.
    #[error(transparent)]
    WrongType(#[from] crate::WrongType),
    /// A requested column does not exist.
    #[error("the table `{table}` has no column `{column}`")]
    NoColumn {
        /// Table that was requested.
        table: Table,
        /// Name of the requested column.
        column: String,
    },
    /// A file of the trace cannot be read or was changed, or a table file cannot be written or
    /// read.
    #[error(transparent)]
    Files(store::Error),
}

impl StoreError {
    /// Returns true if a file of the trace changed after it was opened.
    pub fn is_changed(&self) -> bool {
        matches!(self, StoreError::Files(store::Error::Changed { .. }))
    }
}

impl From<store::Error> for StoreError {
    fn from(error: store::Error) -> StoreError {
        match error {
            store::Error::Cancelled => StoreError::Cancelled(crate::Cancelled),
            other => StoreError::Files(other),
        }
    }
}
