//! Checks that the reader returns the events that the writer wrote.

use std::io::Cursor;

use std::time::Duration;

use etl::write::{
    ClassicEvent, KernelEvent, Loss, PartitionInfo, ProviderEvent, Session, WriteError, Writer,
};
use etl::{Descriptor, Guid, HeaderKind, Trace, mode};
use testdata::Rng;

/// One event that is written and read again.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EventContent {
    time: i64,
    cpu: u16,
    kind: HeaderKind,
    hook_or_id: u16,
    thread: Option<(u32, u32)>,
    items: Vec<(u16, Vec<u8>)>,
    payload: Vec<u8>,
}

fn session(processors: u16, compressed: bool) -> Session {
    Session {
        buffer_size: 4 << 10,
        processors,
        perf_frequency: 3_579_545,
        raw_start: 1_000,
        start: 133_000_000_000_000_000,
        os_build: 26_100,
        name: "round trip".into(),
        compressed,
        ..Session::default()
    }
}

/// Returns a session with random values for the settings that affect a log's bytes.
fn random_session(rng: &mut Rng, compressed: bool) -> Session {
    let milliseconds = 1 + rng.below(100) as u64;
    Session {
        buffer_size: 1 << (10 + rng.below(5)),
        perf_frequency: [1, 3_579_545, 10_000_000, 2_996_000_000][rng.below(4)],
        mode: [mode::SEQUENTIAL, mode::SEQUENTIAL | mode::RELOG][rng.below(2)],
        flush_interval: (rng.below(2) == 0).then(|| Duration::from_millis(milliseconds)),
        partition: (rng.below(2) == 0).then(PartitionInfo::default),
        ..session(1 + rng.below(20) as u16, compressed)
    }
}

/// Losses that a log's header states, and the number of buffers whose flags mark a loss.
#[derive(Debug, Default, PartialEq)]
struct LossCounts {
    events: u32,
    buffers: u32,
    marks_of_events: u64,
    marks_of_buffers: u64,
}

const DESCRIPTOR: Descriptor = Descriptor {
    id: 0,
    version: 1,
    channel: 11,
    level: 4,
    opcode: 2,
    task: 3,
    keyword: 1 << 47,
};

/// Writes `count` random events. Returns the log, the events in the order in which the reader must
/// return them, and the losses.
fn write(
    rng: &mut Rng,
    session: Session,
    count: usize,
) -> (Vec<u8>, Vec<EventContent>, LossCounts) {
    let processors = session.processors;
    let mut writer = Writer::new(Cursor::new(Vec::new()), session).unwrap();
    let mut lost = LossCounts::default();
    // Marks that are expected in the next buffer of each CPU: the number of marks of lost events, and the
    // number of marks of lost buffers.
    let mut pending = vec![(0, 0); processors.into()];
    let mut events = Vec::new();
    let mut time = 1_000;
    for _ in 0..count {
        time += rng.below(3) as i64;
        let cpu = rng.below(processors.into()) as u16;
        let words = rng.bits() as u32;
        let payload: Vec<u8> = (0..rng.below(200))
            .map(|i| (i as u8 & 7) ^ words as u8)
            .collect();
        let thread = (words >> 3, words >> 9);
        let mut event = EventContent {
            time,
            cpu,
            kind: HeaderKind::PerfInfo64,
            hook_or_id: 0x0F2E,
            thread: None,
            items: Vec::new(),
            payload,
        };
        let kernel = |event: &EventContent| KernelEvent {
            hook: event.hook_or_id,
            version: 2,
            time,
            thread: event.thread,
        };
        if rng.below(200) == 0 {
            let loss = Loss {
                events: 1 + rng.below(100) as u32,
                buffers: rng.below(2) as u32,
            };
            let cpu = rng.below(processors.into()) as u16;
            writer.lose(cpu, loss).unwrap();
            lost.events += loss.events;
            lost.buffers += loss.buffers;
            let (events, buffers) = pending[usize::from(cpu)];
            pending[usize::from(cpu)] = (events | 1, buffers | u64::from(loss.buffers));
        }
        let (events_mark, buffers_mark) = std::mem::take(&mut pending[usize::from(cpu)]);
        lost.marks_of_events += events_mark;
        lost.marks_of_buffers += buffers_mark;
        match rng.below(4) {
            0 => writer.kernel(cpu, kernel(&event), &event.payload).unwrap(),
            1 => {
                event.kind = HeaderKind::System64;
                event.thread = Some(thread);
                writer.kernel(cpu, kernel(&event), &event.payload).unwrap();
            }
            2 => {
                event.kind = HeaderKind::Full64;
                event.thread = Some(thread);
                event.hook_or_id = u16::from(words as u8);
                let header = ClassicEvent {
                    class: Guid([9; 16]),
                    opcode: words as u8,
                    version: 3,
                    time,
                    thread_id: thread.0,
                    process_id: thread.1,
                };
                writer.classic(cpu, header, &event.payload).unwrap();
            }
            _ => {
                event.kind = HeaderKind::EventHeader64;
                event.thread = Some(thread);
                event.hook_or_id = words as u16;
                event.items = (0..rng.below(3))
                    .map(|i| (i as u16 + 1, vec![words as u8; rng.below(40)]))
                    .collect();
                let items: Vec<(u16, &[u8])> = event
                    .items
                    .iter()
                    .map(|(t, d)| (*t, d.as_slice()))
                    .collect();
                let id = event.hook_or_id;
                let descriptor = Descriptor { id, ..DESCRIPTOR };
                let header = ProviderEvent {
                    provider: Guid([7; 16]),
                    descriptor,
                    time,
                    thread_id: thread.0,
                    process_id: thread.1,
                    activity: Guid::ZERO,
                    extended: &items,
                };
                writer.provider(cpu, header, &event.payload).unwrap();
            }
        }
        events.push(event);
    }
    events.sort_by_key(|e| (e.time, e.cpu));
    (writer.finish().unwrap().into_inner(), events, lost)
}

