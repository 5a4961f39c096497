//! The trace that is explored: its tables, and who and what their rows speak of.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tables::{DoubtfulRuns, Functions, Identities, Options, Store, StoredTable, Table};

use crate::{ExploreError, Progress};

/// The trace that is explored.
pub(crate) struct Trace {
    pub(crate) store: Arc<Store>,
    pub(crate) functions: Option<Arc<dyn Functions>>,
    identities: Mutex<Option<Arc<Identities>>>,
    doubtful: Mutex<Option<Arc<DoubtfulRuns>>>,
    /// Requests that make tables.
    making: AtomicUsize,
    /// Bytes of the trace that the last of them has read.
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

    /// A table, which is made if it is not there yet.
    pub(crate) fn table(
        &self,
        table: Table,
        cancel: &AtomicBool,
    ) -> Result<StoredTable, ExploreError> {
        self.making(cancel, |options| self.store.table(table, options))
    }

    /// Makes tables that are not there yet.
    pub(crate) fn make(&self, tables: &[Table], cancel: &AtomicBool) -> Result<(), ExploreError> {
        self.making(cancel, |options| self.store.make(tables, options))
    }

    /// Who and what rows speak of.
    pub(crate) fn identities(&self, cancel: &AtomicBool) -> Result<Arc<Identities>, ExploreError> {
        self.once(&self.identities, cancel, Identities::read)
    }

    /// Runs that were several in truth.
    pub(crate) fn doubtful_runs(
        &self,
        cancel: &AtomicBool,
    ) -> Result<Arc<DoubtfulRuns>, ExploreError> {
        self.once(&self.doubtful, cancel, DoubtfulRuns::read)
    }

    /// What is known, or else read.
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
        let read = self.making(cancel, |options| read(&self.store, options))?;
        Ok(known.insert(Arc::new(read)).clone())
    }

    /// How far the making of tables has come.
    pub(crate) fn progress(&self) -> Option<Progress> {
        (self.making.load(Ordering::Relaxed) > 0).then(|| Progress {
            phase: "making tables",
            done: self.read.load(Ordering::Relaxed),
            of: self.store.trace().size_bytes(),
        })
    }

    fn making<T>(
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
        let made = make(Options {
            progress: &progress,
        });
        self.making.fetch_sub(1, Ordering::Relaxed);
        Ok(made?)
    }
}

/// # Errors
/// If the flag is set.
pub(crate) fn check(cancel: &AtomicBool) -> Result<(), ExploreError> {
    match cancel.load(Ordering::Relaxed) {
        true => Err(ExploreError::Cancelled),
        false => Ok(()),
    }
}
