//! The tables of one trace, made once and kept for the next question.

mod cache_folder;
mod error;
mod given_files;
mod packing;
mod shelf;
mod stored_table;
mod table_file;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::{fmt, io, thread};

use etl::Trace;

pub use cache_folder::{CacheFolder, CacheUsage};
pub use error::StoreError;
pub use stored_table::{Chunk, StoredTable};

use crate::opened::{self, Opened};
use crate::{Options, Packets, Table, Unreadable, captures, sample_files};
use given_files::GivenFiles;
use shelf::{NewFile, Shelf, ShelvedFile};
use table_file::TableWriter;

/// Where tables are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cache {
    /// In a folder that is made where there is none, for other processes and later.
    Folder(CacheFolder),
    /// Only as long as the [`Store`] and its [`StoredTable`]s are, in temporary files.
    Off,
}

/// The tables of one trace. Those made once are read from the cache, by any process.
///
/// They are found by the content of the trace's files, wherever those are, and only by the code
/// that made them.
#[derive(Debug)]
pub struct Store(Arc<Shared>);

const STAYS_OPEN: &str = "a table that was made stays open";

type OpenTables = BTreeMap<Table, Arc<ShelvedFile>>;

/// What a store and its tables share.
struct Shared {
    opened: Opened,
    given: GivenFiles,
    cache: Cache,
    /// Where the tables are, once somebody asked; held while tables are made.
    shelf: Mutex<Option<Shelf>>,
    open: Mutex<OpenTables>,
    /// Told when a table was opened, and when the shelf is free again.
    changed: Condvar,
    warning: OnceLock<String>,
}

impl Store {
    /// Opens the trace that the files make together. Captures of packets (pcapng, pcap) among them
    /// become rows of [`Table::Packets`]; alone they make a trace without events. So do the samples
    /// of a live probe (Parquet), which become rows of [`Table::LatencySamples`].
    ///
    /// # Errors
    /// If they cannot be read or are no trace.
    pub fn open(files: &[PathBuf], cache: Cache) -> Result<Store, StoreError> {
        let given = GivenFiles::look(files);
        // Opening says best what is wrong with a file.
        let opened = opened::open(files)?;
        Ok(Store(Arc::new(Shared {
            opened,
            given: given?,
            cache,
            shelf: Mutex::default(),
            open: Mutex::default(),
            changed: Condvar::new(),
            warning: OnceLock::new(),
        })))
    }

    /// The trace.
    pub fn trace(&self) -> &Trace {
        &self.0.opened.trace
    }

    /// The one table that its files fill, if they hold no events: they are captures of packets, or
    /// samples of a live probe.
    pub fn holds_only(&self) -> Option<Table> {
        self.0.opened.holds_only
    }

    /// Makes the tables that are not there yet, in as few passes over the trace as they need.
    ///
    /// # Errors
    /// When [`Options::progress`] asks to stop, a file of the trace changed, or tables can be
    /// written nowhere.
    pub fn make(&self, wanted: &[Table], options: Options<'_>) -> Result<(), StoreError> {
        self.0.make(&[wanted], options)
    }

    /// As [`Store::make`], one turn after the other: who waits for a table has it after its turn,
    /// and nobody else's tables come between. What is quickly made does not wait for the rest then,
    /// which costs the passes over the trace that each turn needs.
    ///
    /// # Errors
    /// As [`Store::make`]; the turns that ended are made.
    pub fn make_in_turn(&self, turns: &[&[Table]], options: Options<'_>) -> Result<(), StoreError> {
        self.0.make(turns, options)
    }

    /// A table, which is made if it is not there yet.
    ///
    /// # Errors
    /// As [`Store::make`].
    pub fn table(&self, table: Table, options: Options<'_>) -> Result<StoredTable, StoreError> {
        self.0.make(&[&[table]], options)?;
        let file = self.0.opened(table).expect(STAYS_OPEN);
        Ok(StoredTable::new(self.0.clone(), file))
    }

