//! Rows of a report as text in xperf's layout, as CSV, or as JSON lines.
//!
//! Text has xperf's headings and units: comma-separated fields, times in microseconds. CSV and JSON have the names
//! and units of the columns in the crate `tables`.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;

use rayon::prelude::*;
use tables::Process;
use wording::{JsonText, Printable, csv_cell};

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

/// Layout of one table of a report.
pub struct Layout {
    /// Name of the table, printed in each JSON line.
    pub name: &'static str,
    /// True if each line of text starts with a label, as in the event lines of xperf.
    pub labelled: bool,
    /// Columns of the table, from left to right.
    pub columns: &'static [Column],
}

/// Column of a report.
pub struct Column {
    heading: Option<&'static str>,
    width: usize,
    name: Option<&'static str>,
    is_process: bool,
}

impl Column {
    /// Creates a column for all formats. In text, the column has the width of its heading. If values are wider than
    /// the name, the heading must start with spaces.
    pub const fn new(heading: &'static str, name: &'static str) -> Column {
        Column {
            heading: Some(heading),
            width: heading.len(),
            name: Some(name),
            is_process: false,
        }
    }

    /// Creates a process column: `name ( id)` in text. CSV and JSON have the two columns `process_id` and
    /// `process_name` instead, with `prefix` before each name.
    pub const fn process(heading: &'static str, prefix: &'static str) -> Column {
        Column {
            heading: Some(heading),
            width: if heading.len() > 24 {
                heading.len()
            } else {
                24
            },
            name: Some(prefix),
            is_process: true,
        }
    }

    /// Creates a column for text only. xperf has this column, but the crate `tables` does not.
    pub const fn text_only(heading: &'static str) -> Column {
        Column {
            heading: Some(heading),
            width: heading.len(),
            name: None,
            is_process: false,
        }
    }

    /// Creates a column for CSV and JSON only. The crate `tables` has this column, but xperf does not.
    pub const fn data_only(name: &'static str) -> Column {
        Column {
            heading: None,
            width: 0,
            name: Some(name),
            is_process: false,
        }
    }
}

