//! Traces with known contents, and a function that cuts them.
#![allow(
    dead_code,
    reason = "each test program uses its own part of this module"
)]

use std::fs::File;
use std::path::{Path, PathBuf};

use etl::write::{KernelEvent, Payload, ProviderEvent, Session, Writer};
use etl::{Descriptor, Guid};
use events::Decoder;
use facts::Info;
use raw_events::{Filter, Processes, Sieve};
use tables::Options;
use tempfile::TempDir;
use trim::{Redactor, Selection};

/// An event: its time in nanoseconds, its CPU, and the bytes of its record.
pub(crate) type Read = (i64, u16, Vec<u8>);

/// Returns all events of a trace except the headers of its logs.
pub(crate) fn events(paths: &[&Path]) -> Vec<Read> {
    let paths: Vec<_> = paths.iter().map(|path| path.to_path_buf()).collect();
    let trace = etl::open(&paths).unwrap();
    let mut walk = trace.events();
    let mut events = Vec::new();
    while let Some(event) = walk.next() {
        if event.hook() != Some(0) {
            events.push((event.time_ns(), event.cpu(), event.record().to_vec()));
        }
    }
    assert!(walk.damage().is_empty());
    events
}

/// Redaction of a part: none, with a random key, or with a key that is derived from a text.
#[derive(Clone, Copy)]
pub(crate) enum Redact<'k> {
    No,
    Random,
    Key(&'k str),
}

/// Writes a part of a trace to a file in `folder` and returns the path of the file. Each call overwrites the file of
/// the previous call.
pub(crate) fn cut(
    inputs: &[PathBuf],
    folder: &TempDir,
    filter: &Filter,
    redact: Redact<'_>,
) -> PathBuf {
    let trace = etl::open(inputs).unwrap();
    let mut decoder = Decoder::new();
    let processes = Processes::learn(&mut decoder, &trace, Options::default()).unwrap();
    let mut session = trim::session(&trace, filter).unwrap();
    let mut redactor = match redact {
        Redact::No => None,
        Redact::Random => Some(Redactor::new(&decoder, None).unwrap()),
        Redact::Key(key) => Some(Redactor::new(&decoder, Some(key)).unwrap()),
    };
    if let Some(redactor) = &redactor {
        redactor.redact_session(&mut session);
    }
    let out = folder.path().join("out.etl");
    let mut writer = Writer::new(File::create(&out).unwrap(), session).unwrap();
    let sieve = Sieve::new(filter, &decoder, &processes);
    let selection = Selection::new(filter, sieve);
    let copied = trim::copy(
        &trace,
        selection,
        redactor.as_mut(),
        &mut writer,
        Options::default(),
    );
    let (counts, _) = copied.unwrap();
    assert_eq!(counts.out_of_order, 0);
    writer.finish().unwrap();
    out
}

/// Returns the number of damaged places that were found in a trace.
pub(crate) fn faults(path: &Path) -> usize {
    let trace = imports::open(&[path.to_owned()]).unwrap();
    let info = Info::from_events(&*trace, Options::default()).unwrap();
    info.damage.faults.len()
}

pub(crate) const PROVIDER: Guid = Guid([6; 16]);

fn kernel(hook: u16, version: u8, time: i64) -> KernelEvent {
    KernelEvent {
        hook,
        version,
        time,
        thread: None,
    }
}

/// Writes a trace with two processes: `a.exe` (id 40) with thread 44, and `b.exe` (id 80) with
/// thread 84. `a.exe` runs from time 100 to 200 and readies `b.exe` during that time.
pub(crate) fn two_processes(path: &Path) {
    let session = Session {
        start: 133_000_000_000_000_000,
        ..Session::default()
    };
    let mut log = Writer::new(File::create(path).unwrap(), session).unwrap();
    let mut put = |event: KernelEvent, payload: &[u8]| log.kernel(0, event, payload).unwrap();
    let mut payload = Payload::new();
    for (process, thread, name) in [(40_u32, 44_u32, "a.exe"), (80, 84, "b.exe")] {
        // These are the payloads of `Process/DCStart` (version 4) and `Thread/DCStart` (version 3).
        payload.clear().u64(0).u32(process).u32(0).u32(0).u32(0);
        payload.u64(0).u32(0).u32(0).utf8_z(name);
        payload.utf16_z("").utf16_z("").utf16_z("");
        put(kernel(0x0303, 4, 1), &payload);
        payload.clear().u32(process).u32(thread).bytes(&[0; 64]);
        put(kernel(0x0503, 3, 1), &payload);
    }
    put(kernel(0x0524, 3, 100), &switch(44, 0));
    // Three kinds of events: a sample with its stack, a ready event (which does not name the
    // readying thread), and a DPC.
    payload.clear().u64(0x1000).u32(44).u16(1).u16(0);
    put(kernel(0x0F2E, 2, 120), &payload);
    payload.clear().i64(120).u32(40).u32(44).u64(0x1000);
    put(kernel(0x1820, 2, 121), &payload);
    payload.clear().u32(84).u32(0);
    put(kernel(0x0532, 2, 150), &payload);
    payload.clear().i64(160).u64(0x2000);
    put(kernel(0x0F44, 2, 170), &payload);
    put(kernel(0x0524, 3, 200), &switch(84, 44));
    payload.clear().u64(0x1000).u32(84).u16(1).u16(0);
    put(kernel(0x0F2E, 2, 220), &payload);
    payload.clear().i64(220).u32(80).u32(84).u64(0x1000);
    put(kernel(0x1820, 2, 221), &payload);
    put(kernel(0x0524, 3, 300), &switch(0, 84));
    let event = ProviderEvent {
        provider: PROVIDER,
        descriptor: Descriptor::default(),
        time: 310,
        thread_id: 84,
        process_id: 80,
        activity: Guid::ZERO,
        extended: &[],
    };
    log.provider(0, event, b"").unwrap();
    log.finish().unwrap();
}

/// Returns the payload of a context switch.
fn switch(new: u32, old: u32) -> Payload {
    let mut payload = Payload::new();
    payload.u32(new).u32(old).bytes(&[0; 16]);
    payload
}
