//! Checks that a written log has the form that its session selects.

use std::io::Cursor;
use std::time::Duration;

use etl::write::{KernelEvent, Loss, PartitionInfo, Session, WriteError, Writer, companion};
use etl::{ClockKind, Trace, buffer_flag, le, mode};
use files::FileSource;

const FREQUENCY: u64 = 10_000_000;
const MARK: u16 = 0x0F22;

fn mark(time: i64) -> KernelEvent {
    KernelEvent {
        hook: MARK,
        version: 2,
        time,
        thread: None,
    }
}

fn log(session: Session, events: &[(u16, i64)]) -> Vec<u8> {
    let mut writer = Writer::new(Cursor::new(Vec::new()), session).unwrap();
    for (cpu, time) in events {
        writer.kernel(*cpu, mark(*time), &[0; 200]).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn open(bytes: Vec<u8>) -> Trace {
    Trace::from_sources(vec![("made".into(), Box::new(bytes))]).unwrap()
}

/// Fields of a buffer header that differ between kinds of logs.
#[derive(Debug, PartialEq)]
struct Head {
    cpu: u16,
    sequence: i64,
    time: i64,
    flags: u16,
    logger: u16,
    state: u32,
}

fn heads(bytes: &[u8]) -> Vec<Head> {
    let mut at = 0;
    let mut heads = Vec::new();
    while at < bytes.len() {
        let b = &bytes[at..];
        heads.push(Head {
            cpu: le::u16(b, 0x28).unwrap(),
            sequence: le::i64(b, 0x18).unwrap(),
            time: le::i64(b, 0x10).unwrap(),
            flags: le::u16(b, 0x34).unwrap(),
            logger: le::u16(b, 0x2A).unwrap(),
            state: le::u32(b, 0x2C).unwrap(),
        });
        at += le::u32(b, 0).unwrap() as usize;
    }
    heads
}

#[test]
fn buffers_are_numbered_as_they_begin_and_written_as_they_fill() {
    let session = Session {
        buffer_size: 1 << 10,
        processors: 2,
        ..Session::default()
    };
    // CPU 1 begins its buffer first. CPU 0 then fills its first buffer with 4 events, so this buffer is
    // written. At the end, one buffer of each CPU is still open.
    let mut events = vec![(1, 1)];
    events.extend((2..=6).map(|time| (0, time)));
    let heads = heads(&log(session, &events));
    let order: Vec<_> = heads.iter().map(|h| (h.cpu, h.sequence, h.flags)).collect();
    let (plain, marked) = (
        buffer_flag::PROCESSOR_INDEX,
        buffer_flag::PROCESSOR_INDEX | buffer_flag::FLUSH_MARKER,
    );
    assert_eq!(
        order,
        [(0, 0, marked), (0, 2, plain), (0, 3, plain), (1, 1, marked)]
    );
}

#[test]
fn the_flush_timer_writes_buffers_that_are_not_full() {
    let session = Session {
        processors: 2,
        flush_interval: Some(Duration::from_secs(1)),
        perf_frequency: FREQUENCY,
        raw_start: 500,
        ..Session::default()
    };
    let second = FREQUENCY as i64;
    let at = |tenths: i64| 500 + tenths * second / 10;
    let events = [
        (0, at(1)),
        (1, at(2)),
        (0, at(12)),
        (0, at(55)),
        (1, at(56)),
    ];
    let heads = heads(&log(session, &events));
    let written: Vec<_> = heads[1..].iter().map(|h| (h.cpu, h.time)).collect();
    // At 1 s, the buffers of both CPUs are written. At 2 s, the buffer with the event at 1.2 s is written. At
    // 5.6 s, the end of the log, the other buffers are written.
    assert_eq!(
        written,
        [
            (0, at(10)),
            (1, at(10)),
            (0, at(20)),
            (0, at(56)),
            (1, at(56))
        ]
    );
}

#[test]
fn a_relogged_log_is_marked_as_one() {
    let start = 133_000_000_000_000_000;
    for compressed in [false, true] {
        let session = Session {
            name: "Relogger".into(),
            mode: mode::SEQUENTIAL | mode::RELOG,
            raw_start: 70,
            start,
            compressed,
            ..Session::default()
        };
        let bytes = log(session, &[(0, 75), (0, 100)]);
        let heads = heads(&bytes);
        let state = if compressed { 3 } else { 0 };
        assert_eq!((heads[0].flags, heads[0].state), (0x01, state));
        assert_eq!(heads[1].flags, if compressed { 0x61 } else { 0x21 });
        assert_eq!(heads[1].time, start + 30);
        assert!(heads.iter().all(|head| head.logger == 0));
        let trace = open(bytes);
        let header = trace.header().unwrap();
        let compression = if compressed { mode::COMPRESSED } else { 0 };
        assert_eq!(header.log_file_mode, 0x1_0001 | compression);
        assert_eq!(header.log_version, if compressed { (2, 0) } else { (1, 5) });
        assert_eq!(header.end, Some(start + 30));
    }
}

#[test]
fn a_loss_is_marked_on_the_next_buffer_of_its_cpu() {
    let session = Session {
        processors: 2,
        events_lost: 5,
        ..Session::default()
    };
    let mut writer = Writer::new(Cursor::new(Vec::new()), session).unwrap();
    writer.kernel(0, mark(1), b"before").unwrap();
    writer.kernel(1, mark(1), b"elsewhere").unwrap();
    let loss = Loss {
        events: 7,
        buffers: 1,
    };
    writer.lose(0, loss).unwrap();
    writer.kernel(0, mark(2), b"after").unwrap();
    // Only the header states this loss of CPU 1. CPU 1 has no later event, so it has no later buffer to mark.
    let last = Loss {
        events: 1,
        buffers: 0,
    };
    writer.lose(1, last).unwrap();
    assert!(matches!(
        writer.lose(2, last),
        Err(WriteError::NoSuchCpu { cpu: 2, .. })
    ));
    let lost = companion::lost_event();
    writer.classic(0, lost.at(3, 4, 4), &lost.payload).unwrap();
    let times = companion::last_dropped_times(&[2, 3]);
    let event = KernelEvent {
        hook: etl::ids::hook::LAST_DROPPED_TIMES,
        ..mark(3)
    };
    writer.kernel(0, event, &times).unwrap();
    let bytes = writer.finish().unwrap().into_inner();

    let heads = heads(&bytes);
    let marks: Vec<_> = heads.iter().map(|h| (h.cpu, h.flags & 0x06)).collect();
    assert_eq!(marks, [(0, 0), (0, 0), (1, 0), (0, 0x06)]);
    let trace = open(bytes);
    let damage = trace.damage();
    assert_eq!((damage.events_lost, damage.buffers_lost), (13, 1));
    let mut walk = trace.events();
    let mut dropped = Vec::new();
    while let Some(event) = walk.next() {
        if event.hook() == Some(etl::ids::hook::LAST_DROPPED_TIMES) {
            dropped = event.payload().to_vec();
        }
    }
    assert_eq!(walk.damage().loss_events, 1);
    assert_eq!(
        dropped,
        [
            2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0
        ]
    );
}

#[test]
fn any_clock_gives_the_times_that_its_ticks_mean() {
    let start = 133_000_000_000_000_000;
    // Each case has a clock, the clock's frequency, and a duration in ticks and in nanoseconds. The duration
    // is half a second. The counter of 1 Hz is an exception, because it has only full seconds.
    let cases = [
        (ClockKind::Qpc, 3_579_545, 1_789_772, 499_999_860),
        (ClockKind::Qpc, 10_000_000, 5_000_000, 500_000_000),
        (ClockKind::Qpc, 2_996_000_000, 1_498_000_000, 500_000_000),
        (ClockKind::Qpc, 1, 3, 3_000_000_000),
        (ClockKind::SystemTime, 77, 5_000_000, 500_000_000),
        (ClockKind::CpuCycles, 77, 1_600_000_000, 500_000_000),
    ];
    for (clock, perf_frequency, ticks, ns) in cases {
        let raw_start = if clock == ClockKind::SystemTime {
            start
        } else {
            9_000
        };
        let session = Session {
            clock,
            perf_frequency,
            cpu_mhz: 3_200,
            raw_start,
            start,
            flush_interval: Some(Duration::from_millis(1)),
            ..Session::default()
        };
        let trace = open(log(session, &[(0, raw_start), (0, raw_start + ticks)]));
        let mut walk = trace.events();
        let mut last = None;
        while let Some(event) = walk.next() {
            last = Some(event.time_ns());
        }
        let name = format!("{clock:?} at {perf_frequency} Hz");
        assert_eq!(last, Some(ns), "{name}");
        let end = trace.header().unwrap().end;
        assert_eq!(end, Some(start + ns / 100), "{name}");
        assert!(walk.damage().is_empty(), "{name}");
    }
}

#[test]
fn the_header_says_what_the_session_said() {
    let session = Session {
        timer_resolution: 5_000,
        time_zone_bias: -60,
        time_zone: "@tzres.dll,-322".into(),
        process_id: 4_321,
        start_buffers: 3,
        maximum_file_size: 100,
        log_file: "C:\\".to_owned() + &"long".repeat(200),
        name: "NT Kernel Logger".into(),
        partition: Some(PartitionInfo {
            partition_type: 4,
            ..PartitionInfo::default()
        }),
        os_version: (6, 0),
        ..Session::default()
    };
    let name = session.log_file.clone();
    let trace = open(log(session, &[(0, 5)]));
    let header = trace.header().unwrap();
    assert_eq!(header.timer_resolution, 5_000);
    assert_eq!(header.time_zone_bias, -60);
    assert_eq!(header.time_zone, "@tzres.dll,-322");
    assert_eq!(header.process_id, 4_321);
    assert_eq!((header.start_buffers, header.maximum_file_size), (3, 100));
    assert_eq!(
        (header.session.as_str(), &header.log_file),
        ("NT Kernel Logger", &name)
    );
    assert_eq!(header.log_version, (1, 4));
    let mut walk = trace.events();
    assert_eq!(walk.next().unwrap().hook(), Some(0));
    let partition = walk.next().unwrap();
    assert_eq!(partition.hook(), Some(etl::ids::hook::PARTITION_INFO));
    assert_eq!(partition.payload()[..8], [0, 0, 0, 0, 4, 0, 0, 0]);
    assert_eq!(partition.payload().len(), 48);
}

#[test]
fn the_smallest_buffer_holds_the_longest_names() {
    let session = Session {
        buffer_size: 1 << 10,
        name: "n".repeat(5_000),
        log_file: "f".repeat(5_000),
        partition: Some(PartitionInfo::default()),
        ..Session::default()
    };
    let trace = open(log(session, &[(0, 5)]));
    let header = trace.header().unwrap();
    assert!(header.session.len() >= 100 && header.log_file.len() >= 100);
    assert!(trace.damage().is_empty());
}

/// Copies every event of the real traces that have at most 8 MiB. The copied records must be equal to the
/// original records. These traces have many kinds of records, from 32-bit and 64-bit systems.
#[test]
fn copied_records_are_the_same() {
    let mut kinds = std::collections::BTreeSet::new();
    for (name, _) in testdata::traces() {
        let file = std::fs::File::open(testdata::path(&name)).unwrap();
        let source = FileSource::new(file).unwrap();
        let trace = Trace::from_sources(vec![(name.clone(), Box::new(source))]).unwrap();
        if trace.size_bytes() > 8 << 20 {
            continue;
        }
        let header = trace.header().unwrap();
        let highest = trace.buffers().iter().map(|b| b.cpu).max().unwrap();
        let session = Session {
            processors: highest + 1,
            ..Session::from(header)
        };
        let mut writer = Writer::new(Cursor::new(Vec::new()), session).unwrap();
        let mut events = Vec::new();
        let mut walk = trace.events();
        while let Some(event) = walk.next() {
            if event.hook() != Some(0) {
                kinds.insert(event.kind());
                writer.copy(&event).unwrap();
                events.push((event.time_ns(), event.cpu(), event.record().to_vec()));
            }
        }
        let copy = open(writer.finish().unwrap().into_inner());
        let mut walk = copy.events();
        let mut expected = events.iter();
        while let Some(event) = walk.next() {
            if event.hook() != Some(0) {
                let copied = (event.time_ns(), event.cpu(), event.record().to_vec());
                assert_eq!(Some(&copied), expected.next(), "{name}");
            }
        }
        assert_eq!(expected.next(), None, "{name}");
    }
    assert!(kinds.len() >= 8, "{kinds:?}");
}