/// Value of a cell.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// Unknown value.
    Unknown,
    /// Time in nanoseconds. In text, it is rounded to microseconds.
    Time(i64),
    /// Number without a unit, or a number of bytes.
    Number(i64),
    /// Share in percent.
    Percent(f64),
    /// Address or flags, in hexadecimal.
    Hex(u64),
    /// Boolean value.
    Flag(bool),
    /// Word from a fixed list.
    Word(&'static str),
    /// Text from the trace.
    Text(&'a str),
    /// Name of a module or function; `None` if it is unknown.
    Module(Option<&'a str>),
    /// Text from the trace, printed in quotes because it may contain commas.
    Quoted(&'a str),
    /// Process with its id and name.
    Process(Process<'a>),
}

impl<'a> Value<'a> {
    /// Creates a time that may be unknown.
    pub fn time(ns: Option<i64>) -> Value<'a> {
        ns.map_or(Value::Unknown, Value::Time)
    }

    /// Creates a number that may be unknown.
    pub fn number<N: Into<i64>>(number: Option<N>) -> Value<'a> {
        number.map_or(Value::Unknown, |number| Value::Number(number.into()))
    }

    /// Creates a count or a number of bytes.
    pub fn count(count: u64) -> Value<'a> {
        Value::Number(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Creates flags that may be unknown.
    pub fn hex(bits: Option<u64>) -> Value<'a> {
        bits.map_or(Value::Unknown, Value::Hex)
    }

    /// Creates a boolean value that may be unknown.
    pub fn flag(flag: Option<bool>) -> Value<'a> {
        flag.map_or(Value::Unknown, Value::Flag)
    }

    /// Creates quoted text that may be unknown.
    pub fn quoted(text: Option<&'a str>) -> Value<'a> {
        text.map_or(Value::Unknown, Value::Quoted)
    }

    /// Creates text that may be unknown.
    pub fn text(text: Option<&'a str>) -> Value<'a> {
        text.map_or(Value::Unknown, Value::Text)
    }
}

/// Writer of a report.
pub struct Writer {
    out: Box<dyn Write + Send>,
    lines: Lines,
    /// Buffers of the parallel threads. Each thread adds its lines to one of them.
    parts: Vec<Lines>,
    warnings: Vec<String>,
}

/// Buffer of output lines.
pub struct Lines {
    layout: Option<&'static Layout>,
    sink: Sink,
    /// Reused buffer for one field of a CSV line.
    field: Vec<u8>,
}

enum Sink {
    Text(Vec<u8>),
    Json(Vec<u8>),
    Csv(Box<csv::Writer<Vec<u8>>>),
}

/// Size of the buffer for lines in bytes. When the buffer reaches this size, it is written to the output.
const BYTES_AT_ONCE: usize = 1 << 16;

/// Number of rows per task of a parallel thread.
const ROWS_AT_ONCE: usize = 1 << 10;

/// Width of the labels at the start of lines, in characters.
const LABEL_WIDTH: usize = 23;

/// Width of process ids within their column, in characters.
const ID_WIDTH: usize = 4;

impl Writer {
    /// Creates a writer that writes a report to `out`.
    pub fn new(format: Format, out: Box<dyn Write + Send>) -> Writer {
        Writer {
            out,
            lines: Lines::new(format),
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
    pub fn page(&mut self) -> Option<&mut dyn Write> {
        match &mut self.lines.sink {
            Sink::Text(page) => Some(page),
            Sink::Json(_) | Sink::Csv(_) => None,
        }
    }

    /// Returns true if the format can hold several tables.
    pub fn holds_several(&self) -> bool {
        self.lines.format() != Format::Csv
    }

    /// Starts a table and writes its headings.
    pub fn table(&mut self, layout: &'static Layout) -> io::Result<()> {
        self.lines.layout = Some(layout);
        self.lines.headings(layout)
    }

    /// Writes a row of the table, with one value per column.
    pub fn row<const N: usize>(&mut self, label: &str, values: &[Value<'_>; N]) -> io::Result<()> {
        self.lines.row(label, values)?;
        match self.lines.len() {
            ..BYTES_AT_ONCE => Ok(()),
            _ => self.lines.write_to(&mut self.out),
        }
    }

    /// Calls `make` for each number in `numbers`, in parallel threads. `make` adds the line of one row, or adds
    /// nothing. Writes the lines in the order of the numbers.
    pub fn rows(
        &mut self,
        numbers: Range<usize>,
        make: impl Fn(usize, &mut Lines) -> io::Result<()> + Sync,
    ) -> io::Result<()> {
        let (format, layout) = (self.lines.format(), self.lines.layout);
        // Each thread gets several parts, so that all threads finish at about the same time.
        let parts = 4 * rayon::current_num_threads();
        self.parts.resize_with(parts, || Lines::new(format));
        self.lines.write_to(&mut self.out)?;
        for begin in numbers.clone().step_by(parts * ROWS_AT_ONCE) {
            let parts = self.parts.par_iter_mut().enumerate();
            parts.try_for_each(|(part, lines)| {
                lines.layout = layout;
                let from = begin + part * ROWS_AT_ONCE;
                let to = numbers.end.min(from + ROWS_AT_ONCE);
                (from..to).try_for_each(|number| make(number, lines))
            })?;
            let mut parts = self.parts.iter_mut();
            parts.try_for_each(|lines| lines.write_to(&mut self.out))?;
        }
        Ok(())
    }

    /// Writes all buffered lines and flushes the output.
    pub fn finish(&mut self) -> io::Result<()> {
        self.lines.write_to(&mut self.out)?;
        self.out.flush()
    }
}

impl Lines {
    fn new(format: Format) -> Lines {
        Lines {
            layout: None,
            sink: Sink::new(format),
            field: Vec::new(),
        }
    }

    fn format(&self) -> Format {
        match self.sink {
            Sink::Text(_) => Format::Text,
            Sink::Json(_) => Format::Json,
            Sink::Csv(_) => Format::Csv,
        }
    }

    /// Returns the number of buffered bytes; for CSV, an estimate.
    fn len(&self) -> usize {
        match &self.sink {
            Sink::Text(lines) | Sink::Json(lines) => lines.len(),
            Sink::Csv(lines) => lines.get_ref().len(),
        }
    }

    /// Writes all buffered lines to `out` and empties the buffer.
    fn write_to(&mut self, out: &mut dyn Write) -> io::Result<()> {
        match &mut self.sink {
            Sink::Text(lines) => {
                out.write_all(lines)?;
                lines.clear();
            }
            Sink::Json(lines) => {
                JsonText::new(out).write_all(lines)?;
                lines.clear();
            }
            Sink::Csv(lines) => {
                lines.flush()?;
                out.write_all(lines.get_ref())?;
                self.sink = Sink::new(Format::Csv);
            }
        }
        Ok(())
    }

    /// Adds the headings of a table, if the format has any.
    fn headings(&mut self, layout: &Layout) -> io::Result<()> {
        match &mut self.sink {
            Sink::Json(_) => Ok(()),
            Sink::Csv(out) => {
                for column in layout.columns {
                    match column.name {
                        Some(prefix) if column.is_process => {
                            out.write_field(format!("{prefix}process_id"))
                                .map_err(csv_error)?;
                            out.write_field(format!("{prefix}process_name"))
                                .map_err(csv_error)?;
                        }
                        Some(name) => out.write_field(name).map_err(csv_error)?,
                        None => {}
                    }
                }
                out.write_record(None::<&[u8]>).map_err(csv_error)
            }
            Sink::Text(lines) => {
                let start = lines.len();
                if layout.labelled {
                    push_right(lines, LABEL_WIDTH, b"Event");
                }
                for column in layout.columns {
                    if let Some(heading) = column.heading {
                        separate(lines, start);
                        push_right(lines, column.width, heading.as_bytes());
                    }
                }
                lines.push(b'\n');
                Ok(())
            }
        }
    }

    /// Adds one row as a line, with one value per column.
    pub fn row<const N: usize>(&mut self, label: &str, values: &[Value<'_>; N]) -> io::Result<()> {
        let Some(layout) = self.layout else {
            return Ok(());
        };
        debug_assert_eq!(layout.columns.len(), N, "{}", layout.name);
        let cells = layout.columns.iter().zip(values);
        match &mut self.sink {
            Sink::Text(lines) => {
                let start = lines.len();
                if layout.labelled {
                    push_right(lines, LABEL_WIDTH, label.as_bytes());
                }
                for (column, value) in cells {
                    if column.heading.is_some() {
                        separate(lines, start);
                        value.push_text(lines, column.width);
                    }
                }
                lines.push(b'\n');
                Ok(())
            }
            Sink::Json(lines) => {
                lines.extend_from_slice(b"{\"table\":\"");
                lines.extend_from_slice(layout.name.as_bytes());
                lines.push(b'"');
                for (column, value) in cells {
                    let Some(name) = column.name else { continue };
                    if !column.is_process {
                        push_key(lines, name, "");
                        value.push_json(lines)?;
                        continue;
                    }
                    let (id, name_of) = value.id_and_name();
                    push_key(lines, name, "process_id");
                    id.push_json(lines)?;
                    push_key(lines, name, "process_name");
                    name_of.push_json(lines)?;
                }
                lines.extend_from_slice(b"}\n");
                Ok(())
            }
            Sink::Csv(lines) => {
                let mut field = |value: &Value<'_>| -> io::Result<()> {
                    self.field.clear();
                    value.push_csv(&mut self.field);
                    lines.write_field(&self.field).map_err(csv_error)
                };
                for (column, value) in cells {
                    if column.name.is_none() {
                        continue;
                    }
                    if column.is_process {
                        let (id, name) = value.id_and_name();
                        field(&id)?;
                        field(&name)?;
                    } else {
                        field(value)?;
                    }
                }
                lines.write_record(None::<&[u8]>).map_err(csv_error)
            }
        }
    }
}

impl Sink {
    fn new(format: Format) -> Sink {
        match format {
            Format::Text => Sink::Text(Vec::new()),
            Format::Json => Sink::Json(Vec::new()),
            Format::Csv => Sink::Csv(Box::new(csv::Writer::from_writer(Vec::new()))),
        }
    }
}

impl Value<'_> {
    fn id_and_name(&self) -> (Value<'_>, Value<'_>) {
        match self {
            Value::Process(process) => (Value::number(process.id), Value::text(process.name)),
            _ => (Value::Unknown, Value::Unknown),
        }
    }

    /// Adds the text of the value to `line`, padded on the left to `width` characters.
    fn push_text(&self, line: &mut Vec<u8>, width: usize) {
        match *self {
            Value::Unknown => push_right(line, width, b"-"),
            Value::Time(ns) => push_right(
                line,
                width,
                itoa::Buffer::new().format(ns.div_euclid(1000)).as_bytes(),
            ),
            Value::Number(number) => {
                push_right(line, width, itoa::Buffer::new().format(number).as_bytes());
            }
            Value::Percent(share) => push_display(line, width, format_args!("{share:.2}")),
            Value::Hex(bits) => push_display(line, width, format_args!("{bits:#018x}")),
            Value::Flag(flag) => push_right(line, width, if flag { b"1" } else { b"0" }),
            Value::Word(word) => push_right(line, width, word.as_bytes()),
            Value::Text(text) => push_right(line, width, printable(text).as_bytes()),
            // xperf prints this name for an unknown module.
            Value::Module(name) => {
                let name = printable(name.unwrap_or("\"Unknown\""));
                push_right(line, width, name.as_bytes());
            }
            Value::Quoted(text) => {
                push_display(line, width, format_args!("\"{}\"", printable(text)));
            }
            Value::Process(process) => {
                let name = printable(process.name.unwrap_or("Unknown"));
                let mut id = itoa::Buffer::new();
                let id = process.id.map_or("-1", |process_id| id.format(process_id));
                let after = " (".len() + id.len().max(ID_WIDTH) + ")".len();
                push_right(line, width.saturating_sub(after), name.as_bytes());
                line.extend_from_slice(b" (");
                push_right(line, ID_WIDTH, id.as_bytes());
                line.push(b')');
            }
        }
    }

    fn push_json(&self, line: &mut Vec<u8>) -> io::Result<()> {
        match *self {
            Value::Unknown | Value::Module(None) | Value::Process(_) => {
                line.extend_from_slice(b"null");
            }
            Value::Time(number) | Value::Number(number) => push_number(line, number),
            Value::Percent(share) => push_display(line, 0, format_args!("{share:.4}")),
            Value::Hex(bits) => push_display(line, 0, format_args!("\"{bits:#x}\"")),
            Value::Flag(flag) => push_display(line, 0, format_args!("{flag}")),
            Value::Word(text)
            | Value::Text(text)
            | Value::Quoted(text)
            | Value::Module(Some(text)) => {
                serde_json::to_writer(line, text)?;
            }
        }
        Ok(())
    }

    fn push_csv(&self, line: &mut Vec<u8>) {
        match *self {
            Value::Unknown | Value::Module(None) | Value::Process(_) => {}
            Value::Time(number) | Value::Number(number) => push_number(line, number),
            Value::Percent(share) => push_display(line, 0, format_args!("{share:.4}")),
            Value::Hex(bits) => push_display(line, 0, format_args!("{bits:#x}")),
            Value::Flag(flag) => push_display(line, 0, format_args!("{flag}")),
            Value::Word(text)
            | Value::Text(text)
            | Value::Quoted(text)
            | Value::Module(Some(text)) => {
                line.extend_from_slice(csv_cell(text).as_bytes());
            }
        }
    }
}

fn push_key(line: &mut Vec<u8>, name: &str, rest: &str) {
    line.extend_from_slice(b",\"");
    line.extend_from_slice(name.as_bytes());
    line.extend_from_slice(rest.as_bytes());
    line.extend_from_slice(b"\":");
}

/// Adds a separator to `line`, except before the first cell. The current row begins at the index `start`.
fn separate(line: &mut Vec<u8>, start: usize) {
    if line.len() > start {
        line.extend_from_slice(b", ");
    }
}

/// Adds `text`, padded on the left to `width` characters.
fn push_right(line: &mut Vec<u8>, width: usize, text: &[u8]) {
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
    line.extend_from_slice(text);
}

fn push_number(line: &mut Vec<u8>, number: i64) {
    line.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Adds formatted text, padded on the left to `width` characters.
fn push_display(line: &mut Vec<u8>, width: usize, text: fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let start = line.len();
    let _ = line.write_fmt(text);
    let blanks = width.saturating_sub(line.len() - start);
    line.resize(line.len() + blanks, b' ');
    line[start..].rotate_right(blanks);
}

/// Returns the I/O error inside a CSV error, because callers must recognise a closed pipe.
fn csv_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// Escapes control characters in text from the trace, because they could control the terminal.
fn printable(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        text.into()
    } else {
        Printable(text).to_string().into()
    }
}
