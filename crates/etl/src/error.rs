//! Why a trace cannot be opened.

use std::io;

use crate::archive::ArchiveError;

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
    /// The files before this one hold as many sessions as can be told apart.
    #[error("{name}: the files before it already hold 65,535 sessions; read it on its own")]
    TooManySessions {
        /// File concerned.
        name: String,
    },
    /// The same file was given twice.
    #[error("{name}: was given twice, and its events would count twice; give it once")]
    Twice {
        /// File concerned.
        name: String,
    },
    /// The file holds what another one does.
    #[error(
        "{name}: holds the same as {other}, and its events would count twice; give one of them"
    )]
    SameContent {
        /// File concerned.
        name: String,
        /// The file that was given before it.
        other: String,
    },
    /// The file ends before its log-file header does.
    #[error(
        "{name}: the file ends after {size} bytes, before the end of its header; it was not \
         copied whole, so copy it again"
    )]
    CutOff {
        /// File concerned.
        name: String,
        /// Its size in bytes.
        size: u64,
    },
    /// The file has no bytes.
    #[error(
        "{name}: the file is empty; was it copied whole, and had its session written anything?"
    )]
    Empty {
        /// File concerned.
        name: String,
    },
    /// The file is not a log.
    #[error(
        "{name}: is not an .etl trace: no buffer header in the file, which begins {}; give an \
         .etl, or an .etl.zip, .diagsession or .cab that holds one",
        hex(first)
    )]
    NotATrace {
        /// File concerned.
        name: String,
        /// Its first bytes.
        first: Vec<u8>,
    },
    /// The path leads nowhere.
    #[error("{name}: there is no such file; check the path")]
    NotFound {
        /// Path concerned.
        name: String,
    },
    /// The system does not let this user read the file.
    #[error(
        "{name}: permission denied; make the file readable for this user (traces are often left \
         by an administrator)"
    )]
    NoPermission {
        /// Path concerned.
        name: String,
    },
    /// The path names something that is not a file.
    #[error("{name}: is {what}, not a file; {advice}")]
    NotAFile {
        /// Path concerned.
        name: String,
        /// What it is.
        what: &'static str,
        /// What to do instead.
        advice: &'static str,
    },
    /// The file is an archive, but no trace could be taken out of it.
    #[error("{name}: {error}")]
    Archive {
        /// File concerned.
        name: String,
        /// What went wrong.
        error: ArchiveError,
    },
    /// The file could not be read.
    #[error("{name}: cannot be read: {error}")]
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
