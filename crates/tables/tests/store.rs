//! Tests of the guarantees of the store: a trace is read only once, and no result is made from damaged,
//! changed or incomplete files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, mpsc};
use std::time::{Duration, SystemTime};

use arrow_array::RecordBatch;
use tables::{Cache, CacheFolder, Options, Store, StoreError, StoredTable, Table};

const WANTED: [Table; 3] = [Table::Samples, Table::Processes, Table::Stacks];

/// A copy of a real trace, and a cache in the same folder.
struct Case {
    folder: tempfile::TempDir,
    trace: PathBuf,
}

impl Case {
    fn new() -> Case {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.etl");
        fs::write(&trace, testdata::bytes("etl/filtrace__etw.etl")).unwrap();
        settle(&trace);
        Case { folder, trace }
    }

    fn cache(&self) -> CacheFolder {
        CacheFolder::new(self.folder.path().join("cache"), u64::MAX)
    }

    fn open(&self) -> Store {
        self.open_in(Cache::Folder(self.cache()))
    }

    fn open_in(&self, cache: Cache) -> Store {
        imports::open_store(std::slice::from_ref(&self.trace), cache).unwrap()
    }

    /// Returns the expected table. It is made by a store without a cache.
    fn truth(&self, table: Table) -> Vec<RecordBatch> {
        rows(&self.open_in(Cache::Off), table)
    }

    /// Returns the files of a table in the cache.
    fn files(&self, table: Table) -> Vec<PathBuf> {
        let name = format!("{table}.table");
        let folders = folders(&self.folder.path().join("cache/tables"));
        let files = folders.into_iter().map(|folder| folder.join(&name));
        files.filter(|file| file.exists()).collect()
    }

    fn file(&self, table: Table) -> PathBuf {
        let files = self.files(table);
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }
}