    /// A table, if it was made already, by this process or another; nothing while tables are being
    /// made.
    ///
    /// # Errors
    /// If a file of the trace cannot be read.
    pub fn made(&self, table: Table) -> Result<Option<StoredTable>, StoreError> {
        let file = match self.0.opened(table) {
            Some(file) => Some(file),
            None => self.0.found(table)?,
        };
        Ok(file.map(|file| StoredTable::new(self.0.clone(), file)))
    }

    /// Events that the tables asked for so far lack because their payloads could not be read.
    pub fn unreadable(&self) -> Vec<Unreadable> {
        let open = lock(&self.0.open);
        open.values()
            .filter_map(|file| file.table.unreadable())
            .collect()
    }

    /// What the user should know: that the cache could not be written.
    pub fn warning(&self) -> Option<&str> {
        self.0.warning.get().map(String::as_str)
    }
}

impl Shared {
    fn opened(&self, table: Table) -> Option<Arc<ShelvedFile>> {
        lock(&self.open).get(&table).cloned()
    }

    fn is_open(&self, table: Table) -> bool {
        lock(&self.open).contains_key(&table)
    }

    fn make(&self, turns: &[&[Table]], options: Options<'_>) -> Result<(), StoreError> {
        let is_all_open = |open: &OpenTables| turns.concat().iter().all(|t| open.contains_key(t));
        let Some(mut held) = self.hold_shelf(is_all_open) else {
            return Ok(());
        };
        let shelf = held.shelf(options)?;
        let mut missing: Vec<Vec<Table>> = Vec::new();
        for turn in turns {
            let mut lacks = Vec::new();
            for table in *turn {
                if self.is_open(*table)
                    || missing.iter().flatten().chain(&lacks).any(|t| t == table)
                {
                    continue;
                }
                match shelf.find(*table) {
                    Some(file) => self.open(*table, file),
                    None => lacks.push(*table),
                }
            }
            missing.push(lacks);
        }
        missing.retain(|lacks| !lacks.is_empty());
        let (size, turns) = (self.opened.trace.size_bytes(), missing.len() as u64);
        for (turn, lacks) in (0..).zip(&missing) {
            let progress = |done: u64| (options.progress)((turn * size + done) / turns);
            let options = Options {
                progress: &progress,
            };
            self.write_somewhere(lacks, shelf, options)?;
        }
        shelf.note_use();
        Ok(())
    }

