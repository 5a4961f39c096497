//! The explored trace: its tables, and the processes, threads and images to which rows refer.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tables::{DoubtfulRuns, Functions, Identities, Options, Store, StoredTable, Table};

use crate::ExploreError;

/// Progress of a request that builds tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Name of the current step.
    pub phase: &'static str,
    /// Number of bytes of the trace that were read.
    pub done: u64,
    /// Size of the trace, in bytes.
    pub of: u64,
}

/// The explored trace, with cached data that several requests need.
pub(crate) struct Trace {
    pub(crate) store: Arc<Store>,
    pub(crate) functions: Option<Arc<dyn Functions>>,
    identities: Mutex<Option<Arc<Identities>>>,
    doubtful: Mutex<Option<Arc<DoubtfulRuns>>>,
    /// Number of requests that are building tables.
    making: AtomicUsize,
    /// Number of bytes of the trace that were read by the request that last began to build tables.
    read: AtomicU64,
}

impl Trace {
    pub(crate) fn new(store: Arc<Store>, functions: Option<Arc<dyn Functions>>) -> Trace {
        Trace {
            store,
            functions,
            identities: Mutex::default(),
            doubtful: Mutex::default(),
            making: AtomicUsize::new(0),
            read: AtomicU64::new(0),
        }
    }

    /// Returns a table. If it does not exist yet, it is built first.
    pub(crate) fn table(
        &self,
        table: Table,
        cancel: &AtomicBool,
    ) -> Result<StoredTable, ExploreError> {
        self.with_progress(cancel, |options| self.store.table(table, options))
    }

    /// Builds the tables that do not exist yet.
    pub(crate) fn make(&self, tables: &[Table], cancel: &AtomicBool) -> Result<(), ExploreError> {
        self.with_progress(cancel, |options| self.store.make(tables, options))
    }

    /// Returns the processes, threads and images to which rows refer.
    pub(crate) fn identities(&self, cancel: &AtomicBool) -> Result<Arc<Identities>, ExploreError> {
        self.once(&self.identities, cancel, Identities::read)
    }

    pub(crate) fn doubtful_runs(
        &self,
        cancel: &AtomicBool,
    ) -> Result<Arc<DoubtfulRuns>, ExploreError> {
        self.once(&self.doubtful, cancel, DoubtfulRuns::read)
    }

    /// Returns a cached value. If it is not cached yet, it is read first.
    fn once<T>(
        &self,
        known: &Mutex<Option<Arc<T>>>,
        cancel: &AtomicBool,
        read: fn(&Store, Options<'_>) -> Result<T, tables::StoreError>,
    ) -> Result<Arc<T>, ExploreError> {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let read = self.with_progress(cancel, |options| read(&self.store, options))?;
        Ok(known.insert(Arc::new(read)).clone())
    }

    /// Returns the progress while a request builds tables; otherwise `None`.
    pub(crate) fn progress(&self) -> Option<Progress> {
        (self.making.load(Ordering::Relaxed) > 0).then(|| Progress {
            phase: "building tables",
            done: self.read.load(Ordering::Relaxed),
            of: self.store.info().size_bytes,
        })
    }

    fn with_progress<T>(
        &self,
        cancel: &AtomicBool,
        make: impl FnOnce(Options<'_>) -> Result<T, tables::StoreError>,
    ) -> Result<T, ExploreError> {
        let progress = |done: u64| {
            self.read.store(done, Ordering::Relaxed);
            !cancel.load(Ordering::Relaxed)
        };
        self.read.store(0, Ordering::Relaxed);
        self.making.fetch_add(1, Ordering::Relaxed);
        let table = make(Options {
            progress: &progress,
        });
        self.making.fetch_sub(1, Ordering::Relaxed);
        Ok(table?)
    }
}

/// Returns an error if the flag is set.
pub(crate) fn check(cancel: &AtomicBool) -> Result<(), ExploreError> {
    if cancel.load(Ordering::Relaxed) {
        Err(ExploreError::Cancelled)
    } else {
        Ok(())
    }
}
