//! What takes long, done on threads of its own until nobody waits for it any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::Refusal;
use crate::watch;

/// Whether the answer of a request is still wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    cancelled: Arc<AtomicBool>,
}

impl Wanted {
    pub(super) fn still(&self) -> bool {
        !self.cancelled.load(Ordering::Relaxed) && watch::check().is_ok()
    }

    /// Set when it is not.
    pub(super) fn cancelled(&self) -> &AtomicBool {
        &self.cancelled
    }
}

/// Stands for whoever waits for an answer: it is dropped when a browser closes the connection.
struct Waiting(Wanted);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }
}

/// Does some work, and gives what it came to as JSON.
pub(super) async fn json<A: Serialize>(
    work: impl FnOnce(&Wanted) -> Result<A, Refusal> + Send + 'static,
) -> Result<Response, Refusal> {
    let bytes = done(move |wanted| {
        let answer = work(wanted)?;
        serde_json::to_vec(&answer).map_err(|error| Refusal::failed(error.to_string()))
    });
    Ok(([(header::CONTENT_TYPE, "application/json")], bytes.await?).into_response())
}

/// Does some work.
pub(super) async fn done<T: Send + 'static>(
    work: impl FnOnce(&Wanted) -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let wanted = Wanted::default();
    let _waiting = Waiting(wanted.clone());
    let done = tokio::task::spawn_blocking(move || match wanted.still() {
        true => work(&wanted),
        false => Err(Refusal::unwanted()),
    });
    done.await.unwrap_or_else(|_| {
        let what = "laglab failed at this request, which is a defect of its own; what it says on \
                    the terminal helps to mend it";
        Err(Refusal::failed(what))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn work_is_unwanted_when_its_asker_has_gone() {
        let (began, begun) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let asked = tokio::spawn(done(move |wanted| {
            began.send(wanted.still()).expect("someone listens");
            while wanted.still() {
                std::thread::sleep(Duration::from_millis(1));
            }
            tell.send(()).expect("someone listens");
            Ok(())
        }));
        let wait = Duration::from_secs(60);
        let wanted = tokio::task::spawn_blocking(move || begun.recv_timeout(wait));
        let wanted = wanted.await.expect("no panic");
        assert_eq!(wanted, Ok(true));

        asked.abort();
        let ended = tokio::task::spawn_blocking(move || told.recv_timeout(wait));
        assert_eq!(ended.await.expect("no panic"), Ok(()));
    }
}
