//! What is posted.

use axum::extract::Request;
use axum::http::StatusCode;
use serde::de::DeserializeOwned;

use super::Refusal;

/// Bytes that a request may have: views are small.
pub(super) const LONGEST: usize = 1 << 20;

/// Reads the JSON that is posted.
///
/// # Errors
/// If it is too long, no JSON, or another than is asked for; says where.
pub(super) async fn read<Q: DeserializeOwned>(request: Request) -> Result<Q, Refusal> {
    let bytes = axum::body::to_bytes(request.into_body(), LONGEST).await;
    let bytes = bytes.map_err(|_| {
        Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "a request has at most 1 MiB; send a smaller one",
        )
    })?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Refusal::bad(format!("this is no such request: {error}")))
}
