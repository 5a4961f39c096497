//! Bodies of POST requests.

use axum::extract::Request;
use axum::http::StatusCode;
use serde::de::DeserializeOwned;

use crate::Refusal;

/// Maximum number of bytes of a request body.
pub(super) const LONGEST: usize = 1 << 20;

/// Reads a JSON body.
///
/// # Errors
/// If the body is too long, is not JSON, or has the wrong shape. The message names the place in the body.
pub(super) async fn read<Q: DeserializeOwned>(request: Request) -> Result<Q, Refusal> {
    let bytes = axum::body::to_bytes(request.into_body(), LONGEST).await;
    let bytes = bytes.map_err(|_| {
        Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the request is larger than 1 MiB; send a smaller one",
        )
    })?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Refusal::bad(format!("the request is invalid: {error}")))
}
