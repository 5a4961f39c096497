//! The server of `laglab open`: answers the page in the browser of this machine's user.
//!
//! `access` decides who is answered at all, `page` holds the page itself, `api` says which request is
//! whose. A trace that is looked at is in `traces`; what takes long is done in `work`, on threads of
//! its own, until nobody waits for it any more. What a view shows is `explore`'s, why it lagged is
//! `explain`'s, and questions in SQL are `sql`'s: here their answers become JSON.

mod access;
mod api;
mod body;
mod evidence_views;
mod lazily;
mod page;
mod presets;
mod refusal;
#[cfg(feature = "sql")]
mod sql;
mod traces;
mod where_clause;
mod work;

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use axum::serve::ListenerExt;

use crate::cli::Failure;
use crate::watch;
use access::Access;
use presets::UserPresets;
use refusal::Refusal;
pub(crate) use traces::ServedTrace;

/// Requests that are worked on at a time; further ones wait for their turn.
const AT_ONCE: usize = 16;

/// How often it is looked whether the user wants it to end.
const PULSE: Duration = Duration::from_millis(100);

/// What all requests share.
struct Desk {
    traces: Vec<Arc<ServedTrace>>,
    presets: UserPresets,
    #[cfg(feature = "sql")]
    sql: sql::Sessions,
}

impl Desk {
    /// The trace that a request names by its number.
    fn trace(&self, id: &str) -> Result<Arc<ServedTrace>, Refusal> {
        let trace = id.parse().ok().and_then(|id: usize| self.traces.get(id));
        trace.cloned().ok_or_else(|| {
            Refusal::not_found("there is no trace of that id; `session` lists those that are open")
        })
    }
}

/// A server that has its place, and serves as soon as it runs.
pub(crate) struct Server {
    listener: TcpListener,
    access: Arc<Access>,
    desk: Arc<Desk>,
}

impl Server {
    /// Takes a port of this machine that no other machine reaches: the one asked for, or with 0 any
    /// that is free. Own presets are kept in that file.
    ///
    /// # Errors
    /// If the port is not to be had.
    pub(crate) fn bind(
        port: u16,
        traces: Vec<ServedTrace>,
        presets: Option<PathBuf>,
    ) -> Result<Server, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = listener.map_err(|error| {
            let advice = "give another with --port, or none to have a free one";
            Failure::Input(format!(
                "port {port} of 127.0.0.1 is not to be had: {error}; {advice}"
            ))
        })?;
        let access = Access::new(listener.local_addr()?.port())?;
        let traces: Vec<Arc<ServedTrace>> = traces.into_iter().map(Arc::new).collect();
        Ok(Server {
            listener,
            access: Arc::new(access),
            desk: Arc::new(Desk {
                #[cfg(feature = "sql")]
                sql: sql::Sessions::new(traces.clone()),
                traces,
                presets: UserPresets::new(presets),
            }),
        })
    }

    /// Where the page is, for this user's browser: whoever has it can read the traces.
    pub(crate) fn address(&self) -> String {
        self.access.address()
    }

    /// Serves until the user presses Ctrl-C.
    ///
    /// # Errors
    /// If the system lets it serve no longer.
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.serve()
            .map_err(|error| Failure::Input(format!("the server cannot go on: {error}")))
    }

    fn serve(self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(AT_ONCE)
            .build()?;
        let traces = self.desk.traces.clone();
        // What the page asks for first is made before it asks.
        let ahead = thread::Builder::new().name("ahead".to_owned());
        ahead.spawn(move || {
            traces.iter().for_each(|trace| trace.make_tables());
            traces.iter().for_each(|trace| trace.find());
        })?;
        let router = access::guarded(api::router(&self.access, self.desk), self.access);
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            // Answers are small and wanted at once.
            let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
            tokio::select! {
                served = axum::serve(listener, router) => served,
                () = interrupted() => Ok(()),
            }
        });
        // Work that is under way sees that it is not wanted any more; nobody waits for it.
        runtime.shutdown_background();
        served
    }
}

/// Comes back when the user pressed Ctrl-C.
async fn interrupted() {
    let mut pulse = tokio::time::interval(PULSE);
    while watch::check().is_ok() {
        pulse.tick().await;
    }
}
