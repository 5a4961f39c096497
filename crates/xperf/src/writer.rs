//! Rows of a report as text in xperf's layout, as CSV, or as JSON lines.
//!
//! Text has xperf's headings and units: comma-separated fields, times in microseconds. CSV and JSON have the names
//! and units of the columns in the crate `tables`.

use std::borrow::Cow;
use std::io::{self, Write};

use rayon::prelude::*;
use tables::Identities;
use wording::{JsonText, Printable, csv_cell};

use crate::layout::{self, Column, Layout, Value};

/// Output format of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Lines in xperf's layout.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
    /// Comma-separated values with a heading.
    Csv,
}

impl Format {
    fn separator(self) -> &'static str {
        match self {
            Format::Text => ", ",
            Format::Json | Format::Csv => ",",
        }
    }
}

/// Writer of a report.
pub struct Writer {
    out: Box<dyn Write + Send>,
    format: Format,
    /// Lines that are not written to `out` yet.
    lines: Vec<u8>,
    /// Buffers of the parallel threads. Each thread adds its lines to one of them.
    parts: Vec<Vec<u8>>,
    warnings: Vec<String>,
}

/// Size of the buffer for lines in bytes. When the buffer reaches this size, it is written to the output.
const BYTES_AT_ONCE: usize = 1 << 16;

/// Number of rows per task of a parallel thread.
const ROWS_AT_ONCE: usize = 1 << 10;

/// Width of process ids within their column, in characters.
const ID_WIDTH: usize = 4;

/// Minimum width of the column of a process, in characters.
const PROCESS_WIDTH: usize = 24;

impl Writer {
    /// Creates a writer that writes a report to `out`.
    pub fn new(format: Format, out: Box<dyn Write + Send>) -> Writer {
        Writer {
            out,
            format,
            lines: Vec::new(),
            parts: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds a warning for the user, printed next to the report.
    pub fn warn(&mut self, warning: String) {
        self.warnings.push(warning);
    }

    /// Returns the warnings so far.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the output, so that a report can write text in a separate layout. Returns `None` for CSV and JSON.
    pub(crate) fn page(&mut self) -> Option<&mut dyn Write> {
        (self.format == Format::Text).then_some(&mut self.lines)
    }

    /// Returns true if the format can hold several tables.
    pub(crate) fn holds_several(&self) -> bool {
        self.format != Format::Csv
    }

    /// Starts a table and writes its headings. `names` has the names of the processes in its rows.
    pub(crate) fn table<'w, X>(
        &'w mut self,
        layout: &'static Layout<X>,
        names: &'w Identities,
    ) -> TableWriter<'w, X> {
        let columns = layout.columns.iter();
        let headings: Vec<String> = match self.format {
            Format::Json => Vec::new(),
            Format::Csv => columns
                .flat_map(|column| data_cells(column, Value::Unknown, names))
                .map(|(prefix, name, _)| format!("{prefix}{name}"))
                .collect(),
            Format::Text => columns
                .filter(|column| !column.heading.is_empty())
                .map(|column| format!("{:>1$}", column.heading, width(column)))
                .collect(),
        };
        if self.format != Format::Json {
            let headings = headings.join(self.format.separator());
            self.lines.extend_from_slice(headings.as_bytes());
            self.lines.push(b'\n');
        }
        TableWriter {
            layout,
            names,
            writer: self,
        }
    }

    /// Writes all buffered lines and flushes the output.
    pub fn finish(&mut self) -> io::Result<()> {
        write_lines(&mut self.lines, self.format, &mut self.out)?;
        self.out.flush()
    }
}

/// Writes all buffered lines to `out` and empties the buffer.
fn write_lines(lines: &mut Vec<u8>, format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Json => JsonText::new(out).write_all(lines)?,
        Format::Text | Format::Csv => out.write_all(lines)?,
    }
    lines.clear();
    Ok(())
}

/// Writer of the rows of a table.
pub(crate) struct TableWriter<'w, X: 'static> {
    layout: &'static Layout<X>,
    names: &'w Identities,
    writer: &'w mut Writer,
}

