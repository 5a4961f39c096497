//! Formats for rows: aligned columns for users, and file formats for programs.

mod cells;
mod columnar;
mod json;
mod lines;
mod table;

use std::io::{self, Write};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};

pub use json::{JsonColumn, json_rows};
pub use table::Shown;

/// Format for the rows of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
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

/// Writer of the rows of one answer.
pub trait RowWriter {
    /// Writes more rows.
    fn write(&mut self, rows: &RecordBatch) -> io::Result<()>;

    /// Writes the end of the output after the last row.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

impl Format {
    /// Returns the format for the extension of a file name.
    pub fn of_file(path: &Path) -> Option<Format> {
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

    /// Returns true if a file of this format can hold only one answer.
    pub fn holds_one(self) -> bool {
        self.is_binary() || self == Format::Csv
    }

    /// Returns true if the format is not text.
    pub fn is_binary(self) -> bool {
        matches!(self, Format::Arrow | Format::Parquet)
    }

    /// Creates a writer of rows with the given schema.
    pub fn writer<'o>(
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

/// Returns the I/O error inside an Arrow error, because callers must recognise a closed pipe.
fn io_error(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other.to_string()),
    }
}

/// Returns the I/O error inside a CSV error, because callers must recognise a closed pipe.
pub fn csv_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
