//! Checks forms of logs that do not occur in the real traces: circular, preallocated, unfinished and old
//! logs, LZNT1, shared buffers, rare records. Each test writes a log and then changes the log as the format
//! allows.

use std::io::Cursor;

use etl::write::{KernelEvent, Session, Writer};
use etl::{FaultKind, HeaderKind, Trace};

const HEADER: usize = 0x48;
const SIZE: usize = 1 << 10;

/// Returns a log with buffers of 1 KiB and `count` events. The events alternate between two CPUs.
/// Event `i` has the raw time `10 i`.
fn log(count: u32) -> Vec<u8> {
    let session = Session {
        buffer_size: SIZE as u32,
        processors: 2,
        start: 133_000_000_000_000_000,
        ..Session::default()
    };
    let mut log = Writer::new(Cursor::new(Vec::new()), session).unwrap();
    for i in 0..count {
        let event = KernelEvent {
            hook: 0x0F22,
            version: 2,
            time: 10 * i64::from(i),
            thread: None,
        };
        log.kernel((i % 2) as u16, event, &i.to_le_bytes()).unwrap();
    }
    log.finish().unwrap().into_inner()
}

fn open(bytes: Vec<u8>) -> Trace {
    Trace::from_sources(vec![("made".into(), Box::new(bytes))]).unwrap()
}

/// Returns the number and the CPU of each event of the log, in time order.
fn numbers(trace: &Trace) -> Vec<(u32, u16)> {
    let mut walk = trace.events();
    let mut numbers = Vec::new();
    while let Some(event) = walk.next() {
        if event.hook() == Some(0x0F22) {
            let number = event
                .payload()
                .first_chunk()
                .map(|b| u32::from_le_bytes(*b));
            numbers.push((number.unwrap(), event.cpu()));
        }
    }
    assert!(walk.damage().is_empty(), "{:?}", walk.damage());
    numbers
}

