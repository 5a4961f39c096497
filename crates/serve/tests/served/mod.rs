//! Runs the server on a thread.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use serve::{Error, ServedTrace, Server};
use session::{Amount, Observer, SymbolOptions, Task, TraceTables, Unobserved};
use tables::Cache;
use tempfile::TempDir;
use testdata::http::Client;

/// Running server and its client. Dropping this value ends the server.
pub(crate) struct Served {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<Result<(), Error>>>,
    folder: TempDir,
    client: Client,
}

/// Observer that cancels all work if its flag is set.
#[derive(Default)]
struct Stop(AtomicBool);

impl Observer for Stop {
    fn begin(&self, what: &'static str, amount: Amount) -> Box<dyn Task> {
        Unobserved.begin(what, amount)
    }

    fn warn(&self, _: &str) {}

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Served {
    /// Opens traces. Their paths are relative to the folder of the real traces.
    pub(crate) fn open(traces: &[&str]) -> Served {
        Served::with_symbols(traces, None)
    }

    /// Opens traces with the symbols in a store.
    pub(crate) fn with_symbols(traces: &[&str], store: Option<&str>) -> Served {
        Served::start(traces, store, false)
    }

    /// Opens two traces to compare them.
    pub(crate) fn comparing(before: &str, after: &str) -> Served {
        Served::start(&[before, after], None, true)
    }

    fn start(traces: &[&str], store: Option<&str>, is_comparison: bool) -> Served {
        let stop = Arc::<Stop>::default();
        let traces = traces.iter().map(|name| {
            let path = testdata::path("etl").join(name);
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let tables = TraceTables::open(&[path], Cache::Off, stop.clone()).unwrap();
            #[allow(clippy::needless_update, reason = "a feature adds a field")]
            let symbols = SymbolOptions {
                path: store.map(str::to_owned),
                ..SymbolOptions::default()
            };
            ServedTrace::new(name, tables, symbols)
        });
        let traces = traces.collect();
        let folder = tempfile::tempdir().unwrap();
        let presets = folder.path().join("presets.json");
        let server =
            Server::bind(0, traces, is_comparison, Some(presets), None, stop.clone()).unwrap();
        let client = Client::new(&server.address());
        Served {
            stop,
            thread: Some(thread::spawn(move || server.run())),
            folder,
            client,
        }
    }

    /// Returns the file in which the server stores the user's presets.
    pub(crate) fn presets(&self) -> PathBuf {
        self.folder.path().join("presets.json")
    }
}

impl Deref for Served {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.0.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it runs");
        let ended = thread.join();
        assert!(thread::panicking() || matches!(ended, Ok(Ok(()))));
    }
}
