//! Connections of clients. The number of connections is limited. The time for which a connection waits for a
//! request is also limited.
//!
//! Any program or web page of this machine can connect, even without the secret. A connection is a *stranger*
//! until its first permitted request. If a client connects while the maximum number of connections is open, or while
//! the system cannot open another connection, a stranger is closed: first the oldest one that sent nothing, because a
//! browser sends its request at once, then the oldest one whose time for its first request is over.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{sleep, timeout};

/// Interval between attempts to accept a connection, if the system refused one or the maximum
/// number is open.
const RETRY: Duration = Duration::from_millis(100);

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Maximum number of connections at the same time.
    pub(super) connections: usize,
    /// Time in which a client must send its first byte, and then the headers of a request. It starts again after each
    /// response, so an idle connection is closed too.
    pub(super) headers: Duration,
    /// Time that a stranger that sends something has for its first request, even if other clients wait.
    pub(super) grace: Duration,
}

impl Default for Limits {
    /// Returns 128 connections, 10 s and 1 s. A browser opens only 6 connections to a server. macOS lets a
    /// program have 256 open files, and tables also need open files.
    fn default() -> Limits {
        Limits {
            connections: 128,
            headers: Duration::from_secs(10),
            grace: Duration::from_secs(1),
        }
    }
}

/// Flag of a connection. The first permitted request of the connection sets it.
#[derive(Clone, Debug, Default)]
pub(super) struct PermitFlag(Flag);

impl PermitFlag {
    pub(super) fn set(&self) {
        self.0.set();
    }
}

#[derive(Clone, Debug, Default)]
struct Flag(Arc<AtomicBool>);

impl Flag {
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

struct Connection {
    begin: Instant,
    /// True if the client sent something.
    speaks: Flag,
    permitted: PermitFlag,
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
            if self.open.len() >= self.limits.connections {
                // The other connections read what their clients sent.
                yield_now().await;
            }
            if self.open.len() < self.limits.connections || self.close_stranger() {
                return;
            }
            sleep(RETRY).await;
        }
    }

    /// Closes a stranger. Returns false if there is none that may be closed.
    fn close_stranger(&mut self) -> bool {
        let stranger = |may_close: &dyn Fn(&Connection) -> bool| {
            let mut open = self.open.iter();
            open.position(|connection| !connection.permitted.0.is_set() && may_close(connection))
        };
        let candidate = stranger(&|connection| !connection.speaks.is_set())
            .or_else(|| stranger(&|connection| connection.begin.elapsed() >= self.limits.grace));
        if let Some(at) = candidate {
            self.open.remove(at).task.abort();
        }
        candidate.is_some()
    }

    fn start(&mut self, stream: TcpStream, router: &Router) {
        // Small responses are sent at once, because the user waits for them.
        let _ = stream.set_nodelay(true);
        let (permitted, speaks) = (PermitFlag::default(), Flag::default());
        let router = router.clone().layer(Extension(permitted.clone()));
        let limit = self.limits.headers;
        let first = speaks.clone();
        let task = tokio::spawn(async move {
            if !matches!(timeout(limit, stream.peek(&mut [0])).await, Ok(Ok(1..))) {
                return;
            }
            first.set();
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(limit)
                .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
            // Errors are ignored, because the client causes them: it disconnected, sent no HTTP, or
            // took too long.
            let _ = connection.await;
        });
        self.open.push(Connection {
            begin: Instant::now(),
            speaks,
            permitted,
            task,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::access::{self, Access};

    /// Time after which a test fails. It is much longer than all limits of the tests.
    const LONG: Duration = Duration::from_secs(60);

    /// Server in the same thread.
    struct TestServer {
        address: SocketAddr,
        /// Path of the only page.
        path: String,
    }

    async fn serving(limits: Limits) -> TestServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let access = Arc::new(Access::new(address.port()).unwrap());
        let path = access.path("");
        let router = Router::new().route(&path, get(async || "the page"));
        tokio::spawn(serve(listener, access::guarded(router, access), limits));
        TestServer { address, path }
    }

    impl TestServer {
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
                assert!(read > 0, "{:?} closed after: {text}", stream.local_addr());
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
            grace: Duration::ZERO,
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

    /// Checks that clients that send nothing are closed before a client whose request is incomplete, although that client
    /// is older.
    #[tokio::test]
    async fn silent_strangers_are_closed_first() {
        let serving = serving(limits(4, LONG * 10)).await;
        let request = serving.request(&serving.path);
        let (start, end) = request.split_at(20);
        let mut slow = serving.send(start).await;
        let mut silent = Vec::new();
        for _ in 0..200 {
            silent.push(serving.send("").await);
        }
        // The server accepts this connection after all others.
        let last = serving.permitted().await;
        for stream in &mut silent[..190] {
            assert_eq!(rest(stream).await, "");
        }
        slow.write_all(end.as_bytes()).await.unwrap();
        serving.expect_page(&mut slow).await;
        drop(last);
    }

    /// Checks that many clients with the secret are all answered, although the server reads their requests later than it
    /// accepts their connections.
    #[tokio::test]
    async fn many_clients_of_the_page_are_answered() {
        let serving = serving(Limits {
            grace: LONG,
            ..limits(4, LONG * 10)
        })
        .await;
        let mut clients = Vec::new();
        for _ in 0..100 {
            let request = serving.request(&serving.path);
            let request = request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
            clients.push(serving.send(&request).await);
        }
        for client in &mut clients {
            serving.expect_page(client).await;
        }
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
