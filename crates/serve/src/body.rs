//! Bodies of POST requests.

use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::Refusal;

/// Maximum number of bytes of a request body.
pub(super) const LONGEST: usize = 1 << 20;

/// Time in which a client must send the body. The time is short, because clients are on the same machine.
const TIME: Duration = Duration::from_secs(10);

/// Reads a JSON body.
///
/// # Errors
/// Returns an error if the body is too long, takes too long, is not JSON, or has the wrong shape. The message
/// states the position in the body.
pub(super) async fn read<Q: DeserializeOwned>(request: Request) -> Result<Q, Refusal> {
    let bytes = timeout(TIME, axum::body::to_bytes(request.into_body(), LONGEST)).await;
    let bytes = bytes.map_err(|_| {
        Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            "the body of the request did not arrive within 10 s; send it without delay",
        )
    })?;
    let bytes = bytes.map_err(|_| {
        Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the request is larger than 1 MiB; send a smaller one",
        )
    })?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Refusal::bad(format!("the request is invalid: {error}")))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use axum::body::{Body, Bytes};
    use axum::response::IntoResponse;
    use hyper::body::Frame;
    use tokio::time::{Instant, Interval, interval};

    use super::*;

    /// Body that sends a byte per second and never ends.
    struct Trickle(Interval);

    impl hyper::body::Body for Trickle {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let byte = |_| Some(Ok(Frame::data(Bytes::from_static(b"["))));
            self.0.poll_tick(context).map(byte)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_is_not_waited_for() {
        let begun = Instant::now();
        let body = Body::new(Trickle(interval(Duration::from_secs(1))));
        let read = read::<serde_json::Value>(Request::new(body)).await;
        let response = read.unwrap_err().into_response();
        assert_eq!(response.status(), StatusCode::REQUEST_TIMEOUT);
        assert_eq!(begun.elapsed().as_secs(), TIME.as_secs());
    }

    #[tokio::test]
    async fn a_large_body_is_refused() {
        let body = Body::from(" ".repeat(LONGEST + 1));
        let read = read::<serde_json::Value>(Request::new(body)).await;
        let response = read.unwrap_err().into_response();
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }
}
