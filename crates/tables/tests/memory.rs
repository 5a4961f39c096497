//! Measures the memory for reading forged files. Each file is read in a child process.
#![cfg(target_os = "linux")]

use std::io::Cursor;
use std::path::Path;
use std::process::Command;

use etl::write::{KernelEvent, ProviderEvent, Session, Writer};
use etl::{Descriptor, Guid};
use tables::{Cache, Options, Store, Table};

/// Variable with the path of the file that a child process reads.
const CHILD: &str = "LAGLAB_TEST_FORGED";

/// Bound of the memory for reading a file.
#[derive(Clone, Copy)]
pub(crate) struct Bound {
    /// Memory in bytes that any file may need.
    pub(crate) base: u64,
    /// Bytes of memory for each byte of the file, or of its expanded contents.
    pub(crate) per_byte: u64,
}

/// File that was made to need much memory.
pub(crate) struct Forged {
    pub(crate) name: &'static str,
    /// Name of the file.
    pub(crate) file: &'static str,
    pub(crate) bytes: Vec<u8>,
    /// Number of bytes of the expanded contents.
    pub(crate) expanded: u64,
}

/// Checks that making tables of each file stays within a bound. `test` is the name of the calling test, which a child
/// process runs for each file.
pub(crate) fn check(
    test: &str,
    bound: Bound,
    tables: &[Table],
    forged: impl FnOnce() -> Vec<Forged>,
) {
    if let Some(path) = std::env::var_os(CHILD) {
        return read(Path::new(&path), tables);
    }
    let folder = tempfile::tempdir().unwrap();
    for Forged {
        name,
        file,
        bytes,
        expanded,
    } in forged()
    {
        let path = folder.path().join(file);
        std::fs::write(&path, &bytes).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", "--test-threads=1", test])
            .env(CHILD, &path)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout).into_owned();
        let peak = text
            .split_once("peak ")
            .map(|(_, rest)| rest.split(' ').next().unwrap());
        let peak: u64 = peak.expect(&text).parse().unwrap();
        let allowed = bound.base + bound.per_byte * expanded.max(bytes.len() as u64);
        assert!(
            peak <= allowed,
            "{name}: {} bytes need {peak} bytes of memory, more than {allowed}",
            bytes.len()
        );
    }
}

/// Makes tables of a file, and prints the peak of the process's memory in bytes.
#[allow(clippy::print_stdout, reason = "the parent process reads it")]
fn read(path: &Path, tables: &[Table]) {
    if let Ok(store) = Store::open(&[path.to_owned()], Cache::Off) {
        store.make(tables, Options::default()).unwrap();
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = peak
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    println!("peak {} bytes", kib * 1024);
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
fn memory_grows_only_with_the_size_of_a_forged_trace() {
    let forged = |name, bytes| Forged {
        name,
        file: "forged.etl",
        bytes,
        expanded: 0,
    };
    let test = "memory::memory_grows_only_with_the_size_of_a_forged_trace";
    check(test, BOUND, Table::ALL, || {
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
                    let head = [&words(&[base, 0x8000])[..], &id.to_le_bytes(), &[0; 36]].concat();
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
    });
}
