//! Standard output: headings, paragraphs, aligned columns, JSON.

mod format;
mod wrap;

use std::io::{self, BufWriter, Write};

pub(crate) use answer::csv_error;
pub(crate) use format::Format;
use wording::JsonText;
pub(crate) use wording::{
    Columns, Printable, Quoted, Side, counted, duration, grouped, moment, size,
};
pub(crate) use wrap::width;

use anstyle::Style;

/// Returns standard output for text, with colours only on a terminal that supports them.
pub(crate) fn for_people() -> impl Write {
    BufWriter::new(anstream::AutoStream::auto(io::stdout().lock()))
}

/// Returns standard output for programs, without colours.
pub(crate) fn for_programs() -> impl Write + Send {
    BufWriter::with_capacity(1 << 16, io::stdout())
}

/// Returns standard output for JSON.
pub(crate) fn for_json() -> impl Write + Send {
    JsonText::new(for_programs())
}

/// Writes `value` as indented JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> io::Result<()> {
    let mut out = for_json();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    out.flush()
}

/// Writes `value` as JSON in one line.
pub(crate) fn json_line(value: &impl serde::Serialize) -> io::Result<()> {
    let mut out = for_json();
    serde_json::to_writer(&mut out, value)?;
    writeln!(out)?;
    out.flush()
}

const HEADING: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();
const WARNING: Style =
    Style::new().fg_color(Some(anstyle::Color::Ansi(anstyle::AnsiColor::Yellow)));

/// Formats a fraction as a percentage with at most two decimals.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 100.0)
}

/// Writes the heading of the first section of the output. Like all functions that write texts, it escapes harmful
/// characters of names in the text.
pub(crate) fn first_heading(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, "{HEADING}{}{HEADING:#}", Printable(text))
}

/// Writes an empty line and the heading of a later section.
pub(crate) fn heading(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out)?;
    first_heading(out, text)
}

/// Writes a text, wrapped to the width of the terminal.
pub(crate) fn paragraph(out: &mut dyn Write, text: &str) -> io::Result<()> {
    styled(out, Style::new(), text)
}

/// Writes a highlighted text.
pub(crate) fn warning(out: &mut dyn Write, text: &str) -> io::Result<()> {
    styled(out, WARNING, text)
}

/// Writes a dimmed text with secondary information.
pub(crate) fn quiet(out: &mut dyn Write, text: &str) -> io::Result<()> {
    styled(out, QUIET, text)
}

/// Writes a text that the user can copy. It is not wrapped.
pub(crate) fn verbatim(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, "  {QUIET}{}{QUIET:#}", Printable(text))
}

/// Writes a styled text, wrapped to the width of the terminal.
fn styled(out: &mut dyn Write, style: Style, text: &str) -> io::Result<()> {
    let text = Printable(text).to_string();
    for line in wrap::lines(&text, wrap::width().map(|width| width.saturating_sub(2))) {
        writeln!(out, "  {style}{line}{style:#}")?;
    }
    Ok(())
}

/// Look of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Heading,
    Plain,
    Quiet,
    Warning,
}

/// Writes a line that fits the terminal.
pub(crate) fn line(out: &mut dyn Write, look: Look, text: &str) -> io::Result<()> {
    let style = match look {
        Look::Heading => HEADING,
        Look::Plain => Style::new(),
        Look::Quiet => QUIET,
        Look::Warning => WARNING,
    };
    writeln!(out, "{style}{}{style:#}", Printable(text))
}

/// Wraps a text at spaces to lines of at most `width` columns.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    wrap::indented(&Printable(text).to_string(), width, 0)
}
/// Prints a warning, an error or a message on stderr.
pub(crate) fn say(what: &str) {
    let mut out = anstream::stderr();
    for (number, line) in what.lines().enumerate() {
        let start = if number == 0 { "laglab: " } else { "" };
        // If stderr is closed, the message is lost.
        let _ = writeln!(out, "{start}{}", Printable(line));
    }
}
