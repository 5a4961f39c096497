//! `laglab trim`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use etl::Trace;
use etl::write::{WriteError, Writer};
use serde::Serialize;

use super::Failure;
use super::new_file::NewFile;
use super::open::TraceFiles;
use crate::event_filter::{Filter, Sieve};
use crate::metadata::MetadataFiles;
use crate::output::{self, grouped};
use crate::processes::Processes;
use crate::trim::{self, Counts, Redactor, Selection};
use crate::watch::Watch;

/// Writes the wanted events of a trace, and those without which they cannot be understood, as a
/// trace.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab trim trace.etl -o second.etl --from 12 --to 13\n  \
    laglab trim trace.etl -o notepad.etl --process notepad\n  \
    laglab trim kernel.etl user.etl -o one.etl\n  \
    laglab trim trace.etl -o to-share.etl --redact")]
pub(super) struct Args {
    #[command(flatten)]
    trace: TraceFiles,
    /// The file to write; one that is there is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    filter: Filter,
    /// Replace names, paths, command lines, users and network addresses by pseudonyms
    /// (docs/trim.md says exactly what)
    #[arg(long, help_heading = "To share it")]
    redact: bool,
    /// Make the pseudonyms from this secret, so that other traces have the same; without it they
    /// are of this one trace
    #[arg(
        long,
        value_name = "SECRET",
        requires = "redact",
        help_heading = "To share it"
    )]
    redact_key: Option<String>,
    #[command(flatten)]
    metadata: MetadataFiles,
}

/// What was written.
#[derive(Serialize)]
struct Report {
    output: String,
    bytes: u64,
    #[serde(flatten)]
    counts: Counts,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let mut decoder = args.metadata.decoder()?;
    let trace = args.trace.open()?;
    args.filter.check(trace.clock()).map_err(Failure::Input)?;
    if args.trace.are_at(&args.output) {
        return Err(Failure::input(
            &args.output,
            "is the trace itself; give another file to write",
        ));
    }
    let mut session = trim::session(&trace, &args.filter).map_err(Failure::Input)?;
    let new = NewFile::create(&args.output)?;
    let processes = Processes::learn(&mut decoder, &trace)?;
    let mut redactor = match args.redact {
        true => Some(Redactor::new(&decoder, args.redact_key.as_deref()).map_err(Failure::Input)?),
        false => None,
    };
    if let Some(redactor) = &redactor {
        redactor.redact_session(&mut session);
    }
    let failed = |error: WriteError| Failure::input(&args.output, error);
    let out = BufWriter::new(new.file());
    let mut writer = Writer::new(out, session).map_err(failed)?;
    let sieve = Sieve::new(&args.filter, &decoder, &processes, trace.clock());
    let selection = Selection::new(&args.filter, sieve);
    let counts = copy(
        &trace,
        selection,
        redactor.as_mut(),
        &mut writer,
        &args.output,
    )?;
    if counts.wanted == 0 {
        return Err(nothing_wanted(&counts));
    }
    writer.finish().map_err(failed)?;
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

/// Copies what is kept, in the order of time.
fn copy(
    trace: &Trace,
    mut selection: Selection<'_>,
    mut redactor: Option<&mut Redactor<'_>>,
    writer: &mut Writer<BufWriter<&File>>,
    path: &Path,
) -> Result<Counts, Failure> {
    /// Events between two looks at the clock and at Ctrl-C.
    const STEP: u64 = 1024;
    let watch = Watch::new("trimming", trace.size_bytes());
    let mut events = trace.events();
    let mut counts = Counts::default();
    loop {
        if counts.read.is_multiple_of(STEP) {
            watch.reach(events.bytes_read())?;
        }
        let Some(event) = events.next() else { break };
        counts.read += 1;
        if let Some(reason) = selection.reason(&event) {
            let redactor = redactor.as_deref_mut();
            trim::keep(writer, redactor, &event, reason, &mut counts)
                .map_err(|error| Failure::input(path, error))?;
        }
    }
    drop(watch);
    super::say_what_was_skipped(trace, events.damage());
    Ok(counts)
}

/// Why there is nothing to write.
fn nothing_wanted(counts: &Counts) -> Failure {
    let why = match counts.unredactable {
        0 => {
            "no event meets these conditions, so nothing was written; `laglab info` says from when \
             to when the trace is"
        }
        _ => {
            "no event that meets these conditions could be redacted, so nothing was written: \
             nothing describes them (--manifest may)"
        }
    };
    Failure::Input(why.to_owned())
}

fn write(report: &Report) -> Result<(), Failure> {
    let counts = &report.counts;
    let mut out = output::for_people();
    writeln!(
        out,
        "{}: {}, {} of {} events, and {} that tell what they mean",
        output::Printable(&report.output),
        output::size(report.bytes),
        grouped(counts.wanted),
        grouped(counts.read),
        grouped(counts.context),
    )?;
    if counts.unredactable > 0 {
        writeln!(
            out,
            "left out: {} events that tell of the machine or that nothing describes",
            grouped(counts.unredactable)
        )?;
    }
    if counts.out_of_order > 0 {
        writeln!(
            out,
            "left out: {} events that came too late to be put in the order of time",
            grouped(counts.out_of_order)
        )?;
    }
    out.flush()?;
    Ok(())
}
