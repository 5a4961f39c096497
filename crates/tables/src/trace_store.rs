//! The tables of one trace. A table is made on first use. After that, it is read from its table file.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;
use std::{fmt, io, thread};

use serde::{Deserialize, Serialize};
use store::{
    CacheFolder, Corrupt, InputFiles, NewTableFile, TableDir, TableFileHandle, TableWriter,
};

use crate::recording::{Recording, RecordingInfo};
use crate::unreadable::EventPlace;
use crate::{Options, StoreError, StoredTable, Table, Unreadable};

/// Location of the table files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cache {
    /// A cache folder. Other processes also use this folder, and its files are kept for later. If the folder
    /// does not exist, it is created.
    Folder(CacheFolder),
    /// Temporary files. They exist as long as the [`Store`] and its [`StoredTable`]s.
    Off,
}

/// The tables of one trace. Each table is made once. After that, any process can read it from the cache.
///
/// The cache key identifies the content and the names of the trace's files, and the code that makes tables.
/// Therefore the tables of a trace are also found after the trace was moved to another folder. Tables that another
/// version of the code made are not used.
#[derive(Debug)]
pub struct Store(Arc<StoreState>);

const STAYS_OPEN: &str = "a table that was made stays open";

type OpenTables = BTreeMap<Table, Arc<TableFileHandle>>;

/// State that a store shares with its tables.
pub(crate) struct StoreState {
    recording: Box<dyn Recording>,
    /// Text that identifies the code that makes tables.
    code: &'static str,
    inputs: InputFiles,
    cache: Cache,
    /// Directory of the tables. `None` until the directory is known. The lock is held while tables are made.
    dir: Mutex<Option<TableDir>>,
    open: Mutex<OpenTables>,
    /// Condition variable. It is notified when a table was opened and when `dir` is unlocked.
    changed: Condvar,
    warning: OnceLock<String>,
    before_making: OnceLock<BeforeMaking>,
}

/// Callback with the estimated memory for making tables. Its argument is the number of bytes.
type BeforeMaking = Box<dyn Fn(u64) + Send + Sync>;

/// Unreadable events of a table. The note in the table's file stores them in this form.
#[derive(Serialize, Deserialize)]
struct UnreadableNote {
    count: u64,
    segment: u16,
    buffer_offset: u64,
    offset: u32,
}

impl Store {
    /// Creates the store of a recording. `inputs` are the files from which its tables are made, and `code` identifies the
    /// code that makes them.
    pub fn new(
        recording: Box<dyn Recording>,
        inputs: InputFiles,
        code: &'static str,
        cache: Cache,
    ) -> Store {
        Store(Arc::new(StoreState {
            recording,
            code,
            inputs,
            cache,
            dir: Mutex::default(),
            open: Mutex::default(),
            changed: Condvar::new(),
            warning: OnceLock::new(),
            before_making: OnceLock::new(),
        }))
    }

    /// Returns the facts about the recording that are known before its events are read.
    pub fn info(&self) -> &RecordingInfo {
        self.0.recording.info()
    }

    /// Returns the recording.
    pub fn recording(&self) -> &dyn Recording {
        &*self.0.recording
    }

    /// Sets a callback that is called before tables are made. Its argument is an estimate of the needed
    /// memory in bytes. The callback is not called for tables that already exist. Only the first call of
    /// `before_making` has an effect.
    pub fn before_making(&self, callback: impl Fn(u64) + Send + Sync + 'static) {
        let _ = self.0.before_making.set(Box::new(callback));
    }

    /// Makes the tables that do not exist yet. Uses the minimum number of passes over the trace.
    ///
    /// # Errors
    /// Returns an error if [`Options::progress`] asks to stop, a file of the trace changed, or the tables
    /// cannot be written.
    pub fn make(&self, wanted: &[Table], options: Options<'_>) -> Result<(), StoreError> {
        self.0.make(wanted, options)
    }

    /// Returns a table. Makes the table if it does not exist yet.
    ///
    /// # Errors
    /// See [`Store::make`].
    pub fn table(&self, table: Table, options: Options<'_>) -> Result<StoredTable, StoreError> {
        self.0.make(&[table], options)?;
        let file = self.0.opened(table).expect(STAYS_OPEN);
        Ok(StoredTable::new(self.0.clone(), table, file))
    }

    /// Returns a table if this process or another process has already made it. Returns `None` if the table
    /// does not exist or if tables are being made.
    ///
    /// # Errors
    /// Returns an error if a file of the trace cannot be read.
    pub fn made(&self, table: Table) -> Result<Option<StoredTable>, StoreError> {
        let file = match self.0.opened(table) {
            Some(file) => Some(file),
            None => self.0.find(table)?,
        };
        Ok(file.map(|file| StoredTable::new(self.0.clone(), table, file)))
    }

