//! Simulated traces with the truth files of their simulations, and functions that read both.
#![allow(
    dead_code,
    reason = "each test program uses its own part of this module"
)]

use std::collections::BTreeMap;

use serde_json::Value;
use tempfile::TempDir;

use crate::program;

/// Simulated trace, with the truth file of its simulation and its symbols. The files are deleted when this
/// value is dropped.
pub(crate) struct Simulated {
    _folder: TempDir,
    pub(crate) trace: String,
    pub(crate) truth: Value,
    /// Path of the symbol store with the PDBs of the modules.
    pub(crate) symbols: String,
}

impl Simulated {
    pub(crate) fn new(scenario: &str, options: &[&str]) -> Simulated {
        let folder = tempfile::tempdir().unwrap();
        let below = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (trace, symbols) = (below("simulated.etl"), below("symbols"));
        let mut args = vec!["simulate", scenario, "-o", &trace, "--symbols", &symbols];
        args.extend(options);
        program::text(&args);
        let truth = std::fs::read(below("simulated.truth.json")).unwrap();
        Simulated {
            _folder: folder,
            trace,
            truth: serde_json::from_slice(&truth).unwrap(),
            symbols,
        }
    }

    /// Returns the rows of a report about this trace.
    pub(crate) fn rows(&self, report: &[&str]) -> Vec<Value> {
        rows(report, &self.trace)
    }

    /// Returns the part of the truth file about the time range with this name.
    pub(crate) fn window(&self, name: &str) -> &Value {
        let mut windows = list(&self.truth, "windows").iter();
        windows.find(|window| window["name"] == name).unwrap()
    }
}

/// Returns the rows of a report about a trace.
pub(crate) fn rows(report: &[&str], trace: &str) -> Vec<Value> {
    let args: Vec<&str> = report.iter().copied().chain([trace, "--json"]).collect();
    program::json_lines(&args)
}

pub(crate) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().unwrap()
}

pub(crate) fn number(value: &Value, key: &str) -> i64 {
    value[key]
        .as_i64()
        .unwrap_or_else(|| panic!("no number {key} in {value}"))
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the sum of a column for each key. `key` computes the key of a row.
pub(crate) fn sums<'r, K: Ord>(
    rows: impl IntoIterator<Item = &'r Value>,
    column: &str,
    key: impl Fn(&Value) -> K,
) -> BTreeMap<K, i64> {
    let mut sums = BTreeMap::new();
    for row in rows {
        *sums.entry(key(row)).or_default() += number(row, column);
    }
    sums
}