impl<X> TableWriter<'_, X> {
    /// Writes a row, with one value per column.
    pub(crate) fn row(&mut self, values: &[Value<'_>]) -> io::Result<()> {
        let (layout, names) = (self.layout, self.names);
        debug_assert_eq!(layout.columns.len(), values.len(), "{}", layout.name);
        let Writer {
            out, format, lines, ..
        } = &mut *self.writer;
        push_row(lines, *format, layout, names, |column| values[column])?;
        if lines.len() < BYTES_AT_ONCE {
            return Ok(());
        }
        write_lines(lines, *format, out)
    }

    /// Writes `count` rows, which parallel threads make. `value` returns the value of a row in a column.
    pub(crate) fn rows<'v>(
        &mut self,
        count: usize,
        value: impl Fn(usize, usize) -> Value<'v> + Sync,
    ) -> io::Result<()> {
        let (layout, names) = (self.layout, self.names);
        let Writer {
            out,
            format,
            lines,
            parts,
            ..
        } = &mut *self.writer;
        // Each thread gets several parts, so that all threads finish at about the same time.
        let at_once = 4 * rayon::current_num_threads();
        parts.resize_with(at_once, Vec::new);
        write_lines(lines, *format, out)?;
        for begin in (0..count).step_by(at_once * ROWS_AT_ONCE) {
            let numbered = parts.par_iter_mut().enumerate();
            numbered.try_for_each(|(part, lines)| {
                let from = begin + part * ROWS_AT_ONCE;
                (from..count.min(from + ROWS_AT_ONCE)).try_for_each(|row| {
                    push_row(lines, *format, layout, names, |column| value(row, column))
                })
            })?;
            let mut parts = parts.iter_mut();
            parts.try_for_each(|lines| write_lines(lines, *format, out))?;
        }
        Ok(())
    }
}

/// Adds one row as a line. `value` returns the value in a column.
fn push_row<'v, X>(
    lines: &mut Vec<u8>,
    format: Format,
    layout: &Layout<X>,
    names: &Identities,
    value: impl Fn(usize) -> Value<'v>,
) -> io::Result<()> {
    let mut separator = "";
    if format == Format::Json {
        write!(lines, "{{\"table\":\"{}\"", layout.name)?;
        separator = format.separator();
    }
    for (at, column) in layout.columns.iter().enumerate() {
        if format == Format::Text {
            if !column.heading.is_empty() {
                lines.extend_from_slice(separator.as_bytes());
                push_text(lines, column, value(at), names);
                separator = format.separator();
            }
            continue;
        }
        for (prefix, name, value) in data_cells(column, value(at), names) {
            lines.extend_from_slice(separator.as_bytes());
            if format == Format::Json {
                for part in ["\"", prefix, name, "\":"] {
                    lines.extend_from_slice(part.as_bytes());
                }
            }
            push_data(lines, column.format, value, format)?;
            separator = format.separator();
        }
    }
    let end = if format == Format::Json { "}\n" } else { "\n" };
    lines.extend_from_slice(end.as_bytes());
    Ok(())
}

/// Returns the cells of a column in CSV and JSON, each with the two parts of its name. A process has two cells, a column
/// of text only has none.
fn data_cells<'v, X>(
    column: &Column<X>,
    value: Value<'v>,
    names: &'v Identities,
) -> impl Iterator<Item = (&'static str, &'static str, Value<'v>)> {
    let cells = if column.format == layout::Format::Process {
        let (id, name) = match value {
            Value::Process((row, id)) => {
                let process = names.process(row, id);
                (process.id.into(), process.name.into())
            }
            _ => (Value::Unknown, Value::Unknown),
        };
        let id = (column.name, "process_id", id);
        [Some(id), Some((column.name, "process_name", name))]
    } else {
        let is_shown = !column.name.is_empty();
        [is_shown.then_some((column.name, "", value)), None]
    };
    cells.into_iter().flatten()
}

/// Returns the width of a column in text, in characters. If values are wider than the name, the heading starts with spaces.
fn width<X>(column: &Column<X>) -> usize {
    let is_process = column.format == layout::Format::Process;
    let least = if is_process { PROCESS_WIDTH } else { 0 };
    column.heading.len().max(least)
}

