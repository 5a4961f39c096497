//! How waits are spread.

use tables::CpuRunsView;

/// How long ready threads waited for a CPU, by powers of two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// How many waits were shorter than 1 µs, 2 µs, 4 µs, … and no shorter than the bound before.
    pub buckets: Vec<u64>,
    /// Waits whose length is known.
    pub known: u64,
    /// Waits whose length is not, for want of an event that says when the thread became ready.
    pub unknown: u64,
    /// Sum of the known ones, in nanoseconds.
    pub total_ns: i64,
    /// The longest.
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
