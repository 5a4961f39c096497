//! Estimate of the memory that making tables needs.
//!
//! Only the memory for stacks grows with the trace. The reason is that all stacks are collected before events
//! are joined with stacks. Events are read in slices of limited size.

use crate::Table;
use crate::plan::Plan;
use crate::slices::SLICE_BYTES;

/// Bytes per stack event while the stacks of all CPUs are merged. A stack event then has one entry in the
/// list of its CPU and one entry in the merged list.
const MERGED_STACK: u64 = 48;
/// Bytes per stack event after the merge. A stack event then has one entry in the index.
const INDEXED_STACK: u64 = 16;

/// Memory of the program itself in bytes.
const PROGRAM: u64 = 36_000_000;

/// Number of slices in memory. One slice is read while the rows of another slice are made.
const SLICES: u64 = 2;

/// Estimates the memory in bytes that making these tables needs. `stacks` is the number of stack events, and `bytes` the
/// size of all events.
pub fn memory(wanted: &[Table], stacks: u64, bytes: u64) -> u64 {
    let sliced = if Plan::new(wanted).rows.is_empty() {
        0
    } else {
        bytes
    };
    sum(stacks, sliced)
}

/// Returns the memory in bytes for `stacks` stack events and for `sliced` bytes of events that are read in
/// slices. The slices are read after the stacks are merged. So the result is the larger of two values: the
/// memory for merging, and the memory for the merged stacks and the slices. A slice needs about 3.5 times the
/// size of its buffers, because it has columns of raw events and columns of rows.
fn sum(stacks: u64, sliced: u64) -> u64 {
    let slices = sliced.min(SLICES * SLICE_BYTES) * 7 / 2;
    let merging = stacks.saturating_mul(MERGED_STACK);
    let most = merging.max(stacks.saturating_mul(INDEXED_STACK).saturating_add(slices));
    most.saturating_add(PROGRAM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_memory_is_estimated() {
        // Each entry has the numbers of one trace of a simulated load: the number of stacks, the size, and
        // the measured peak memory of `laglab explain` in MB.
        for (stacks, bytes, measured) in [
            (5_327_000, 1_076_000_000, 288),
            (10_654_000, 2_141_000_000, 544),
            (21_307_000, 4_272_000_000, 1_054),
        ] {
            let estimate = sum(stacks, bytes) / 1_000_000;
            assert!(
                (measured..measured * 3 / 2).contains(&estimate),
                "{measured} MB were needed, the estimate is {estimate} MB"
            );
        }
    }

    #[test]
    fn few_stacks_and_short_traces_need_little() {
        assert_eq!(sum(0, 0), PROGRAM);
        assert_eq!(sum(0, 2 << 20), PROGRAM + (7 << 20));
        assert_eq!(sum(0, 100 << 30), sum(0, 1 << 30));
        assert_eq!(sum(u64::MAX, u64::MAX), u64::MAX);
    }
}
