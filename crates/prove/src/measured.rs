//! Runs from files of `laglab measure`.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef};

use crate::stored::{self, Keys};
use crate::{Error, Group};

/// Properties that are equal in all samples of a group, in the order of their names.
const GROUP: [&str; 5] = ["method", "setting", "phase", "requested_ns", "size_bytes"];

/// Reads the runs of a file that `laglab measure … -o FILE.parquet` wrote, grouped by method, setting,
/// phase, requested duration and size. The samples stay in the file until they are needed.
///
/// # Errors
/// Returns an error if the file cannot be read or was not written by `laglab measure`.
pub fn read(file: &Path) -> Result<Vec<Group>, Error> {
    let keys = Keys {
        value: "latency_ns",
        group: &GROUP,
        run: "run",
        name: &name,
        time: Some("start_ns"),
    };
    stored::read_runs(file, &keys).map_err(|error| match error {
        Error::Format { file, what } => Error::Format {
            file,
            what: format!(
                "{what}; if `laglab measure … -o FILE.parquet` did not write it, name its columns with --value \
                 and --run"
            ),
        },
        other => other,
    })
}

/// Names a group from its properties.
fn name(of: &[ArrayRef], row: usize) -> String {
    let text = |column: usize| {
        let text = of.get(column).map(|column| stored::text(column, row));
        text.filter(|text| !text.is_empty())
    };
    let requested = of
        .get(3)
        .and_then(|column| column.as_primitive_opt::<Int64Type>());
    let requested = requested.and_then(|ns| ns.is_valid(row).then(|| ns.value(row)));
    let size = of
        .get(4)
        .and_then(|column| column.as_primitive_opt::<UInt64Type>());
    let size = size.and_then(|bytes| bytes.is_valid(row).then(|| bytes.value(row)));
    let parts = [
        text(0),
        text(1),
        text(2),
        requested.map(wording::duration),
        size.map(wording::size),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

/// Returns the time from the first to the last start of a sample in a file of `laglab measure`, in nanoseconds; `None`
/// if the file does not tell it.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn span_ns(file: &Path) -> Result<Option<i64>, Error> {
    stored::span(file, "start_ns")
}
