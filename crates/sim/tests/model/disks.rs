//! Tests of a disk's queue and service, in scenarios whose results can be computed by hand.

use crate::read_back::run_text;

/// Returns the response times in the trace, in nanoseconds, sorted. `readers` threads read 1 MiB
/// each at the same time. The disk needs 1 ms for a transfer plus 1 ms per MiB.
fn responses(readers: u32, queue_depth: u32) -> Vec<i64> {
    let text = format!(
        "title = 'reads'
        duration = '1s'
        [machine]
        processors = 8
        threads_per_core = 1
        [[disk]]
        number = 0
        queue_depth = {queue_depth}
        service = '1ms'
        bytes_per_second = '1000 MiB'
        isr = {{ in = ['storport.sys!Isr'], cost = '0ns' }}
        dpc = {{ in = ['storport.sys!Dpc'], cost = '0ns' }}
        [[process]]
        name = 'reader.exe'
        [[process.thread]]
        count = {readers}
        program = [ {{ until = '500ms' }}, {{ read = '1 MiB', file = 'C:\\large.bin' }} ]"
    );
    let run = run_text("reads", &text, None, &[]);
    run.assert_routines_agree();
    let tables = &run.tables;
    let mut responses: Vec<i64> = (tables.disk_io.iter())
        .flat_map(|rows| rows.response_ns.iter().map(|ns| ns.expect("a time")))
        .collect();
    responses.sort_unstable();
    let sum = run.truth["disks"][0]["response_ns"].as_i64();
    assert_eq!(sum, Some(responses.iter().sum()));
    responses
}

fn assert_about(found: &[i64], milliseconds: &[i64]) {
    assert_eq!(found.len(), milliseconds.len());
    for (found, ms) in found.iter().zip(milliseconds) {
        // Threads wake one after another, and an interrupt must first wake a sleeping processor. Together, these delays
        // take some µs.
        assert!(
            (found - ms * 1_000_000).abs() < 100_000,
            "{found} ns, not {ms} ms"
        );
    }
}

#[test]
fn transfers_wait_for_the_one_before() {
    assert_about(&responses(3, 1), &[2, 4, 6]);
}

#[test]
fn transfers_served_together_share_the_link() {
    assert_about(&responses(3, 3), &[2, 3, 4]);
    assert_about(&responses(3, 2), &[2, 3, 4]);
}
