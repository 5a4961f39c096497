//! Checks that files of other formats are refused, even if some of their bytes resemble buffers of a trace.
//! Also checks that damaged traces are read.

use etl::{OpenError, Trace};
use testdata::Rng;

fn open(bytes: Vec<u8>) -> Result<Trace, OpenError> {
    Trace::from_sources(vec![("file.data".to_owned(), Box::new(bytes))])
}

/// Checks that opening `bytes` fails, and that the error message contains `what`.
fn refused(bytes: Vec<u8>, what: &str) {
    match open(bytes) {
        Ok(trace) => panic!("{what}: accepted with {} buffers", trace.buffers().len()),
        Err(error) => {
            let text = error.to_string();
            assert!(
                text.starts_with("file.data is not an ETW trace: "),
                "{text}"
            );
            assert!(text.contains(what), "{text}");
        }
    }
}

/// Returns a buffer that the search for buffers accepts: a header of 72 bytes, then `records`.
fn buffer(stored: u32, valid: u32, records: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 0x48];
    bytes[0..4].copy_from_slice(&stored.to_le_bytes());
    bytes[4..8].copy_from_slice(&valid.to_le_bytes());
    bytes[0x30..0x34].copy_from_slice(&valid.to_le_bytes());
    bytes.extend(records);
    bytes.resize(stored as usize, 0);
    bytes
}

/// Returns a PERFINFO record of 16 bytes.
fn sample(time: i64) -> Vec<u8> {
    let head = [2, 0, 0x11, 0xC0, 16, 0, 0x2E, 0x0F];
    [&head[..], &time.to_le_bytes()].concat()
}

#[test]
fn a_linux_perf_recording_is_refused() {
    // The header is `struct perf_file_header` of the Linux file
    // tools/perf/Documentation/perf.data-file-format.txt: magic, size, attr_size, then the sections `attrs`,
    // `data` and `event_types`.
    let mut bytes = b"PERFILE2".to_vec();
    for word in [104_u64, 136, 168, 136, 304, 200_000, 0, 0, 0, 0, 0, 0] {
        bytes.extend(word.to_le_bytes());
    }
    // Each record is a PERF_RECORD_SAMPLE (9). Its fields are type, misc, size, ip, pid, tid and time.
    let mut rng = Rng(1);
    while bytes.len() < 200_000 {
        bytes.extend(9_u32.to_le_bytes());
        bytes.extend([2, 0, 40, 0]);
        bytes.extend((0xFFFF_FFFF_8100_0000 + rng.below(1 << 24) as u64).to_le_bytes());
        bytes.extend([0xE8, 3, 0, 0, 0xE9, 3, 0, 0]);
        bytes.extend(rng.bits().to_le_bytes());
        bytes.extend(rng.bits().to_le_bytes());
        // Some bytes of the recording resemble a trace's buffer with an ERROR record. An ERROR record has no
        // time.
        if rng.below(50) == 0 {
            bytes.extend(buffer(4096, 3000, &[8, 0, 13, 0xC0, 0, 0, 0, 0]));
        }
    }
    refused(bytes, "it seems to be a Linux perf recording; ");
}

#[test]
fn other_recordings_of_linux_are_named_with_what_can_be_read() {
    // The header of version 1 has the same fields; only the magic number differs.
    for magic in [b"PERFFILE", b"ELIFFREP"] {
        let mut bytes = magic.to_vec();
        bytes.extend(
            [104_u64, 136, 168, 136, 304, 600]
                .map(u64::to_le_bytes)
                .concat(),
        );
        bytes.resize(1000, 0);
        refused(
            bytes,
            "a perf.data of version 1, from perf before 2010; record again",
        );
    }
    // The field `packet` (1) of a Perfetto trace repeats. Each packet here has a time (field 8) and a sequence (10).
    let packet = [0x0A, 5, 0x40, 100, 0x50, 0x81, 1];
    refused(
        packet.repeat(1000),
        "a Perfetto trace; of traces, laglab reads .etl of Windows, and perf.data",
    );
    for (text, expected) in [
        (
            "# tracer: nop\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n",
            "text of the kernel's tracer (ftrace); only event traces of Windows can be read here",
        ),
        (
            "swapper     0 [000]  1000.000000: sched:sched_switch: prev_comm=swapper/0 prev_pid=0\n",
            "text of `perf script`; only event traces of Windows can be read here",
        ),
        (
            "{\"traceEvents\":[{\"name\":\"a\",\"ph\":\"B\"}]}",
            "a Chrome trace (JSON); of traces, laglab reads",
        ),
        (
            "plain text\n",
            "text; give an .etl, or an .etl.zip, .diagsession or .cab that contains one; of Linux, a perf.data or trace.dat; of packets, a .pcapng",
        ),
    ] {
        refused(text.repeat(50).into_bytes(), expected);
    }
    for packed in [&[0x1F, 0x8B, 8, 0][..], &[0x28, 0xB5, 0x2F, 0xFD]] {
        let bytes = [packed, &[7; 500]].concat();
        refused(
            bytes,
            "unpack it and give the .etl, perf.data or trace.dat inside",
        );
    }
}

