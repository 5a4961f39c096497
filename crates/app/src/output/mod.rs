//! How things are written: aligned columns, headings, text that came from a trace.

mod columns;
mod evidence;
mod format;
mod printable;
mod wrapped;

use std::io::{self, BufWriter, Write};

pub(crate) use columns::{Columns, Side};
pub(crate) use evidence::{cell, side};
pub(crate) use explain::{duration, grouped, size};
pub(crate) use format::Format;
pub(crate) use printable::{Printable, Quoted};
pub(crate) use wrapped::width;

use anstyle::Style;

/// Standard output for people: colour only on a terminal that wants it.
pub(crate) fn for_people() -> impl Write {
    BufWriter::new(anstream::AutoStream::auto(io::stdout().lock()))
}

/// Standard output for programs.
pub(crate) fn for_programs() -> impl Write + Send {
    BufWriter::with_capacity(1 << 16, io::stdout())
}

/// Writes `value` as indented JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> io::Result<()> {
    let mut out = for_programs();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    out.flush()
}

const HEADING: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();
const WARNING: Style =
    Style::new().fg_color(Some(anstyle::Color::Ansi(anstyle::AnsiColor::Yellow)));

/// Writes the heading of a page's first section.
pub(crate) fn first_heading(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, "{HEADING}{text}{HEADING:#}")
}

/// Writes the heading of a further section, after an empty line.
pub(crate) fn heading(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out)?;
    first_heading(out, text)
}

/// Writes a line of text.
pub(crate) fn paragraph(out: &mut dyn Write, text: &str) -> io::Result<()> {
    styled(out, Style::new(), text)
}

/// Writes a line that must not be overlooked.
pub(crate) fn warning(out: &mut dyn Write, text: &str) -> io::Result<()> {
    styled(out, WARNING, text)
}

/// Writes a line that may be overlooked.
pub(crate) fn quiet(out: &mut dyn Write, text: &str) -> io::Result<()> {
    styled(out, QUIET, text)
}

/// Writes a line to be copied: it is not broken.
pub(crate) fn verbatim(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, "  {QUIET}{}{QUIET:#}", Printable(text))
}

/// Writes a line of text, which is broken where a terminal ends.
fn styled(out: &mut dyn Write, style: Style, text: &str) -> io::Result<()> {
    let text = Printable(text).to_string();
    for line in wrapped::lines(&text, wrapped::width().map(|width| width.saturating_sub(2))) {
        writeln!(out, "  {style}{line}{style:#}")?;
    }
    Ok(())
}

/// A FILETIME as ISO 8601 in UTC.
pub(crate) fn utc(filetime: i64) -> String {
    events::Value::FileTime(filetime.max(0).unsigned_abs()).to_string()
}

/// The error of writing CSV, without what the library wraps it in: a closed pipe must be known as
/// such.
pub(crate) fn csv_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
