//! Errors that can occur when a trace is opened.

use std::io;

use crate::archive::ArchiveError;
use crate::foreign::Foreign;

/// Error that occurs if nothing of a trace can be read. Smaller problems are reported as [`crate::Damage`].
///
/// Each message is one line with the problem, its cause and advice. The message includes the message of the
/// underlying error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No file was given.
    #[error("no trace file was given")]
    NoFiles,
    /// More than 65,535 files were given.
    #[error("a trace has at most 65,535 files; give fewer")]
    TooManyFiles,
    /// The earlier files already have the maximum number of sessions.
    #[error(
        "cannot add {name}: the files before it already have 65,535 sessions, the maximum; open {name} separately"
    )]
    TooManySessions {
        /// Name of the file.
        name: String,
    },
    /// A file was given twice.
    #[error("{name} was given twice: its events would count twice; give it once")]
    Twice {
        /// Name of the file.
        name: String,
    },
    /// Two files have the same content.
    #[error(
        "{name} has the same content as {other}: its events would count twice; give only one of \
         them"
    )]
    SameContent {
        /// Name of the later file.
        name: String,
        /// Name of the earlier file.
        other: String,
    },
    /// The file ends inside its log-file header.
    #[error("{name} is incomplete: it ends after {size} bytes, inside its header; copy it again")]
    CutOff {
        /// Name of the file.
        name: String,
        /// Size of the file in bytes.
        size: u64,
    },
    /// The file has no bytes.
    #[error(
        "{name} is empty: it was not copied completely, or its session wrote nothing; copy or \
         record it again"
    )]
    Empty {
        /// Name of the file.
        name: String,
    },
    /// The file is not a trace.
    #[error("{name} is not an ETW trace: {}", seems(*foreign, first))]
    NotATrace {
        /// Name of the file.
        name: String,
        /// Format of the file according to its first bytes, if the format is known.
        foreign: Option<Foreign>,
        /// First bytes of the file, at most 16.
        first: Vec<u8>,
    },
    /// The path does not exist.
    #[error("cannot open {name}: no such file; check the path")]
    NotFound {
        /// Path of the file.
        name: String,
    },
    /// The user may not read the file.
    #[error(
        "cannot open {name}: permission denied; make the file readable for this user (traces often \
         belong to an administrator)"
    )]
    NoPermission {
        /// Path of the file.
        name: String,
    },
    /// The path is not a regular file.
    #[error("cannot open {name}: it is {what}, not a file; {advice}")]
    NotAFile {
        /// Path that is not a file.
        name: String,
        /// Kind of the path with its article, such as "a directory".
        what: &'static str,
        /// Advice to the user about the next step.
        advice: &'static str,
    },
    /// No trace could be extracted from the archive.
    #[error("cannot read {name}: {source}")]
    Archive {
        /// Name of the file.
        name: String,
        /// Cause of the error.
        source: ArchiveError,
    },
    /// The file could not be read.
    #[error("cannot read {name}: {source}")]
    Io {
        /// Name of the file.
        name: String,
        /// Cause of the error.
        source: io::Error,
    },
}

/// Returns text for an error message: a description of a file that is not a trace, and advice.
fn seems(foreign: Option<Foreign>, first: &[u8]) -> String {
    match foreign {
        Some(Foreign { name, advice }) => format!("it seems to be {name}; {advice}"),
        None => {
            let hex: Vec<String> = first.iter().map(|byte| format!("{byte:02x}")).collect();
            format!(
                "it has no plausible buffers, and begins {}; give an .etl, or an .etl.zip, \
                 .diagsession or .cab that contains one",
                hex.join(" ")
            )
        }
    }
}