/// Returns the events and the losses of a log. The session's own events are left out.
fn read(bytes: Vec<u8>) -> (Vec<EventContent>, LossCounts) {
    let trace = Trace::from_sources(vec![("made".into(), Box::new(bytes))]).unwrap();
    let header = trace.header().unwrap();
    assert!(header.end.is_some());
    assert_eq!(header.session, "round trip");
    let mut walk = trace.events();
    let mut events = Vec::new();
    while let Some(e) = walk.next() {
        if e.hook().is_some_and(|hook| hook >> 8 == 0) {
            continue;
        }
        events.push(EventContent {
            time: e.raw_time(),
            cpu: e.cpu(),
            kind: e.kind(),
            hook_or_id: e
                .hook()
                .or(e.descriptor().map(|d| d.id))
                .or(e.opcode().map(u16::from))
                .unwrap(),
            thread: e.thread_id().zip(e.process_id()),
            items: e
                .extended_items()
                .map(|i| (i.ext_type, i.data.to_vec()))
                .collect(),
            payload: e.payload().to_vec(),
        });
    }
    assert!(walk.damage().is_empty());
    let damage = trace.damage();
    assert_eq!(damage.counts().len(), 0);
    assert_eq!(damage.missing_sequence_numbers(), Some(0));
    let lost = LossCounts {
        events: header.events_lost,
        buffers: header.buffers_lost,
        marks_of_events: damage.buffers_marking_lost_events,
        marks_of_buffers: damage.buffers_marking_lost_buffers,
    };
    (events, lost)
}

#[test]
fn what_is_written_is_read_back_equal() {
    let mut rng = Rng(2);
    for round in 0..60 {
        let session = random_session(&mut rng, round % 2 == 1);
        let count = rng.below(2_000);
        let (bytes, written, written_loss) = write(&mut rng, session, count);
        let (events, loss) = read(bytes);
        assert_eq!(loss, written_loss, "round {round}");
        assert_eq!(events.len(), written.len(), "round {round}");
        for (i, (read, written)) in events.iter().zip(&written).enumerate() {
            assert_eq!(read, written, "round {round}, event {i}");
        }
    }
}

