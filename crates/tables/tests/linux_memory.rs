//! Measures the memory for reading forged recordings of Linux. Each recording is read in a child process.
#![cfg(target_os = "linux")]

use std::io::Write;

use tables::Table;
use testdata::memory::{Bound, Forged, check};

use crate::forged::{attribute, file, file_with_ids, record};
use crate::memory::make;

/// Bound of the memory for reading any recording.
const BOUND: Bound = Bound {
    base: 200 << 20,
    per_byte: 25,
};

/// Expanded size in bytes that a small recording may have.
const MAY_EXPAND: u64 = 32 << 20;

/// Fields of the records: thread (2), time (4), CPU (128).
const FIELDS: u64 = 0x86;

const TABLES: [Table; 7] = [
    Table::Processes,
    Table::Threads,
    Table::Stacks,
    Table::CpuRuns,
    Table::Events,
    Table::EventKinds,
    Table::Damages,
];

fn forged(name: &'static str, bytes: Vec<u8>, expanded: u64) -> Forged {
    Forged {
        name,
        file: "forged.data",
        bytes,
        expanded,
        opens: true,
    }
}

/// Returns a file that cannot be opened.
fn closed(name: &'static str, bytes: Vec<u8>) -> Forged {
    Forged {
        opens: false,
        ..forged(name, bytes, 0)
    }
}

#[test]
fn memory_grows_only_with_the_size_of_a_forged_recording() {
    check(
        "linux_memory::memory_grows_only_with_the_size_of_a_forged_recording",
        BOUND,
        |path| make(path, &TABLES),
        || {
            let events = [attribute((1, 0), FIELDS)];
            let plain = [attribute((1, 0), 0)];
            vec![
                forged("ids in one section", shared_ids(), 0),
                forged(
                    "compressed records of two CPUs",
                    compressed(&two_cpus()),
                    MAY_EXPAND,
                ),
                forged("records of two CPUs", file(&events, &two_cpus()), 0),
                forged("names of threads", file(&plain, &names()), 0),
                forged("starts of threads", file(&plain, &starts()), 0),
                forged(
                    "a text of many threads and kinds of events",
                    text(),
                    MAY_EXPAND,
                ),
                // Of these, all sections are read before it is known that the layout of pages is missing.
                closed("options that name one section", shared_section()),
                closed("instances at one place", shared_instance()),
            ]
        },
    );
}

/// Returns a text in which each line has another thread, CPU, function, file and kind of event.
fn text() -> Vec<u8> {
    let lines = (0..40_000_u32).map(|line| {
        let cpu = line % 8192;
        format!(
            "t{line} {line} [{cpu}] 1.000001: x:e{line}: y\n\t{line:x}0 f{line}+0x1 (/{line})\n\tffffffff{line:08x} g ([k])\n"
        )
    });
    lines.collect::<String>().into_bytes()
}

/// Checks a recording in which each record of the kernel is a chunk. If facts were kept for each chunk, they would take 22
/// bytes for each byte of the records.
#[test]
fn facts_are_not_kept_for_each_chunk() {
    check(
        "linux_memory::facts_are_not_kept_for_each_chunk",
        Bound {
            per_byte: 8,
            ..BOUND
        },
        |path| make(path, &TABLES),
        || {
            let name = "records of perf between records";
            vec![forged(name, compressed(&rounds()), MAY_EXPAND)]
        },
    );
}

/// Returns a file whose 13,000 events all name the same megabyte as their ids.
fn shared_ids() -> Vec<u8> {
    const EVENTS: usize = 13_000;
    let end = record(3, &[0; 16]);
    let ids_at = (104 + 80 * EVENTS + end.len()) as u64;
    let records = [&end[..], &[0; 1 << 20]].concat();
    let ids = (ids_at, 1 << 20);
    file_with_ids(&vec![attribute((1, 0), FIELDS); EVENTS], ids, &records)
}

/// Returns 64 MiB of pairs of records of 8 bytes: one of the kernel, and one of perf (PERF_RECORD_FINISHED_ROUND).
fn rounds() -> Vec<u8> {
    [record(14, &[]), record(68, &[])].concat().repeat(4 << 20)
}

/// Returns 48 MB of records, each of another CPU than the one before.
fn two_cpus() -> Vec<u8> {
    let of_cpu = |cpu: u64| {
        record(
            14,
            &[7 << 32 | 7, 1000 + cpu, cpu]
                .map(u64::to_le_bytes)
                .concat(),
        )
    };
    [of_cpu(0), of_cpu(1)].concat().repeat(750_000)
}

