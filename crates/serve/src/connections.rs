//! Connections of clients. The number of connections is limited. The time for which a connection waits for a
//! request is also limited.
//!
//! Any program or web page of this machine can connect, even without the secret. A connection is a *stranger*
//! until its first permitted request. If a client connects while the maximum number of connections is open, or while
//! the system cannot open another connection, the oldest stranger is closed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Interval between attempts to accept a connection, if the system refused one or the maximum
/// number is open.
const RETRY: Duration = Duration::from_millis(100);

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Maximum number of connections at the same time.
    pub(super) connections: usize,
    /// Time in which a client must send the headers of a request. It starts when the client connects, and
    /// again after each response, so an idle connection is closed too.
    pub(super) headers: Duration,
}

impl Default for Limits {
    /// Returns 128 connections and 10 s. A browser opens only 6 connections to a server. macOS lets a
    /// program have 256 open files, and tables also need open files.
    fn default() -> Limits {
        Limits {
            connections: 128,
            headers: Duration::from_secs(10),
        }
    }
}

/// Flag of a connection. The first permitted request of the connection sets it.
#[derive(Clone, Debug, Default)]
pub(super) struct Permitted(Arc<AtomicBool>);

impl Permitted {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

struct Connection {
    permitted: Permitted,
    task: JoinHandle<()>,
}

/// Open connections, the oldest first.
struct Connections {
    open: Vec<Connection>,
    limits: Limits,
}

/// Serves connections until the future is dropped.
pub(super) async fn serve(listener: TcpListener, router: Router, limits: Limits) {
    let mut connections = Connections {
        open: Vec::new(),
        limits,
    };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.make_place().await;
                connections.start(stream, &router);
            }
            // The client closed the connection before it was accepted.
            Err(error) if is_of_client(&error) => {}
            // Usually, the process has too many open files. The server tries again after the time `RETRY`,
            // and the client waits until then.
            Err(_) => {
                connections.close_stranger();
                sleep(RETRY).await;
            }
        }
    }
}

fn is_of_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

impl Connections {
    /// Waits until another connection may be opened.
    async fn make_place(&mut self) {
        loop {
            self.open
                .retain(|connection| !connection.task.is_finished());
            if self.open.len() < self.limits.connections || self.close_stranger() {
                return;
            }
            sleep(RETRY).await;
        }
    }

    /// Closes the oldest stranger. Returns false if there is none.
    fn close_stranger(&mut self) -> bool {
        let mut open = self.open.iter();
        let oldest = open.position(|connection| !connection.permitted.is_set());
        if let Some(at) = oldest {
            self.open.remove(at).task.abort();
        }
        oldest.is_some()
    }

    fn start(&mut self, stream: TcpStream, router: &Router) {
        // Small responses are sent at once, because the user waits for them.
        let _ = stream.set_nodelay(true);
        let permitted = Permitted::default();
        let router = router.clone().layer(Extension(permitted.clone()));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.headers)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
        let task = tokio::spawn(async move {
            // Errors are ignored, because the client causes them: it disconnected, sent no HTTP, or
            // took too long.
            let _ = connection.await;
        });
        self.open.push(Connection { permitted, task });
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Instant;

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::timeout;

    use super::*;
    use crate::access::{self, Access};

    /// Time after which a test fails. It is much longer than all limits of the tests.
    const LONG: Duration = Duration::from_secs(60);

    /// Server in the same thread.
    struct Serving {
        address: SocketAddr,
        /// Path of the only page.
        path: String,
    }

    async fn serving(limits: Limits) -> Serving {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let access = Arc::new(Access::new(address.port()).unwrap());
        let path = access.path("");
        let router = Router::new().route(&path, get(async || "the page"));
        tokio::spawn(serve(listener, access::guarded(router, access), limits));
        Serving { address, path }
    }

    impl Serving {
        /// Connects and sends bytes.
        async fn send(&self, bytes: &str) -> TcpStream {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            stream.write_all(bytes.as_bytes()).await.unwrap();
            stream
        }

