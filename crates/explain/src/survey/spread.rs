//! Distribution of the lengths of waits.

use tables::CpuRunsView;

/// Distribution of the lengths of the waits of ready threads for a CPU. The bounds of the buckets are powers
/// of two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Number of waits in each bucket. The upper bounds of the buckets are 1 µs, 2 µs, 4 µs, and so
    /// on. The lower bound of a bucket is the upper bound of the bucket before it.
    pub buckets: Vec<u64>,
    /// Number of waits of known length.
    pub known: u64,
    /// Number of waits of unknown length, because no event records when the thread was readied.
    pub unknown: u64,
    /// Sum of the known waits, in nanoseconds.
    pub total_ns: i64,
    /// Length of the longest known wait, in nanoseconds.
    pub longest_ns: i64,
}

impl Spread {
    pub(super) fn add(&mut self, runs: &CpuRunsView<'_>) {
        for row in 0..runs.len() {
            if runs.thread_id[row] == 0 {
                continue;
            }
            let Some(ready_ns) = runs.ready_ns.get(row) else {
                self.unknown += 1;
                continue;
            };
            let us = (ready_ns / 1_000).unsigned_abs();
            let bucket = (u64::BITS - us.leading_zeros()) as usize;
            if bucket >= self.buckets.len() {
                self.buckets.resize(bucket + 1, 0);
            }
            self.buckets[bucket] += 1;
            self.known += 1;
            self.total_ns = self.total_ns.saturating_add(ready_ns);
            self.longest_ns = self.longest_ns.max(ready_ns);
        }
    }
}