/// Adds the text of a value, padded on the left to the width of its column.
fn push_text<X>(line: &mut Vec<u8>, column: &Column<X>, value: Value<'_>, names: &Identities) {
    use layout::Format::{Hex, Module, Quoted, Time};
    let mut push = |text: &str| push_right(line, width(column), text);
    match (column.format, value) {
        // xperf prints this name for an unknown module.
        (Module, Value::Unknown) => push("\"Unknown\""),
        (_, Value::Unknown | Value::Absent) => push("-"),
        (Hex, Value::Number(bits)) => push(&format!("{bits:#018x}")),
        (Hex, Value::Large(bits)) => push(&format!("{bits:#018x}")),
        (Time, Value::Number(ns)) => push(itoa::Buffer::new().format(ns.div_euclid(1000))),
        (_, Value::Number(number)) => push(itoa::Buffer::new().format(number)),
        (_, Value::Large(number)) => push(itoa::Buffer::new().format(number)),
        (_, Value::Share(share)) => push(&format!("{share:.2}")),
        (_, Value::Flag(flag)) => push(if flag { "1" } else { "0" }),
        (Quoted, Value::Text(text)) => push(&format!("\"{}\"", printable(text))),
        (_, Value::Text(text)) => push(&printable(text)),
        (_, Value::Process((row, id))) => {
            let process = names.process(row, id);
            let name = printable(process.name.unwrap_or("Unknown"));
            let mut id = itoa::Buffer::new();
            let id = process.id.map_or("-1", |process_id| id.format(process_id));
            let after = " (".len() + id.len().max(ID_WIDTH) + ")".len();
            push_right(line, width(column).saturating_sub(after), &name);
            line.extend_from_slice(b" (");
            push_right(line, ID_WIDTH, id);
            line.push(b')');
        }
    }
}

/// Adds a value of CSV or JSON.
fn push_data(
    line: &mut Vec<u8>,
    cell: layout::Format,
    value: Value<'_>,
    format: Format,
) -> io::Result<()> {
    use layout::Format::Hex;
    let is_json = format == Format::Json;
    let quote = if is_json { "\"" } else { "" };
    match (cell, value) {
        (_, Value::Unknown | Value::Absent | Value::Process(_)) => {
            line.extend_from_slice(if is_json { b"null" } else { b"" });
        }
        (Hex, Value::Number(bits)) => write!(line, "{quote}{bits:#x}{quote}")?,
        (Hex, Value::Large(bits)) => write!(line, "{quote}{bits:#x}{quote}")?,
        (_, Value::Number(number)) => push_right(line, 0, itoa::Buffer::new().format(number)),
        (_, Value::Large(number)) => push_right(line, 0, itoa::Buffer::new().format(number)),
        (_, Value::Share(share)) => write!(line, "{share:.4}")?,
        (_, Value::Flag(flag)) => write!(line, "{flag}")?,
        (_, Value::Text(text)) if is_json => serde_json::to_writer(line, text)?,
        (_, Value::Text(text)) => {
            let text = csv_cell(text);
            if text.contains([',', '"']) {
                write!(line, "\"{}\"", text.replace('"', "\"\""))?;
            } else {
                line.extend_from_slice(text.as_bytes());
            }
        }
    }
    Ok(())
}

/// Adds `text`, padded on the left to `width` characters.
fn push_right(line: &mut Vec<u8>, width: usize, text: &str) {
    // Copying a fixed number of spaces is faster than filling the exact number.
    const BLANKS: [u8; 32] = [b' '; 32];
    let blanks = width.saturating_sub(text.len());
    if blanks <= BLANKS.len() {
        let start = line.len();
        line.extend_from_slice(&BLANKS);
        line.truncate(start + blanks);
    } else {
        line.resize(line.len() + blanks, b' ');
    }
    line.extend_from_slice(text.as_bytes());
}

/// Escapes control characters in text from the trace, because they could control the terminal.
fn printable(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        text.into()
    } else {
        Printable(text).to_string().into()
    }
}
