//! Estimate of the memory that making tables needs.
//!
//! Only the memory for stacks grows with the trace. The reason is that all stacks are collected before events
//! are joined with stacks. Events are read in slices of limited size.

use etl::Trace;

use crate::Table;
use crate::first_pass::os_version;
use crate::plan::Plan;
use crate::register::Incoming;
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

/// Number of buffers that are read to estimate the number of stacks.
const SAMPLED_BUFFERS: usize = 64;
/// Number of bytes that are read for the estimate. After this number, no further buffer is read.
const SAMPLED_BYTES: u64 = 16 << 20;

/// Estimates the memory that making these tables needs, in bytes.
pub(crate) fn needed(trace: &Trace, wanted: &[Table]) -> u64 {
    let plan = Plan::new(wanted);
    let stacks = match plan.first.has_table(Table::Stacks) {
        true => stack_events(trace),
        false => 0,
    };
    let sliced = match plan.rows.is_empty() {
        true => 0,
        false => size(trace),
    };
    sum(stacks, sliced)
}

/// Estimates the memory in bytes that making these tables needs, without the stacks of the recording. `bytes` is the
/// size of all events.
pub(crate) fn of_slices(wanted: &[Table], bytes: u64) -> u64 {
    let sliced = if Plan::new(wanted).rows.is_empty() {
        0
    } else {
        bytes
    };
    sum(0, sliced)
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

/// Returns the size of all events, decompressed.
fn size(trace: &Trace) -> u64 {
    let sizes = trace
        .buffers()
        .iter()
        .map(|buffer| u64::from(buffer.valid_size));
    sizes.sum()
}

/// Estimates the number of stack events from some buffers in all parts of the trace.
fn stack_events(trace: &Trace) -> u64 {
    let streams = trace.streams();
    let buffers: usize = streams.iter().map(|stream| stream.buffers().len()).sum();
    let step = buffers.div_ceil(SAMPLED_BUFFERS).max(1);
    // The number of bytes is also limited, because a buffer can have a megabyte.
    let all = size(trace);
    let step = step.max(usize::try_from(all / SAMPLED_BYTES).unwrap_or(usize::MAX));
    let (mut at, mut bytes, mut stacks) = (0_usize, 0_u64, 0_u64);
    for stream in &streams {
        let mut reader = stream.reader();
        for buffer in stream.buffers() {
            if at.is_multiple_of(step) {
                let version = os_version(trace.segments(), buffer);
                let events = reader.read(buffer);
                let is_stack = |event: &etl::Event<'_>| {
                    Incoming::new(event, version)
                        .readers
                        .has_table(Table::Stacks)
                };
                stacks += events.filter(is_stack).count() as u64;
                bytes += u64::from(buffer.valid_size);
            }
            at += 1;
        }
    }
    let estimate = u128::from(stacks) * u128::from(all) / u128::from(bytes.max(1));
    u64::try_from(estimate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_memory_is_estimated() {
        // Each entry has the numbers of one trace of a simulated load: the number of stacks, the size, and
        // the measured peak memory of `laglab explain` in MB.
        for (stacks, bytes, measured) in [
            (5_327_000, 1_076_000_000, 345),
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

    #[test]
    fn stacks_of_a_real_trace_are_estimated() {
        let trace = etl::open(&[testdata::path("etl/perfview__net.4.5.2.x64.etl")]).unwrap();
        let mut exact = 0_u64;
        let mut events = trace.events();
        while let Some(event) = events.next() {
            let readers = Incoming::new(&event, (10, 0)).readers;
            exact += u64::from(readers.has_table(Table::Stacks));
        }
        let estimate = stack_events(&trace);
        assert!(exact > 0);
        assert!(
            estimate.abs_diff(exact) < exact / 2,
            "{estimate} of {exact}"
        );
        // Names of processes need no stacks and no slices.
        assert_eq!(needed(&trace, &[Table::Processes]), PROGRAM);
        assert!(needed(&trace, &[Table::Samples]) > PROGRAM);
    }
}