fn expected(count: u32) -> Vec<(u32, u16)> {
    (0..count).map(|i| (i, (i % 2) as u16)).collect()
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

#[test]
fn a_ring_that_has_wrapped() {
    let bytes = log(2_000);
    assert!(bytes.len() > 20 * SIZE);
    let mut ring = bytes.clone();
    put(&mut ring, HEADER + 32 + 0x20, &2u32.to_le_bytes()); // circular
    ring[SIZE..].rotate_left(7 * SIZE);
    let trace = open(ring);
    assert!(trace.damage().is_empty());
    assert_eq!(numbers(&trace), expected(2_000));
    // If buffers were overwritten, their sequence numbers are missing in the file.
    let cut = [&bytes[..SIZE], &bytes[6 * SIZE..]].concat();
    assert_eq!(open(cut).damage().missing_sequence_numbers(), Some(5));
}

#[test]
fn a_file_that_was_cut_off_after_a_buffer() {
    let bytes = log(2_000);
    let damage = open(bytes[..bytes.len() - 3 * SIZE].to_vec())
        .damage()
        .clone();
    assert_eq!(damage.faults()[0].what, FaultKind::EndsEarly { buffers: 3 });
    assert!(damage.is_cut_off());
    assert!(!open(bytes).damage().is_cut_off());
}

/// A copy that was interrupted has zeros in the place of the last buffers.
#[test]
fn zeros_in_the_place_of_buffers_are_damage() {
    let mut bytes = log(2_000);
    let end = bytes.len();
    bytes[end - 3 * SIZE..].fill(0);
    let damage = open(bytes).damage().clone();
    assert_eq!(damage.faults()[0].what, FaultKind::EndsEarly { buffers: 3 });
    assert_eq!(damage.unused_bytes, 0);
}

/// Each file of a series begins with the session's first buffer, and continues where the file before it ended.
#[test]
fn buffers_in_earlier_files_of_a_series_are_not_missing() {
    let bytes = log(2_000);
    let mut later = [&bytes[..SIZE], &bytes[6 * SIZE..]].concat();
    put(&mut later, HEADER + 32 + 0x20, &0x9u32.to_le_bytes()); // sequential, new file
    assert_eq!(
        open(later.clone()).damage().missing_sequence_numbers(),
        Some(0)
    );
    later.drain(3 * SIZE..5 * SIZE);
    assert_eq!(open(later).damage().missing_sequence_numbers(), Some(2));
}

#[test]
fn a_preallocated_tail_is_not_damage() {
    let mut bytes = log(300);
    bytes.resize(bytes.len() + (3 << 20) + 100, 0);
    let trace = open(bytes);
    assert_eq!(trace.damage().unused_bytes, (3 << 20) + 100);
    assert!(trace.damage().is_empty());
    assert_eq!(numbers(&trace), expected(300));
}

#[test]
fn an_unfinished_log_is_read_to_its_end() {
    let mut bytes = log(300);
    put(&mut bytes, HEADER + 32 + 0x10, &[0; 8]); // end time
    put(&mut bytes, HEADER + 32 + 0x24, &1u32.to_le_bytes()); // buffers written
    let trace = open(bytes);
    assert_eq!(trace.header().unwrap().end, None);
    assert_eq!(trace.damage().unfinished_segments, 1);
    assert_eq!(numbers(&trace), expected(300));
}

/// Checks a log whose buffers begin between the header's start and end. In such a log, a time some minutes
/// after the end must count as damaged.
#[test]
fn times_are_bounded_by_a_header_that_the_buffers_agree_with() {
    let mut bytes = log(600);
    let at = 5 * SIZE + HEADER + 24 + 8;
    let time = i64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let ticks_per_second = open(bytes.clone()).clock().frequency() as i64;
    put(
        &mut bytes,
        at,
        &(time + 600 * ticks_per_second).to_le_bytes(),
    );
    let trace = open(bytes);
    let end = span(&trace);
    let mut walk = trace.events();
    while let Some(event) = walk.next() {
        assert!(event.time_ns() <= end + 10_000_000_000);
    }
    assert_eq!(walk.damage().counts().get("implausible_time"), Some(&1));
}

/// Returns the session's length in nanoseconds, according to its header.
fn span(trace: &Trace) -> i64 {
    let header = trace.header().unwrap();
    (header.end.unwrap() - header.start) * 100
}

#[test]
fn times_far_outside_the_session_are_not_believed() {
    let whole = log(600);
    let times = |bytes: Vec<u8>| {
        let trace = open(bytes);
        let mut walk = trace.events();
        let mut times = Vec::new();
        while let Some(event) = walk.next() {
            times.push(event.time_ns());
        }
        (
            times,
            walk.damage()
                .counts()
                .get("implausible_time")
                .copied()
                .unwrap_or(0),
        )
    };
    let (expected, none) = times(whole.clone());
    assert_eq!(none, 0);
    // The test changes one time by years: the time of the first or of the second event of a buffer.
    for at in [5 * SIZE + HEADER, 5 * SIZE + HEADER + 24] {
        for byte in [6, 7] {
            let mut bytes = whole.clone();
            bytes[at + 8 + byte] ^= 0x80;
            let (found, faults) = times(bytes);
            assert_eq!(faults, 1);
            assert_eq!(found.len(), expected.len());
            // The changed event gets the time of a neighbouring event. The difference from the true time is
            // small, because a buffer covers only a few thousand ticks of 100 ns.
            let moved: Vec<i64> = found
                .iter()
                .zip(&expected)
                .map(|(a, b)| (a - b).abs())
                .collect();
            assert!(moved.iter().all(|by| *by < 1_000_000), "{moved:?}");
        }
    }
}

#[test]
fn windows_7_has_its_cpu_in_a_byte() {
    let mut bytes = log(300);
    put(&mut bytes, HEADER + 32 + 4, &[6, 1]);
    for buffer in bytes.chunks_mut(SIZE) {
        buffer[0x29] = 8; // in old versions the alignment, not the CPU's high byte
        buffer[0x34] &= !0x20;
    }
    assert_eq!(numbers(&open(bytes)), expected(300));
}

#[test]
fn logs_before_vista_keep_the_buffer_size_in_the_first_event() {
    let mut bytes = log(300);
    for buffer in bytes.chunks_mut(SIZE) {
        let valid: [u8; 4] = buffer[0x30..0x34].try_into().unwrap();
        let cpu = buffer[0x28];
        buffer[..HEADER].fill(0);
        put(buffer, 0x00, &1u32.to_le_bytes()); // reference count
        put(buffer, 0x04, &valid);
        put(buffer, 0x30, &valid);
        buffer[0x28] = cpu;
    }
    let trace = open(bytes);
    assert_eq!(trace.header().unwrap().buffer_size as usize, SIZE);
    assert_eq!(numbers(&trace), expected(300));
}

#[test]
fn threads_that_share_buffers_fill_several_at_once() {
    let mut bytes = log(2_000);
    put(
        &mut bytes,
        HEADER + 32 + 0x20,
        &0x1000_0001u32.to_le_bytes(),
    );
    for buffer in bytes.chunks_mut(SIZE) {
        buffer[0x28] = 0;
    }
    let all_on_one: Vec<_> = (0..2_000).map(|i| (i, 0)).collect();
    assert_eq!(numbers(&open(bytes)), all_on_one);
}

#[test]
fn lznt1_buffers_are_read() {
    // The test writes uncompressed LZNT1 chunks. Such a chunk has a header of `0x3000 + size - 1`, then the
    // bytes.
    let bytes = log(600);
    let mut packed = bytes[..SIZE].to_vec();
    put(&mut packed, 0x2C, &2u32.to_le_bytes()); // LZNT1
    for buffer in bytes[SIZE..].chunks(SIZE) {
        let valid = u32::from_le_bytes(buffer[0x04..0x08].try_into().unwrap()) as usize;
        let body = &buffer[HEADER..valid];
        let chunk = 0x3000 | (body.len() as u16 - 1);
        let block = [&chunk.to_le_bytes()[..], body].concat();
        let mut header = buffer[..HEADER].to_vec();
        put(
            &mut header,
            0,
            &((HEADER + block.len()) as u32).to_le_bytes(),
        );
        header[0x34] |= 0x40;
        packed.extend(header);
        packed.extend(block);
    }
    let trace = open(packed);
    assert!(trace.buffers()[1].is_compressed());
    assert_eq!(numbers(&trace), expected(600));
}

/// Returns a record of every kind. Each record header is written in its published layout.
#[expect(clippy::too_many_lines, reason = "a table")]
fn records() -> Vec<(HeaderKind, Vec<u8>)> {
    let mut records: Vec<(HeaderKind, Vec<u8>)> = Vec::new();
    let ids = [0x11u32, 0x22].map(u32::to_le_bytes).concat();
    let time = |t: i64| t.to_le_bytes().to_vec();
    let marked = |kind: u8| [kind, 0xC0];
    // SYSTEM and COMPACT headers have these fields: version, kind, size, hook, thread, process, time. SYSTEM
    // headers also have CPU times.
    for (kind, number, extra) in [
        (HeaderKind::System32, 1, 8),
        (HeaderKind::System64, 2, 8),
        (HeaderKind::Compact32, 3, 0),
        (HeaderKind::Compact64, 4, 0),
    ] {
        let size = (24 + extra + 3) as u16;
        let record = [
            &[2, 0][..],
            &marked(number),
            &size.to_le_bytes(),
            &0x0501u16.to_le_bytes(),
            &ids,
            &time(100),
            &vec![0; extra],
            b"abc",
        ]
        .concat();
        records.push((kind, record));
    }
    // These PERFINFO headers have two hardware counters.
    let counters = [7u64, 9].map(u64::to_le_bytes).concat();
    let size = (16 + counters.len() + 3) as u16;
    let perf = |number| {
        let head = [
            &[2, 2][..],
            &marked(number),
            &size.to_le_bytes(),
            &0x0F2Eu16.to_le_bytes(),
        ];
        [&head.concat()[..], &time(100), &counters, b"abc"].concat()
    };
    records.push((HeaderKind::PerfInfo32, perf(16)));
    records.push((HeaderKind::PerfInfo64, perf(17)));
    // FULL and INSTANCE headers have these fields: size, kind, opcode, level, version, thread, process, time,
    // GUID.
    for (kind, number, extra) in [
        (HeaderKind::Full32, 10, 0),
        (HeaderKind::Full64, 20, 0),
        (HeaderKind::Instance32, 11, 24),
        (HeaderKind::Instance64, 21, 24),
    ] {
        let size = (48 + extra + 3) as u16;
        let head = [
            &size.to_le_bytes()[..],
            &marked(number),
            &[12, 4, 2, 0],
            &ids,
            &time(100),
        ];
        let record = [
            &head.concat()[..],
            &[5; 16],
            &[0; 8],
            &vec![0; extra],
            b"abc",
        ]
        .concat();
        records.push((kind, record));
    }
    // This EVENT_HEADER has one extended item. The data of the item has four bytes and is padded to eight
    // bytes.
    for (kind, number) in [
        (HeaderKind::EventHeader32, 18),
        (HeaderKind::EventHeader64, 19),
    ] {
        let size = (80 + 16 + 3) as u16;
        let head = [
            &size.to_le_bytes()[..],
            &marked(number),
            &[1, 0, 0, 0],
            &ids,
            &time(100),
        ];
        let descriptor = [&[9, 0, 1, 11, 4, 2, 3, 0][..], &[0; 8]].concat();
        let item = [&[16, 0, 3, 0, 0, 0, 4, 0][..], &[8, 0, 0, 0], &[0; 4]].concat();
        let record = [
            &head.concat()[..],
            &[5; 16],
            &descriptor,
            &[0; 8],
            &[6; 16],
            &item,
            b"abc",
        ]
        .concat();
        records.push((kind, record));
    }
    // These are a MESSAGE header with GUID, time and thread, and an ERROR header. The ERROR header has no
    // further fields.
    let size = (8 + 16 + 8 + 8 + 3) as u16;
    let head = [
        &size.to_le_bytes()[..],
        &[0, 0x90],
        &[14, 0],
        &0xAAu16.to_le_bytes(),
    ]
    .concat();
    records.push((
        HeaderKind::Message,
        [&head[..], &[5; 16], &time(100), &ids, b"abc"].concat(),
    ));
    records.push((
        HeaderKind::Error,
        [&[8, 0][..], &marked(13), &[0; 4]].concat(),
    ));
    records
}

/// Reads one buffer with a record of every kind, and checks that each event has the fields of its record
/// header.
#[test]
fn every_kind_of_record_says_what_its_header_holds() {
    let records = records();
    let mut bytes = log(0);
    bytes.truncate(SIZE);
    let mut buffer = vec![0; HEADER];
    for (_, record) in &records {
        buffer.extend(record);
        buffer.resize(buffer.len().next_multiple_of(8), 0);
    }
    let valid = buffer.len() as u32;
    buffer.resize(4 * SIZE, 0);
    put(&mut buffer, 0x00, &(4 * SIZE as u32).to_le_bytes());
    put(&mut buffer, 0x04, &valid.to_le_bytes());
    put(&mut buffer, 0x18, &1i64.to_le_bytes());
    put(&mut buffer, 0x2A, &1u16.to_le_bytes());
    put(&mut buffer, 0x34, &0x20u16.to_le_bytes());
    bytes.extend(buffer);

    let trace = open(bytes);
    assert!(trace.damage().is_empty(), "{:?}", trace.damage());
    let mut walk = trace.events();
    assert_eq!(walk.next().unwrap().hook(), Some(0));
    for (kind, record) in &records {
        let event = walk.next().unwrap();
        assert_eq!(event.kind(), *kind);
        assert_eq!(event.record(), record, "{kind:?}");
        // The ERROR record has no time, so it gets the time of the previous record.
        assert_eq!(event.raw_time(), 100, "{kind:?}");
        let name = kind.name();
        let narrow = name.ends_with("32");
        assert_eq!(event.pointer_size(), if narrow { 4 } else { 8 }, "{kind:?}");
        if *kind == HeaderKind::Error {
            assert_eq!(event.payload(), &record[8..]);
            continue;
        }
        assert_eq!(event.payload(), b"abc", "{kind:?}");
        let has_thread = !name.starts_with("PERFINFO");
        assert_eq!(event.thread_id(), has_thread.then_some(0x11), "{kind:?}");
        assert_eq!(event.process_id(), has_thread.then_some(0x22), "{kind:?}");
        let has_guid = event.hook().is_none();
        assert_eq!(
            event.guid().map(|g| g.0),
            has_guid.then_some([5; 16]),
            "{kind:?}"
        );
        let counted: Vec<u64> = event.counters().collect();
        assert_eq!(counted.is_empty(), has_thread, "{kind:?}");
        match *kind {
            HeaderKind::Message => assert_eq!(event.message_number(), Some(14)),
            HeaderKind::EventHeader32 | HeaderKind::EventHeader64 => {
                let items: Vec<_> = event.extended_items().collect();
                assert_eq!((items.len(), items[0].ext_type), (1, 3));
                assert_eq!(items[0].data, [8, 0, 0, 0]);
                assert_eq!(event.descriptor().unwrap().id, 9);
                assert_eq!(event.activity_id().unwrap().0, [6; 16]);
                assert_eq!((event.opcode(), event.version()), (Some(2), Some(1)));
            }
            _ if event.hook().is_some() => assert_eq!(event.version(), Some(2), "{kind:?}"),
            _ => assert_eq!(
                (event.opcode(), event.version()),
                (Some(12), Some(2)),
                "{kind:?}"
            ),
        }
    }
    assert!(walk.next().is_none());
}
