//! How the rows of an answer are written: aligned for people, or in a format for programs.

mod cells;
mod columnar;
#[cfg(feature = "sql")]
mod json;
mod lines;
mod table;

use std::io::{self, Write};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};

#[cfg(feature = "sql")]
pub(crate) use json::{JsonColumn, json_rows};
pub(crate) use table::Shown;

/// A format of answers.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Aligned columns
    Table,
    /// Comma-separated values with a line of headings; lists as JSON
    Csv,
    /// A JSON object per line
    Jsonl,
    /// Arrow IPC file
    Arrow,
    /// Parquet
    Parquet,
}

/// Writes the rows of one answer.
pub(crate) trait RowWriter {
    /// Writes some more rows.
    fn write(&mut self, rows: &RecordBatch) -> io::Result<()>;

    /// Writes what is to be written after the last row.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

impl Format {
    /// The format that a file's name asks for.
    pub(crate) fn of_file(path: &Path) -> Option<Format> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "csv" => Format::Csv,
            "json" | "jsonl" | "ndjson" => Format::Jsonl,
            "arrow" | "feather" => Format::Arrow,
            "parquet" => Format::Parquet,
            "txt" => Format::Table,
            _ => return None,
        })
    }

    /// Whether a file has one answer only.
    #[cfg(feature = "sql")]
    pub(crate) fn holds_one(self) -> bool {
        matches!(self, Format::Arrow | Format::Parquet)
    }

    /// A writer of rows with that schema.
    pub(crate) fn writer<'o>(
        self,
        out: Box<dyn Write + Send + 'o>,
        schema: &SchemaRef,
        shown: Shown,
    ) -> io::Result<Box<dyn RowWriter + 'o>> {
        Ok(match self {
            Format::Table => Box::new(table::Table::new(out, schema, shown)),
            Format::Csv => Box::new(lines::Csv::new(out, schema)?),
            Format::Jsonl => Box::new(lines::Jsonl::new(out)),
            Format::Arrow => Box::new(columnar::Arrow::new(out, schema)?),
            Format::Parquet => Box::new(columnar::Parquet::new(out, schema)?),
        })
    }
}

/// The error of writing, without what Arrow wraps it in: a closed pipe must be known as such.
fn io_error(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other.to_string()),
    }
}
