//! Measures the memory for making tables of forged traces and archives of Windows.
#![cfg(target_os = "linux")]

use std::io::{Cursor, Write};
use std::path::Path;

use etl::write::{KernelEvent, ProviderEvent, Session, Writer};
use etl::{Descriptor, Guid};
use tables::{Cache, Options, StoreError, Table};
use testdata::memory::{Bound, Forged, check};

/// Makes tables of a file.
///
/// # Errors
/// Returns an error if the file cannot be opened.
pub(crate) fn make(path: &Path, tables: &[Table]) -> Result<(), StoreError> {
    let store = imports::open_store(&[path.to_owned()], Cache::Off)?;
    store.make(tables, Options::default()).unwrap();
    Ok(())
}

/// Writer of a trace of Windows. Each event is one tick (100 ns) after the one before.
struct Log {
    writer: Writer<Cursor<Vec<u8>>>,
    time: i64,
}

impl Log {
    fn new() -> Log {
        let session = Session {
            processors: 2,
            os_version: (10, 0),
            ..Session::default()
        };
        Log {
            writer: Writer::new(Cursor::default(), session).unwrap(),
            time: 0,
        }
    }

    fn kernel(&mut self, hook: u16, version: u8, payload: &[&[u8]]) {
        self.time += 1;
        let event = KernelEvent {
            hook,
            version,
            time: self.time,
            thread: Some((4, 4)),
        };
        self.writer.kernel(0, event, &payload.concat()).unwrap();
    }

    fn bytes(self) -> Vec<u8> {
        self.writer.finish().unwrap().into_inner()
    }
}

/// Returns the events that `add` adds for the numbers from 1 to `count`.
fn log(count: u32, mut add: impl FnMut(&mut Log, u32)) -> Vec<u8> {
    let mut log = Log::new();
    (1..=count).for_each(|number| add(&mut log, number));
    log.bytes()
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|it| it.to_le_bytes()).collect()
}

fn utf16(text: &str) -> Vec<u8> {
    let text = text.encode_utf16().chain([0]);
    text.flat_map(u16::to_le_bytes).collect()
}

/// Bound of the memory for reading any trace of Windows.
const BOUND: Bound = Bound {
    base: 300 << 20,
    per_byte: 25,
};