#[test]
fn a_range_of_time_has_all_its_events() {
    let mut rng = Rng(5);
    for _ in 0..20 {
        let (bytes, written, _) = write(&mut rng, session(4, false), 3_000);
        let trace = Trace::from_sources(vec![("made".into(), Box::new(bytes))]).unwrap();
        let clock = *trace.clock();
        let last = clock.to_ns(written.last().unwrap().time);
        let from = (rng.bits() % last as u64) as i64;
        let to = from + (rng.bits() % 100_000) as i64;
        let inside = |time: i64| (from..=to).contains(&clock.to_ns(time));
        let expected = written.iter().filter(|e| inside(e.time)).count();
        let mut walk = trace.events().within(from, to);
        let (mut found, mut read) = (0, 0);
        while let Some(event) = walk.next() {
            found += usize::from(inside(event.raw_time()) && event.hook() != Some(0));
            read += 1;
        }
        assert_eq!(found, expected, "{from} to {to} ns");
        assert!(read < written.len(), "nothing was left out");
    }
}

#[test]
fn sessions_of_one_boot_share_a_clock_and_others_are_joined_by_utc() {
    let log = |raw_start: i64, start: i64, boot: i64, events: &[i64]| -> Vec<u8> {
        let session = Session {
            raw_start,
            start,
            boot,
            ..session(1, false)
        };
        let frequency = session.perf_frequency as i64;
        let mut writer = Writer::new(Cursor::new(Vec::new()), session).unwrap();
        for seconds in events {
            let time = raw_start + seconds * frequency;
            let event = KernelEvent {
                hook: 0x0F22,
                version: 2,
                time,
                thread: None,
            };
            writer.kernel(0, event, b"mark").unwrap();
        }
        writer.finish().unwrap().into_inner()
    };
    let second = 10_000_000;
    let start = 133_000_000_000_000_000;
    let times = |logs: Vec<Vec<u8>>| -> Vec<i64> {
        let named = logs
            .into_iter()
            .map(|log| ("log".into(), Box::new(log) as Box<_>))
            .collect();
        let trace = Trace::from_sources(named).unwrap();
        let mut walk = trace.events();
        let mut times = Vec::new();
        while let Some(e) = walk.next() {
            if e.hook() == Some(0x0F22) {
                times.push(e.time_ns() / 1_000_000_000);
            }
        }
        times
    };
    let first = log(1_000, start, 5, &[1, 3]);
    // The second log is from the same boot, so its counter continues. The counter gives the times of the events, not
    // the rounded start time.
    let frequency = 3_579_545;
    let same_boot = log(1_000 + 2 * frequency, start + 2 * second + 77, 5, &[0, 2]);
    assert_eq!(times(vec![first.clone(), same_boot.clone()]), [1, 2, 3, 4]);
    assert_eq!(times(vec![same_boot, first.clone()]), [1, 2, 3, 4]);
    // This log is from another boot, so its counter restarted. The UTC start times of the logs give the times.
    let other_boot = log(50, start + 2 * second, start + second, &[0, 2]);
    assert_eq!(times(vec![first.clone(), other_boot.clone()]), [1, 2, 3, 4]);
    // A second session that is appended to the same file is a separate segment.
    assert_eq!(times(vec![[first, other_boot].concat()]), [1, 2, 3, 4]);
}

#[test]
fn what_cannot_be_written_is_refused() {
    let mut writer = Writer::new(Cursor::new(Vec::new()), session(1, false)).unwrap();
    let event = KernelEvent {
        hook: 0x0524,
        version: 5,
        time: 2_000,
        thread: None,
    };
    assert!(matches!(
        writer.kernel(1, event, &[]),
        Err(WriteError::NoSuchCpu { cpu: 1, .. })
    ));
    let large = vec![0; 5_000];
    assert!(matches!(
        writer.kernel(0, event, &large),
        Err(WriteError::TooLarge { .. })
    ));
    writer.kernel(0, event, &[]).unwrap();
    let early = KernelEvent {
        time: 1_999,
        ..event
    };
    assert!(matches!(
        writer.kernel(0, early, &[]),
        Err(WriteError::OutOfOrder { .. })
    ));
    let odd = Session {
        buffer_size: 5_000,
        ..session(1, false)
    };
    assert!(matches!(
        Writer::new(Cursor::new(Vec::new()), odd),
        Err(WriteError::BadSession(_))
    ));
}
