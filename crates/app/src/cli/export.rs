//! `laglab export`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use export::{Part, firefox, parquet, pcapng, perfetto};
use serde::Serialize;
use session::NewFile;
use tables::Table;

use super::Failure;
use super::open::TabledTrace;
use super::scope::TimeArgs;
use crate::output::{self, Printable, counted, size};

/// Writes a trace in the format of another program.
#[derive(clap::Args)]
#[command(after_help = "The name given to -o selects the format:\n  \
    DIR/        Parquet, a folder of tables, for DuckDB, Spark, Arrow, pandas\n  \
    x.pftrace   a trace for Perfetto (https://ui.perfetto.dev)\n  \
    x.json      a profile for the Firefox Profiler (https://profiler.firefox.com)\n  \
    x.pcapng    the captured packets, for Wireshark\n\n\
    Examples:\n  \
    laglab export trace.etl -o trace.pftrace\n  \
    laglab export trace.etl -o profile.json --from 12 --to 15\n  \
    laglab export trace.etl -o fleet/ --name office-17\n  \
    laglab export trace.etl -o fleet/ --tables interrupts,cpu_runs")]
pub(super) struct Args {
    #[command(flatten)]
    trace: TabledTrace,
    /// File or folder to write; its name selects the format
    #[arg(short, long, value_name = "FILE|DIR")]
    output: PathBuf,
    #[command(flatten)]
    time: TimeArgs,
    /// Write only these tables (comma-separated; docs/tables.md lists them)
    #[arg(
        long,
        value_name = "TABLE",
        value_delimiter = ',',
        help_heading = "Parquet"
    )]
    tables: Vec<Table>,
    /// Name of the trace in the folder [default: name of its first file]
    #[arg(long, help_heading = "Parquet")]
    name: Option<String>,
}

/// Format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Parquet,
    Perfetto,
    Firefox,
    Pcapng,
}

impl Format {
    /// Returns the format for the extension of a path. A folder means Parquet.
    fn of(path: &Path) -> Result<Format, Failure> {
        let is_folder = path.is_dir()
            || path
                .as_os_str()
                .to_string_lossy()
                .ends_with(std::path::is_separator);
        let extension = path.extension().and_then(OsStr::to_str);
        match extension.map(str::to_ascii_lowercase).as_deref() {
            _ if is_folder => Ok(Format::Parquet),
            None => Ok(Format::Parquet),
            Some("pftrace") => Ok(Format::Perfetto),
            Some("json") => Ok(Format::Firefox),
            Some("pcapng") => Ok(Format::Pcapng),
            Some(_) => Err(Failure::input(
                path,
                "unknown format; give a folder (name/) for Parquet, .pftrace for Perfetto, .json for \
                 the Firefox Profiler or .pcapng for captured packets",
            )),
        }
    }
}

/// JSON output of `laglab export`. Programs rely on its fields.
#[derive(Serialize)]
struct Report {
    output: String,
    format: &'static str,
    files: u64,
    bytes: u64,
    /// Number of rows. Only for Parquet.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
    /// Number of slices that were left out because they overlap with too many other slices. Only for
    /// Perfetto.
    #[serde(skip_serializing_if = "Option::is_none")]
    slices_left_out: Option<u64>,
    /// Number of packets. Only for pcapng.
    #[serde(skip_serializing_if = "Option::is_none")]
    packets: Option<u64>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let format = Format::of(&args.output)?;
    if format != Format::Parquet && (!args.tables.is_empty() || args.name.is_some()) {
        let message = "--tables and --name need Parquet; give a folder (name/) as -o";
        return Err(Failure::Input(message.to_owned()));
    }
    if args.trace.is_at(&args.output) {
        let message = "this is an input file; give another file to write";
        return Err(Failure::input(&args.output, message));
    }
    let tables = args.trace.open_any()?;
    let range = args.time.range(&tables)?.unwrap_or(i64::MIN..i64::MAX);
    let part = |wanted: &[Table]| Part::new(&tables, range.clone(), wanted);
    let report = match format {
        Format::Parquet => {
            let wanted = if args.tables.is_empty() {
                Table::ALL
            } else {
                &args.tables
            };
            let name = args.name.clone().unwrap_or_else(|| args.trace.name());
            let written = parquet::write(&part(wanted)?, wanted, &args.output, &name)?;
            Report {
                output: args.output.display().to_string(),
                format: "parquet",
                files: written.files,
                bytes: written.bytes,
                rows: Some(written.rows),
                slices_left_out: None,
                packets: None,
            }
        }
        Format::Perfetto => {
            let part = part(&perfetto::TABLES)?;
            let (left_out, bytes) = to_file(&args.output, |file| perfetto::write(&part, file))?;
            Report {
                slices_left_out: Some(left_out),
                ..Report::of_file(&args.output, "perfetto", bytes)
            }
        }
        Format::Firefox => {
            let part = part(&firefox::TABLES)?;
            let ((), bytes) = to_file(&args.output, |file| firefox::write(&part, file))?;
            Report::of_file(&args.output, "firefox", bytes)
        }
        Format::Pcapng => {
            let part = part(&pcapng::TABLES)?;
            let (packets, bytes) = to_file(&args.output, |file| pcapng::write(&part, file))?;
            Report {
                packets: Some(packets),
                ..Report::of_file(&args.output, "pcapng", bytes)
            }
        }
    };
    super::warn_of_linux_damage(tables.store())?;
    if json {
        Ok(output::json(&report)?)
    } else {
        write(&report)
    }
}

/// Writes a file that appears under its name only when it is complete. Returns the result of `write` and the
/// size in bytes.
fn to_file<T>(
    path: &Path,
    write: impl FnOnce(&File) -> Result<T, export::Error>,
) -> Result<(T, u64), Failure> {
    let new = NewFile::create(path)?;
    let written = write(new.file()).map_err(|error| match error {
        export::Error::Write(error) => Failure::writing(path, &error),
        other => other.into(),
    })?;
    Ok((written, new.finish()?))
}

impl Report {
    fn of_file(path: &Path, format: &'static str, bytes: u64) -> Report {
        Report {
            output: path.display().to_string(),
            format,
            files: 1,
            bytes,
            rows: None,
            slices_left_out: None,
            packets: None,
        }
    }
}

fn write(report: &Report) -> Result<(), Failure> {
    let mut out = output::for_people();
    let what = match (report.rows, report.packets) {
        (Some(rows), _) => format!(
            "{} in {}, ",
            counted(rows, "row", "rows"),
            counted(report.files, "table", "tables")
        ),
        (None, Some(packets)) => format!("{}, ", counted(packets, "packet", "packets")),
        (None, None) => String::new(),
    };
    writeln!(
        out,
        "{}: {what}{}",
        Printable(&report.output),
        size(report.bytes)
    )?;
    if let Some(left_out @ 1..) = report.slices_left_out {
        writeln!(
            out,
            "left out: {}, because too many slices overlap",
            counted(left_out, "slice", "slices")
        )?;
    }
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_select_the_format() {
        for (name, format) in [
            ("a.pftrace", Some(Format::Perfetto)),
            ("a.JSON", Some(Format::Firefox)),
            ("a.pcapng", Some(Format::Pcapng)),
            ("no/such/folder", Some(Format::Parquet)),
            ("2024.05/", Some(Format::Parquet)),
            (".", Some(Format::Parquet)),
            ("a.parquet", None),
            ("a.xlsx", None),
        ] {
            assert_eq!(Format::of(Path::new(name)).ok(), format, "{name}");
        }
    }
}
