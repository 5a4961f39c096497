//! Error responses to requests, with messages for the user of the page.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use explore::ExploreError;
use serde::Serialize;
use session::{FileError, SymbolOptionsError};
use tables::StoreError;
use ts_rs::TS;

/// Error response to a request.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    body: ErrorJson,
}

/// Body of an error response.
#[derive(Debug, Serialize, TS)]
#[ts(optional_fields)]
pub(super) struct ErrorJson {
    /// Cause of the error and advice.
    error: String,
    /// Position of the error in the text of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<Place>,
}

/// Line and column in a text. Both are counted from 1.
#[derive(Debug, Serialize, TS)]
struct Place {
    line: u64,
    column: u64,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, error: impl Into<String>) -> Refusal {
        Refusal {
            status,
            body: ErrorJson {
                error: error.into(),
                place: None,
            },
        }
    }

    /// Creates the response to an invalid request.
    pub(super) fn bad(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, error)
    }

    /// Creates the response to a request for a resource that does not exist.
    pub(super) fn not_found(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, error)
    }

    /// Creates the response to a request that fails because of the trace or the machine.
    pub(super) fn failed(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    }

    /// Creates the response to a cancelled request.
    pub(super) fn cancelled() -> Refusal {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the request was cancelled")
    }

    /// Adds the position of the error in the text of the request.
    #[cfg(feature = "sql")]
    pub(super) fn at(mut self, line: u64, column: u64) -> Refusal {
        self.body.place = Some(Place { line, column });
        self
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let json = serde_json::to_vec(&self.body).unwrap_or_default();
        (
            self.status,
            [(header::CONTENT_TYPE, "application/json")],
            json,
        )
            .into_response()
    }
}

impl From<session::Error> for Refusal {
    fn from(error: session::Error) -> Refusal {
        match error {
            session::Error::Cancelled => Refusal::cancelled(),
            session::Error::NotRecorded(_) => Refusal::not_found(error.to_string()),
            other => Refusal::failed(other.to_string()),
        }
    }
}

impl From<report::Error> for Refusal {
    fn from(error: report::Error) -> Refusal {
        match error {
            report::Error::Session(error) => error.into(),
            other => Refusal::failed(other.to_string()),
        }
    }
}

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Refusal {
        Refusal::failed(error.to_string())
    }
}

impl From<SymbolOptionsError> for Refusal {
    fn from(error: SymbolOptionsError) -> Refusal {
        Refusal::failed(error.to_string())
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        session::Error::from(error).into()
    }
}

impl From<ExploreError> for Refusal {
    fn from(error: ExploreError) -> Refusal {
        match error {
            ExploreError::Cancelled => Refusal::cancelled(),
            ExploreError::Store(error) => error.into(),
            error => Refusal::bad(error.to_string()),
        }
    }
}
