//! Rows of a report as text in xperf's layout, as CSV, or as JSON lines.
//!
//! Text has xperf's headings and units: fields with commas between them, times in microseconds.
//! CSV and JSON have the names and units of our tables.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;

use rayon::prelude::*;

use tables::Process;

use crate::output::{self, Format, Printable, csv_error};

/// A table of a report.
pub(crate) struct Layout {
    /// Its name, which each JSON line carries.
    pub(crate) name: &'static str,
    /// Lines of text begin with a label, as xperf's lines of events do.
    pub(crate) labelled: bool,
    /// Its columns.
    pub(crate) columns: &'static [Column],
}

/// A column of a report.
pub(crate) struct Column {
    heading: Option<&'static str>,
    width: usize,
    name: Option<&'static str>,
    is_process: bool,
}

impl Column {
    /// A column of all formats. Headings begin with blanks where values are wider.
    pub(crate) const fn new(heading: &'static str, name: &'static str) -> Column {
        Column {
            heading: Some(heading),
            width: heading.len(),
            name: Some(name),
            is_process: false,
        }
    }

    /// A process: `name ( id)` in text, elsewhere `…process_id` and `…process_name`, of which
    /// `prefix` is the beginning.
    pub(crate) const fn process(heading: &'static str, prefix: &'static str) -> Column {
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

    /// A column that xperf has and our tables do not.
    pub(crate) const fn text_only(heading: &'static str) -> Column {
        Column {
            heading: Some(heading),
            width: heading.len(),
            name: None,
            is_process: false,
        }
    }

    /// A column that our tables have and that xperf's layout says otherwise.
    pub(crate) const fn data_only(name: &'static str) -> Column {
        Column {
            heading: None,
            width: 0,
            name: Some(name),
            is_process: false,
        }
    }
}

/// A cell.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    /// Not known.
    Unknown,
    /// Nanoseconds; text shows whole microseconds.
    Time(i64),
    /// A number.
    Number(i64),
    /// A share.
    Percent(f64),
    /// An address or a set of bits.
    Hex(u64),
    /// Yes or no.
    Flag(bool),
    /// A word of ours.
    Word(&'static str),
    /// Text of the trace.
    Text(&'a str),
    /// A module or function, if it is known.
    Module(Option<&'a str>),
    /// Text of the trace that is quoted, since it may hold commas.
    Quoted(&'a str),
    /// A process.
    Process(Process<'a>),
}

impl<'a> Value<'a> {
    /// A time that may be unknown.
    pub(crate) fn time(ns: Option<i64>) -> Value<'a> {
        ns.map_or(Value::Unknown, Value::Time)
    }

    /// A number that may be unknown.
    pub(crate) fn number<N: Into<i64>>(number: Option<N>) -> Value<'a> {
        number.map_or(Value::Unknown, |number| Value::Number(number.into()))
    }

    /// A count or number of bytes.
    pub(crate) fn count(count: u64) -> Value<'a> {
        Value::Number(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// A set of bits that may be unknown.
    pub(crate) fn hex(bits: Option<u64>) -> Value<'a> {
        bits.map_or(Value::Unknown, Value::Hex)
    }

    /// A flag that may be unknown.
    pub(crate) fn flag(flag: Option<bool>) -> Value<'a> {
        flag.map_or(Value::Unknown, Value::Flag)
    }

    /// Quoted text that may be unknown.
    pub(crate) fn quoted(text: Option<&'a str>) -> Value<'a> {
        text.map_or(Value::Unknown, Value::Quoted)
    }

    /// Text that may be unknown.
    pub(crate) fn text(text: Option<&'a str>) -> Value<'a> {
        text.map_or(Value::Unknown, Value::Text)
    }
}

/// Writes a report.
pub(crate) struct Writer {
    out: Box<dyn Write + Send>,
    lines: Lines,
    /// Lines that threads make side by side.
    parts: Vec<Lines>,
}

/// Lines that are not written yet.
pub(crate) struct Lines {
    layout: Option<&'static Layout>,
    sink: Sink,
    /// A field of CSV.
    field: Vec<u8>,
}

enum Sink {
    Text(Vec<u8>),
    Json(Vec<u8>),
    Csv(Box<csv::Writer<Vec<u8>>>),
}

/// Lines are written when they are so many bytes.
const BYTES_AT_ONCE: usize = 1 << 16;

/// Rows that a thread makes lines of at once.
const ROWS_AT_ONCE: usize = 1 << 10;

/// Width of the labels that lines of text begin with.
const LABEL_WIDTH: usize = 23;

/// Width of process ids within their column.
const ID_WIDTH: usize = 4;

impl Writer {
    /// Writes to standard output.
    pub(crate) fn new(format: Format) -> Writer {
        Writer {
            out: Box::new(output::for_programs()),
            lines: Lines::new(format),
            parts: Vec::new(),
        }
    }

    /// Where a report that has a layout of its own writes its text; `None` if CSV or JSON is
    /// wanted.
    pub(crate) fn page(&mut self) -> Option<&mut dyn Write> {
        match &mut self.lines.sink {
            Sink::Text(page) => Some(page),
            Sink::Json(_) | Sink::Csv(_) => None,
        }
    }

    /// Whether several tables can be written.
    pub(crate) fn holds_several(&self) -> bool {
        self.lines.format() != Format::Csv
    }

    /// Begins a table.
    pub(crate) fn table(&mut self, layout: &'static Layout) -> io::Result<()> {
        self.lines.layout = Some(layout);
        self.lines.headings(layout)
    }

    /// Writes a row of the table; one value per column.
    pub(crate) fn row<const N: usize>(
        &mut self,
        label: &str,
        values: &[Value<'_>; N],
    ) -> io::Result<()> {
        self.lines.row(label, values)?;
        match self.lines.len() {
            ..BYTES_AT_ONCE => Ok(()),
            _ => self.lines.write_to(&mut self.out),
        }
    }

    /// Writes many rows, in the order of their numbers; `make` adds the line of one, if it is to
    /// have one. Threads make them side by side.
    pub(crate) fn rows(
        &mut self,
        numbers: Range<usize>,
        make: impl Fn(usize, &mut Lines) -> io::Result<()> + Sync,
    ) -> io::Result<()> {
        let (format, layout) = (self.lines.format(), self.lines.layout);
        // Some for each thread, since not all are equally quick.
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

    /// Writes all that is still held back.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
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

    /// How many bytes they are; of CSV, about.
    fn len(&self) -> usize {
        match &self.sink {
            Sink::Text(lines) | Sink::Json(lines) => lines.len(),
            Sink::Csv(lines) => lines.get_ref().len(),
        }
    }

    /// Writes them.
    fn write_to(&mut self, out: &mut dyn Write) -> io::Result<()> {
        match &mut self.sink {
            Sink::Text(lines) | Sink::Json(lines) => {
                out.write_all(lines)?;
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

    /// Adds the headings of a table, if the format has such.
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

    /// Adds the line of a row; one value per column.
    pub(crate) fn row<const N: usize>(
        &mut self,
        label: &str,
        values: &[Value<'_>; N],
    ) -> io::Result<()> {
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

    /// Adds the value, with blanks before it up to the width.
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
            // What xperf calls it.
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
                line.extend_from_slice(text.as_bytes());
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

/// Separates a cell from the one before it, if there is one in the line that begins at `start`.
fn separate(line: &mut Vec<u8>, start: usize) {
    if line.len() > start {
        line.extend_from_slice(b", ");
    }
}

/// Adds text with blanks before it up to the width.
fn push_right(line: &mut Vec<u8>, width: usize, text: &[u8]) {
    // A copy of a fixed number of bytes costs less than filling as many as are needed.
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

/// Adds what is formatted, with blanks before it up to the width.
fn push_display(line: &mut Vec<u8>, width: usize, text: fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let start = line.len();
    let _ = line.write_fmt(text);
    let blanks = width.saturating_sub(line.len() - start);
    line.resize(line.len() + blanks, b' ');
    line[start..].rotate_right(blanks);
}

/// Text of the trace, which must not control the terminal.
fn printable(text: &str) -> Cow<'_, str> {
    match text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        true => text.into(),
        false => Printable(text).to_string().into(),
    }
}
