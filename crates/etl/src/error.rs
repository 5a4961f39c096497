//! Why a trace cannot be opened.

use std::io;

/// Why nothing of a trace can be read. Whatever is less than that is [`crate::Damage`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No file was given.
    #[error("no trace file was given")]
    NoFiles,
    /// More than 65,535 files were given.
    #[error("more than 65,535 files were given as one trace")]
    TooManyFiles,
    /// The file has no bytes.
    #[error("{name}: the file is empty")]
    Empty {
        /// File concerned.
        name: String,
    },
    /// The file is not a log.
    #[error(
        "{name}: not an .etl trace: no buffer header in the file, which begins {}",
        hex(first)
    )]
    NotATrace {
        /// File concerned.
        name: String,
        /// Its first bytes.
        first: Vec<u8>,
    },
    /// The path names something that is not a file.
    #[error("{name}: is {what}, not a file")]
    NotAFile {
        /// Path concerned.
        name: String,
        /// What it is.
        what: &'static str,
    },
    /// The file could not be read.
    #[error("{name}: {error}")]
    Io {
        /// File concerned.
        name: String,
        /// What the system said.
        error: io::Error,
    },
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect::<Vec<_>>()
        .join(" ")
}
