//! Simulated traces with the truth about them, and functions that read the truth and explanations, for tests.
//! Programs that ship do not use this crate.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use serde_json::Value;
use sim::{ModuleTruth, shipped};
use sim::{Override, Scenario};
use symbols::write::{Function, write_pdb};
use symbols::{PdbId, in_store};
use tempfile::TempDir;

/// Simulated trace with its truth and its symbols. The files are deleted when this value is dropped.
#[derive(Debug)]
pub struct Simulated {
    _folder: TempDir,
    /// Path of the trace.
    pub trace: String,
    /// Contents of the truth file.
    pub truth: Value,
    /// Path of the symbol store with the PDBs of the modules.
    pub symbols: String,
}

impl Simulated {
    /// Simulates a shipped scenario. Settings have the form `path=value`, such as `seed=2`.
    ///
    /// # Panics
    /// Panics if the scenario is unknown, a setting is wrong, or a file cannot be written.
    pub fn new(scenario: &str, settings: &[&str]) -> Simulated {
        let text = shipped::text(scenario).expect("a shipped scenario");
        Simulated::of_text(scenario, text, settings)
    }

    /// Simulates the scenario with this name and text. It may extend shipped scenarios.
    ///
    /// # Panics
    /// Panics if the scenario or a setting is wrong, or a file cannot be written.
    pub fn of_text(name: &str, text: &str, settings: &[&str]) -> Simulated {
        let parse = |setting: &&str| Override::parse(setting).unwrap_or_else(|e| panic!("{e}"));
        let settings: Vec<Override> = settings.iter().map(parse).collect();
        let named = |base: &str| shipped::text(base).map(str::to_owned);
        let scenario = Scenario::read(name, text, &named, &settings);
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));

        let folder = tempfile::tempdir().expect("a folder");
        let below = |name: &str| {
            let path = folder.path().join(name);
            path.to_str().expect("a path in Unicode").to_owned()
        };
        let (trace, store) = (below("simulated.etl"), below("symbols"));
        let out = BufWriter::new(File::create(&trace).expect("a new file"));
        let simulated = sim::simulate(&scenario, None, out, |_| true);
        let (out, truth) = simulated.unwrap_or_else(|error| panic!("{name}: {error}"));
        out.into_inner().expect("a written trace");
        let modules = truth.modules.iter();
        modules.for_each(|module| write_symbols(module, Path::new(&store)));
        Simulated {
            _folder: folder,
            trace,
            truth: serde_json::to_value(&truth).expect("a truth in JSON"),
            symbols: store,
        }
    }

    /// Returns the part of the truth about one time range. `name` is the name of the range.
    ///
    /// # Panics
    /// Panics if the scenario has no such time range.
    pub fn window(&self, name: &str) -> &Value {
        let mut windows = list(&self.truth, "windows").iter();
        let window = windows.find(|window| window["name"] == name);
        window.unwrap_or_else(|| panic!("no window {name}"))
    }
}

/// Writes the PDB of a module into a symbol store. Modules whose names cannot be file names are
/// skipped.
fn write_symbols(module: &ModuleTruth, store: &Path) {
    let guid = module.pdb_guid.parse().expect("a GUID");
    let Ok(id) = PdbId::new(&module.pdb, guid, module.pdb_age) else {
        return;
    };
    let functions = module.functions.iter().map(|function| Function {
        name: function.name.clone(),
        rva: function.rva,
        size: function.size,
    });
    let functions: Vec<Function> = functions.collect();
    let pdb = write_pdb(&id, "simulated by laglab", &functions).expect("a PDB");
    let path = store.join(in_store(&id));
    fs::create_dir_all(path.parent().expect("a folder")).expect("a new folder");
    fs::write(path, pdb).expect("a new file");
}

/// Returns the list in the field `key`.
///
/// # Panics
/// Panics if there is no such list.
pub fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    let list = value[key].as_array();
    list.unwrap_or_else(|| panic!("no list {key} in {value}"))
}

/// Returns the integer in the field `key`.
///
/// # Panics
/// Panics if there is no such integer.
pub fn number(value: &Value, key: &str) -> i64 {
    let number = value[key].as_i64();
    number.unwrap_or_else(|| panic!("no number {key} in {value}"))
}

/// Returns the text of a value, or an empty text if the value is not a string.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the sum of a column for each key. `key` computes the key of a row.
///
/// # Panics
/// Panics if a row has no number in the column.
pub fn sums<'r, K: Ord>(
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

/// Returns the cells of the column `name`. The field `evidence` of a finding is a list of tables. The cells come from
/// the first of these tables that has the column.
///
/// # Panics
/// Panics if no table has the column.
pub fn column(findings: &[&Value], name: &str) -> Vec<Value> {
    let mut all = findings
        .iter()
        .flat_map(|finding| finding["evidence"].as_array().unwrap());
    let place = |evidence: &Value| {
        let mut columns = evidence["columns"].as_array().unwrap().iter();
        columns.position(|column| column["name"] == name)
    };
    let column = all.find_map(|evidence| Some((evidence, place(evidence)?)));
    let (evidence, place) = column.unwrap_or_else(|| panic!("no column {name}"));
    let rows = evidence["rows"].as_array().unwrap().iter();
    rows.map(|row| row[place].clone()).collect()
}

/// Returns the sum of integers.
///
/// # Panics
/// Panics if a cell is not an integer.
pub fn sum(cells: &[Value]) -> i64 {
    cells.iter().map(|cell| cell.as_i64().unwrap()).sum()
}
