//! Errors of opening traces and of making or reading their tables.

use crate::Table;

/// A failure to open a trace, or to make or read its tables.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file of the recording cannot be opened or read.
    #[error(transparent)]
    Recording(Box<dyn std::error::Error + Send + Sync>),
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
    /// Creates the error of a format.
    pub fn of_format(error: impl std::error::Error + Send + Sync + 'static) -> StoreError {
        StoreError::Recording(Box::new(error))
    }

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
