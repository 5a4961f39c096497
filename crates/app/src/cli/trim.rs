//! `laglab trim`.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use etl::write::{WriteError, Writer};
use facts::{Processes, Sieve};
use import_linux::{LinuxDecoder, LinuxRecording};
use serde::Serialize;
use session::{NewFile, watched};
use trim::{CopyError, Counts, Redactor, Selection};

use super::Failure;
use super::filter::FilterArgs;
use super::metadata::MetadataArgs;
use super::open::{TabledTrace, TraceFiles};
use crate::output::{self, counted, grouped};
use crate::watch::Terminal;

/// Writes selected events of a trace, and the events needed to understand them, as a new trace.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab trim trace.etl -o second.etl --from 12 --to 13\n  \
    laglab trim trace.etl -o notepad.etl --process notepad\n  \
    laglab trim kernel.etl user.etl -o one.etl\n  \
    laglab trim trace.etl -o to-share.etl --redact")]
pub(super) struct Args {
    #[command(flatten)]
    trace: TraceFiles,
    /// File to write or replace
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    filter: FilterArgs,
    /// Replace names, paths, command lines, users and network addresses by pseudonyms (docs/trim.md
    /// lists everything)
    #[arg(long, help_heading = "Redaction")]
    redact: bool,
    /// Derive the pseudonyms from this secret, so that traces with the same secret share them
    /// [default: different for every trace]
    #[arg(
        long,
        value_name = "SECRET",
        requires = "redact",
        help_heading = "Redaction"
    )]
    redact_key: Option<String>,
    #[command(flatten)]
    metadata: MetadataArgs,
}

/// Error for conditions with which `trim` cannot select a part of a recording of Linux.
const ONLY_TIME: &str = "a part of a recording of Linux can only be a time range; give --from and --to, and no other \
                         condition nor --redact";

/// JSON output of `laglab trim`. Programs rely on its fields.
#[derive(Serialize)]
struct Report {
    output: String,
    bytes: u64,
    #[serde(flatten)]
    counts: Counts,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    if let Some(trace) = args.trace.of_linux() {
        return of_linux(args, &trace, json);
    }
    let mut decoder = args.metadata.decoder()?;
    let trace = args.trace.open()?;
    let info = import_windows::info_of(&trace);
    let filter = args.filter.filter(&info)?;
    if args.trace.are_at(&args.output) {
        return Err(Failure::input(
            &args.output,
            "this is an input file; give another file to write",
        ));
    }
    let mut session = trim::session(&trace, &filter)?;
    let new = NewFile::create(&args.output)?;
    let size = trace.size_bytes();
    let processes = watched(&Terminal, "looking for metadata", size, |options| {
        Processes::learn(&mut decoder, &trace, options)
    })?;
    let mut redactor = if args.redact {
        Some(Redactor::new(&decoder, args.redact_key.as_deref())?)
    } else {
        None
    };
    if let Some(redactor) = &redactor {
        redactor.redact_session(&mut session);
    }
    let failed = |error: WriteError| Failure::writing(&args.output, &error);
    let out = BufWriter::new(new.file());
    let mut writer = Writer::new(out, session).map_err(failed)?;
    let sieve = Sieve::new(&filter, &decoder, &processes);
    let selection = Selection::new(&filter, sieve);
    let (counts, damage) = watched(&Terminal, "trimming", size, |options| {
        trim::copy(&trace, selection, redactor.as_mut(), &mut writer, options)
    })
    .map_err(|error| match error {
        CopyError::Cancelled(_) => Failure::Interrupted,
        CopyError::Write(error) => failed(error),
    })?;
    super::warn_of_skipped_places(&trace, &damage);
    if counts.wanted == 0 {
        return Err(no_events(&counts, || {
            args.filter.absent(&info, || args.trace.tables())
        }));
    }
    writer.finish().map_err(failed)?;
    report(args, new, counts, json)
}

/// Writes a time range of a recording of Linux.
fn of_linux(args: &Args, trace: &TabledTrace, json: bool) -> Result<(), Failure> {
    let tables = trace.open_any()?;
    let input = args.trace.linux_file();
    let (Some(recording), Some(input)) = (LinuxRecording::of(tables.store()), input) else {
        return Ok(());
    };
    tables.make(&[tables::Table::Damages])?;
    super::warn_of_linux_damage(tables.store())?;
    let (recording, info) = (recording.events(), tables.store().info());
    let filter = args.filter.filter(info)?;
    if args.redact || !filter.is_only_time() {
        return Err(Failure::input(input, ONLY_TIME));
    }
    if args.trace.are_at(&args.output) {
        return Err(Failure::input(
            &args.output,
            "this is an input file; give another file to write",
        ));
    }
    let (from, to) = filter.range();
    let range = LinuxDecoder::new(recording).clock_range(from, to);
    let new = NewFile::create(&args.output)?;
    let mut out = BufWriter::new(new.file());
    let written = recording.write_part(range, &mut out);
    let written = written.map_err(|error| Failure::input(input, error))?;
    let flushed = out.flush();
    drop(out);
    flushed.map_err(|error| Failure::writing(&args.output, &error))?;
    let counts = Counts {
        read: written.read,
        wanted: written.samples,
        context: written.others,
        ..Counts::default()
    };
    if counts.wanted == 0 {
        return Err(no_events(&counts, || {
            args.filter.absent(info, || trace.open_any())
        }));
    }
    report(args, new, counts, json)
}

/// Gives the finished file its final name, and prints the counts.
fn report(args: &Args, new: NewFile, counts: Counts, json: bool) -> Result<(), Failure> {
    let bytes = new.finish()?;
    let report = Report {
        output: args.output.display().to_string(),
        bytes,
        counts,
    };
    if json {
        return Ok(output::json(&report)?);
    }
    write(&report)
}

/// Returns the error for conditions that no event meets. It states what the trace lacks, which `absent` returns.
fn no_events(counts: &Counts, absent: impl FnOnce() -> Result<Option<String>, Failure>) -> Failure {
    if counts.unredactable > 0 {
        return Failure::Input(
            "nothing was written: the selected events cannot be redacted, because their fields are \
             unknown; give their manifest with --manifest"
                .to_owned(),
        );
    }
    match absent() {
        Ok(Some(reason)) => Failure::Input(format!("nothing was written: {reason}")),
        Err(Failure::Interrupted) => Failure::Interrupted,
        Ok(None) | Err(_) => Failure::Input(
            "nothing was written: no event meets these conditions; `laglab info` prints start and \
             end of the trace"
                .to_owned(),
        ),
    }
}

fn write(report: &Report) -> Result<(), Failure> {
    let counts = &report.counts;
    let mut out = output::for_people();
    writeln!(
        out,
        "{}: {}, with {} of {}, and {} more that are needed to understand them",
        output::Printable(&report.output),
        output::size(report.bytes),
        grouped(counts.wanted),
        counted(counts.read, "event", "events"),
        grouped(counts.context),
    )?;
    if counts.unredactable > 0 {
        writeln!(
            out,
            "left out: {}, because they identify the machine or have unknown fields",
            counted(counts.unredactable, "event", "events")
        )?;
    }
    if counts.out_of_order > 0 {
        writeln!(
            out,
            "left out: {}, because they are too far out of time order",
            counted(counts.out_of_order, "event", "events")
        )?;
    }
    out.flush()?;
    Ok(())
}
