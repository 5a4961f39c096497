//! `laglab explain`: figures against the ground truth of real traces, and a written trace whose
//! answers are known by construction.

mod program;

use std::fs::File;

use etl::write::{KernelEvent, Session, Writer};
use serde_json::Value;

/// Count of a kernel event in the truth of a trace, all versions.
fn count(truth: &Value, class: &str, opcode: u64) -> u64 {
    let events = truth["kernel_events"].as_array().unwrap().iter();
    let of = events.filter(|e| e["cls"] == class && e["opcode"] == opcode);
    of.map(|e| e["count"].as_u64().unwrap()).sum()
}

#[test]
fn counts_equal_the_ground_truth() {
    let (mut with_samples, mut with_switches, mut with_disk) = (0, 0, 0);
    for (path, truth) in testdata::traces() {
        let name = path.trim_start_matches("etl/");
        let report = program::json(&["explain", "--json", name]);
        let explained = &report["explanation"];
        assert_eq!(
            report["info"]["trace"]["events"], truth["total_events"],
            "{name}"
        );

        let number = |value: &Value| value.as_u64().unwrap_or(0);
        let cpu = &explained["cpu"];
        let samples = number(&cpu["busy_samples"]) + number(&cpu["idle_samples"]);
        assert_eq!(samples, count(&truth, "PerfInfo", 46), "{name}: samples");
        with_samples += u32::from(samples > 0);

        let switches = count(&truth, "Thread", 36);
        assert_eq!(explained["waits"].is_null(), switches == 0, "{name}");
        with_switches += u32::from(switches > 0);

        let disk = &explained["disk"];
        assert_eq!(
            number(&disk["reads"]["count"]),
            count(&truth, "DiskIo", 10),
            "{name}: reads"
        );
        assert_eq!(
            number(&disk["writes"]["count"]),
            count(&truth, "DiskIo", 11),
            "{name}: writes"
        );
        assert_eq!(
            number(&disk["flushes"]["count"]),
            count(&truth, "DiskIo", 14),
            "{name}"
        );
        let faults = number(&explained["hard_faults"]["all"]["count"]);
        assert_eq!(
            faults,
            count(&truth, "PageFault", 32),
            "{name}: hard faults"
        );
        with_disk += u32::from(!disk.is_null());
    }
    assert!(
        with_samples > 2 && with_switches > 0 && with_disk > 1,
        "the data shows too little"
    );
}

/// What another reader counts in the same trace: samples of threads, or inside a DPC or ISR.
#[test]
fn sampled_processes_agree_with_another_readers_dump() {
    let dump = testdata::bytes("etl/golden/net.4.5.2.x64.baseline.txt");
    let dump = String::from_utf8_lossy(&dump).into_owned();
    let counted = dump
        .lines()
        .find_map(|l| l.strip_prefix("COUNT Windows Kernel/PerfInfo/Sample:"));
    let counted: u64 = counted.unwrap().trim().parse().unwrap();
    let report = program::json(&["explain", "--json", "perfview__net.4.5.2.x64.etl"]);
    let explained = &report["explanation"];
    let busy = explained["cpu"]["busy_samples"].as_u64().unwrap();
    // It also keeps samples of idle threads inside a DPC or ISR.
    let sampled = &explained["interrupts"]["sampled"];
    let interrupts = sampled["in_dpc"].as_u64().unwrap() + sampled["in_isr"].as_u64().unwrap();
    assert!(
        busy <= counted && counted <= busy + interrupts,
        "{busy} {counted} {interrupts}"
    );
    // The dump's CollectionStart says 10,000 × 100 ns.
    let interval = explained["cpu"]["sample_interval_ns"].as_i64().unwrap();
    assert!((interval - 1_000_000).abs() < 5_000, "{interval}");
    assert_eq!(explained["cpu"]["processes"][0]["name"], "Test.x64.exe");
}

