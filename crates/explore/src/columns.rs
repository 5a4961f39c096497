//! Decoded columns, kept in a bounded memory.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;
use tables::{StoredTable, Table};

use crate::ExploreError;
use crate::catalogue::{ColumnDef, TableDef};
use crate::decode;
use crate::names::Names;
use crate::stretches::Stretches;
use crate::trace::Trace;

/// A column of dense ids.
#[derive(Debug)]
pub(crate) struct Keys {
    /// By chunk of the table.
    pub(crate) chunks: Vec<Vec<u32>>,
    pub(crate) names: Names,
}

/// A column of numbers; the unknown is [`views::NULL`].
#[derive(Debug)]
pub(crate) struct Measures {
    /// By chunk of the table.
    pub(crate) chunks: Vec<Vec<i64>>,
    /// The least and the greatest of each chunk, of those that are known.
    pub(crate) spans: Vec<Option<(i64, i64)>>,
}

impl Keys {
    /// The number of ids; that of the unknown.
    pub(crate) fn bound(&self) -> u32 {
        self.names.len() as u32
    }
}

impl Measures {
    pub(crate) fn new(chunks: Vec<Vec<i64>>) -> Measures {
        use rayon::prelude::*;
        let span = |values: &Vec<i64>| {
            let known = values.iter().copied().filter(|value| *value != views::NULL);
            let (least, greatest) = known.fold((i64::MAX, i64::MIN), |(least, greatest), value| {
                (least.min(value), greatest.max(value))
            });
            (least <= greatest).then_some((least, greatest))
        };
        Measures {
            spans: chunks.par_iter().map(span).collect(),
            chunks,
        }
    }
}

/// A table that was opened.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) def: &'static TableDef,
    pub(crate) stored: StoredTable,
}

/// A column of a table, and as what it is decoded.
type Key = (Table, &'static str, Role);

/// When rows begin, and when they end.
pub(crate) type Ends = (Arc<Measures>, Arc<Measures>);

/// As what a column is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Role {
    Keys,
    Measures,
    /// When rows begin, where those that do not say are at their end, or have always been; or when
    /// stretches of that length do.
    Starts,
    /// When rows end.
    Ends,
}

#[derive(Clone, Debug)]
enum Decoded {
    Keys(Arc<Keys>),
    Measures(Arc<Measures>),
}

/// Decoded columns. Those unused for longest go when they are too many; what a request holds stays
/// as long as the request.
pub(crate) struct Columns {
    limit_bytes: usize,
    slots: Mutex<FxHashMap<Key, Arc<Slot>>>,
    /// Counts uses.
    clock: AtomicU64,
}

#[derive(Default)]
struct Slot {
    /// Held while it is decoded: who wants it meanwhile waits.
    decoded: Mutex<Option<Decoded>>,
    bytes: AtomicU64,
    used: AtomicU64,
}

impl Columns {
    pub(crate) fn new(limit_bytes: usize) -> Columns {
        Columns {
            limit_bytes,
            slots: Mutex::default(),
            clock: AtomicU64::new(0),
        }
    }

    pub(crate) fn keys(
        &self,
        trace: &Trace,
        table: &Opened,
        column: &'static ColumnDef,
        cancel: &AtomicBool,
    ) -> Result<Arc<Keys>, ExploreError> {
        let decode =
            || decode::keys(trace, table, column, cancel).map(|keys| Decoded::Keys(Arc::new(keys)));
        match self.get((table.def.table, &column.name, Role::Keys), decode)? {
            Decoded::Keys(keys) => Ok(keys),
            Decoded::Measures(_) => unreachable!("decoded as keys"),
        }
    }

    pub(crate) fn measures(
        &self,
        table: &Opened,
        column: &'static ColumnDef,
        cancel: &AtomicBool,
    ) -> Result<Arc<Measures>, ExploreError> {
        self.numbers(table, &column.name, Role::Measures, || {
            decode::measures(table, column, cancel)
        })
    }

