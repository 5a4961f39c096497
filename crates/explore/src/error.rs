//! Errors that requests return.

use tables::StoreError;
use views::TooLarge;

/// Reason why a request fails. All variants except [`Store`](ExploreError::Store) and
/// [`Cancelled`](ExploreError::Cancelled) are mistakes in the request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExploreError {
    /// There is no table with this name.
    #[error("there is no table `{0}`; `tables` lists all tables")]
    NoTable(String),
    /// The table has no column with this name.
    #[error("`{table}` has no column `{column}`; `tables` lists its columns")]
    NoColumn {
        /// Name of the table.
        table: &'static str,
        /// Name of the requested column.
        column: String,
    },
    /// The column cannot be used as requested.
    #[error("the column `{column}` of `{table}` {needed}")]
    WrongKind {
        /// Name of the table.
        table: &'static str,
        /// Name of the requested column.
        column: String,
        /// Description of the problem, and the columns that can be used instead.
        needed: &'static str,
    },
    /// A number or text of the request is out of bounds.
    #[error("`{field}` {needed}")]
    OutOfBounds {
        /// Name of the field.
        field: &'static str,
        /// Requirement that the field does not satisfy.
        needed: String,
    },
    /// The answer would need too much memory.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The table cannot be built or read.
    #[error(transparent)]
    Store(StoreError),
    /// The request was cancelled.
    #[error("the request was cancelled")]
    Cancelled,
}

impl ExploreError {
    /// Returns true if the error is a mistake in the request. All other errors have causes in the trace or in
    /// the machine.
    pub fn is_of_request(&self) -> bool {
        !matches!(self, ExploreError::Store(_) | ExploreError::Cancelled)
    }
}

impl From<StoreError> for ExploreError {
    fn from(error: StoreError) -> ExploreError {
        match error {
            StoreError::Cancelled(_) => ExploreError::Cancelled,
            error => ExploreError::Store(error),
        }
    }
}

impl From<views::Cancelled> for ExploreError {
    fn from(_: views::Cancelled) -> ExploreError {
        ExploreError::Cancelled
    }
}
