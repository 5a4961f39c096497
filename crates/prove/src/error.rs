//! Errors: reasons why measurements cannot be compared.

use std::path::{Path, PathBuf};

/// Reason why measurements cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The conditions in a file of `laglab measure` cannot be read.
    #[error(transparent)]
    Conditions(#[from] imports::SamplesError),
    /// The operating system did not let the program read a file.
    #[error("cannot read {}: {source}", file.display())]
    Io {
        /// Path of the file.
        file: PathBuf,
        /// Reason given by the operating system.
        source: std::io::Error,
    },
    /// A file has another format, or lacks a requested column.
    #[error("cannot read {}: {what}", file.display())]
    Format {
        /// Path of the file.
        file: PathBuf,
        /// Description of the cause, and advice.
        what: String,
    },
    /// The groups of runs to compare cannot be selected.
    #[error("{0}")]
    Sides(String),
    /// A side has no run with a value.
    #[error(
        "cannot compare {name}: no run {when} the change has a value; give a measurement with values for each side"
    )]
    NoValues {
        /// Name of the measured thing.
        name: String,
        /// Side without values: "before" or "after".
        when: &'static str,
    },
}

impl Error {
    pub(crate) fn format(file: &Path, what: impl Into<String>) -> Error {
        Error::Format {
            file: file.to_owned(),
            what: what.into(),
        }
    }
}
