//! Tests that log events and read them with the crate `events`, which has its own descriptions of
//! the layouts.

use std::io::Cursor;
use std::net::SocketAddr;

use etl::{HeaderKind, Trace};
use events::ids::provider::LAGLAB_SIMULATOR;
use events::schema::Source;
use events::{Decoder, Value};

use super::*;
use crate::windows::Windows;
use record::{Keyword, StackWalk};

mod layouts;
mod rules;

const RELEASES: [Windows; 4] = [
    Windows::Seven,
    Windows::Ten,
    Windows::Eleven23H2,
    Windows::Eleven25H2,
];
/// Time at which the logs in these tests end.
const END: Time = 1_000_000;
/// Counter value at the trace's start: ten days after the boot, at 10 MHz.
const RAW_START: i64 = 10 * 86_400 * 10_000_000;

type TestLog = Log<Cursor<Vec<u8>>>;

fn computer(windows: Windows) -> Computer {
    let cpu = |index: u16| Cpu {
        group: index / 2,
        number: (index % 2) as u8,
        core: index.into(),
        node: index / 2,
    };
    Computer {
        windows,
        server: false,
        name: "PC-7".into(),
        cpus: (0..4).map(cpu).collect(),
        cpu_mhz: 3_000,
        memory_mib: 16_384,
        frequency: 10_000_000,
        start: 134_129_520_000_000_000,
        boot: 134_129_520_000_000_000 - 10 * 864_000_000_000,
    }
}

fn write(
    windows: Windows,
    recording: &Recording,
    act: impl FnOnce(&mut TestLog),
) -> FinishedTrace<Cursor<Vec<u8>>> {
    let modules = Modules::new(windows);
    let out = Cursor::new(Vec::new());
    let mut log = Log::new(out, computer(windows), recording, modules).unwrap();
    act(&mut log);
    log.finish(END).unwrap()
}

fn bytes_of(windows: Windows, recording: &Recording, act: impl FnOnce(&mut TestLog)) -> Vec<u8> {
    write(windows, recording, act).out.into_inner()
}

fn open(bytes: Vec<u8>) -> Trace {
    let trace = Trace::from_sources(vec![("log".into(), Box::new(bytes))]).unwrap();
    assert!(trace.damage().faults().is_empty(), "{:?}", trace.damage());
    trace
}

/// An event of a log, as the reader returns it.
#[derive(Clone, Debug)]
struct LoggedEvent {
    cpu: u16,
    time: Time,
    kind: HeaderKind,
    version: u8,
    /// Thread id in the header.
    thread: Option<u32>,
    /// Process id in the header.
    process: Option<u32>,
    hook: Option<u16>,
    /// Event as text, in the form `Name: Field Value, Field Value, …`.
    text: String,
    payload: Vec<u8>,
}

/// Returns all events in time order. Checks that each payload has exactly the length of its layout. Also
/// checks that the trace describes manifest events like the public manifests.
fn read(bytes: Vec<u8>) -> Vec<LoggedEvent> {
    let trace = open(bytes);
    let mut decoder = Decoder::new();
    let mut events = trace.events();
    while let Some(event) = events.next() {
        decoder.learn(&event);
    }
    decoder.finish_learning();
    assert!(decoder.faults().is_empty());
    let public = Decoder::new();
    let mut seen = Vec::new();
    let mut events = trace.events();
    while let Some(event) = events.next() {
        let decoded = decoder.decode(&event);
        let name = decoded.identity.name.clone().unwrap_or_default();
        assert!(decoded.source.is_some(), "{event:?} is not known");
        if event.guid() == Some(LAGLAB_SIMULATOR) {
            assert_eq!(decoded.source, Some(Source::TraceLogging));
            assert_eq!(&*name, "SimulatedTrace");
        } else if event.descriptor().is_some() {
            assert_eq!(decoded.source, Some(Source::TraceMetadata), "{name}");
            let mut own = decoded.fields.clone();
            let mut manifest = public.decode(&event).fields;
            // The metadata in the trace may have no names of values.
            for (_, value) in own.values.iter_mut().chain(&mut manifest.values) {
                if let Value::Named(number, _) = value {
                    *value = Value::UInt(*number);
                }
            }
            assert_eq!(own, manifest, "{name}");
        }
        assert_eq!(decoded.fields.truncated, None, "{name}");
        assert_eq!(decoded.fields.tail, [0u8; 0], "{name}");
        let fields = decoded.fields.values.iter();
        let fields: Vec<_> = fields
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        seen.push(LoggedEvent {
            cpu: event.cpu(),
            time: (event.raw_time() - RAW_START) as Time,
            kind: event.kind(),
            version: event.version().unwrap_or_default(),
            thread: event.thread_id(),
            process: event.process_id(),
            hook: event.hook(),
            text: format!("{name}: {}", fields.join(", ")),
            payload: event.payload().to_vec(),
        });
    }
    seen
}

/// Returns the events between the trace's start and its end.
fn logged(
    windows: Windows,
    recording: &Recording,
    act: impl FnOnce(&mut TestLog),
) -> Vec<LoggedEvent> {
    let mut seen = read(bytes_of(windows, recording, act));
    seen.retain(|event| (1..END).contains(&event.time));
    seen
}

fn everything() -> Recording {
    let all = "
        stacks = ['CSwitch', 'ReadyThread',
            'ThreadSetPriority', 'Profile', 'DiskReadInit', 'DiskWriteInit', 'DiskFlushInit',
            'HardFault']";
    toml::from_str(all).unwrap()
}

fn nothing() -> Recording {
    toml::from_str("kernel = []\nstacks = ['CSwitch']\nproviders = []").unwrap()
}

fn switch() -> ContextSwitch {
    ContextSwitch {
        new: NewThread {
            thread: 7,
            priority: 9,
            decrement: 0x12,
            qos: 5,
        },
        old: OldThread {
            thread: 4,
            priority: 8,
            rank: 2,
            wait_reason: 32,
            user_wait: true,
            state: 1,
            ideal_processor: 3,
            qos: 1,
        },
        old_remaining_quantum: -6,
        new_wait_ticks: 5,
        c_state: 1,
    }
}

const WHO: Who = Who {
    process: 40,
    thread: 44,
};

fn parse(address: &str) -> SocketAddr {
    address.parse().unwrap()
}
