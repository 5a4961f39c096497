//! Checks of processes that start and end, services, DPCs of timers, and disk flushes in the trace.

use tables::InterruptKind;

use crate::read_back::{Run, run_text};

const MS: i64 = 1_000_000;

fn run() -> Run {
    let text = r#"
        title = "A helper comes and goes"
        duration = "1s"
        [machine]
        processors = 2
        threads_per_core = 1
        [[process]]
        name = "svchost.exe"
        user = "local-service"
        service = "Themes"
        [[process.thread]]
        program = [{ forever = [{ sleep = "100ms" }] }]
        [[process]]
        name = "helper.exe"
        start = "300ms"
        [[process.thread]]
        count = 2
        program = [{ run = "20ms" }, { flush = 0 }]
        [[disk]]
        number = 0
        service = "2ms"
        isr = { in = ["storport.sys!RaidpAdapterInterruptRoutine"], cost = "1us" }
        dpc = { in = ["storport.sys!RaidpCompletionDpcRoutine"], cost = "5us" }
        [[device]]
        name = "watchdog"
        timer = true
        every = "100ms"
        dpc = { in = ["watchdog.sys!OnTimer"], cost = "10us" }
    "#;
    run_text("lives", text, None, &[])
}

#[test]
fn a_process_begins_with_its_threads_and_ends_with_its_last() {
    let Run { tables, .. } = run();
    let row = |name: &str| {
        let mut rows = 0..tables.processes.process_id.len();
        let is = |row: &usize| tables.processes.image_name.get(*row) == Some(name);
        rows.find(is).expect("a row")
    };
    let (helper, host) = (row("helper.exe"), row("svchost.exe"));
    assert_eq!(tables.processes.start_ns.get(helper), Some(300 * MS));
    let end = tables.processes.end_ns.get(helper).expect("it ends");
    // Both threads run for 20 ms in parallel. Then both threads wait for their flushes. The disk needs 2 ms
    // for a flush and serves one flush after the other.
    assert!((322 * MS..326 * MS).contains(&end), "{end}");
    // The other process exists at the trace's start and end, so its start and end are unknown.
    assert_eq!(tables.processes.start_ns.get(host), None);
    assert_eq!(tables.processes.end_ns.get(host), None);
    let pid = tables.processes.process_id[helper];
    let threads: Vec<usize> = (0..tables.threads.thread_id.len())
        .filter(|row| tables.threads.process_id.get(*row) == Some(pid))
        .collect();
    assert_eq!(threads.len(), 2);
    for row in threads {
        assert!(tables.threads.start_ns.get(row) >= Some(300 * MS));
        assert!(tables.threads.end_ns.get(row) <= Some(end));
    }
}

#[test]
fn a_timers_dpc_comes_with_a_clock_interrupt() {
    let Run { tables, .. } = run();
    let mut begins = Vec::new();
    for rows in &tables.interrupts {
        for row in 0..rows.end_ns.len() {
            if rows.kind.0[row] == InterruptKind::TimerDpc {
                begins.push(rows.start_ns.get(row).expect("begun"));
                // The kernel's work for the time-out of the service's sleep can interrupt the DPC. This adds
                // 1 µs to the DPC's duration.
                let duration = rows.duration_ns.get(row).expect("begun");
                assert!((10_000..=11_000).contains(&duration), "{duration} ns");
            }
        }
    }
    // The timer is due 100 ms after its previous DPC. It expires at the next clock tick, a multiple of 15.625
    // ms. The DPC therefore runs every 109.375 ms.
    assert_eq!(begins.len(), 9, "{begins:?}");
    for (n, begin) in (1..).zip(&begins) {
        // The DPC can be late, because a sleeping processor takes up to 30 µs to wake, and the
        // kernel's work for a time-out takes 1 µs.
        let late = begin - n * 109_375_000;
        assert!((0..=31_000).contains(&late), "{late} ns late");
    }
}

/// Returns the median duration in ms and the number of the steps that the scenario measures as
/// `Sleep(1)`.
fn sleeps(text: &str) -> (f64, u64) {
    let run = run_text("sleeps", text, None, &[]);
    let measured = &run.truth["measured"][0];
    let number = |field: &str| measured[field].as_u64().expect("a number");
    assert!(number("min_ns") <= number("median_ns") && number("median_ns") <= number("max_ns"));
    (number("median_ns") as f64 / 1e6, number("count"))
}

#[test]
fn a_resolution_ends_with_the_process_that_asked_for_it() {
    let of = |stays: bool| {
        let rest = if stays { ", { sleep = \"20s\" }" } else { "" };
        sleeps(&format!(
            r#"
            title = "The requesting process has ended"
            duration = "9s"
            [machine]
            windows = 7
            processors = 1
            threads_per_core = 1
            [[process]]
            name = "asks.exe"
            [[process.thread]]
            program = [{{ resolution = "1ms" }}, {{ run = "1ms" }}{rest}]
            [[process]]
            name = "sleeps.exe"
            [[process.thread]]
            start = "1s"
            program = [{{ forever = [{{ sleep = "1ms", measure = "Sleep(1)" }}, {{ run = "5us" }}] }}]
            "#
        ))
    };
    let (with, _) = of(true);
    let (without, _) = of(false);
    assert!(with < 2.1, "{with} ms with the request");
    assert!((15.0..16.0).contains(&without), "{without} ms after it");
}

#[test]
fn samples_fall_everywhere_in_what_repeats_in_round_times() {
    let text = r#"
        title = "A device every millisecond"
        duration = "20s"
        [machine]
        processors = 1
        threads_per_core = 1
        c_states = []
        [[device]]
        name = "card"
        every = "1ms"
        isr = { in = ["card.sys!Isr"], cost = "100us" }
    "#;
    let Run { tables, truth, .. } = run_text("lockstep", text, None, &[]);
    let isr_ns = truth["processors"][0]["isr_ns"].as_i64().expect("a time");
    let (mut all, mut in_isr) = (0, 0);
    for rows in &tables.samples {
        for row in 0..rows.time_ns.len() {
            all += 1;
            in_isr += i64::from(rows.in_isr.get(row) == Some(true));
        }
    }
    // The service routine uses a tenth of the time, so a tenth of the 20,000 samples must be in it.
    // The tolerance is half a percent of all samples.
    let (found, expected) = (in_isr as f64 / all as f64, isr_ns as f64 / 20e9);
    assert!((found - expected).abs() < 0.005, "{found} for {expected}");
}