/// Sets an old modification time. The cache stores the hash of a file only if the file is old enough.
fn settle(file: &Path) {
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let file = File::options().write(true).open(file).unwrap();
    file.set_modified(long_ago).unwrap();
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn rows(store: &Store, table: Table) -> Vec<RecordBatch> {
    let table = store.table(table, Options::default()).unwrap();
    all(&table).unwrap()
}

fn all(table: &StoredTable) -> Result<Vec<RecordBatch>, StoreError> {
    let chunks = 0..table.chunks().len();
    chunks.map(|chunk| table.read_all(chunk)).collect()
}

/// Makes tables and returns the number of bytes that were read from the trace.
fn bytes_read(store: &Store, wanted: &[Table]) -> u64 {
    let read = AtomicU64::new(0);
    let progress = |bytes: u64| {
        read.fetch_max(bytes, Ordering::Relaxed);
        true
    };
    let options = Options {
        progress: &progress,
    };
    store.make(wanted, options).unwrap();
    read.into_inner()
}

#[test]
fn a_trace_is_read_for_the_first_question_only() {
    let case = Case::new();
    let store = case.open();
    assert!(bytes_read(&store, &WANTED) > 0);
    assert_eq!(bytes_read(&store, &WANTED), 0);
    let again = case.open();
    assert_eq!(bytes_read(&again, &WANTED), 0);
    assert!(bytes_read(&again, &[Table::Threads]) > 0);
    for table in WANTED {
        let truth = case.truth(table);
        assert!(!truth.is_empty(), "{table}");
        assert_eq!(rows(&store, table), truth, "{table}");
        assert_eq!(rows(&again, table), truth, "{table}");
    }
    assert_eq!(again.unreadable(), case.open_in(Cache::Off).unreadable());
    assert_eq!(store.warning(), None);
}

#[test]
fn stored_rows_are_those_that_were_made() {
    let case = Case::new();
    let store = case.open();
    let mut made: BTreeMap<Table, Vec<RecordBatch>> = BTreeMap::new();
    let give = &mut |table, batch| {
        made.entry(table).or_default().push(batch);
        Ok(())
    };
    let done = (store.recording()).rows(Table::ALL, Options::default(), give);
    done.expect("nothing fails");
    assert!(made.len() > 6);
    for (table, batches) in made {
        assert_eq!(rows(&store, table), batches, "{table}");
    }
}

#[test]
fn what_was_made_is_known_and_nothing_is_made_for_it() {
    let case = Case::new();
    let store = case.open();
    assert!(store.made(Table::Samples).unwrap().is_none());
    assert!(case.files(Table::Samples).is_empty());
    let rows = store
        .table(Table::Samples, Options::default())
        .unwrap()
        .rows();
    for store in [store, case.open()] {
        let made = store.made(Table::Samples).unwrap();
        assert_eq!(made.map(|made| made.rows()), Some(rows));
        assert!(store.made(Table::Processes).unwrap().is_none());
    }
}

#[test]
fn another_content_is_another_trace() {
    let case = Case::new();
    case.open().make(&WANTED, Options::default()).unwrap();
    let mut bytes = fs::read(&case.trace).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::thread::sleep(Duration::from_millis(20));
    fs::write(&case.trace, bytes).unwrap();
    if cfg!(unix) {
        // On systems other than Unix, an old modification time would restore all times of the file. Then the
        // change would not be detected.
        settle(&case.trace);
    }
    assert!(bytes_read(&case.open(), &WANTED) > 0);
    assert_eq!(case.cache().usage().unwrap().traces, 2);
}

#[test]
fn a_trace_that_changes_is_not_kept() {
    let case = Case::new();
    let store = case.open();
    store.make(&[Table::Threads], Options::default()).unwrap();
    let grow = |_| {
        let mut bytes = fs::read(&case.trace).unwrap();
        bytes.push(0);
        fs::write(&case.trace, bytes).unwrap();
        true
    };
    let options = Options { progress: &grow };
    let error = store.make(&WANTED, options).unwrap_err();
    let StoreError::Files(store::Error::Changed { file }) = &error else {
        panic!("{error}");
    };
    assert_eq!(file.file_name(), case.trace.file_name());
    assert_eq!(case.files(Table::Samples), Vec::<PathBuf>::new());
}

/// Tests a damaged part of a table file. The next query must find the damage, and the table must be made
/// again.
#[test]
fn damaged_files_are_made_again() {
    let case = Case::new();
    let truth = case.truth(Table::Samples);
    let store = case.open();
    store.make(&[Table::Samples], Options::default()).unwrap();
    let file = case.file(Table::Samples);
    let whole = fs::read(&file).unwrap();
    let mut rng = testdata::Rng(7);
    let mut changed: Vec<Vec<u8>> = Vec::new();
    for _ in 0..20 {
        let mut bytes = whole.clone();
        let at = rng.below(bytes.len());
        bytes[at] ^= 1 << rng.below(8);
        changed.push(bytes);
        changed.push(whole[..rng.below(whole.len())].to_vec());
    }
    for bytes in changed {
        fs::write(&file, &bytes).unwrap();
        let open = case.open();
        assert_eq!(rows(&open, Table::Samples), truth);
        if !cfg!(windows) {
            // The damaged file was replaced, unless only its padding was changed.
            let is_replaced = fs::read(&file).unwrap() != bytes;
            assert_eq!(open.warning().is_some(), is_replaced);
        }
        fs::write(&file, &bytes).unwrap();
        let open = case.open();
        let table = open.table(Table::Samples, Options::default()).unwrap();
        // The file is damaged after the table was opened. The truncation removes data that was not read
        // before.
        File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_len(64)
            .unwrap();
        assert_eq!(all(&table).unwrap(), truth);
    }
    // Windows does not replace an open file. So on Windows, the damaged file may remain, but no query reads
    // it.
    if !cfg!(windows) {
        assert_eq!(fs::read(case.file(Table::Samples)).unwrap(), whole);
    }
}

/// Tests pipes in place of a table file and of the file with a hash. Opening a pipe waits until it has a writer.
#[cfg(unix)]
#[test]
fn pipes_in_the_cache_are_replaced_and_not_waited_for() {
    let case = Case::new();
    let truth = case.truth(Table::Samples);
    case.open()
        .make(&[Table::Samples], Options::default())
        .unwrap();
    let mut files = folders(&case.folder.path().join("cache/hashes"));
    assert_eq!(files.len(), 1, "{files:?}");
    files.push(case.file(Table::Samples));
    for file in &files {
        fs::remove_file(file).unwrap();
        let made = std::process::Command::new("mkfifo").arg(file).status();
        assert!(made.unwrap().success());
    }
    let (trace, cache) = (case.trace.clone(), case.cache());
    let (send, received) = mpsc::channel();
    std::thread::spawn(move || {
        let store = imports::open_store(&[trace], Cache::Folder(cache)).unwrap();
        let _ = send.send(rows(&store, Table::Samples));
    });
    let read = received.recv_timeout(Duration::from_secs(60));
    assert_eq!(read.expect("rows without a writer of the pipes"), truth);
    for file in &files {
        assert!(fs::metadata(file).unwrap().is_file(), "{file:?}");
    }
}

/// Tests tables that were copied from the folder of another trace. These tables must not be used.
#[test]
fn tables_of_another_trace_are_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let one = Case::new();
    let other = Case {
        trace: testdata::path("etl/perfview__net.4.5.2.x64.etl"),
        folder,
    };
    let truths = WANTED.map(|table| one.truth(table));
    assert_ne!(truths, WANTED.map(|table| other.truth(table)));
    for case in [&one, &other] {
        case.open().make(&WANTED, Options::default()).unwrap();
    }
    assert_eq!(one.open().warning(), None);
    for table in WANTED {
        fs::copy(other.file(table), one.file(table)).unwrap();
    }
    let store = one.open();
    assert_eq!(WANTED.map(|table| rows(&store, table)), truths);
    let warning = store.warning().expect("a warning");
    assert!(
        warning.contains("it belongs to another trace; it is made again"),
        "{warning}"
    );
    // After tables were made again, they are used without a warning.
    let again = one.open();
    assert_eq!(bytes_read(&again, &WANTED), 0);
    assert_eq!(again.warning(), None);
}

