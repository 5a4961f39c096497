//! Opened traces, and their results that later calls use again.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use explain::Scope;
use explore::Explorer;
use facts::Info;
use report::ExplainedTrace;
use session::{LazyCell, SymbolOptions, Symbolication, TraceTables};
use tables::{Cache, Functions, Identities, Store};

use crate::call::{Call, CallObserver};
use crate::failure::Failure;
use crate::folders::TraceFile;

/// Memory limit of the decoded columns of a trace, in bytes.
const MEMORY_BYTES: usize = 512 << 20;

/// Maximum number of open traces, and of explanations of a trace for different scopes.
const OPEN: usize = 8;
const EXPLAINED: usize = 16;

/// Traces that are open. In `traces`, the most recently used trace is last.
pub(crate) struct OpenTraces {
    cache: Cache,
    symbols: SymbolOptions,
    /// Traces that stay open until the server ends.
    kept: Vec<Arc<OpenTrace>>,
    traces: Mutex<Vec<Arc<OpenTrace>>>,
}

/// Open trace that another part of the program shares with the server.
pub struct Opening {
    /// Name of the trace for the user.
    pub name: String,
    /// Tables of the trace.
    pub store: Arc<Store>,
    /// Places of symbols.
    pub symbols: SymbolOptions,
}

impl std::fmt::Debug for Opening {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opening")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Open trace with its results.
pub(crate) struct OpenTrace {
    pub(crate) file: TraceFile,
    pub(crate) store: Arc<Store>,
    symbol_options: SymbolOptions,
    names: LazyCell<Identities>,
    symbols: LazyCell<Symbolication>,
    explorer: LazyCell<Explorer>,
    info: LazyCell<Info>,
    /// Explanations by scope. The most recently used explanation is last.
    explained: Mutex<Vec<(Scope, Arc<LazyCell<ExplainedTrace>>)>>,
    #[cfg(feature = "sql")]
    pub(crate) session: LazyCell<sql::Session>,
    #[cfg(feature = "sql")]
    pub(crate) results: crate::results::Results,
}

impl OpenTraces {
    pub(crate) fn new(cache: Cache, symbols: SymbolOptions) -> OpenTraces {
        OpenTraces {
            cache,
            symbols,
            kept: Vec::new(),
            traces: Mutex::default(),
        }
    }

    /// Creates the list of traces that are open already and stay open. Also returns them as files.
    pub(crate) fn of_open(open: impl IntoIterator<Item = Opening>) -> (OpenTraces, Vec<TraceFile>) {
        let open = open.into_iter().enumerate().map(|(number, opening)| {
            let bytes = opening.store.info().size_bytes;
            let file = TraceFile::open(number, opening.name, bytes);
            Arc::new(OpenTrace::new(file, opening.store, opening.symbols))
        });
        let traces: Vec<Arc<OpenTrace>> = open.collect();
        let files = traces.iter().map(|open| open.file.clone()).collect();
        let opened = OpenTraces {
            kept: traces,
            ..OpenTraces::new(Cache::Off, SymbolOptions::default())
        };
        (opened, files)
    }

    /// Returns the trace if it is open.
    pub(crate) fn known(&self, file: &TraceFile) -> Option<Arc<OpenTrace>> {
        let mut open = self.kept.iter();
        let trace = open.find(|open| open.file.is_same(file)).cloned();
        trace.or_else(|| used(&mut self.traces(), file))
    }

    /// Returns the trace. Opens it if it is not open.
    pub(crate) fn open(&self, file: TraceFile) -> Result<Arc<OpenTrace>, Failure> {
        if let Some(open) = self.known(&file) {
            return Ok(open);
        }
        let paths = [file.path.clone()];
        let store = imports::open_store(&paths, self.cache.clone()).map_err(|error| {
            let message = without_path(&error.to_string(), &file.path, &file.shown());
            Failure::new(crate::failure::Kind::Trace, message)
        })?;
        let mut traces = self.traces();
        // Another call may have opened the trace since the first check. Both calls then share one trace, so its
        // tables are made once.
        if let Some(open) = used(&mut traces, &file) {
            return Ok(open);
        }
        let open = Arc::new(OpenTrace::new(file, Arc::new(store), self.symbols.clone()));
        traces.push(Arc::clone(&open));
        if traces.len() > OPEN {
            traces.remove(0);
        }
        Ok(open)
    }

