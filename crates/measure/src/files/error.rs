//! Errors of making and reading files.

use std::io;
use std::path::{Path, PathBuf};

use wording::grouped;

use crate::Unavailable;

/// Error of a file measurement.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The method or the cache state is not available.
    #[error("not available: {0}")]
    Unavailable(String),
    /// An operation on a file or folder failed.
    #[error("cannot {doing} {}: {}{}", path.display(), cause(source), hint(doing, source))]
    File {
        /// Path of the file or folder.
        path: PathBuf,
        /// Operation as a verb, for example `open`.
        doing: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// A method read content that differs from the content that an ordinary read found before.
    #[error(
        "{}: {method} read {found}, but the file had {expected} before; do not change files during the measurement",
        path.display()
    )]
    Different {
        /// Path of the file.
        path: PathBuf,
        /// Name of the method.
        method: String,
        /// Number of bytes that the method read, and the sum of their values.
        found: String,
        /// Number of bytes that the ordinary read returned, and the sum of their values.
        expected: String,
    },
    /// The folder has no files.
    #[error("no files to read in {}; name another folder, or generate files with `--make`", .0.display())]
    NoFiles(PathBuf),
    /// The folder for a new set is not empty.
    #[error("{} is not empty; name a new folder, or omit `--make` to measure its files", .0.display())]
    NotEmpty(PathBuf),
    /// The number of files exceeds the number that may be open at once.
    #[error(
        "too many files: {files} must be open at once, but the limit is {allowed}; raise it (`ulimit -n`) or read fewer files (`--count`)"
    )]
    TooManyOpen {
        /// Number of files that must be open at once.
        files: usize,
        /// Maximum number of files that may be open at once.
        allowed: u64,
    },
    /// The total size of the files exceeds the size that a run may read.
    #[error(
        "the files are too large: {} bytes, but a run may read {}; read fewer files (`--count`)",
        grouped(*bytes),
        grouped(*most)
    )]
    TooMuch {
        /// Total size of the files in bytes.
        bytes: u64,
        /// Maximum total size in bytes that a run may read.
        most: u64,
    },
    /// An operation of a queue failed.
    #[error("{doing} failed: {source}")]
    Queue {
        /// Name of the operation.
        doing: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// No method is available under any cache state.
    #[error("none of the requested methods is available: {}", Unavailable::list(.0))]
    NothingAvailable(Vec<Unavailable>),
}

impl FilesError {
    /// Returns a function for `map_err` that converts a system error into an error about `path`.
    pub(super) fn at(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> FilesError {
        move |source| FilesError::File {
            path: path.to_owned(),
            doing,
            source,
        }
    }
}

/// Returns the message of a system error without its number, which does not help users.
fn cause(source: &io::Error) -> String {
    let text = source.to_string();
    match text.split_once(" (os error ") {
        Some((message, _)) => message.to_owned(),
        None => text,
    }
}

/// Returns advice for common errors.
fn hint(doing: &str, source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound if doing == "list" => {
            "; name an existing folder, or generate one (`--make`)"
        }
        io::ErrorKind::NotFound if doing == "create" => "; name an existing parent folder",
        io::ErrorKind::NotFound => {
            "; if it vanished during the measurement, do not change the folder, or measure generated files (`--make`)"
        }
        io::ErrorKind::StorageFull => {
            "; free some space, or generate fewer (`--count`) or smaller files"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_grouped() {
        let (bytes, most) = (819_200, 4_096);
        let text = FilesError::TooMuch { bytes, most }.to_string();
        assert!(
            text.contains("819,200 bytes") && text.contains("4,096"),
            "{text}"
        );
    }
}
