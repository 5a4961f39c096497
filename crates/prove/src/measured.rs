//! Runs from files of `laglab measure`.

use std::cell::RefCell;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};

use imports::SampleConditions;

use crate::stored::{self, Keys};
use crate::{Error, Group};

/// Columns that are equal in all samples of a group, in the order of [`Key`].
const GROUP: [&str; 6] = [
    "probe",
    "method",
    "setting",
    "phase",
    "requested_ns",
    "size_bytes",
];

/// Properties that are equal in all samples of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Name of the probe.
    pub probe: String,
    /// Name of the method.
    pub method: String,
    /// Setting of the probe, in words; empty if the file has none.
    pub setting: String,
    /// Phase of the operation. `None` if the probe does not measure several phases.
    pub phase: Option<String>,
    /// Requested duration of a sleep, in nanoseconds.
    pub requested_ns: Option<i64>,
    /// Number of bytes read or sent.
    pub size_bytes: Option<u64>,
}

/// File of `laglab measure`.
#[derive(Clone, Debug)]
pub struct MeasuredFile {
    /// Conditions of the measurement; `None` if the file does not state them.
    pub conditions: Option<SampleConditions>,
    /// Groups of runs with their properties. The samples stay in the file until they are needed.
    pub groups: Vec<(Key, Group)>,
}

/// Reads the runs of a file that `laglab measure … -o FILE.parquet` wrote, grouped by method, setting,
/// phase, requested duration and size. The samples stay in the file until they are needed.
///
/// # Errors
/// Returns an error if the file cannot be read or was not written by `laglab measure`.
pub fn read(file: &Path) -> Result<Vec<Group>, Error> {
    let groups = groups(file)?.into_iter();
    Ok(groups.map(|(_, group)| group).collect())
}

impl MeasuredFile {
    /// Reads a file that `laglab measure … -o FILE.parquet` wrote.
    ///
    /// # Errors
    /// Returns the errors of [`read`].
    pub fn read(file: &Path) -> Result<MeasuredFile, Error> {
        Ok(MeasuredFile {
            groups: groups(file)?,
            conditions: SampleConditions::read(file)?,
        })
    }

    /// Returns true if the file has samples of this probe.
    pub fn has_probe(&self, probe: &str) -> bool {
        self.groups.iter().any(|(key, _)| key.probe == probe)
    }
}

/// Reads the groups of a file with their properties. Different groups have different names, so a name
/// identifies one `Key`.
fn groups(file: &Path) -> Result<Vec<(Key, Group)>, Error> {
    let known: RefCell<Vec<(String, Key)>> = RefCell::default();
    let name = |columns: &[ArrayRef], row: usize| {
        let key = Key::read(columns, row);
        let name = key.name();
        let mut known = known.borrow_mut();
        if known.iter().all(|(other, _)| *other != name) {
            known.push((name.clone(), key));
        }
        name
    };
    let keys = Keys {
        value: "latency_ns",
        group: &GROUP,
        run: "run",
        name: &name,
        time: Some("start_ns"),
    };
    let groups = stored::read_runs(file, &keys).map_err(|error| match error {
        Error::Format { file, what } => Error::Format {
            file,
            what: format!(
                "{what}; if `laglab measure … -o FILE.parquet` did not write it, name its columns with --value \
                 and --run"
            ),
        },
        other => other,
    })?;
    let known = known.take();
    let with_key = groups.into_iter().filter_map(|group| {
        let (_, key) = known.iter().find(|(name, _)| *name == group.name)?;
        Some((key.clone(), group))
    });
    Ok(with_key.collect())
}

impl Key {
    /// Reads the properties in a row. `columns` are the columns that [`GROUP`] lists.
    fn read(columns: &[ArrayRef], row: usize) -> Key {
        let text = |column: usize| {
            let text = columns.get(column).map(|column| stored::text(column, row));
            text.filter(|text| !text.is_empty())
        };
        let requested = columns
            .get(4)
            .and_then(|column| column.as_primitive_opt::<Int64Type>());
        let size = columns
            .get(5)
            .and_then(|column| column.as_primitive_opt::<UInt64Type>());
        Key {
            probe: text(0).unwrap_or_default(),
            method: text(1).unwrap_or_default(),
            setting: text(2).unwrap_or_default(),
            phase: text(3),
            requested_ns: requested.and_then(|ns| ns.is_valid(row).then(|| ns.value(row))),
            size_bytes: size.and_then(|bytes| bytes.is_valid(row).then(|| bytes.value(row))),
        }
    }

    /// Returns the name of the measured thing. The name does not contain the probe.
    pub fn name(&self) -> String {
        let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let parts = [
            text(&self.method),
            text(&self.setting),
            self.phase.clone(),
            self.requested_ns.map(wording::duration),
            self.size_bytes.map(wording::size),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        parts.join(", ")
    }
}

/// Returns true if a file of `laglab measure` is from a measurement that could end as soon as its result was sure.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn has_looks(file: &Path) -> Result<bool, Error> {
    let conditions = SampleConditions::read(file)?;
    Ok(conditions.is_some_and(|conditions| conditions.until_sure))
}

/// Returns the time from the first to the last start of a sample in a file of `laglab measure`, in
/// nanoseconds. Returns `None` if the file does not state the range of the starts.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn span_ns(file: &Path) -> Result<Option<i64>, Error> {
    stored::span(file, "start_ns")
}
