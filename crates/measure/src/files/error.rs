//! What can go wrong while files are made or read, in words.

use std::io;
use std::path::{Path, PathBuf};

use crate::Unavailable;

/// Why files could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The method, or the state of the cache, does not exist here.
    #[error("not available here: {0}")]
    NotHere(String),
    /// Something about one file or folder failed.
    #[error("{} cannot be {doing}: {source}{}", path.display(), hint(doing, source))]
    File {
        /// Which.
        path: PathBuf,
        /// What was being done, as a past participle.
        doing: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// A method read something else than an ordinary read did before.
    #[error(
        "{method} read {found} from {}, where there were {expected} before; was it changed meanwhile?",
        path.display()
    )]
    Different {
        /// The file.
        path: PathBuf,
        /// The method.
        method: String,
        /// Bytes and sum that were found.
        found: String,
        /// Bytes and sum that an ordinary read found.
        expected: String,
    },
    /// There is nothing to read.
    #[error("{} has no files to read; `--make` fills a new folder with some", .0.display())]
    NoFiles(PathBuf),
    /// A set would be made where there is something already.
    #[error("{} is not empty: name a new folder, or leave out `--make` to measure what is in it", .0.display())]
    NotEmpty(PathBuf),
    /// More files than may be open at once.
    #[error(
        "{files} files must be open at once, but this program may open {allowed}; raise the limit (`ulimit -n`) or read fewer (`--count`)"
    )]
    TooManyOpen {
        /// The files.
        files: usize,
        /// The limit.
        allowed: u64,
    },
    /// More to read than a run may take.
    #[error(
        "the files have {bytes} bytes, more than the {most} that a run may read; read fewer (`--count`)"
    )]
    TooMuch {
        /// All that there is.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// A queue failed as a whole.
    #[error("{doing} failed: {source}")]
    Queue {
        /// The call.
        doing: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error("no thread can be started: {0}")]
    Thread(#[source] io::Error),
    /// No method can be measured here under any state of the cache.
    #[error("nothing of what was asked for is available here: {}", Unavailable::list(.0))]
    NothingAvailable(Vec<Unavailable>),
}

impl FilesError {
    /// An error about `path`, for `map_err`.
    pub(super) fn of(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> FilesError {
        move |source| FilesError::File {
            path: path.to_owned(),
            doing,
            source,
        }
    }
}

/// What to do about the usual reasons.
fn hint(doing: &str, source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound if doing == "listed" => {
            "; name a folder that is there, or have one made (`--make`)"
        }
        io::ErrorKind::NotFound if doing == "created" => "; name a place that is there",
        io::ErrorKind::NotFound => {
            "; if it vanished while it was measured, leave the folder alone, or measure a set of its own (`--make`)"
        }
        io::ErrorKind::StorageFull => "; make room, or make fewer (`--count`) or smaller files",
        _ => "",
    }
}
