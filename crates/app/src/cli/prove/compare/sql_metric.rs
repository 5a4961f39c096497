//! Metrics that are SQL queries.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use prove::{Group, traces};
use session::TraceTables;
use sql::{NamedTrace, Session, Settings, Statement};
use tables::Options;

use crate::cli::Failure;
use crate::output::Printable;
use crate::watch::{self, Watch};

/// Runs a query on each trace. The query returns one number, which is the value of the trace's run.
pub(super) fn group(query: &str, traces: &[(PathBuf, TraceTables)]) -> Result<Group, Failure> {
    let statements = sql::parse(query).map_err(|error| with_query(query, None, error.into()))?;
    let [statement] = statements.as_slice() else {
        let count = format!("it has {} statements", statements.len());
        return Err(with_query(query, None, Failure::Input(count)));
    };
    let mut values = Vec::new();
    for (file, tables) in traces {
        let value = match value(statement, tables) {
            Ok(Ok(value)) => value,
            Ok(Err(what)) => return Err(with_query(query, Some(file), Failure::Input(what))),
            Err(failure) => return Err(with_query(query, Some(file), failure)),
        };
        values.push((file.display().to_string(), value));
    }
    Ok(traces::group_of_values(query, values))
}

/// Adds the query, the trace and advice to an error about the query.
fn with_query(query: &str, file: Option<&Path>, failure: Failure) -> Failure {
    let Failure::Input(what) = failure else {
        return failure;
    };
    let file = file.map(|file| format!("{}: ", file.display()));
    Failure::Input(format!(
        "cannot compare `sql:{}`: {}{}; write a query with one number as its result",
        Printable(query),
        file.unwrap_or_default(),
        what.trim_end_matches('.')
    ))
}

/// Runs a query on one trace. The inner error describes a result that is not exactly one number.
fn value(
    statement: &Statement,
    tables: &TraceTables,
) -> Result<Result<traces::SingleValue, String>, Failure> {
    let trace = NamedTrace {
        name: "trace".to_owned(),
        store: Arc::clone(tables.store()),
    };
    let session = Session::new(vec![trace], Settings::default())?;
    let watch = Watch::new("building tables", session.size_bytes());
    let progress = |done: u64| watch.reach(done).is_ok();
    let options = Options {
        progress: &progress,
    };
    let query = session.prepare(statement, options)?;
    drop(watch);
    let go_on = || watch::check().is_ok();
    let mut found = traces::SingleValue::default();
    for batch in query.batches(&go_on)? {
        if let Err(what) = found.add(&batch?) {
            return Ok(Err(what));
        }
    }
    Ok(if found.is_complete() {
        Ok(found)
    } else {
        Err("the result has no row".to_owned())
    })
}