/// Two CPUs for a second, in ticks of 100 ns. Thread 8 of priority 8 has CPU 0 from 100 to 700 ms;
/// thread 12 of priority 13 and rank 2 is readied at 200 ms and runs from 700 to 800 ms.
#[test]
fn a_written_trace_gives_what_was_written() {
    const MS: i64 = 10_000;
    let file = tempfile::NamedTempFile::new().unwrap();
    let session = Session {
        processors: 2,
        os_build: 22_631,
        ..Session::default()
    };
    let mut log = Writer::new(File::create(file.path()).unwrap(), session).unwrap();
    let mut kernel = |cpu, hook, version, time, payload: &[u8]| {
        let event = KernelEvent {
            hook,
            version,
            time,
            thread: None,
        };
        log.kernel(cpu, event, payload).unwrap();
    };
    let switch = |new: u32, old: u32, priorities: [u8; 2], rank: u8, reason: u8, state: u8| {
        let mut p = [new, old].map(u32::to_le_bytes).concat();
        p.extend([priorities[0], priorities[1], rank, 0, reason, 1, state, 0]);
        p.extend(7u32.to_le_bytes());
        p.extend((-5i32).to_le_bytes());
        p
    };
    kernel(0, 0x0524, 4, 100 * MS, &switch(8, 0, [8, 0], 1, 0, 2));
    kernel(1, 0x0532, 2, 200 * MS, &[12, 0, 0, 0, 1, 0, 0, 0]);
    // A DPC of 300 µs, interrupted by a service routine of 100 µs.
    let interrupt = |begin: i64, tail: &[u8]| {
        let mut p = [begin as u64, 0xFFFF_F800_0000_1000]
            .map(u64::to_le_bytes)
            .concat();
        p.extend(tail);
        p
    };
    kernel(
        1,
        0x0F43,
        2,
        301 * MS + 2_000,
        &interrupt(301 * MS + 1_000, &[1, 0x31, 0, 0]),
    );
    kernel(1, 0x0F44, 2, 301 * MS + 3_000, &interrupt(301 * MS, &[]));
    kernel(0, 0x0524, 4, 700 * MS, &switch(12, 8, [13, 8], 0, 30, 1));
    kernel(0, 0x0524, 4, 800 * MS, &switch(8, 12, [8, 13], 2, 6, 5));
    kernel(0, 0x0524, 4, 1_000 * MS, &switch(0, 8, [0, 8], 0, 6, 5));
    log.finish().unwrap();

    let report = program::json(&["explain", "--json", file.path().to_str().unwrap()]);
    let explained = &report["explanation"];
    let ms = |n: i64| n * 1_000_000;
    assert_eq!(explained["cpu"]["busy_ns"], ms(900));
    assert_eq!(explained["cpu"]["unknown_ns"], 0);
    let waits = &explained["waits"];
    assert_eq!(waits["known"], 2);
    // Thread 8 first ran without having been seen before.
    assert_eq!(waits["unknown"], 1);
    assert_eq!(waits["total_ns"], ms(600));
    let longest = &waits["longest"][0];
    assert_eq!(longest["thread_id"], 12);
    assert_eq!(longest["ready_ns"], ms(200));
    assert_eq!(longest["wait_ns"], ms(500));
    assert_eq!(longest["priority"], 13);
    assert_eq!(longest["rank"], 2);
    assert_eq!(longest["readied"], true);
    assert_eq!(longest["meanwhile"][0]["ran_ns"], ms(500));
    let second = &waits["longest"][1];
    assert_eq!(
        (&second["thread_id"], &second["wait_ns"]),
        (&8.into(), &ms(100).into())
    );
    assert_eq!(second["readied"], false);

    let ranks = &explained["ranks"];
    assert_eq!(ranks["switch_outs"], 3);
    assert_eq!(ranks["outranked"], 1);
    assert_eq!(ranks["highest_rank"], 2);
    assert_eq!(ranks["quantum_ends"], 1);
    assert_eq!(ranks["overdrawn"], 3);

    let recorded = &explained["interrupts"]["recorded"];
    assert_eq!(recorded["dpc"]["count"], 1);
    assert_eq!(recorded["dpc"]["exclusive_ns"], 200_000);
    assert_eq!(recorded["dpc"]["longest_ns"], 300_000);
    assert_eq!(recorded["dpc"]["over_limit"], 1);
    assert_eq!(recorded["isr"]["exclusive_ns"], 100_000);
    assert_eq!(recorded["cpus"][0]["cpu"], 1);
    assert!(explained["disk"].is_null() && explained["modules"].is_null());
}

#[test]
fn missing_switches_are_nobodys_time_and_their_waits_are_left_out() {
    const MS: i64 = 10_000;
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut log = Writer::new(File::create(file.path()).unwrap(), Session::default()).unwrap();
    let mut switch = |ms: i64, new: u32, old: u32, state: u8| {
        let mut p = [new, old].map(u32::to_le_bytes).concat();
        p.extend([8, 8, 0, 0, 30, 1, state, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let event = KernelEvent {
            hook: 0x0524,
            version: 4,
            time: ms * MS,
            thread: None,
        };
        log.kernel(0, event, &p).unwrap();
    };
    switch(100, 12, 8, 1);
    // Thread 16 cannot have run: the switch to it is missing.
    switch(300, 8, 16, 1);
    switch(400, 12, 8, 1);
    log.finish().unwrap();
    let report = program::json(&["explain", "--json", file.path().to_str().unwrap()]);
    let explained = &report["explanation"];
    assert_eq!(explained["cpu"]["unknown_ns"], 200 * 1_000_000);
    assert_eq!(explained["cpu"]["busy_ns"], 100 * 1_000_000);
    // Thread 8's wait lasts over the gap.
    assert_eq!(explained["waits"]["in_gaps"], 1);
}
