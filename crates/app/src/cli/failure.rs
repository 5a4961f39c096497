//! Errors that end a command. Each kind has an exit code.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::iter::successors;
use std::path::Path;

use tables::StoreError;

use crate::watch::Interrupted;

/// An error that ends a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong usage or unreadable input. The text is one line with the cause and advice.
    Input(String),
    /// The trace lacks events that the command needs. The text is one line that names the data to record.
    NotRecorded(String),
    /// A check failed. The text is one line with its result.
    Negative(String),
    /// Output could not be written.
    Output(io::Error),
    /// The user pressed Ctrl-C.
    Interrupted,
}

impl Failure {
    /// Creates an error about a file or folder that the user named.
    pub(crate) fn input(path: &Path, error: impl Display) -> Failure {
        Failure::Input(format!("{}: {error}", path.display()))
    }

    /// Creates an error about a file or folder that the program could not read.
    pub(crate) fn reading(path: &Path, error: &io::Error) -> Failure {
        Failure::Input(format!("cannot read {}: {}", path.display(), cause(error)))
    }

    /// Reads a regular file of at most `most` bytes, or returns the error.
    pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
        files::read_file(path, most).map_err(|error| Failure::reading(path, &error))
    }

    /// Creates an error about a file or folder that could not be written. If the error comes from the
    /// operating system, the text states the cause and gives advice.
    pub(crate) fn writing(path: &Path, error: &(dyn Error + 'static)) -> Failure {
        let of_system =
            successors(Some(error), |&error| error.source()).find_map(|error| error.downcast_ref());
        let why = of_system.map_or_else(|| error.to_string(), cause);
        Failure::Input(format!("cannot write {}: {why}", path.display()))
    }
}

/// Formats the cause of an error of the operating system, with advice if there is any.
pub(crate) fn cause(error: &io::Error) -> String {
    if error.get_ref().is_some() {
        // The error was created by laglab or by a library, so its text already names the cause.
        return error.to_string();
    }
    let known = match error.kind() {
        ErrorKind::NotFound => "no such file or folder; check the path",
        ErrorKind::PermissionDenied => {
            "permission denied; change the permissions of the file, or run as a user who has access"
        }
        ErrorKind::IsADirectory => "it is a folder; give a file",
        ErrorKind::NotADirectory => "a part of the path is a file; give a folder",
        ErrorKind::InvalidData => "it is not UTF-8 text; save it as UTF-8",
        ErrorKind::StorageFull => "the disk is full; free space, or give another folder",
        ErrorKind::ReadOnlyFilesystem => "the disk is read-only; give another folder",
        _ => "",
    };
    if !known.is_empty() {
        return known.to_owned();
    }
    // The operating system's error number does not help users, so it is removed.
    let text = error.to_string();
    text.split_once(" (os error ")
        .map_or(text.as_str(), |(text, _)| text)
        .to_owned()
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

impl From<Interrupted> for Failure {
    fn from(_: Interrupted) -> Failure {
        Failure::Interrupted
    }
}

impl From<tables::Cancelled> for Failure {
    fn from(_: tables::Cancelled) -> Failure {
        Failure::Interrupted
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        session::Error::from(error).into()
    }
}

impl From<tables::WrongType> for Failure {
    fn from(error: tables::WrongType) -> Failure {
        session::Error::from(error).into()
    }
}

impl From<session::Error> for Failure {
    fn from(error: session::Error) -> Failure {
        match error {
            session::Error::Cancelled => Failure::Interrupted,
            session::Error::NotRecorded(_) => Failure::NotRecorded(error.to_string()),
            other => Failure::Input(other.to_string()),
        }
    }
}

impl From<xperf::Error> for Failure {
    fn from(error: xperf::Error) -> Failure {
        match error {
            xperf::Error::Session(error) => error.into(),
            xperf::Error::Write(error) => Failure::Output(error),
            other => Failure::Input(other.to_string()),
        }
    }
}

impl From<explore::ExploreError> for Failure {
    fn from(error: explore::ExploreError) -> Failure {
        match error {
            explore::ExploreError::Store(error) => error.into(),
            explore::ExploreError::Cancelled => Failure::Interrupted,
            other => Failure::Input(other.to_string()),
        }
    }
}

impl From<report::Error> for Failure {
    fn from(error: report::Error) -> Failure {
        match error {
            report::Error::Session(error) => error.into(),
            other => Failure::Input(other.to_string()),
        }
    }
}

impl From<prove::Error> for Failure {
    fn from(error: prove::Error) -> Failure {
        match error {
            prove::Error::Io { file, source } => Failure::reading(&file, &source),
            other => Failure::Input(other.to_string()),
        }
    }
}

#[cfg(feature = "export")]
impl From<export::Error> for Failure {
    fn from(error: export::Error) -> Failure {
        match error {
            export::Error::Session(error) => error.into(),
            export::Error::Write(error) => Failure::Output(error),
            export::Error::Parquet { path, source } => Failure::writing(&path, source.as_ref()),
            export::Error::NoPackets => Failure::NotRecorded(error.to_string()),
            other => Failure::Input(other.to_string()),
        }
    }
}

/// Converts the listed error types to [`Failure::Input`], because they are about input of the user.
macro_rules! input {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                Failure::Input(error.to_string())
            }
        })*
    };
}

input!(
    raw_events::MetadataError,
    session::FileError,
    session::SymbolOptionsError,
    trim::TrimError
);

#[cfg(feature = "open")]
input!(serve::Error);
