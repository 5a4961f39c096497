//! Access to the tables of a trace.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Once};

use arrow_array::RecordBatch;
use rayon::prelude::*;
use tables::{Cache, Identities, Options, Store, StoreError, StoredTable, Table};

use crate::{Error, NotRecorded, Observer, watched};

/// Tables of a trace. A table is made when it is first needed. The observer shows the progress of this work
/// and can cancel it.
pub struct TraceTables {
    store: Arc<Store>,
    warned: Once,
    observer: Arc<dyn Observer>,
}

impl TraceTables {
    /// Opens several files as one trace.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is not a trace.
    pub fn open(
        paths: &[PathBuf],
        cache: Cache,
        observer: Arc<dyn Observer>,
    ) -> Result<TraceTables, Error> {
        let store = imports::open_store(paths, cache)?;
        let (warner, warned) = (Arc::clone(&observer), Once::new());
        store.before_making(move |needed| {
            if let Some(warning) = memory_warning(needed, record::available_memory()) {
                warned.call_once(|| warner.warn(&warning));
            }
        });
        Ok(TraceTables {
            store: Arc::new(store),
            warned: Once::new(),
            observer,
        })
    }

    /// Returns the tables of a store that is already open.
    pub fn new(store: Arc<Store>, observer: Arc<dyn Observer>) -> TraceTables {
        TraceTables {
            store,
            warned: Once::new(),
            observer,
        }
    }

    /// Returns the store of the tables.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns the observer of the work.
    pub fn observer(&self) -> &Arc<dyn Observer> {
        &self.observer
    }

    /// Returns this trace with another observer.
    pub fn with_observer(self, observer: Arc<dyn Observer>) -> TraceTables {
        TraceTables { observer, ..self }
    }

    /// Checks that the work may continue.
    ///
    /// # Errors
    /// Returns [`Error::Cancelled`] if the work must stop.
    pub fn check(&self) -> Result<(), Error> {
        Ok(self.observer.check()?)
    }

    /// Makes the tables that do not exist yet, in one pass.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be read, a table cannot be written, or the work is cancelled.
    pub fn make(&self, wanted: &[Table]) -> Result<(), Error> {
        self.watched(|options| self.store.make(wanted, options))
    }

    /// Returns a table.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be read, the table cannot be written, or the work is cancelled.
    pub fn table(&self, table: Table) -> Result<StoredTable, Error> {
        self.watched(|options| self.store.table(table, options))
    }

    /// Returns a table, or an error if the table has no rows.
    ///
    /// # Errors
    /// Returns [`Error::NotRecorded`] if the table has no rows. Also returns the errors of
    /// [`TraceTables::table`].
    pub fn recorded(&self, table: Table) -> Result<StoredTable, Error> {
        let stored = self.table(table)?;
        let missing = if self.store.info().is_linux() {
            NotRecorded::of_linux_table(table)
        } else {
            NotRecorded::of_table(table)
        };
        match missing {
            Some(missing) if stored.rows() == 0 => Err(Error::NotRecorded(missing)),
            _ => Ok(stored),
        }
    }

    /// Returns the names of processes, threads and images.
    ///
    /// # Errors
    /// Returns an error if a table cannot be made or read, or the work is cancelled.
    pub fn identities(&self) -> Result<Identities, Error> {
        self.watched(|options| Identities::read(&self.store, options))
    }

    /// Reads columns of the row groups that may have rows in a time range. A row group may also have rows outside the
    /// range. Each thread of the thread pool reads one row group at a time.
    pub fn batches<'t>(
        &'t self,
        table: &'t StoredTable,
        range: Range<i64>,
        columns: &'t [&str],
    ) -> impl Iterator<Item = Result<RecordBatch, Error>> + 't {
        let chunks = table.chunks_within(range);
        let at_once = rayon::current_num_threads();
        chunks.clone().step_by(at_once).flat_map(move |from| {
            let read = |chunk: usize| {
                self.check()?;
                Ok(table.read(chunk, columns)?)
            };
            let some = from..chunks.end.min(from + at_once);
            some.into_par_iter().map(read).collect::<Vec<_>>()
        })
    }

    /// Runs work that makes tables, as a task of the observer.
    ///
    /// # Errors
    /// Returns an error if the work fails or is cancelled.
    pub fn watched<T>(
        &self,
        make: impl FnOnce(Options<'_>) -> Result<T, StoreError>,
    ) -> Result<T, Error> {
        let total = self.store.info().size_bytes;
        let result = watched(&*self.observer, "building tables", total, make)?;
        if let Some(warning) = self.store.warning() {
            self.warned.call_once(|| self.observer.warn(warning));
        }
        Ok(result)
    }
}

/// Returns a warning if more memory is needed than available.
fn memory_warning(needed: u64, available: Option<u64>) -> Option<String> {
    let available = available.filter(|available| *available < needed)?;
    Some(format!(
        "making the tables of this trace needs about {} of memory, and {} is available, so the system may \
         end laglab; close other programs, or use a part of the trace (laglab trim)",
        wording::size(needed),
        wording::size(available)
    ))
}

impl std::fmt::Debug for TraceTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceTables").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_is_a_warning() {
        assert_eq!(memory_warning(2 << 30, None), None);
        assert_eq!(memory_warning(2 << 30, Some(2 << 30)), None);
        assert_eq!(memory_warning(0, Some(0)), None);
        assert_eq!(
            memory_warning(20 << 30, Some(512 << 20)).as_deref(),
            Some(
                "making the tables of this trace needs about 20.0 GiB of memory, and 512.0 MiB is \
                 available, so the system may end laglab; close other programs, or use a part of the \
                 trace (laglab trim)"
            )
        );
    }
}
