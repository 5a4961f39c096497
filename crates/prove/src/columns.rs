//! Runs from columns of CSV and Parquet files that other programs wrote.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

use crate::runs::GroupBuilder;
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
    let mut groups = if imports::is_parquet(file) {
        stored::read(file, columns)
    } else {
        read_csv(file, columns)
    }?;
    for group in &mut groups {
        group.column = Some(columns.value.clone());
    }
    match groups.len() {
        0 => Err(Error::format(
            file,
            "it has columns, but no rows; give a file with values",
        )),
        1..=MOST_GROUPS => Ok(groups),
        _ => Err(too_many_groups(file)),
    }
}

/// Maximum number of groups of a file. If a column has more values, it probably contains names of runs or times.
const MOST_GROUPS: usize = 1_000;

fn too_many_groups(file: &Path) -> Error {
    Error::format(
        file,
        format!(
            "more than {MOST_GROUPS} things are measured; give the column with the names of the measured things with --by"
        ),
    )
}

/// Maximum number of characters of a cell that an error message shows.
const SHOWN: usize = 40;

/// Returns a cell or a name of a column for an error message.
pub(crate) fn shown(cell: &str) -> String {
    let mut shown: String = cell.chars().take(SHOWN).collect();
    if shown.len() < cell.len() {
        shown.push('…');
    }
    wording::Printable(&shown).to_string()
}

/// Converts an error of the CSV reader.
fn csv_error(file: &Path, error: csv::Error) -> Error {
    let what = match error.into_kind() {
        csv::ErrorKind::Io(source) => {
            return Error::Io {
                file: file.to_owned(),
                source,
            };
        }
        csv::ErrorKind::Utf8 { .. } => {
            "it is not UTF-8 text; give a CSV or Parquet file, or a file that `laglab measure … -o \
             FILE.parquet` wrote"
                .to_owned()
        }
        csv::ErrorKind::UnequalLengths {
            pos,
            expected_len,
            len,
        } => format!(
            "line {} has {}, and the header line has {expected_len}; give a CSV file with a header line",
            pos.map_or(1, |pos| pos.line()),
            wording::counted(len, "value", "values")
        ),
        kind => format!("{kind:?}; give a CSV file with a header line"),
    };
    Error::format(file, what)
}

fn read_csv(file: &Path, columns: &Columns) -> Result<Vec<Group>, Error> {
    let failed = |what: String| Error::format(file, what);
    let csv_failed = |error: csv::Error| csv_error(file, error);
    let io_failed = |source: io::Error| Error::Io {
        file: file.to_owned(),
        source,
    };
    let input: Box<dyn Read> = Box::new(File::open(file).map_err(io_failed)?);
    let mut reader = csv::Reader::from_reader(input);
    let mut headings = reader.headers().map_err(csv_failed)?.clone();
    if headings.len() == 1 && headings[0].trim() == columns.value {
        let bytes = std::fs::read(file).map_err(io_failed)?;
        let input: Box<dyn Read> = Box::new(Cursor::new(with_empty_cells(&bytes)));
        reader = csv::Reader::from_reader(input);
        headings = reader.headers().map_err(csv_failed)?.clone();
    }
    let place = |name: &str| {
        let mut found = (0..headings.len()).filter(|at| headings[*at].trim() == name);
        let (first, second) = (found.next(), found.next());
        if second.is_some() {
            return Err(failed(several_columns(name)));
        }
        first.ok_or_else(|| {
            // A file with other separators seems to have only one column.
            let is_other = headings.len() == 1 && headings[0].contains([';', '\t']);
            let what = no_column(name, headings.iter().map(str::trim));
            failed(if is_other {
                format!("{what}; separate columns by commas, and write decimals with a point")
            } else {
                what
            })
        })
    };
    let value_at = place(&columns.value)?;
    let run_at = columns.run.as_deref().map(place).transpose()?;
    let by_at = columns.by.as_deref().map(place).transpose()?;
    let (unit, factor) = unit_of(&columns.value);
    let mut growing = GroupBuilder::default();
    let mut row = csv::StringRecord::new();
    let mut number = 0_u64;
    while reader.read_record(&mut row).map_err(csv_failed)? {
        let cell = |at: usize| row.get(at).unwrap_or_default().trim();
        let group = growing.group(by_at.map_or(columns.value.as_str(), cell), unit);
        let new = |name| {
            let mut run = Run::new(name, Vec::new(), 0);
            run.began = i64::try_from(number).ok();
            run
        };
        let run = match run_at {
            Some(run) => growing.run(group, cell(run), new),
            // Each row gets a different number as its name, also across groups. So runs of different groups
            // do not form pairs.
            None => growing.run(group, &(number + 1).to_string(), new),
        };
        number += 1;
        if growing.groups.len() > MOST_GROUPS {
            return Err(too_many_groups(file));
        }
        let text = cell(value_at);
        let value = value(text, factor).map_err(|why| {
            let line = row.position().map_or(number + 1, csv::Position::line);
            let (cell, column) = (shown(text), &columns.value);
            failed(format!(
                "line {line}: `{cell}` in the column `{column}` is {why}"
            ))
        })?;
        growing.groups[group].runs[run].push(value);
    }
    Ok(growing.groups)
}

/// Returns the number in a cell times `factor`, and `None` if the cell is empty. If the value cannot be compared, returns
/// the reason with advice.
fn value(cell: &str, factor: f64) -> Result<Option<f64>, String> {
    match cell.parse::<f64>() {
        _ if cell.is_empty() => Ok(None),
        Ok(value) if is_comparable(value * factor) => Ok(Some(value * factor)),
        Ok(value) if value.is_finite() => Err(format!("too large or too small; {RANGE}")),
        _ => Err("not a finite number; leave cells without a value empty".to_owned()),
    }
}

/// Replaces the blank lines of a CSV file with one column by empty cells. In a file with one column, a blank line is a
/// row without a value, but a reader of CSV skips blank lines. Blank lines before the first and after the last row stay
/// left out.
fn with_empty_cells(bytes: &[u8]) -> Vec<u8> {
    let bytes = bytes.trim_ascii();
    let mut filled = Vec::with_capacity(bytes.len() + 1);
    for line in bytes.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        match line {
            [] => filled.extend_from_slice(b"\"\""),
            line => filled.extend_from_slice(line),
        }
        filled.push(b'\n');
    }
    filled
}

/// Magnitudes of the values that can be compared. Squares and ratios of greater or smaller values are infinite or 0.
const COMPARABLE: std::ops::RangeInclusive<f64> = 1e-150..=1e150;

/// Advice for values that cannot be compared.
pub(crate) const RANGE: &str =
    "give 0, or values whose size is between 1e-150 and 1e150, with times in nanoseconds";

/// Returns true if a value can be compared. It must be in its final unit.
pub(crate) fn is_comparable(value: f64) -> bool {
    value == 0.0 || COMPARABLE.contains(&value.abs())
}

/// Describes a name that several columns have, for an error message.
pub(crate) fn several_columns(name: &str) -> String {
    format!(
        "it has several columns named `{}`; rename them, so that each has another name",
        shown(name)
    )
}

/// Describes a missing column for an error message.
pub(crate) fn no_column<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> String {
    /// Maximum number of columns that an error lists.
    const MOST: usize = 20;

    let known: Vec<String> = known.take(MOST).map(shown).collect();
    if known.is_empty() {
        return "it is empty; give a file with a header line and rows".to_owned();
    }
    format!(
        "it has no column `{}`; its columns are {}",
        shown(name),
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