    /// Waits until another thread has made the tables. Returns true if the tables exist before `timeout`
    /// ends. The function itself makes no tables.
    pub fn wait_for(&self, tables: &[Table], timeout: Duration) -> bool {
        let is_missing = |open: &mut OpenTables| tables.iter().any(|t| !open.contains_key(t));
        let open = lock(&self.0.open);
        let waited = (self.0.changed).wait_timeout_while(open, timeout, is_missing);
        let (_open, result) = waited.unwrap_or_else(PoisonError::into_inner);
        !result.timed_out()
    }

    /// Returns the events that are missing from the tables that were used so far. These events are missing
    /// because their payloads could not be read.
    pub fn unreadable(&self) -> Vec<Unreadable> {
        let open = lock(&self.0.open);
        let notes = open.iter().filter_map(|(table, handle)| {
            let note: UnreadableNote = handle.file().note()?;
            Some(Unreadable {
                table: *table,
                count: note.count,
                place: EventPlace {
                    segment: note.segment,
                    buffer_offset: note.buffer_offset,
                    offset: note.offset,
                },
            })
        });
        notes.collect()
    }

    /// Returns a warning for the user. Returns `None` if there were no problems with the cache. There are two kinds of
    /// problems: the cache could not be written, or a table in the cache was not usable.
    pub fn warning(&self) -> Option<&str> {
        self.0.warning.get().map(String::as_str)
    }
}

impl StoreState {
    /// Returns a text that identifies the code that makes tables, and the names of the files. Some tables contain these
    /// names. The tables depend only on this text and on the content of the files.
    fn code(&self) -> String {
        let mut code = self.code.to_owned();
        for file in &self.recording.info().files {
            code = code + "\n" + crate::file_name(file);
        }
        code
    }

    fn opened(&self, table: Table) -> Option<Arc<TableFileHandle>> {
        lock(&self.open).get(&table).cloned()
    }

    fn is_open(&self, table: Table) -> bool {
        lock(&self.open).contains_key(&table)
    }

    fn make(&self, wanted: &[Table], options: Options<'_>) -> Result<(), StoreError> {
        let is_all_open = |open: &OpenTables| wanted.iter().all(|t| open.contains_key(t));
        let Some(mut guard) = self.lock_dir(is_all_open) else {
            return Ok(());
        };
        let dir = guard.dir(options)?;
        let mut missing: Vec<Table> = Vec::new();
        // Each pass over a recording of Linux finds its damage, and commands warn of it.
        let damages = Some(Table::Damages).filter(|_| self.recording.info().is_linux());
        for table in wanted.iter().copied().chain(damages) {
            if self.is_open(table) || missing.contains(&table) {
                continue;
            }
            match self.find_in(dir, table) {
                Some(file) => self.open(table, file),
                None => missing.push(table),
            }
        }
        if !missing.is_empty() {
            if let Some(callback) = self.before_making.get() {
                callback(self.recording.memory(&missing));
            }
            self.write_with_fallback(&missing, dir, options)?;
        }
        dir.record_use();
        Ok(())
    }

