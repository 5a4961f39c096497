//! Sessions with traces whose ground truth is known.
#![allow(
    dead_code,
    reason = "each test program uses another part of this module"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_cast::display::array_value_to_string;
use serde_json::Value;
use sim::shipped;
use sim::{Override, Scenario};
use sql::{NamedTrace, Session, Settings, SqlError};
use tables::{Cache, Options, Store};

/// A trace and its ground truth. The ground truth does not come from laglab's readers.
pub(crate) struct Given {
    pub(crate) store: Arc<Store>,
    pub(crate) truth: Value,
    /// Temporary folder that contains the file of a simulated trace.
    _folder: Option<tempfile::TempDir>,
}

/// Simulates one of the supplied scenarios with changed settings.
pub(crate) fn simulated(name: &str, settings: &[&str]) -> Given {
    let text = shipped::text(name).expect("a scenario that ships");
    let named = |name: &str| shipped::text(name).map(str::to_owned);
    let settings: Vec<_> = (settings.iter())
        .map(|setting| Override::parse(setting).expect("a setting"))
        .collect();
    let scenario = Scenario::read(name, text, &named, &settings).expect("a scenario");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name).with_extension("etl");
    let out = std::fs::File::create_new(&path).expect("a file");
    let (_, truth) = sim::simulate(&scenario, None, out, |_| true).expect("it runs");
    Given {
        store: open(&path),
        truth: serde_json::to_value(truth).expect("truth is JSON"),
        _folder: Some(folder),
    }
}

/// Opens a real trace. Its ground truth is the counts of an independent reader.
pub(crate) fn real(file: &str) -> Given {
    let path = format!("etl/{file}");
    let truth = testdata::traces()
        .into_iter()
        .find(|(name, _)| *name == path);
    Given {
        store: open(&testdata::path(&path)),
        truth: truth.expect("the trace has a truth").1,
        _folder: None,
    }
}

fn open(path: &Path) -> Arc<Store> {
    let files: &[PathBuf] = &[path.to_owned()];
    Arc::new(imports::open_store(files, Cache::Off).expect("a trace"))
}

/// Creates a session with traces that are named `a`, `b`, ….
pub(crate) fn session(traces: &[&Given], settings: Settings) -> Session {
    let named = ('a'..).zip(traces).map(|(name, given)| NamedTrace {
        name: name.to_string(),
        store: Arc::clone(&given.store),
    });
    Session::new(named.collect(), settings).expect("a session")
}

/// Runs all statements and returns the rows of the last one.
pub(crate) fn ask(session: &Session, text: &str) -> Result<Vec<RecordBatch>, SqlError> {
    let mut rows = Vec::new();
    for statement in sql::parse(text)? {
        let query = session.prepare(&statement, Options::default())?;
        rows = query.batches(&|| true)?.collect::<Result<_, _>>()?;
    }
    Ok(rows)
}

/// Returns rows as lines of values, separated by `|`.
pub(crate) fn lines(rows: &[RecordBatch]) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in rows {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| {
                let unknown = column.logical_nulls();
                if unknown.is_some_and(|unknown| unknown.is_null(row)) {
                    "NULL".to_owned()
                } else {
                    array_value_to_string(column, row).expect("a value has a text")
                }
            });
            lines.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    lines
}

/// Runs all statements and returns the rows of the last one as lines.
///
/// # Panics
/// Panics if a statement fails.
pub(crate) fn answer(session: &Session, text: &str) -> Vec<String> {
    lines(&ask(session, text).unwrap_or_else(|error| panic!("{text}\n{error}")))
}