    /// The shelf, once nobody else makes tables; nothing if what is waited for is there before.
    fn hold_shelf(&self, is_there: impl Fn(&OpenTables) -> bool) -> Option<HeldShelf<'_>> {
        let mut open = lock(&self.open);
        loop {
            if is_there(&open) {
                return None;
            }
            if let Some(held) = self.try_to_hold_shelf() {
                return Some(held);
            }
            let waited = self.changed.wait(open);
            open = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The shelf, if nobody makes tables.
    fn try_to_hold_shelf(&self) -> Option<HeldShelf<'_>> {
        let shelf = match self.shelf.try_lock() {
            Ok(shelf) => shelf,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(HeldShelf {
            shelf: Some(shelf),
            of: self,
        })
    }

    /// Lets everybody read a table.
    fn open(&self, table: Table, file: ShelvedFile) {
        lock(&self.open).insert(table, Arc::new(file));
        self.changed.notify_all();
    }

    /// Looks for a table among those that were kept.
    fn found(&self, table: Table) -> Result<Option<Arc<ShelvedFile>>, StoreError> {
        let Some(mut held) = self.try_to_hold_shelf() else {
            return Ok(None);
        };
        let shelf = held.shelf(Options::default())?;
        if let Some(file) = shelf.find(table) {
            self.open(table, file);
        }
        Ok(self.opened(table))
    }

    /// Makes a table again whose file was found damaged, unless somebody did so already.
    fn replace(&self, damaged: &Arc<ShelvedFile>) -> Result<Arc<ShelvedFile>, StoreError> {
        let table = damaged.table.table();
        let options = Options::default();
        let is_replaced = |open: &OpenTables| {
            let now = open.get(&table);
            now.is_some_and(|now| !Arc::ptr_eq(now, damaged))
        };
        let Some(mut held) = self.hold_shelf(is_replaced) else {
            return Ok(self.opened(table).expect(STAYS_OPEN));
        };
        let shelf = held.shelf(options)?;
        damaged.remove();
        self.write_somewhere(&[table], shelf, options)?;
        Ok(self.opened(table).expect(STAYS_OPEN))
    }

    /// Makes tables in the cache, or if that cannot be written in temporary files.
    fn write_somewhere(
        &self,
        tables: &[Table],
        shelf: &mut Shelf,
        options: Options<'_>,
    ) -> Result<(), StoreError> {
        match on_own_threads(|| self.write(tables, shelf, options)) {
            Err(StoreError::Write { folder, error, .. }) if matches!(shelf, Shelf::Kept { .. }) => {
                let _ = self.warning.set(format!(
                    "tables cannot be kept in {}: {error}; they are made for this time only",
                    folder.display()
                ));
                *shelf = Shelf::Nameless;
                on_own_threads(|| self.write(tables, shelf, options))
            }
            outcome => outcome,
        }
    }

    /// Makes tables and puts them on the shelf.
    fn write(
        &self,
        tables: &[Table],
        shelf: &Shelf,
        options: Options<'_>,
    ) -> Result<(), StoreError> {
        let unwritten = |table: Table| {
            move |error: io::Error| StoreError::Write {
                table,
                folder: shelf.folder(),
                error,
            }
        };
        let Opened {
            trace,
            captures,
            samples,
            ..
        } = &self.opened;
        let mut writers: BTreeMap<Table, TableWriter<NewFile>> = BTreeMap::new();
        for table in tables {
            let file = shelf.create().map_err(unwritten(*table))?;
            writers.insert(*table, TableWriter::new(file, *table));
        }
        let give = &mut |table, batch| match writers.get_mut(&table) {
            Some(writer) => writer.write(&batch).map_err(unwritten(table)),
            None => Ok(()),
        };
        let captured = match tables.contains(&Table::Packets) {
            true => captures::read(captures, trace)?,
            false => Packets::default(),
        };
        if let Some(file) = samples
            .as_ref()
            .filter(|_| tables.contains(&Table::LatencySamples))
        {
            sample_files::read(file, &mut |batch| give(Table::LatencySamples, batch))?;
        }
        let met =
            crate::build::stream_with(trace, captured, tables, options, give).map_err(|error| {
                match error {
                    crate::StreamError::Cancelled => crate::Cancelled.into(),
                    crate::StreamError::Taker(error) => error,
                }
            })?;
        self.given.are_the_same()?;
        for (table, writer) in writers {
            let lost = met.unreadable.iter().find(|lost| lost.table == table);
            let file = writer.finish(lost.copied()).map_err(unwritten(table))?;
            let file = shelf.publish(table, file)?;
            self.open(table, file);
        }
        shelf.tidy();
        Ok(())
    }
}

/// The shelf while nobody else may put tables there.
struct HeldShelf<'s> {
    /// Held until this is dropped.
    shelf: Option<MutexGuard<'s, Option<Shelf>>>,
    of: &'s Shared,
}

impl HeldShelf<'_> {
    fn shelf(&mut self, options: Options<'_>) -> Result<&mut Shelf, StoreError> {
        let known = self.shelf.as_mut().expect("it is held");
        Ok(match &mut **known {
            Some(shelf) => shelf,
            unknown => unknown.insert(match &self.of.cache {
                Cache::Off => Shelf::Nameless,
                Cache::Folder(cache) => Shelf::Kept {
                    key: self.of.given.key(cache, options)?,
                    cache: cache.clone(),
                },
            }),
        })
    }
}

impl Drop for HeldShelf<'_> {
    fn drop(&mut self) {
        self.shelf = None;
        // Whoever found it held waits by now: they look and begin to wait while this is locked.
        drop(lock(&self.of.open));
        self.of.changed.notify_all();
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("given", &self.given)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

/// Runs work that waits for other threads while a lock is held. On a thread of the common pool it
/// would meanwhile do other work, which may want that lock.
fn on_own_threads<T: Send>(work: impl FnOnce() -> T + Send) -> T {
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