/// Returns 16 MB of names of different threads (PERF_RECORD_COMM).
fn names() -> Vec<u8> {
    let name = |id: u32| {
        record(
            3,
            &[id.to_le_bytes(), id.to_le_bytes(), *b"abc\0", [0; 4]].concat(),
        )
    };
    (1..700_000).flat_map(name).collect()
}

/// Returns 16 MB of starts of different threads (PERF_RECORD_FORK).
fn starts() -> Vec<u8> {
    let start = |id: u32| record(7, &[id, 1, id, 1, 0, 0].map(u32::to_le_bytes).concat());
    (1..500_000).flat_map(start).collect()
}

/// Returns the start of a file of trace-cmd, up to its version's own fields.
fn trace_dat(version: &[u8]) -> Vec<u8> {
    let page_bytes = 4096_u32.to_le_bytes();
    // Little endian, words of 8 bytes.
    [b"\x17\x08\x44tracing", version, &[0, 0, 8], &page_bytes].concat()
}

/// Format of an event without fields.
const FORMAT: &[u8] = b"name: n\nID: 5\nformat:\n";

/// Returns a file of version 7 whose 20,000 options all name the same 20,000 formats of events.
fn shared_section() -> Vec<u8> {
    const COUNT: u32 = 20_000;
    let section = |id: u16, data: &[u8]| {
        let head = [
            &id.to_le_bytes()[..],
            &[0; 6],
            &(data.len() as u64).to_le_bytes(),
        ]
        .concat();
        [head, data.to_vec()].concat()
    };
    let option = |id: u16, place: u64| {
        let size = 8_u32.to_le_bytes();
        [&id.to_le_bytes()[..], &size, &place.to_le_bytes()].concat()
    };
    let head = [trace_dat(b"7"), b"none\0\0".to_vec()].concat();
    let start = head.len() as u64 + 8;
    let format = [&(FORMAT.len() as u64).to_le_bytes()[..], FORMAT].concat();
    let formats = [
        &1_u32.to_le_bytes()[..],
        b"sched\0",
        &COUNT.to_le_bytes(),
        &format.repeat(COUNT as usize),
    ];
    let formats = section(18, &formats.concat());
    let options = [option(18, start).repeat(COUNT as usize), option(0, 0)].concat();
    let place = start + formats.len() as u64;
    let place = place.to_le_bytes().to_vec();
    [head, place, formats, section(0, &options)].concat()
}

/// Returns a file of version 6 whose 60,000 instances of the ring buffer all have the same list of 8192 CPUs.
fn shared_instance() -> Vec<u8> {
    const COUNT: usize = 60_000;
    const CPUS: u32 = 8192;
    let start = [
        &trace_dat(b"6")[..],
        b"header_page\0",
        &[0; 8],
        b"header_event\0",
        &[0; 8],
        &0_u32.to_le_bytes(),
        &1_u32.to_le_bytes(),
        b"sched\0",
        &1_u32.to_le_bytes(),
        &(FORMAT.len() as u64).to_le_bytes(),
        FORMAT,
        &[0; 16],
        &CPUS.to_le_bytes(),
        b"options  \0",
    ]
    .concat();
    let instance = [&b"flyrecord\0"[..], &vec![0; CPUS as usize * 16 + 8]].concat();
    let place = (start.len() + 14 * COUNT + 2 + instance.len()) as u64;
    let option = [
        &3_u16.to_le_bytes()[..],
        &8_u32.to_le_bytes(),
        &place.to_le_bytes(),
    ]
    .concat();
    [start, option.repeat(COUNT), vec![0; 2], instance.repeat(2)].concat()
}

/// Returns a small file whose records expand to `records` (PERF_RECORD_COMPRESSED).
fn compressed(records: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
    // Finds the same records far before, so that the file is small.
    encoder.long_distance_matching(true).unwrap();
    encoder.window_log(20).unwrap();
    encoder.write_all(records).unwrap();
    let zstd = encoder.finish().unwrap();
    let parts = zstd.chunks(60_000).flat_map(|part| record(81, part));
    let file = file(&[attribute((1, 0), FIELDS)], &parts.collect::<Vec<u8>>());
    assert!(file.len() < 100_000, "{}", file.len());
    file
}