/// Checks traces whose events all have different ids, names, addresses or kinds, each with about 10 to 30 MB.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn memory_grows_only_with_the_size_of_a_forged_trace() {
    let forged = |name, bytes| Forged {
        name,
        file: "forged.etl",
        bytes,
        expanded: 0,
        opens: true,
    };
    let test = "memory::memory_grows_only_with_the_size_of_a_forged_trace";
    check(
        test,
        BOUND,
        |path| make(path, Table::ALL),
        || {
            vec![
                forged(
                    "threads",
                    log(200_000, |log, id| {
                        let ids = [id, id].map(u32::to_le_bytes).concat();
                        log.kernel(0x0501, 3, &[&ids, &[0; 64]]);
                    }),
                ),
                forged(
                    "processes",
                    log(200_000, |log, id| {
                        let head = [&words(&[u64::from(id) << 4])[..], &id.to_le_bytes()].concat();
                        let name = format!("{id}.exe\0");
                        let line = utf16(&format!("{id} {id}"));
                        log.kernel(
                            0x0301,
                            4,
                            &[&head, &[0; 28], name.as_bytes(), &line, &[0; 4]],
                        );
                    }),
                ),
                forged(
                    "switches between threads",
                    log(400_000, |log, id| {
                        let ids = [id + 1, id].map(u32::to_le_bytes).concat();
                        log.kernel(0x0524, 2, &[&ids, &[8, 8, 0, 0, 6, 0, 5, 0], &[0; 8]]);
                    }),
                ),
                forged(
                    "threads made ready",
                    log(400_000, |log, id| {
                        log.kernel(0x0532, 2, &[&id.to_le_bytes(), &[0; 4]])
                    }),
                ),
                forged(
                    "stacks",
                    log(12_000, |log, id| {
                        let time = log.time;
                        log.kernel(0x0F2E, 2, &[&words(&[7]), &id.to_le_bytes(), &[1, 0, 0, 0]]);
                        let head = [
                            &(time + 1).to_le_bytes()[..],
                            &[4, 0, 0, 0],
                            &id.to_le_bytes(),
                        ];
                        let frames = (0..190).map(|frame| u64::from(id) << 20 | frame << 4);
                        let frames = words(&frames.collect::<Vec<u64>>());
                        log.kernel(0x1820, 2, &[&head.concat(), &frames]);
                    }),
                ),
                forged(
                    "names of files",
                    log(100_000, |log, id| {
                        let name = utf16(&format!("\\Device\\HarddiskVolume1\\{id}\\{id}.txt"));
                        log.kernel(0x0420, 2, &[&words(&[u64::from(id)]), &name]);
                    }),
                ),
                forged(
                    "images",
                    log(100_000, |log, id| {
                        let base = u64::from(id) << 16;
                        let name = utf16(&format!("\\Windows\\{id}.dll"));
                        let head =
                            [&words(&[base, 0x8000])[..], &id.to_le_bytes(), &[0; 36]].concat();
                        log.kernel(0x140A, 3, &[&head, &name]);
                    }),
                ),
                forged(
                    "routines of DPCs",
                    log(400_000, |log, id| {
                        let time = log.time;
                        log.kernel(0x0F44, 2, &[&time.to_le_bytes(), &words(&[u64::from(id)])]);
                    }),
                ),
                forged(
                    "providers",
                    log(150_000, |log, id| {
                        log.time += 1;
                        let event = ProviderEvent {
                            provider: Guid::from_u128(id.into()),
                            descriptor: Descriptor {
                                id: id as u16,
                                ..Descriptor::default()
                            },
                            time: log.time,
                            thread_id: 4,
                            process_id: 4,
                            activity: Guid::ZERO,
                            extended: &[],
                        };
                        log.writer.provider(0, event, &id.to_le_bytes()).unwrap();
                    }),
                ),
            ]
        },
    );
}

/// Returns a zip archive with compressed members. Each member has a name and a number of copies of the same bytes.
fn archive(members: impl IntoIterator<Item = (String, usize, Vec<u8>)>) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::default());
    for (name, copies, bytes) in members {
        writer
            .start_file(name, zip::write::SimpleFileOptions::default())
            .unwrap();
        for _ in 0..copies {
            writer.write_all(&bytes).unwrap();
        }
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn memory_grows_only_with_the_size_of_a_forged_archive() {
    const MEGABYTE: usize = 1 << 20;
    let forged = |name, bytes, expanded, opens| Forged {
        name,
        file: "forged.zip",
        bytes,
        expanded,
        opens,
    };
    let test = "memory::memory_grows_only_with_the_size_of_a_forged_archive";
    check(
        test,
        BOUND,
        |path| make(path, Table::ALL),
        || {
            let trace = log(200_000, |log, id| {
                let ids = [id, id].map(u32::to_le_bytes).concat();
                log.kernel(0x0501, 3, &[&ids, &[0; 64]]);
            });
            let size = trace.len() as u64;
            vec![
                forged(
                    "a trace",
                    archive([("a.etl".to_owned(), 1, trace)]),
                    size,
                    true,
                ),
                forged(
                    "a member of 900 MiB",
                    archive([("a.etl".to_owned(), 900, vec![0; MEGABYTE])]),
                    0,
                    false,
                ),
                forged(
                    "members that are each small enough for memory",
                    archive((0..15).map(|id| (format!("{id}.etl"), 60, vec![0; MEGABYTE]))),
                    0,
                    false,
                ),
                forged(
                    "a member beyond the limit",
                    archive([("a.etl".to_owned(), 1_100, vec![0; MEGABYTE])]),
                    0,
                    false,
                ),
                forged(
                    "members without data",
                    archive((0..60_000).map(|id| (format!("{id}.etl"), 0, Vec::new()))),
                    0,
                    false,
                ),
                forged(
                    "long names of members",
                    archive((0..400).map(|id| (format!("{id:060000}"), 0, Vec::new()))),
                    0,
                    false,
                ),
            ]
        },
    );
}