    /// Waits until no other thread makes tables, and then locks the directory. If `is_done` returns true
    /// before that, another thread made the tables that the caller needs. The function then returns `None`.
    fn lock_dir(&self, is_done: impl Fn(&OpenTables) -> bool) -> Option<TableDirGuard<'_>> {
        let mut open = lock(&self.open);
        loop {
            if is_done(&open) {
                return None;
            }
            if let Some(guard) = self.try_lock_dir() {
                return Some(guard);
            }
            let waited = self.changed.wait(open);
            open = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Locks the directory. Returns `None` if tables are being made.
    fn try_lock_dir(&self) -> Option<TableDirGuard<'_>> {
        let dir = match self.dir.try_lock() {
            Ok(dir) => dir,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(TableDirGuard {
            dir: Some(dir),
            shared: self,
        })
    }

    /// Adds an open table. Wakes the threads that wait for this table.
    fn open(&self, table: Table, file: TableFileHandle) {
        lock(&self.open).insert(table, Arc::new(file));
        self.changed.notify_all();
    }

    /// Opens a table that exists in the cache.
    fn find(&self, table: Table) -> Result<Option<Arc<TableFileHandle>>, StoreError> {
        let Some(mut guard) = self.try_lock_dir() else {
            return Ok(None);
        };
        let dir = guard.dir(Options::default())?;
        if let Some(file) = self.find_in(dir, table) {
            self.open(table, file);
        }
        Ok(self.opened(table))
    }

    fn find_in(&self, dir: &TableDir, table: Table) -> Option<TableFileHandle> {
        dir.find(&table.spec()).unwrap_or_else(|corrupt| {
            self.warn_of_damage(dir, table, &corrupt);
            None
        })
    }

    fn warn_of_damage(&self, dir: &TableDir, table: Table, corrupt: &Corrupt) {
        let _ = self.warning.set(format!(
            "cannot use the table `{table}` in {}: {}; it is made again",
            dir.folder().display(),
            corrupt.what
        ));
    }

    /// Makes a table again, because its file is damaged. Does nothing if another thread has already made it
    /// again.
    pub(crate) fn replace(
        &self,
        table: Table,
        damaged: &Arc<TableFileHandle>,
        corrupt: &Corrupt,
    ) -> Result<Arc<TableFileHandle>, StoreError> {
        let options = Options::default();
        let is_replaced = |open: &OpenTables| {
            let now = open.get(&table);
            now.is_some_and(|now| !Arc::ptr_eq(now, damaged))
        };
        let Some(mut guard) = self.lock_dir(is_replaced) else {
            return Ok(self.opened(table).expect(STAYS_OPEN));
        };
        let dir = guard.dir(options)?;
        self.warn_of_damage(dir, table, corrupt);
        damaged.remove();
        self.write_with_fallback(&[table], dir, options)?;
        Ok(self.opened(table).expect(STAYS_OPEN))
    }

    /// Makes tables in the cache. If the cache cannot be written, uses temporary files.
    fn write_with_fallback(
        &self,
        tables: &[Table],
        dir: &mut TableDir,
        options: Options<'_>,
    ) -> Result<(), StoreError> {
        match on_own_pool(|| self.write(tables, dir, options)) {
            Err(StoreError::Files(store::Error::Write { folder, source, .. }))
                if dir.is_cached() =>
            {
                let _ = self.warning.set(format!(
                    "cannot write the cache {}: {source}; the tables are kept in temporary files",
                    folder.display()
                ));
                *dir = TableDir::Temporary;
                on_own_pool(|| self.write(tables, dir, options))
            }
            outcome => outcome,
        }
    }

    /// Makes tables and writes them to the directory.
    fn write(
        &self,
        tables: &[Table],
        dir: &TableDir,
        options: Options<'_>,
    ) -> Result<(), StoreError> {
        let write_error = |table: Table| {
            move |source: io::Error| store::Error::Write {
                table: table.name(),
                folder: dir.folder(),
                source,
            }
        };
        let mut writers: BTreeMap<Table, TableWriter<NewTableFile>> = BTreeMap::new();
        for table in tables {
            let writer = dir.create(table.spec());
            writers.insert(*table, writer.map_err(write_error(*table))?);
        }
        let give = &mut |table, batch| -> Result<(), StoreError> {
            if let Some(writer) = writers.get_mut(&table) {
                writer.write(&batch).map_err(write_error(table))?;
            }
            Ok(())
        };
        let unreadable = self.recording.rows(tables, options, give)?;
        self.inputs.check_unchanged()?;
        for (table, writer) in writers {
            let missing = unreadable.iter().find(|one| one.table == table);
            let note = missing.map(|one| UnreadableNote {
                count: one.count,
                segment: one.place.segment,
                buffer_offset: one.place.buffer_offset,
                offset: one.place.offset,
            });
            let file = writer.finish(note.as_ref()).map_err(write_error(table))?;
            self.open(table, dir.publish(&table.spec(), file)?);
        }
        dir.evict();
        Ok(())
    }
}

/// Guard of the locked table directory. Only the thread that holds the guard makes tables.
struct TableDirGuard<'s> {
    /// Lock of the directory. It is `Some` until the guard is dropped.
    dir: Option<MutexGuard<'s, Option<TableDir>>>,
    shared: &'s StoreState,
}

impl TableDirGuard<'_> {
    /// Returns the directory. If the directory is not known yet, computes it from hashes of the input files.
    fn dir(&mut self, options: Options<'_>) -> Result<&mut TableDir, StoreError> {
        let known = self.dir.as_mut().expect("the guard is not dropped");
        Ok(match &mut **known {
            Some(dir) => dir,
            unknown => unknown.insert(match &self.shared.cache {
                Cache::Off => TableDir::Temporary,
                Cache::Folder(cache) => TableDir::Cached {
                    // At this time, no buffer has been read into tables. So the reported progress is 0.
                    key: self
                        .shared
                        .inputs
                        .key(cache, &self.shared.code(), &|| (options.progress)(0))?,
                    cache: cache.clone(),
                },
            }),
        })
    }
}

impl Drop for TableDirGuard<'_> {
    fn drop(&mut self) {
        self.dir = None;
        // In `lock_dir`, a thread tries to lock the directory while it holds the lock of `open`. If the directory is
        // locked, the thread releases `open` only when it starts to wait. So after `open` is locked here, each such
        // thread is waiting and gets the notification.
        drop(lock(&self.shared.open));
        self.shared.changed.notify_all();
    }
}

impl fmt::Debug for StoreState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("inputs", &self.inputs)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// Runs work on a separate thread pool. The caller holds a lock during this work. A thread of the global pool would run
/// other tasks while it waits, and these tasks may need the same lock.
fn on_own_pool<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let outcome = thread::scope(|scope| {
        let worker = scope.spawn(|| match rayon::ThreadPoolBuilder::new().build() {
            Ok(pool) => pool.install(work),
            Err(_) => work(),
        });
        worker.join()
    });
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
