//! Why a request has no answer.

use tables::StoreError;
use views::TooLarge;

/// Why a request has no answer. All but [`Store`](ExploreError::Store) and
/// [`Cancelled`](ExploreError::Cancelled) are mistakes of the request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExploreError {
    /// No table of that name can be looked at.
    #[error("there is no table `{0}` to look at; `tables` lists those that there are")]
    NoTable(String),
    /// The table has no such column.
    #[error("`{table}` has no column `{column}`; `tables` lists those that it has")]
    NoColumn {
        /// The table.
        table: &'static str,
        /// The column asked for.
        column: String,
    },
    /// The column is of another kind than the request needs.
    #[error("the column `{column}` of `{table}` {needed}")]
    WrongKind {
        /// The table.
        table: &'static str,
        /// The column asked for.
        column: String,
        /// What it is not, and what would do.
        needed: &'static str,
    },
    /// A number or text of the request is out of bounds.
    #[error("`{field}` {needed}")]
    OutOfBounds {
        /// The field of the request.
        field: &'static str,
        /// What it must be.
        needed: String,
    },
    /// More cells were asked for than are kept.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The table cannot be made or read.
    #[error(transparent)]
    Store(StoreError),
    /// The request's flag was set.
    #[error("the request was cancelled")]
    Cancelled,
}

impl ExploreError {
    /// Whether the request is to blame, not the trace or the machine.
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
