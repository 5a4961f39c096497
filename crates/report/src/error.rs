//! Errors of the report.

use tables::{StoreError, WrongType};

/// Reason why a report cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The trace cannot be read.
    #[error(transparent)]
    Session(#[from] session::Error),
    /// The data of a picture cannot be read.
    #[error(transparent)]
    Explore(#[from] explore::ExploreError),
    /// The program has no script, without which a comparison shows nothing.
    #[error(
        "cannot write comparison pages: this laglab was built without the chart script; run `cargo xtask page`, \
         then build laglab again"
    )]
    NoScript,
    /// The data of the page cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        Error::Session(error.into())
    }
}

impl From<WrongType> for Error {
    fn from(error: WrongType) -> Error {
        Error::Session(error.into())
    }
}
