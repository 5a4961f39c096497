//! Runs long work on blocking threads and cancels it when the client disconnects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::Refusal;

/// Flag that cancels the work of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Cancellation {
    cancelled: Arc<AtomicBool>,
}

impl Cancellation {
    pub(super) fn is_pending(&self) -> bool {
        !self.cancelled.load(Ordering::Relaxed)
    }

    /// Returns the flag. It is true if the request is cancelled.
    pub(super) fn cancelled(&self) -> &AtomicBool {
        &self.cancelled
    }
}

/// Guard that cancels the work when it is dropped. The server drops it if the browser closes the connection.
struct CancelOnDrop(Cancellation);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }
}

/// Runs work on a blocking thread and returns its result as JSON.
pub(super) async fn json<A: Serialize>(
    work: impl FnOnce(&Cancellation) -> Result<A, Refusal> + Send + 'static,
) -> Result<Response, Refusal> {
    let bytes = run(move |cancellation| {
        let answer = work(cancellation)?;
        serde_json::to_vec(&answer).map_err(|error| Refusal::failed(error.to_string()))
    });
    Ok(([(header::CONTENT_TYPE, "application/json")], bytes.await?).into_response())
}

/// Runs work on a blocking thread and returns its result.
pub(super) async fn run<T: Send + 'static>(
    work: impl FnOnce(&Cancellation) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let cancellation = Cancellation::default();
    let _guard = CancelOnDrop(cancellation.clone());
    let done = tokio::task::spawn_blocking(move || {
        if cancellation.is_pending() {
            work(&cancellation)
        } else {
            Err(Refusal::cancelled())
        }
    });
    done.await.unwrap_or_else(|_| {
        let what = "this request failed: laglab has a defect; report it with the message on the \
                    terminal";
        Err(Refusal::failed(what))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn work_is_cancelled_when_the_client_disconnects() {
        let (began, begun) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let request = tokio::spawn(run(move |cancellation| {
            began
                .send(cancellation.is_pending())
                .expect("the receiver is open");
            while cancellation.is_pending() {
                std::thread::sleep(Duration::from_millis(1));
            }
            end.send(()).expect("the receiver is open");
            Ok(())
        }));
        let wait = Duration::from_secs(60);
        let pending = tokio::task::spawn_blocking(move || begun.recv_timeout(wait));
        let pending = pending.await.expect("no panic");
        assert_eq!(pending, Ok(true));

        request.abort();
        let ended = tokio::task::spawn_blocking(move || ended.recv_timeout(wait));
        assert_eq!(ended.await.expect("no panic"), Ok(()));
    }
}
