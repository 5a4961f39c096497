//! Runs from files of `laglab measure`.

use std::path::Path;

use tables::{Cache, LatencySamplesView, Options, Store, Table};

use crate::{Error, Group, Unit};

/// Properties that are equal in all samples of a group.
#[derive(PartialEq)]
struct Key {
    method: String,
    setting: String,
    phase: Option<String>,
    requested_ns: Option<i64>,
    size_bytes: Option<u64>,
}

const COLUMNS: [&str; 8] = [
    "start_ns",
    "latency_ns",
    "method",
    "setting",
    "phase",
    "run",
    "requested_ns",
    "size_bytes",
];

/// Reads the runs of a file that `laglab measure … -o FILE.parquet` wrote, grouped by method, setting,
/// phase, requested duration and size.
///
/// # Errors
/// Returns an error if the file cannot be read or was not written by `laglab measure`.
pub fn read(file: &Path) -> Result<Vec<Group>, Error> {
    let store = Store::open(&[file.to_owned()], Cache::Off)?;
    let table = store.table(Table::LatencySamples, Options::default())?;
    let mut groups: Vec<(Key, Group)> = Vec::new();
    let mut last = 0;
    for chunk in 0..table.chunks().len() {
        let batch = table.read(chunk, &COLUMNS)?;
        let view = LatencySamplesView::new(&batch)?;
        for row in 0..view.len() {
            let is_of = |key: &Key| {
                view.method.get(row) == Some(key.method.as_str())
                    && view.setting.get(row).unwrap_or_default() == key.setting
                    && view.phase.get(row) == key.phase.as_deref()
                    && view.requested_ns.get(row) == key.requested_ns
                    && view.size_bytes.get(row) == key.size_bytes
            };
            if !groups.get(last).is_some_and(|(key, _)| is_of(key)) {
                let known = groups.iter().position(|(key, _)| is_of(key));
                last = known.unwrap_or(groups.len());
            }
            if last == groups.len() {
                let key = Key {
                    method: view.method.get(row).unwrap_or_default().to_owned(),
                    setting: view.setting.get(row).unwrap_or_default().to_owned(),
                    phase: view.phase.get(row).map(str::to_owned),
                    requested_ns: view.requested_ns.get(row),
                    size_bytes: view.size_bytes.get(row),
                };
                let group = Group {
                    name: key.name(),
                    unit: Unit::Nanoseconds,
                    runs: Vec::new(),
                };
                groups.push((key, group));
            }
            let (_, group) = &mut groups[last];
            let run = match group.runs.last_mut() {
                Some(run) if run.name.parse() == Ok(view.run[row]) => run,
                _ => group.run(&view.run[row].to_string()),
            };
            match view.latency_ns.get(row) {
                Some(ns) => run.values.push(ns as f64),
                None => run.unknown += 1,
            }
        }
    }
    Ok(groups.into_iter().map(|(_, group)| group).collect())
}

impl Key {
    fn name(&self) -> String {
        let parts = [
            Some(self.method.clone()),
            Some(self.setting.clone()).filter(|setting| !setting.is_empty()),
            self.phase.clone(),
            self.requested_ns.map(wording::duration),
            self.size_bytes.map(wording::size),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        parts.join(", ")
    }
}