#[test]
fn programs_are_refused() {
    let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let seems = if own.starts_with(b"MZ") {
        "a program or library for Windows (PE); "
    } else {
        "it seems to be a program"
    };
    refused(own, seems);

    // This imitation of a program has an MZ header, a PE header at 0x80, and bytes that resemble
    // code.
    let mut bytes = b"MZ\x90\0\x03\0\0\0\x04\0\0\0\xFF\xFF\0\0".to_vec();
    bytes.resize(0x80, 0);
    bytes.extend(b"PE\0\0\x64\x86\x06\0");
    let mut rng = Rng(2);
    while bytes.len() < 1 << 20 {
        let pattern = [0x48, 0x8B, 0x05, 0, 0, 0, 0, 0xC0, rng.bits() as u8];
        bytes.extend(pattern);
    }
    refused(
        bytes,
        "it seems to be a program or library for Windows (PE); ",
    );
}

/// Checks that programs of this system are refused. At most about 100 programs are checked. They are at equal
/// distances in the sorted list of all programs.
#[cfg(unix)]
#[test]
fn programs_of_the_system_are_refused() {
    let Ok(folder) = std::fs::read_dir("/usr/bin") else {
        return; // Some systems do not have the folder.
    };
    let is_small = |entry: &std::fs::DirEntry| entry.metadata().is_ok_and(|m| m.len() < 2 << 20);
    let mut files: Vec<_> = folder
        .flatten()
        .filter(is_small)
        .map(|e| e.path())
        .collect();
    files.sort();
    let step = files.len().div_ceil(100).max(1);
    for file in files.iter().step_by(step) {
        let Ok(bytes) = std::fs::read(file) else {
            continue;
        };
        if bytes.is_empty() {
            continue;
        }
        let opened = open(bytes);
        assert!(
            matches!(opened, Err(OpenError::NotATrace { .. })),
            "{}: {opened:?}",
            file.display()
        );
    }
}

#[test]
fn noise_that_resembles_buffers_is_refused() {
    let mut rng = Rng(3);
    for seed in 0..20 {
        let mut bytes: Vec<u8> = (0..200_000).map(|_| rng.bits() as u8).collect();
        // At three offsets, the noise has a valid buffer header and one record.
        for at in [1_000, 50_000, 120_000] {
            let end = bytes.len().min(at + 4096);
            bytes[at..end][..0x48].fill(0);
            let header = buffer(4096, 2048 + seed * 8, &[]);
            bytes[at..at + 0x48].copy_from_slice(&header[..0x48]);
            bytes[at + 0x48..at + 0x58].copy_from_slice(&sample(5));
        }
        refused(bytes, "it has no plausible buffers, and begins ");
    }
}

#[test]
fn traces_without_a_header_are_read() {
    // Two complete buffers with one event each are enough evidence of a trace. Four events before damaged
    // bytes are also enough.
    let whole = |time| buffer(0x48 + 16, 0x48 + 16, &sample(time));
    let bytes = [whole(10), whole(20), vec![0; 1024]].concat();
    assert_eq!(open(bytes).unwrap().buffers().len(), 2);
    let events: Vec<u8> = (1..=4).flat_map(|i| sample(10 * i)).collect();
    let damaged = buffer(4096, 4096, &[events, vec![0x55; 64]].concat());
    assert_eq!(open(damaged).unwrap().buffers().len(), 1);

    for (name, truth) in testdata::traces() {
        // Traces with fewer than four events are skipped. After the header event is removed, too few events
        // remain.
        if truth["total_events"].as_u64() < Some(4) {
            continue;
        }
        let mut bytes = testdata::bytes(&name);
        // This overwrites the marker of the header event.
        bytes[0x48..0x4C].fill(0);
        let trace = open(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(trace.damage().counts()["no_log_file_header"], 1, "{name}");
    }
}

#[test]
fn a_header_of_noise_is_not_believed() {
    let name = "etl/gpuvis__wintracecmd.etl";
    let mut bytes = testdata::bytes(name);
    let mut rng = Rng(4);
    for byte in &mut bytes[0x48 + 32..0x48 + 32 + 0x118] {
        *byte = rng.bits() as u8;
    }
    let trace = open(bytes).unwrap();
    assert_eq!(trace.header(), None);
    assert_eq!(trace.damage().counts()["no_log_file_header"], 1);
}

#[test]
fn damaged_sequence_numbers_make_the_number_of_missing_buffers_unknown() {
    let name = "etl/gpuvis__wintracecmd.etl";
    let mut bytes = testdata::bytes(name);
    let known = open(bytes.clone())
        .unwrap()
        .damage()
        .missing_sequence_numbers();
    assert_eq!(known, Some(2), "its first buffers were overwritten");
    bytes[10 * 65_536 + 0x18 + 6] ^= 0x40;
    let trace = open(bytes).unwrap();
    assert_eq!(trace.damage().missing_sequence_numbers(), None);
    let fault = &trace.damage().faults()[0];
    assert_eq!(fault.buffer_offset, 10 * 65_536);
    assert!(
        fault.what.to_string().contains("is unknown"),
        "{}",
        fault.what
    );
}