        fn request(&self, path: &str) -> String {
            format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address)
        }

        /// Returns a connection on which the page was answered. It stays open.
        async fn permitted(&self) -> TcpStream {
            let mut stream = self.send(&self.request(&self.path)).await;
            self.expect_page(&mut stream).await;
            stream
        }

        async fn expect_page(&self, stream: &mut TcpStream) {
            let mut answer = Vec::new();
            while !answer.ends_with(b"the page") {
                let read = timeout(LONG, stream.read_buf(&mut answer)).await;
                let read = read.expect("an answer in time").expect("an answer");
                let text = String::from_utf8_lossy(&answer);
                assert!(read > 0, "closed after: {text}");
            }
            assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
        }
    }

    /// Reads until the server closes the connection. Returns the bytes that were read.
    async fn rest(stream: &mut TcpStream) -> String {
        let mut bytes = Vec::new();
        let closed = timeout(LONG, stream.read_to_end(&mut bytes)).await;
        // A reset connection is closed too.
        let _ = closed.expect("the server closes the connection");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn limits(connections: usize, headers: Duration) -> Limits {
        Limits {
            connections,
            headers,
        }
    }

    #[tokio::test]
    async fn incomplete_headers_and_idle_connections_are_closed() {
        let limit = Duration::from_secs(2);
        let serving = serving(limits(100, limit)).await;
        let begun = Instant::now();
        let mut idle = serving.permitted().await;
        let mut strangers = Vec::new();
        for sent in ["", "GET", "GET / HTTP/1.1\r\nHost: "] {
            strangers.push(serving.send(sent).await);
        }
        for stream in strangers.iter_mut().chain([&mut idle]) {
            let answer = rest(stream).await;
            assert!(!answer.contains("200 OK"), "{answer}");
        }
        assert!(begun.elapsed() >= limit, "no connection is closed early");
    }

    /// Checks that single bytes do not prolong the limit. The limit is for the whole header.
    #[tokio::test]
    async fn headers_that_trickle_are_not_waited_for() {
        let serving = serving(limits(100, Duration::from_secs(2))).await;
        let mut stream = serving.send("GET / HTTP/1.1\r\nX: ").await;
        let trickle = async {
            while stream.write_all(b"x").await.is_ok() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(LONG, trickle).await.expect("the server closes it");
    }

    #[tokio::test]
    async fn strangers_do_not_take_the_place_of_the_page() {
        let serving = serving(limits(4, LONG * 10)).await;
        let mut page = serving.permitted().await;
        let mut strangers = Vec::new();
        for _ in 0..40 {
            strangers.push(serving.send("GET").await);
        }
        let other = serving.permitted().await;
        // The server closed the oldest strangers for new connections.
        for stream in &mut strangers[..30] {
            assert_eq!(rest(stream).await, "");
        }
        // The connection of the page is still open.
        let request = serving.request(&serving.path);
        page.write_all(request.as_bytes()).await.unwrap();
        serving.expect_page(&mut page).await;
        drop(other);
    }

    #[tokio::test]
    async fn connections_of_the_page_are_limited_and_wait() {
        let serving = serving(limits(2, LONG * 10)).await;
        let (one, _two) = (serving.permitted().await, serving.permitted().await);
        let mut third = serving.send(&serving.request(&serving.path)).await;
        let mut byte = [0];
        let early = timeout(RETRY * 5, third.read(&mut byte)).await;
        assert!(
            early.is_err(),
            "the third connection is answered: {early:?}"
        );
        drop(one);
        serving.expect_page(&mut third).await;
    }

    #[tokio::test]
    async fn a_refused_request_ends_its_connection() {
        let serving = serving(limits(100, LONG * 10)).await;
        let twice = serving.request("/wrong/").repeat(2);
        let mut stream = serving.send(&twice).await;
        let answer = rest(&mut stream).await;
        assert_eq!(answer.matches("404 Not Found").count(), 1, "{answer}");
    }
}
