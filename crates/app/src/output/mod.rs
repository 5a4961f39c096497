//! How things are written: aligned columns, headings, text that came from a trace.

mod columns;
mod format;
mod printable;

use std::io::{self, BufWriter, Write};

pub(crate) use columns::{Columns, Side};
pub(crate) use format::Format;
pub(crate) use printable::{Printable, Quoted};

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
    writeln!(out, "  {}", Printable(text))
}

/// Writes a line that must not be overlooked.
pub(crate) fn warning(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, "  {WARNING}{}{WARNING:#}", Printable(text))
}

/// Writes a line that may be overlooked.
pub(crate) fn quiet(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, "  {QUIET}{}{QUIET:#}", Printable(text))
}

/// A number with its thousands apart.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in the unit that suits them.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..10_240 => format!("{bytes} B"),
        10_240..10_485_760 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        10_485_760..10_737_418_240 => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", bytes as f64 / 1_073_741_824.0),
    }
}

/// A stretch of time in the unit that suits it.
pub(crate) fn duration(ns: i64) -> String {
    match ns.unsigned_abs() {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        1_000_000_000..100_000_000_000 => format!("{:.3} s", ns as f64 / 1e9),
        seconds => {
            let sign = if ns < 0 { "-" } else { "" };
            let seconds = seconds / 1_000_000_000;
            let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            match hours {
                0 => format!("{sign}{minutes} min {seconds:02} s"),
                _ => format!("{sign}{hours} h {minutes:02} min"),
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_easily() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(size(2048), "2048 B");
        assert_eq!(size(43 << 20), "43.0 MiB");
        assert_eq!(duration(950), "950 ns");
        assert_eq!(duration(-1_500_000), "-1.5 ms");
        assert_eq!(duration(10_069_975_600), "10.070 s");
        assert_eq!(duration(-242_500_000_000), "-4 min 02 s");
        assert_eq!(duration(3_725_000_000_000), "1 h 02 min");
    }
}
