//! Tests of an opened trace: missing events, cancellation, progress and output files.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use session::{
    Amount, Error, FileProblem, NewFile, Observer, SymbolOptions, SymbolOptionsError, Task,
    TraceTables, Unobserved,
};
use tables::{Cache, Table};

/// A real trace without DPCs and service routines.
const TRACE: &str = "etl/perfview__net.4.5.2.x64.etl";

fn open(observer: Arc<dyn Observer>) -> TraceTables {
    TraceTables::open(&[testdata::path(TRACE)], Cache::Off, observer).unwrap()
}

/// Observer that records its calls, and cancels on request.
#[derive(Default)]
struct Recorder {
    cancel: AtomicBool,
    tasks: Mutex<Vec<(&'static str, Amount)>>,
    reached: Arc<AtomicU64>,
}

impl Observer for Recorder {
    fn begin(&self, what: &'static str, amount: Amount) -> Box<dyn Task> {
        self.tasks.lock().unwrap().push((what, amount));
        Box::new(Reached(Arc::clone(&self.reached)))
    }

    fn warn(&self, _: &str) {}

    fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }
}

struct Reached(Arc<AtomicU64>);

impl Task for Reached {
    fn reach(&self, done: u64) {
        self.0.fetch_max(done, Ordering::Relaxed);
    }
}

#[test]
fn a_table_without_rows_is_an_error_that_tells_what_to_record() {
    let tables = open(Arc::new(Unobserved));
    assert!(tables.recorded(Table::Processes).unwrap().rows() > 0);
    let error = tables.recorded(Table::Interrupts).unwrap_err();
    assert!(matches!(error, Error::NotRecorded(_)), "{error:?}");
    assert!(error.to_string().contains("DPC+INTERRUPT"), "{error}");
    // The table exists, but it has no rows.
    assert_eq!(tables.table(Table::Interrupts).unwrap().rows(), 0);
}

#[test]
fn progress_ends_at_the_size_of_the_trace() {
    let recorder = Arc::new(Recorder::default());
    let tables = open(Arc::<Recorder>::clone(&recorder));
    let size = tables.store().info().size_bytes;
    tables.make(&[Table::Processes]).unwrap();
    let tasks = recorder.tasks.lock().unwrap().clone();
    assert_eq!(tasks, [("building tables", Amount::Bytes(size))]);
    let reached = recorder.reached.load(Ordering::Relaxed);
    assert!(reached > 0 && reached <= size, "{reached} of {size}");
}

#[test]
fn cancelled_work_stops() {
    let recorder = Arc::new(Recorder::default());
    let tables = open(Arc::<Recorder>::clone(&recorder));
    let samples = tables.table(Table::Samples).unwrap();
    recorder.cancel.store(true, Ordering::Relaxed);
    assert!(matches!(
        tables.table(Table::Threads),
        Err(Error::Cancelled)
    ));
    let mut batches = tables.batches(&samples, i64::MIN..i64::MAX, &["time_ns"]);
    assert!(matches!(batches.next(), Some(Err(Error::Cancelled))));
}

#[test]
fn a_file_appears_when_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    fs::write(&path, "before").unwrap();
    let given_up = NewFile::create(&path).unwrap();
    given_up.file().write_all(b"half").unwrap();
    drop(given_up);
    assert_eq!(fs::read(&path).unwrap(), b"before");

    let new = NewFile::create(&path).unwrap();
    new.file().write_all(b"after!!").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"before");
    assert_eq!(new.finish().unwrap(), 7);
    assert_eq!(fs::read(&path).unwrap(), b"after!!");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn places_where_no_file_can_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let problem = |path: &Path| NewFile::create(path).unwrap_err().problem;
    assert!(matches!(problem(folder.path()), FileProblem::Directory));
    let nowhere = folder.path().join("none/out");
    assert!(matches!(problem(&nowhere), FileProblem::NoDirectory));
}

// Without the feature `network`, `path` is the only field. Then `..` is not needed, and Clippy would warn.
#[allow(clippy::needless_update)]
#[test]
fn a_symbol_path_that_leads_nowhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let check = |path: &str| {
        SymbolOptions {
            path: Some(path.to_owned()),
            ..SymbolOptions::default()
        }
        .check()
    };
    let here = folder.path().to_str().unwrap();
    check(here).unwrap();
    assert!(matches!(check(""), Err(SymbolOptionsError::Empty)));
    let none = format!("{here}/none");
    assert!(
        matches!(check(&none), Err(SymbolOptionsError::NoFolder(path)) if path == Path::new(&none))
    );
    assert!(matches!(
        check("what*ever"),
        Err(SymbolOptionsError::Syntax {
            origin: "--symbols",
            ..
        })
    ));
}
