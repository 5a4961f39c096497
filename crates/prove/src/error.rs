//! Reasons why nothing can be compared.

use std::path::PathBuf;

/// Reason why measurements cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file of `laglab measure` cannot be read.
    #[error(transparent)]
    Samples(#[from] tables::StoreError),
    /// A file of `laglab measure` has a column of another type.
    #[error(transparent)]
    Type(#[from] tables::WrongType),
    /// The operating system did not let the program read a file.
    #[error("cannot read {}: {source}", file.display())]
    Io {
        /// Path of the file.
        file: PathBuf,
        /// Reason given by the operating system.
        source: std::io::Error,
    },
    /// A file is no CSV file with the requested columns.
    #[error("cannot read {}: {what}", file.display())]
    Csv {
        /// Path of the file.
        file: PathBuf,
        /// Cause, and advice.
        what: String,
    },
    /// The groups of runs to compare cannot be selected.
    #[error("{0}")]
    Sides(String),
}
