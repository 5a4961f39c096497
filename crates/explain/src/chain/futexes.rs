//! Locks for which threads of Linux waited.

use rustc_hash::FxHashMap;
use tables::{FutexWaitsView, StoreError, Table};

use crate::Case;

/// Maximum time from the call that waits for a lock to the moment when the thread leaves its CPU, in nanoseconds.
pub(crate) const CALL_NS: i64 = 1_000_000;
/// Value of a mutex of glibc, Rust and Go while threads wait for it.
const CONTENDED: u32 = 2;

/// Calls that wait for locks, by thread. Each call has its time in nanoseconds and the address of the lock. The calls
/// of a thread are in order of time.
pub(crate) struct Futexes(FxHashMap<u32, Vec<(i64, u64)>>);

impl Futexes {
    pub(crate) fn read(case: &Case<'_>) -> Result<Futexes, StoreError> {
        let mut calls: FxHashMap<u32, Vec<(i64, u64)>> = FxHashMap::default();
        let table = case.table(Table::FutexWaits)?;
        let columns = ["time_ns", "thread_id", "kind", "address", "value"];
        for batch in case.batches(&table, i64::MIN..i64::MAX, &columns) {
            let batch = batch?;
            let view = FutexWaitsView::new(&batch)?;
            for row in 0..view.len() {
                let of_thread = calls.entry(view.thread_id[row]).or_default();
                // If a call is not for a lock, it waits for a condition variable.
                if view.kind.get(row) == Some("lock") || view.value[row] == CONTENDED {
                    of_thread.push((view.time_ns[row], view.address[row]));
                }
            }
        }
        Ok(Futexes(calls))
    }

    /// Returns true if the recording has calls that wait for locks or condition variables.
    pub(crate) fn is_recorded(&self) -> bool {
        !self.0.is_empty()
    }

    /// Returns the address of the lock for which a thread waited after it left its CPU at `out_ns`. Returns `None` if
    /// the thread did not wait for a lock.
    pub(crate) fn lock(&self, thread_id: u32, out_ns: i64) -> Option<u64> {
        let calls = self.0.get(&thread_id)?;
        let before = calls.partition_point(|(at_ns, _)| *at_ns <= out_ns);
        let (at_ns, address) = *calls.get(before.checked_sub(1)?)?;
        (out_ns - at_ns <= CALL_NS).then_some(address)
    }
}
