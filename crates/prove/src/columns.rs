//! Runs from columns of CSV files that other programs wrote.

use std::path::Path;

use crate::{Error, Group, Unit};

/// Columns of a file.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Column of the values. If its name ends with `_ns`, `_us`, `_ms` or `_s`, the values are times.
    pub value: String,
    /// Column of the names of runs. Without it, each row is a run.
    pub run: Option<String>,
    /// Column that names what was measured. Without it, all rows are one group.
    pub by: Option<String>,
}

/// Reads the runs of a CSV file with a header line. Empty values are unknown.
///
/// # Errors
/// Returns an error if the file cannot be read, lacks a column, or has a value that is not a number.
pub fn read(file: &Path, columns: &Columns) -> Result<Vec<Group>, Error> {
    let failed = |what: String| Error::Csv {
        file: file.to_owned(),
        what,
    };
    let csv_failed = |error: csv::Error| match error.into_kind() {
        csv::ErrorKind::Io(source) => Error::Io {
            file: file.to_owned(),
            source,
        },
        csv::ErrorKind::Utf8 { .. } => failed(
            "it is not UTF-8 text; give a CSV file, or a file that `laglab measure … -o \
             FILE.parquet` wrote"
                .to_owned(),
        ),
        csv::ErrorKind::UnequalLengths {
            pos,
            expected_len,
            len,
        } => failed(format!(
            "line {} has {}, and the header line has {expected_len}; give a CSV file with a header line",
            pos.map_or(1, |pos| pos.line()),
            wording::counted(len, "value", "values")
        )),
        kind => failed(format!("{kind:?}; give a CSV file with a header line")),
    };
    let mut reader = csv::Reader::from_path(file).map_err(csv_failed)?;
    let headings = reader.headers().map_err(csv_failed)?.clone();
    let place = |name: &str| {
        let found = headings.iter().position(|heading| heading.trim() == name);
        found.ok_or_else(|| {
            let known: Vec<&str> = headings.iter().map(str::trim).take(MAX_NAMED).collect();
            failed(format!(
                "it has no column `{name}`; its columns are {}",
                known.join(", ")
            ))
        })
    };
    let value_at = place(&columns.value)?;
    let run_at = columns.run.as_deref().map(place).transpose()?;
    let by_at = columns.by.as_deref().map(place).transpose()?;
    let (unit, factor) = unit_of(&columns.value);
    let mut groups: Vec<Group> = Vec::new();
    let mut row = csv::StringRecord::new();
    let mut number = 0_u64;
    while reader.read_record(&mut row).map_err(csv_failed)? {
        let cell = |at: usize| row.get(at).unwrap_or_default().trim();
        let name = by_at.map_or(columns.value.as_str(), cell);
        let at = groups.iter().rposition(|group| group.name == name);
        let at = at.unwrap_or_else(|| {
            groups.push(Group {
                name: name.to_owned(),
                unit,
                runs: Vec::new(),
            });
            groups.len() - 1
        });
        let run = match run_at {
            Some(run) => groups[at].run(cell(run)),
            // Rows of different groups have different names, so they make no pairs.
            None => groups[at].push_run(number.to_string()),
        };
        number += 1;
        let text = cell(value_at);
        match text.parse::<f64>() {
            _ if text.is_empty() => run.unknown += 1,
            Ok(value) if value.is_finite() => run.values.push(value * factor),
            _ => {
                let line = row.position().map_or(number + 1, csv::Position::line);
                return Err(failed(format!(
                    "line {line}: `{}` in the column `{}` is not a finite number",
                    wording::Printable(text),
                    columns.value
                )));
            }
        }
    }
    Ok(groups)
}

/// Maximum number of columns that an error lists.
const MAX_NAMED: usize = 20;

/// Returns the unit of a column, and the number by which its values are multiplied.
fn unit_of(column: &str) -> (Unit, f64) {
    let times = [("_ns", 1.0), ("_us", 1e3), ("_ms", 1e6), ("_s", 1e9)];
    let time = times.iter().find(|(suffix, _)| column.ends_with(suffix));
    time.map_or((Unit::Other, 1.0), |(_, factor)| {
        (Unit::Nanoseconds, *factor)
    })
}
