//! Estimate of the number of stacks in a trace.

use etl::Trace;
use tables::Table;

use crate::first_pass::os_version;
use crate::register::IncomingEvent;

/// Number of buffers that are read to estimate the number of stacks.
const SAMPLED_BUFFERS: usize = 64;
/// Number of bytes that are read for the estimate. After this number, no further buffer is read.
const SAMPLED_BYTES: u64 = 16 << 20;

/// Returns the size of all events, decompressed.
pub(crate) fn size(trace: &Trace) -> u64 {
    let sizes = trace
        .buffers()
        .iter()
        .map(|buffer| u64::from(buffer.valid_size));
    sizes.sum()
}

/// Estimates the number of stack events from some buffers in all parts of the trace.
pub(crate) fn stack_events(trace: &Trace) -> u64 {
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
                    IncomingEvent::new(event, version)
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
    fn stacks_of_a_real_trace_are_estimated() {
        let trace = etl::open(&[testdata::path("etl/perfview__net.4.5.2.x64.etl")]).unwrap();
        let mut exact = 0_u64;
        let mut events = trace.events();
        while let Some(event) = events.next() {
            let readers = IncomingEvent::new(&event, (10, 0)).readers;
            exact += u64::from(readers.has_table(Table::Stacks));
        }
        let estimate = stack_events(&trace);
        assert!(exact > 0);
        assert!(
            estimate.abs_diff(exact) < exact / 2,
            "{estimate} of {exact}"
        );
    }
}
