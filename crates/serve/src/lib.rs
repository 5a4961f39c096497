//! Server of `laglab open`. It serves the page to the browser of the user who started it.
//!
//! `connections` limits connections, `access` rejects requests from others, `page` holds the page, and `api`
//! routes requests. Open traces are in `traces`. `work` runs long work on blocking threads and cancels it if
//! the client disconnects. The crates `explore`, `explain` and `sql` compute answers about views, lags and
//! queries; this crate returns the answers as JSON.

mod access;
mod api;
mod body;
mod comparison;
mod connections;
mod documents;
mod error;
mod page;
mod presets;
mod progress;
mod refusal;
#[cfg(any(test, feature = "sql"))]
#[cfg_attr(
    not(feature = "sql"),
    expect(dead_code, reason = "the types of the page do not depend on features")
)]
mod sql_json;
#[cfg(feature = "sql")]
mod sql_sessions;
mod traces;
#[cfg(test)]
mod types;
mod user_file;
mod work;

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use session::Observer;

use access::Access;
use comparison::LazyComparison;
use connections::Limits;
use documents::DocumentStore;
pub use error::Error;
use presets::UserPresets;
use refusal::Refusal;
pub use traces::ServedTrace;

/// Maximum number of requests whose long work runs at the same time. Further requests with long work wait.
const AT_ONCE: usize = 16;

/// Interval between checks whether the user has cancelled.
const PULSE: Duration = Duration::from_millis(100);

/// State that all requests share.
struct ServerState {
    traces: Vec<Arc<ServedTrace>>,
    /// Comparison of the first two traces, if the user requested it.
    compared: Option<LazyComparison>,
    presets: UserPresets,
    kept: DocumentStore,
    /// Content of the view with which the page starts, if the user named a file with a view. Only the page knows the
    /// format of the content.
    view: Option<serde_json::Value>,
    /// MCP server, which answers requests of assistants about the same traces.
    #[cfg(feature = "mcp")]
    assistants: mcp::Server,
    #[cfg(feature = "sql")]
    sql: sql_sessions::Sessions,
}

impl ServerState {
    /// Returns the trace with the id of a request.
    fn trace(&self, id: &str) -> Result<Arc<ServedTrace>, Refusal> {
        let trace = id.parse().ok().and_then(|id: usize| self.traces.get(id));
        trace
            .cloned()
            .ok_or_else(|| Refusal::not_found("no trace has that id; `session` lists open traces"))
    }

    /// Returns the compared traces.
    fn compared(&self) -> Result<&LazyComparison, Refusal> {
        self.compared.as_ref().ok_or_else(|| {
            Refusal::not_found("no traces are compared; start `laglab open BEFORE --against AFTER`")
        })
    }
}

/// Server that has bound its port but does not run yet.
pub struct Server {
    observer: Arc<dyn Observer>,
    listener: TcpListener,
    access: Arc<Access>,
    shared: Arc<ServerState>,
}

impl Server {
    /// Binds a port of 127.0.0.1. If `port` is 0, the system chooses a free port. If `is_comparison` is true, the page
    /// compares the first trace with the second one. `presets` is the file with the presets that the user saved. Other
    /// documents of the user are in the folder `kept` next to this file. `view` is the content of the view with which
    /// the page starts.
    ///
    /// # Errors
    /// Returns an error if the server cannot listen on the port.
    pub fn bind(
        port: u16,
        traces: Vec<ServedTrace>,
        is_comparison: bool,
        presets: Option<PathBuf>,
        view: Option<serde_json::Value>,
        observer: Arc<dyn Observer>,
    ) -> Result<Server, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = listener.map_err(|source| Error::Listen { port, source })?;
        let access = listener
            .local_addr()
            .and_then(|address| Access::new(address.port()))
            .map_err(Error::Serve)?;
        let traces: Vec<Arc<ServedTrace>> = traces.into_iter().map(Arc::new).collect();
        #[cfg(feature = "mcp")]
        let assistants = mcp::Server::of_open(traces.iter().map(|trace| trace.for_assistants()));
        Ok(Server {
            observer,
            listener,
            access: Arc::new(access),
            shared: Arc::new(ServerState {
                #[cfg(feature = "sql")]
                sql: sql_sessions::Sessions::new(traces.clone()),
                compared: match &traces[..] {
                    [before, after, ..] if is_comparison => {
                        Some(LazyComparison::new(before, after))
                    }
                    _ => None,
                },
                traces,
                kept: DocumentStore::new(
                    presets
                        .as_deref()
                        .and_then(Path::parent)
                        .map(|folder| folder.join("kept")),
                ),
                presets: UserPresets::new(presets),
                view,
                #[cfg(feature = "mcp")]
                assistants,
            }),
        })
    }

    /// Returns the address of the page. Every program and user that knows this address can read the traces.
    pub fn address(&self) -> String {
        self.access.address()
    }

    /// Serves until the user presses Ctrl-C.
    ///
    /// # Errors
    /// Returns an error if the system stops the server.
    pub fn run(self) -> Result<(), Error> {
        self.serve().map_err(Error::Serve)
    }

    fn serve(self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(AT_ONCE)
            .build()?;
        let traces = self.shared.traces.clone();
        // A thread makes the tables that the page will request, before the requests arrive.
        let ahead = thread::Builder::new().name("ahead".to_owned());
        ahead.spawn(move || {
            traces.iter().for_each(|trace| trace.make_first_tables());
            traces.iter().for_each(|trace| trace.make_tables());
            traces.iter().for_each(|trace| trace.explain_ahead());
        })?;
        // SQL sessions have separate runtimes, which must not be dropped while this runtime runs. This
        // reference keeps the sessions until this runtime has ended.
        let shared = Arc::clone(&self.shared);
        let router = access::guarded(api::router(&self.access, self.shared), self.access);
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            tokio::select! {
                () = connections::serve(listener, router, Limits::default()) => {}
                () = cancelled(&*self.observer) => {}
            }
            Ok(())
        });
        // Cancelled work ends itself, so the server does not wait for it.
        runtime.shutdown_background();
        drop(shared);
        served
    }
}

/// Waits until the user cancels the server.
async fn cancelled(observer: &dyn Observer) {
    let mut pulse = tokio::time::interval(PULSE);
    while !observer.is_cancelled() {
        pulse.tick().await;
    }
}
