//! Why a request has no answer, in words for whoever looks at the page.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use explore::ExploreError;
use serde::Serialize;
use tables::StoreError;

use crate::cli::Failure;

/// A request that has no answer.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    said: Said,
}

/// What is sent.
#[derive(Debug, Serialize)]
struct Said {
    /// What was found, and what to do.
    error: String,
    /// Where in a text that was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<Place>,
}

/// A place in a text, from 1.
#[derive(Debug, Serialize)]
struct Place {
    line: u64,
    column: u64,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, error: impl Into<String>) -> Refusal {
        Refusal {
            status,
            said: Said {
                error: error.into(),
                place: None,
            },
        }
    }

    /// The request makes no sense.
    pub(super) fn bad(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, error)
    }

    /// There is no such thing.
    pub(super) fn not_found(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, error)
    }

    /// The trace or the machine is to blame.
    pub(super) fn failed(error: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    }

    /// Nobody waits for the answer any more.
    pub(super) fn unwanted() -> Refusal {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the request was cancelled")
    }

    /// The same with a place in the text that was sent.
    #[cfg(feature = "sql")]
    pub(super) fn at(mut self, line: u64, column: u64) -> Refusal {
        self.said.place = Some(Place { line, column });
        self
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let json = serde_json::to_vec(&self.said).unwrap_or_default();
        (
            self.status,
            [(header::CONTENT_TYPE, "application/json")],
            json,
        )
            .into_response()
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        match failure {
            Failure::Input(what) => Refusal::failed(what),
            Failure::NotRecorded(what) | Failure::Negative(what) => Refusal::not_found(what),
            Failure::Output(error) => Refusal::failed(error.to_string()),
            Failure::Interrupted => Refusal::unwanted(),
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        Failure::from(error).into()
    }
}

impl From<ExploreError> for Refusal {
    fn from(error: ExploreError) -> Refusal {
        match error {
            ExploreError::Cancelled => Refusal::unwanted(),
            ExploreError::Store(error) => error.into(),
            error => Refusal::bad(error.to_string()),
        }
    }
}