    fn traces(&self) -> MutexGuard<'_, Vec<Arc<OpenTrace>>> {
        self.traces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the trace if it is in the list, and moves it to the end of the list.
fn used(traces: &mut Vec<Arc<OpenTrace>>, file: &TraceFile) -> Option<Arc<OpenTrace>> {
    let place = traces.iter().position(|open| open.file.is_same(file))?;
    let open = traces.remove(place);
    traces.push(Arc::clone(&open));
    Some(open)
}

/// Replaces the full path in an error by the name below the folder.
fn without_path(message: &str, path: &Path, name: &str) -> String {
    message.replace(&*path.to_string_lossy(), name)
}

impl OpenTrace {
    fn new(file: TraceFile, store: Arc<Store>, symbol_options: SymbolOptions) -> OpenTrace {
        OpenTrace {
            file,
            store,
            symbol_options,
            names: LazyCell::new(),
            symbols: LazyCell::new(),
            explorer: LazyCell::new(),
            info: LazyCell::new(),
            explained: Mutex::default(),
            #[cfg(feature = "sql")]
            session: LazyCell::new(),
            #[cfg(feature = "sql")]
            results: crate::results::Results::default(),
        }
    }

    /// Returns the tables of the trace for one call, which can cancel the work on them.
    pub(crate) fn tables(&self, call: &Arc<Call>) -> TraceTables {
        TraceTables::new(
            Arc::clone(&self.store),
            Arc::new(CallObserver(Arc::clone(call))),
        )
    }

    pub(crate) fn info(&self, call: &Arc<Call>) -> Result<Arc<Info>, Failure> {
        self.info.get(|| {
            let tables = self.tables(call);
            Ok(tables.watched(|options| Info::read(&self.store, options))?)
        })
    }

    /// Returns the facts that need no table.
    pub(crate) fn headers(&self) -> Info {
        Info::from_headers(self.store.info())
    }

    pub(crate) fn names(&self, call: &Arc<Call>) -> Result<Arc<Identities>, Failure> {
        self.names.get(|| Ok(self.tables(call).identities()?))
    }

    pub(crate) fn symbols(&self, call: &Arc<Call>) -> Result<Arc<Symbolication>, Failure> {
        self.symbols.get(|| {
            let images = &self.names(call)?.images;
            let symbols = Symbolication::new(&self.symbol_options, &self.store, images);
            Ok(symbols.map_err(session::Error::from)?)
        })
    }

    pub(crate) fn explorer(&self, call: &Arc<Call>) -> Result<Arc<Explorer>, Failure> {
        self.explorer.get(|| {
            let functions: Arc<dyn Functions> = self.symbols(call)?;
            Ok(Explorer::new(
                Arc::clone(&self.store),
                Some(functions),
                MEMORY_BYTES,
            ))
        })
    }

    /// Returns the explanation of a scope.
    pub(crate) fn explained(
        &self,
        scope: Scope,
        call: &Arc<Call>,
    ) -> Result<Arc<ExplainedTrace>, Failure> {
        let cell = self.cell(&scope);
        cell.get(|| {
            let tables = self.tables(call);
            // One call makes all tables, because each separate call would read the whole trace.
            let mut wanted = explain::tables();
            wanted.extend(Info::TABLES);
            tables.make(&wanted)?;
            let (info, symbols) = (self.info(call)?, self.symbols(call)?);
            Ok(ExplainedTrace::known(
                &tables,
                info,
                scope.clone(),
                &symbols,
            )?)
        })
    }

    fn cell(&self, scope: &Scope) -> Arc<LazyCell<ExplainedTrace>> {
        let mut explained = self
            .explained
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let known = explained.iter().position(|(known, _)| known == scope);
        let entry = match known {
            Some(place) => explained.remove(place),
            None => (scope.clone(), Arc::new(LazyCell::new())),
        };
        let cell = Arc::clone(&entry.1);
        explained.push(entry);
        if explained.len() > EXPLAINED {
            explained.remove(0);
        }
        cell
    }

    /// Returns the id of a scope; `None` for the whole trace.
    pub(crate) fn scope_id(scope: &Scope) -> Option<String> {
        (*scope != Scope::default()).then(|| {
            let digest = blake3::hash(format!("{scope:?}").as_bytes()).to_hex();
            format!("s{}", &digest[..8])
        })
    }

    /// Returns the explanation of the scope with this id, if it is still known.
    pub(crate) fn explained_as(
        &self,
        scope_id: Option<&str>,
        call: &Arc<Call>,
    ) -> Result<Arc<ExplainedTrace>, Failure> {
        let Some(scope_id) = scope_id else {
            return self.explained(Scope::default(), call);
        };
        let known = {
            let explained = self
                .explained
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let mut scopes = explained.iter().map(|(scope, _)| scope);
            scopes
                .find(|scope| OpenTrace::scope_id(scope).as_deref() == Some(scope_id))
                .cloned()
        };
        let scope = known.ok_or_else(|| {
            Failure::unknown(
                "this explanation is no longer known; call `explain` again with its arguments",
            )
        })?;
        self.explained(scope, call)
    }
}
