//! Errors of tools. Each has a kind for programs and a message that says what to do.

use explore::ExploreError;
use serde::Serialize;
use tables::StoreError;
use wording::Printable;

use crate::names;

/// Error of a tool. It contains no names from a trace, except names that the caller sent.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    /// Kind of the error.
    #[serde(rename = "error")]
    pub(crate) kind: Kind,
    /// Cause and advice.
    message: String,
}

/// Kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The arguments are wrong.
    Arguments,
    /// There is no such trace, finding, thread or process.
    Unknown,
    /// The trace lacks the data.
    NotRecorded,
    /// The trace cannot be read.
    Trace,
    /// The answer or its work is too large.
    TooLarge,
    /// All places for calls are taken by other calls.
    Busy,
    /// The client cancelled the call.
    Cancelled,
    /// laglab has a defect.
    Defect,
}

/// Maximum number of characters of a message.
const MAX_CHARS: usize = 600;

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl AsRef<str>) -> Failure {
        let message = message.as_ref();
        let end = message.char_indices().nth(MAX_CHARS);
        let cut = end.map_or(message, |(end, _)| &message[..end]);
        Failure {
            kind,
            message: Printable(cut).to_string(),
        }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn arguments(message: impl AsRef<str>) -> Failure {
        Failure::new(Kind::Arguments, message)
    }

    pub(crate) fn unknown(message: impl AsRef<str>) -> Failure {
        Failure::new(Kind::Unknown, message)
    }

    pub(crate) fn cancelled() -> Failure {
        Failure::new(Kind::Cancelled, "the call was cancelled")
    }

    pub(crate) fn busy() -> Failure {
        Failure::new(
            Kind::Busy,
            "the server is busy with other calls, or with cancelled queries that have not ended yet; call again in \
             some seconds",
        )
    }

    pub(crate) fn defect() -> Failure {
        let message = "laglab has a defect; report it with the message on its standard error";
        Failure::new(Kind::Defect, message)
    }
}

impl From<session::Error> for Failure {
    fn from(error: session::Error) -> Failure {
        match &error {
            session::Error::Cancelled => Failure::cancelled(),
            session::Error::NotRecorded(_) => Failure::new(Kind::NotRecorded, error.to_string()),
            session::Error::Store(error) => of_store(error),
            // The texts of all other errors contain paths, which are private, so fixed texts replace them.
            session::Error::Symbols(_) => Failure::new(
                Kind::Trace,
                "the symbol path that the user gave with --symbols cannot be used",
            ),
            _ => Failure::new(Kind::Trace, "a file cannot be written"),
        }
    }
}

/// Returns the error for a failure of an open trace. The error contains no path, because paths are private.
fn of_store(error: &StoreError) -> Failure {
    let message = match error {
        changed if changed.is_changed() => {
            "the trace changed after it was opened; call `explain` again"
        }
        StoreError::Files(_) => {
            "a file of the trace or of the cache of tables cannot be read or written; call again, or ask the user to \
             check the folder and the free space on the disk"
        }
        StoreError::NoColumn { .. } | StoreError::WrongType(_) => {
            "a stored table is damaged; ask the user to run `laglab cache --clear`"
        }
        _ => "the trace cannot be read",
    };
    Failure::new(Kind::Trace, message)
}

impl From<tables::StoreError> for Failure {
    fn from(error: tables::StoreError) -> Failure {
        session::Error::from(error).into()
    }
}

impl From<report::Error> for Failure {
    fn from(error: report::Error) -> Failure {
        match error {
            report::Error::Session(error) => error.into(),
            other => Failure::new(Kind::Trace, other.to_string()),
        }
    }
}

impl From<ExploreError> for Failure {
    fn from(error: ExploreError) -> Failure {
        match error {
            ExploreError::Cancelled => Failure::cancelled(),
            ExploreError::Store(error) => error.into(),
            ExploreError::TooLarge(_) => Failure::new(Kind::TooLarge, error.to_string()),
            ExploreError::NoTable(name) => Failure::arguments(names::no_table(&name)),
            ExploreError::NoColumn { table, column } => {
                Failure::arguments(names::no_column(table, &column))
            }
            ExploreError::OutOfBounds {
                field: "aggregates",
                needed,
            } => Failure::arguments(format!("`measures` {needed}")),
            _ => Failure::arguments(error.to_string()),
        }
    }
}

#[cfg(feature = "sql")]
impl From<sql::SqlError> for Failure {
    fn from(error: sql::SqlError) -> Failure {
        let kind = match error {
            sql::SqlError::Cancelled => return Failure::cancelled(),
            sql::SqlError::Store(error) => return error.into(),
            sql::SqlError::Setup(_) => Kind::Defect,
            sql::SqlError::Memory { .. } => Kind::TooLarge,
            // The engine's full message can contain values of the trace, so only the kind of the error is returned.
            sql::SqlError::Run { kind, .. } => return Failure::arguments(kind.to_string()),
            _ => Kind::Arguments,
        };
        Failure::new(kind, error.to_string())
    }
}