    /// The time that the table is sorted by.
    pub(crate) fn times(
        &self,
        table: &Opened,
        cancel: &AtomicBool,
    ) -> Result<Arc<Measures>, ExploreError> {
        self.stored(table, table.def.time, cancel)
    }

    /// A stored column of numbers.
    pub(crate) fn stored(
        &self,
        table: &Opened,
        column: &'static str,
        cancel: &AtomicBool,
    ) -> Result<Arc<Measures>, ExploreError> {
        self.numbers(table, column, Role::Measures, || {
            decode::stored_numbers(table, column, cancel)
        })
    }

    /// When rows begin and end, of a table whose rows last.
    pub(crate) fn intervals(
        &self,
        table: &Opened,
        cancel: &AtomicBool,
    ) -> Result<Option<Ends>, ExploreError> {
        let Some(lasts) = &table.def.lasts else {
            return Ok(None);
        };
        let starts = self.numbers(table, lasts.start, Role::Starts, || {
            decode::starts(table, lasts, cancel)
        })?;
        let ends = self.numbers(table, lasts.end, Role::Ends, || {
            decode::ends(table, lasts, cancel)
        })?;
        Ok(Some((starts, ends)))
    }

    /// When the stretches of time in a column began and ended.
    pub(crate) fn stretches(
        &self,
        table: &Opened,
        stretches: Stretches,
        cancel: &AtomicBool,
    ) -> Result<Ends, ExploreError> {
        let ends = self.stored(table, stretches.end, cancel)?;
        let starts = self.numbers(table, &stretches.length.name, Role::Starts, || {
            let lengths = self.measures(table, stretches.length, cancel)?;
            Ok(Stretches::starts(&lengths, &ends))
        })?;
        Ok((starts, ends))
    }

    fn numbers(
        &self,
        table: &Opened,
        column: &'static str,
        role: Role,
        decode: impl FnOnce() -> Result<Measures, ExploreError>,
    ) -> Result<Arc<Measures>, ExploreError> {
        let decode = || decode().map(|numbers| Decoded::Measures(Arc::new(numbers)));
        match self.get((table.def.table, column, role), decode)? {
            Decoded::Measures(numbers) => Ok(numbers),
            Decoded::Keys(_) => unreachable!("decoded as numbers"),
        }
    }

    fn get(
        &self,
        key: Key,
        decode: impl FnOnce() -> Result<Decoded, ExploreError>,
    ) -> Result<Decoded, ExploreError> {
        let slot = lock(&self.slots).entry(key).or_default().clone();
        let now = self.clock.fetch_add(1, Ordering::Relaxed) + 1;
        slot.used.store(now, Ordering::Relaxed);
        let mut decoded = lock(&slot.decoded);
        if let Some(decoded) = &*decoded {
            return Ok(decoded.clone());
        }
        let made = decode()?;
        slot.bytes.store(made.bytes() as u64, Ordering::Relaxed);
        *decoded = Some(made.clone());
        drop(decoded);
        self.shrink(key);
        Ok(made)
    }

    /// Forgets the columns unused for longest until those left are few enough; never the newest.
    fn shrink(&self, newest: Key) {
        let mut slots = lock(&self.slots);
        let size = |slot: &Slot| slot.bytes.load(Ordering::Relaxed);
        let mut bytes: u64 = slots.values().map(|slot| size(slot)).sum();
        while bytes > self.limit_bytes as u64 {
            let old = slots
                .iter()
                .filter(|(key, slot)| **key != newest && size(slot) > 0)
                .min_by_key(|(_, slot)| slot.used.load(Ordering::Relaxed))
                .map(|(key, _)| *key);
            let Some(slot) = old.and_then(|old| slots.remove(&old)) else {
                return;
            };
            bytes -= size(&slot);
        }
    }
}

impl Decoded {
    fn bytes(&self) -> usize {
        match self {
            Decoded::Keys(keys) => {
                keys.chunks
                    .iter()
                    .map(|chunk| chunk.len() * 4)
                    .sum::<usize>()
                    + keys.names.bytes()
            }
            Decoded::Measures(numbers) => numbers.chunks.iter().map(|chunk| chunk.len() * 8).sum(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
