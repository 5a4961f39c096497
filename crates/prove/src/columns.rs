//! Runs from columns of CSV and Parquet files that other programs wrote.

use std::path::Path;

use crate::runs::Growing;
use crate::{Error, Group, Run, Unit, stored};

/// Columns of a file.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Name of the column of the values. If the name ends with `_ns`, `_us`, `_ms` or `_s`, the values are
    /// times.
    pub value: String,
    /// Name of the column that contains the names of runs. If it is `None`, each row is a separate run.
    pub run: Option<String>,
    /// Name of the column that states what was measured. If it is `None`, all rows belong to one group.
    pub by: Option<String>,
}

/// Reads the runs of a Parquet file, or of a CSV file with a header line. Empty values are unknown. The samples
/// of a Parquet file stay in the file until they are needed.
///
/// # Errors
/// Returns an error if the file cannot be read, lacks a column, or has a column of another type or a value that
/// is not a number.
pub fn read(file: &Path, columns: &Columns) -> Result<Vec<Group>, Error> {
    match tables::is_parquet(file) {
        true => stored::read(file, columns),
        false => read_csv(file, columns),
    }
}

fn read_csv(file: &Path, columns: &Columns) -> Result<Vec<Group>, Error> {
    let failed = |what: String| Error::format(file, what);
    let csv_failed = |error: csv::Error| {
        match error.into_kind() {
        csv::ErrorKind::Io(source) => Error::Io {
            file: file.to_owned(),
            source,
        },
        csv::ErrorKind::Utf8 { .. } => failed(
            "it is not UTF-8 text; give a CSV or Parquet file, or a file that `laglab measure … -o \
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
    }
    };
    let mut reader = csv::Reader::from_path(file).map_err(csv_failed)?;
    let headings = reader.headers().map_err(csv_failed)?.clone();
    let place = |name: &str| {
        let found = headings.iter().position(|heading| heading.trim() == name);
        found.ok_or_else(|| failed(no_column(name, headings.iter().map(str::trim))))
    };
    let value_at = place(&columns.value)?;
    let run_at = columns.run.as_deref().map(place).transpose()?;
    let by_at = columns.by.as_deref().map(place).transpose()?;
    let (unit, factor) = unit_of(&columns.value);
    let mut growing = Growing::default();
    let mut row = csv::StringRecord::new();
    let mut number = 0_u64;
    while reader.read_record(&mut row).map_err(csv_failed)? {
        let cell = |at: usize| row.get(at).unwrap_or_default().trim();
        let group = growing.group(by_at.map_or(columns.value.as_str(), cell), unit);
        let new = |name| Run::new(name, Vec::new(), 0);
        let run = match run_at {
            Some(run) => growing.run(group, cell(run), new),
            // Each row gets a different number as its name, also across groups. So runs of different groups
            // do not form pairs.
            None => growing.run(group, &number.to_string(), new),
        };
        number += 1;
        let text = cell(value_at);
        let value = match text.parse::<f64>() {
            _ if text.is_empty() => None,
            Ok(value) if value.is_finite() => Some(value * factor),
            _ => {
                let line = row.position().map_or(number + 1, csv::Position::line);
                return Err(failed(format!(
                    "line {line}: `{}` in the column `{}` is not a finite number",
                    wording::Printable(text),
                    columns.value
                )));
            }
        };
        growing.groups[group].runs[run].push(value);
    }
    Ok(growing.groups)
}

/// Describes a missing column for an error message.
pub(crate) fn no_column<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    /// Maximum number of columns that an error lists.
    const MOST: usize = 20;

    let known: Vec<String> = known
        .take(MOST)
        .map(|name| wording::Printable(name).to_string())
        .collect();
    format!(
        "it has no column `{}`; its columns are {}",
        wording::Printable(name),
        known.join(", ")
    )
}

/// Returns the unit of a column, and the factor that converts its values to this unit.
pub(crate) fn unit_of(column: &str) -> (Unit, f64) {
    let times = [("_ns", 1.0), ("_us", 1e3), ("_ms", 1e6), ("_s", 1e9)];
    let time = times.iter().find(|(suffix, _)| column.ends_with(suffix));
    time.map_or((Unit::Other, 1.0), |(_, factor)| {
        (Unit::Nanoseconds, *factor)
    })
}
