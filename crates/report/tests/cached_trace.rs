//! Tests of explaining a trace with cached tables. The program must not read the events of the trace.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use explain::Scope;
use report::ExplainedTrace;
use serde_json::Value;
use session::{SymbolOptions, TraceTables, Unobserved};
use tables::{Cache, CacheFolder, Options, Table};

/// Number of bytes at the start of each buffer that the program may read when it opens a trace: the buffer's header and
/// the time of its first event.
const BUFFER_HEAD: usize = 72 + 80;

/// Folder with a copy of a trace and a cache.
struct Case {
    folder: tempfile::TempDir,
    trace: PathBuf,
}

impl Case {
    fn new(name: &str) -> Case {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.etl");
        let case = Case { folder, trace };
        case.write(&testdata::bytes(name));
        case
    }

    /// Writes the trace with an old modification time. The cache only remembers hashes of files that are old
    /// enough.
    fn write(&self, bytes: &[u8]) {
        fs::write(&self.trace, bytes).unwrap();
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let file = File::options().write(true).open(&self.trace).unwrap();
        file.set_modified(long_ago).unwrap();
    }

    fn cache(&self) -> Cache {
        Cache::Folder(CacheFolder::new(self.folder.path().join("cache"), u64::MAX))
    }

    /// Explains the trace with an empty folder of symbols.
    fn explain(&self) -> Value {
        let files = std::slice::from_ref(&self.trace);
        let tables = TraceTables::open(files, self.cache(), Arc::new(Unobserved)).unwrap();
        #[allow(clippy::needless_update, reason = "a feature adds a field")]
        let symbols = SymbolOptions {
            path: Some(self.folder.path().display().to_string()),
            ..SymbolOptions::default()
        };
        let (explained, _) = ExplainedTrace::read(&tables, Scope::default(), &symbols).unwrap();
        serde_json::to_value(&explained).unwrap()
    }

    /// Returns the file in which the cache remembers the hash of the trace.
    fn remembered(&self) -> PathBuf {
        let hashes = self.folder.path().join("cache/hashes");
        let mut entries = fs::read_dir(hashes).unwrap();
        let path = entries.next().unwrap().unwrap().path();
        assert!(entries.next().is_none());
        path
    }
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Tests a trace whose events were overwritten, except the first of each buffer. The cache accepts the file
/// as unchanged. An explanation that reads any event would differ or report damage.
#[test]
fn a_cached_trace_is_explained_without_its_events() {
    let case = Case::new("etl/filtrace__etw.etl");
    let expected = case.explain();
    assert!(expected["info"]["trace"]["events"].as_u64() > Some(1000));
    let hash = json(&case.remembered())["hash"].clone();

    let mut bytes = fs::read(&case.trace).unwrap();
    let trace = etl::open(std::slice::from_ref(&case.trace)).unwrap();
    let mut removed = 0;
    // The first buffer holds the log-file header, which stays.
    for buffer in &trace.buffers()[1..] {
        let from = buffer.offset as usize + BUFFER_HEAD;
        let to = buffer.offset as usize + buffer.stored_size as usize;
        if from < to {
            bytes[from..to].fill(0);
            removed += to - from;
        }
    }
    assert!(removed * 2 > bytes.len(), "{removed} of {}", bytes.len());
    drop(trace);
    case.write(&bytes);

    // The changed file has another hash, which the cache remembers when a table is made. The test then
    // replaces it by the old hash.
    let files = std::slice::from_ref(&case.trace);
    let store = imports::open_store(files, case.cache()).unwrap();
    store.make(&[Table::Damages], Options::default()).unwrap();
    let damages = store.table(Table::Damages, Options::default()).unwrap();
    assert!(damages.rows() > 0, "the events are missing");
    let mut remembered = json(&case.remembered());
    assert_ne!(remembered["hash"], hash);
    remembered["hash"] = hash;
    fs::write(case.remembered(), remembered.to_string()).unwrap();

    assert_eq!(case.explain(), expected);
}
