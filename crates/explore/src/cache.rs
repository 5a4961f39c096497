//! Cache of decoded columns with a memory limit.

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use tables::Table;

use crate::ExploreError;
use crate::decoded_columns::{Keys, Measures};

/// Table and name of a cached column.
type Column = (Table, &'static str);

/// Content of a decoded column of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// Stored numbers of the column.
    Numbers,
    /// Starts of rows, or starts of the durations in the column.
    Starts,
    /// Ends of rows.
    Ends,
}

/// Cache of decoded columns. If they exceed the memory limit, the least recently used columns are dropped
/// from the cache. A running request keeps the columns that it uses.
pub(crate) struct ColumnCache {
    limit_bytes: u64,
    keys: Slots<Column, Keys>,
    numbers: Slots<(Column, Role), Measures>,
    /// Counter that increases with each use of a column.
    clock: AtomicU64,
}

/// Cached columns of one type.
struct Slots<C, T>(Mutex<FxHashMap<C, Arc<Slot<T>>>>);

struct Slot<T> {
    /// Decoded column. The lock is held while the column is decoded, so other requests for it wait.
    column: Mutex<Option<Arc<T>>>,
    bytes: AtomicU64,
    last_use: AtomicU64,
}

impl ColumnCache {
    pub(crate) fn new(limit_bytes: usize) -> ColumnCache {
        ColumnCache {
            limit_bytes: limit_bytes as u64,
            keys: Slots(Mutex::default()),
            numbers: Slots(Mutex::default()),
            clock: AtomicU64::new(0),
        }
    }

    /// Returns a column of ids. If it is not cached, it is decoded first.
    pub(crate) fn keys(
        &self,
        table: Table,
        column: &'static str,
        decode: impl FnOnce() -> Result<Keys, ExploreError>,
    ) -> Result<Arc<Keys>, ExploreError> {
        self.get(&self.keys, (table, column), Keys::bytes, decode)
    }

    /// Returns a column of numbers. If it is not cached, it is decoded first.
    pub(crate) fn numbers(
        &self,
        table: Table,
        column: &'static str,
        role: Role,
        decode: impl FnOnce() -> Result<Measures, ExploreError>,
    ) -> Result<Arc<Measures>, ExploreError> {
        let key = ((table, column), role);
        self.get(&self.numbers, key, Measures::bytes, decode)
    }

    fn get<C: Copy + Eq + Hash, T>(
        &self,
        slots: &Slots<C, T>,
        key: C,
        bytes: fn(&T) -> usize,
        decode: impl FnOnce() -> Result<T, ExploreError>,
    ) -> Result<Arc<T>, ExploreError> {
        let slot = lock(&slots.0).entry(key).or_default().clone();
        slot.last_use.store(self.tick(), Ordering::Relaxed);
        let mut cached = lock(&slot.column);
        if let Some(column) = &*cached {
            return Ok(column.clone());
        }
        let column = Arc::new(decode()?);
        slot.bytes.store(bytes(&column) as u64, Ordering::Relaxed);
        // Decoding may have taken long. Without this update, the new column could be the least recently used
        // one.
        slot.last_use.store(self.tick(), Ordering::Relaxed);
        *cached = Some(column.clone());
        drop(cached);
        self.shrink();
        Ok(column)
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Drops the least recently used columns until all others are within the memory limit. It always keeps
    /// at least one column.
    fn shrink(&self) {
        loop {
            let (keys, numbers) = (self.keys.usage(), self.numbers.usage());
            let is_last = keys.columns + numbers.columns <= 1;
            if is_last || keys.bytes + numbers.bytes <= self.limit_bytes {
                return;
            }
            match (keys.oldest, numbers.oldest) {
                (Some((key, used)), Some((_, other))) if used < other => self.keys.remove(key),
                (Some((key, _)), None) => self.keys.remove(key),
                (_, Some((key, _))) => self.numbers.remove(key),
                (None, None) => return,
            }
        }
    }
}

/// Number and memory of the cached columns of one type.
struct Usage<C> {
    columns: usize,
    bytes: u64,
    /// Least recently used column, and the counter value of its last use.
    oldest: Option<(C, u64)>,
}

impl<C: Copy + Eq + Hash, T> Slots<C, T> {
    fn usage(&self) -> Usage<C> {
        let slots = lock(&self.0);
        let decoded = slots.iter().map(|(key, slot)| {
            let bytes = slot.bytes.load(Ordering::Relaxed);
            (*key, bytes, slot.last_use.load(Ordering::Relaxed))
        });
        let decoded: Vec<(C, u64, u64)> = decoded.filter(|(_, bytes, _)| *bytes > 0).collect();
        let oldest = decoded.iter().min_by_key(|(.., used)| *used);
        Usage {
            columns: decoded.len(),
            bytes: decoded.iter().map(|(_, bytes, _)| bytes).sum(),
            oldest: oldest.map(|(key, _, used)| (*key, *used)),
        }
    }

    fn remove(&self, key: C) {
        lock(&self.0).remove(&key);
    }
}

impl<T> Default for Slot<T> {
    fn default() -> Slot<T> {
        Slot {
            column: Mutex::default(),
            bytes: AtomicU64::new(0),
            last_use: AtomicU64::new(0),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
