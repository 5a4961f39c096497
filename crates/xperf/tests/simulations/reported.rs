//! Rows of reports.

use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use session::{SymbolOptions, TraceTables, Unobserved};
use simulated::Simulated;
use tables::Cache;
use xperf::{By, Format, PlaceOptions, Recording, Report, Writer};

/// Opens a simulated trace.
pub(crate) fn open(simulated: &Simulated) -> Recording {
    let files = [PathBuf::from(&simulated.trace)];
    let tables = TraceTables::open(&files, Cache::Off, Arc::new(Unobserved)).unwrap();
    Recording {
        names: tables.identities().unwrap(),
        tables,
        range: i64::MIN..i64::MAX,
    }
}

/// Returns the rows of a report.
pub(crate) fn rows(report: &impl Report, trace: &Recording) -> Vec<Value> {
    let (rows, _) = rows_and_warnings(report, trace);
    rows
}

/// Returns the rows and the warnings of a report.
pub(crate) fn rows_and_warnings(
    report: &impl Report,
    trace: &Recording,
) -> (Vec<Value>, Vec<String>) {
    let mut file = tempfile::tempfile().unwrap();
    let out = file.try_clone().unwrap();
    let mut out = Writer::new(Format::Json, Box::new(out));
    trace.tables.make(&report.tables()).unwrap();
    report.write(trace, &mut out).unwrap();
    out.finish().unwrap();
    let mut lines = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut lines).unwrap();
    let rows = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    (rows.collect(), out.warnings().to_vec())
}

/// Returns options that group addresses by function.
pub(crate) fn by_function(simulated: &Simulated) -> PlaceOptions {
    PlaceOptions {
        by: By::Function,
        symbols: SymbolOptions::default().with_folder(Path::new(&simulated.symbols)),
    }
}
