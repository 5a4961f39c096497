//! Sessions about traces whose truth is known.
#![allow(
    dead_code,
    reason = "each test program uses its own part of this module"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_cast::display::array_value_to_string;
use serde_json::Value;
use sim::scenario::{Override, Scenario};
use sim::shipped;
use sql::{NamedTrace, Session, Settings, SqlError};
use tables::{Cache, Options, Store};

/// A trace and what is known of it from elsewhere.
pub(crate) struct Given {
    pub(crate) store: Arc<Store>,
    pub(crate) truth: Value,
    /// Keeps a simulated trace's file.
    _folder: Option<tempfile::TempDir>,
}

/// A scenario that ships, with settings over it.
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

/// A real trace, and what an independent reader counted in it.
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
    Arc::new(Store::open(files, Cache::Off).expect("a trace"))
}

/// A session about traces, named `a`, `b`, ….
pub(crate) fn session(traces: &[&Given], settings: Settings) -> Session {
    let named = ('a'..).zip(traces).map(|(name, given)| NamedTrace {
        name: name.to_string(),
        store: Arc::clone(&given.store),
    });
    Session::new(named.collect(), settings).expect("a session")
}

/// All rows of the last statement's answer.
pub(crate) fn ask(session: &Session, text: &str) -> Result<Vec<RecordBatch>, SqlError> {
    let mut rows = Vec::new();
    for statement in sql::parse(text)? {
        let query = session.prepare(&statement, Options::default())?;
        rows = query.batches(&|| true)?.collect::<Result<_, _>>()?;
    }
    Ok(rows)
}

/// The rows as lines of values between `|`.
pub(crate) fn lines(rows: &[RecordBatch]) -> Vec<String> {
    let mut lines = Vec::new();
    for batch in rows {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| {
                let unknown = column.logical_nulls();
                match unknown.is_some_and(|unknown| unknown.is_null(row)) {
                    true => "NULL".to_owned(),
                    false => array_value_to_string(column, row).expect("a value has a text"),
                }
            });
            lines.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    lines
}

/// The answer as lines.
///
/// # Panics
/// If there is none.
pub(crate) fn answer(session: &Session, text: &str) -> Vec<String> {
    lines(&ask(session, text).unwrap_or_else(|error| panic!("{text}\n{error}")))
}