#[test]
fn threads_and_stores_may_make_the_same_table() {
    let case = Case::new();
    let truth = case.truth(Table::Samples);
    let shared = case.open();
    let barrier = Barrier::new(6);
    std::thread::scope(|scope| {
        for i in 0..6 {
            let (case, shared, barrier, truth) = (&case, &shared, &barrier, &truth);
            scope.spawn(move || {
                let own = case.open();
                barrier.wait();
                let store = if i < 3 { shared } else { &own };
                assert_eq!(&rows(store, Table::Samples), truth);
            });
        }
    });
    assert_eq!(case.files(Table::Samples).len(), 1);
    let left = folders(case.file(Table::Samples).parent().unwrap());
    // On Windows, a new table file cannot replace an open file. In this case, the new file keeps its
    // temporary name until the open file is closed.
    if !cfg!(windows) {
        assert_eq!(
            left.len(),
            2,
            "expected the table and the file with its last use: {left:?}"
        );
    }
}

/// Tests reading while tables are made. While the second group of tables is made, its progress callback
/// waits. It waits until another thread has read a table of the first group.
#[test]
fn tables_can_be_read_while_others_are_made() {
    let case = Case::new();
    let store = case.open_in(Cache::Off);
    store.make(&[Table::Processes], Options::default()).unwrap();
    let (start, started) = mpsc::channel();
    let (send, received) = mpsc::channel();
    let received = Mutex::new(Some(received));
    let progress = |_| {
        let _ = start.send(());
        if let Some(received) = received.lock().unwrap().take() {
            let rows: usize = received.recv_timeout(Duration::from_secs(60)).unwrap();
            assert!(rows > 0);
        }
        true
    };
    std::thread::scope(|scope| {
        let store = &store;
        scope.spawn(move || {
            started.recv().unwrap();
            let table = store.table(Table::Processes, Options::default());
            send.send(table.unwrap().rows()).unwrap();
        });
        let options = Options {
            progress: &progress,
        };
        store.make(&WANTED, options).unwrap();
    });
    assert!(received.lock().unwrap().is_none(), "tables were made");
    for table in WANTED {
        assert_eq!(rows(&store, table), case.truth(table), "{table}");
    }
}

#[test]
fn waiting_for_tables_makes_none() {
    let case = Case::new();
    let store = case.open();
    assert!(!store.wait_for(&WANTED, Duration::from_millis(1)));
    assert!(store.made(WANTED[0]).unwrap().is_none());
    std::thread::scope(|scope| {
        let store = &store;
        scope.spawn(move || store.make(&WANTED, Options::default()).unwrap());
        assert!(store.wait_for(&WANTED, Duration::from_secs(60)));
    });
    assert!(store.wait_for(&WANTED, Duration::ZERO));
}

/// Tests that a store can still read its open files after the cache is cleared.
#[test]
fn tables_in_use_survive_a_cleared_cache() {
    let case = Case::new();
    let truth = case.truth(Table::Samples);
    let store = case.open();
    let table = store.table(Table::Samples, Options::default()).unwrap();
    let cleared = case.cache().clear();
    // Windows does not remove open files.
    if !cfg!(windows) {
        cleared.unwrap();
        assert_eq!(case.files(Table::Samples), Vec::<PathBuf>::new());
    }
    assert_eq!(all(&table).unwrap(), truth);
    assert_eq!(rows(&store, Table::Processes), case.truth(Table::Processes));
}

#[test]
fn a_cache_that_cannot_be_written_is_done_without() {
    let case = Case::new();
    let file = case.folder.path().join("file");
    fs::write(&file, b"no folder").unwrap();
    let below = CacheFolder::new(file.join("cache"), u64::MAX);
    let store = case.open_in(Cache::Folder(below));
    assert_eq!(store.warning(), None);
    assert_eq!(rows(&store, Table::Samples), case.truth(Table::Samples));
    let warning = store.warning().expect("a warning").to_owned();
    assert!(warning.contains("file"), "{warning}");
    rows(&store, Table::Processes);
    assert_eq!(store.warning(), Some(warning.as_str()));
}

#[test]
fn nothing_is_kept_without_a_cache() {
    let case = Case::new();
    let store = case.open_in(Cache::Off);
    assert!(bytes_read(&store, &WANTED) > 0);
    assert_eq!(bytes_read(&store, &WANTED), 0);
    assert!(bytes_read(&case.open_in(Cache::Off), &WANTED) > 0);
    assert!(!case.folder.path().join("cache").exists());
}

#[test]
fn a_cancelled_table_leaves_nothing() {
    let case = Case::new();
    let store = case.open();
    store.make(&[Table::Threads], Options::default()).unwrap();
    let options = Options {
        progress: &|_| false,
    };
    let error = store.make(&WANTED, options).unwrap_err();
    assert!(matches!(error, StoreError::Cancelled(_)), "{error}");
    let left = folders(case.file(Table::Threads).parent().unwrap());
    assert_eq!(
        left.len(),
        2,
        "the threads and when they were used: {left:?}"
    );
}
