//! `laglab events`.

use std::io::{self, Write};

use etl::Trace;

use super::Failure;
use super::open::TraceFiles;
use crate::event_filter::{Filter, Sieve};
use crate::event_lines::{self, Around, Choice, Line};
use crate::metadata::MetadataFiles;
use crate::output::{self, Format};
use crate::processes::Processes;
use crate::stack_modules::StackModules;
use crate::symbolication::SymbolOptions;
use crate::watch::Watch;

/// Prints decoded events in time order.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab events trace.etl --limit 20\n  \
    laglab events trace.etl --event CSwitch --cpu 3 --from 1.5 --to 1.6\n  \
    laglab events trace.etl --provider Kernel-Process --json\n  \
    laglab events trace.etl --event DiskIo/Read --fields TransferSize,IrpFlags --format csv\n  \
    laglab events trace.etl --process notepad --from 2024-05-01T12:00:00Z --stacks\n  \
    laglab events trace.etl --event SampledProfile --stacks --symbols 'srv*symbols'")]
pub(super) struct Args {
    #[command(flatten)]
    trace: TraceFiles,
    #[command(flatten)]
    filter: Filter,
    /// Show only these fields, in any case (comma-separated)
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        help_heading = "What of them"
    )]
    fields: Vec<String>,
    /// Show stacks as lines of their own, with the modules and functions of their addresses
    #[arg(long, help_heading = "What of them")]
    stacks: bool,
    /// Stop after so many events
    #[arg(long, value_name = "N", help_heading = "Which events")]
    limit: Option<u64>,
    /// How to write them (--json is --format json)
    #[arg(long, value_enum, default_value_t, help_heading = "What of them")]
    format: Format,
    #[command(flatten)]
    metadata: MetadataFiles,
    #[command(flatten)]
    symbols: SymbolOptions,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let mut decoder = args.metadata.decoder()?;
    let trace = args.trace.open()?;
    args.filter.check(trace.clock()).map_err(Failure::Input)?;
    let processes = Processes::learn(&mut decoder, &trace)?;
    let modules = match args.stacks {
        true => StackModules::read(&trace, &args.symbols)?,
        false => StackModules::default(),
    };
    let choice = Choice {
        fields: args.fields.clone(),
        stacks: args.stacks,
    };
    let sieve = Sieve::new(&args.filter, &decoder, &processes, trace.clock());
    let around = Around {
        processes: &processes,
        modules: &modules,
    };
    let format = if json { Format::Json } else { args.format };
    let done = match format {
        Format::Text => {
            let mut out = output::for_people();
            event_lines::write_heading(&mut out)?;
            let done = walk(args, &trace, sieve, around, |line| {
                line.write_text(&mut out, &choice)
            });
            out.flush()?;
            done
        }
        Format::Json => {
            let mut out = output::for_programs();
            let done = walk(args, &trace, sieve, around, |line| {
                line.write_json(&mut out, &choice)
            });
            out.flush()?;
            done
        }
        Format::Csv => {
            let mut out = csv::Writer::from_writer(output::for_programs());
            let as_io = |e: csv::Error| match e.into_kind() {
                csv::ErrorKind::Io(e) => e,
                other => io::Error::other(format!("{other:?}")),
            };
            out.write_record(event_lines::csv_headings(&choice))
                .map_err(as_io)?;
            let done = walk(args, &trace, sieve, around, |line| {
                out.write_record(line.to_csv(&choice)).map_err(as_io)
            });
            out.flush()?;
            done
        }
    };
    super::say_what_lacks_symbols(&modules.missing());
    done
}

/// Gives the wanted events in time order to `write`.
fn walk(
    args: &Args,
    trace: &Trace,
    mut sieve: Sieve<'_>,
    around: Around<'_>,
    mut write: impl FnMut(&Line<'_, '_>) -> io::Result<()>,
) -> Result<(), Failure> {
    /// Events between two looks at the clock and at Ctrl-C.
    const STEP: u64 = 1024;
    let (from, to) = args.filter.range(trace.clock());
    let mut events = trace.events().within(from, to);
    let mut watch = Watch::new("reading", trace.size_bytes());
    if io::IsTerminal::is_terminal(&io::stdout()) {
        watch = watch.quiet();
    }
    let (mut seen, mut written, mut bytes) = (0u64, 0u64, 0u64);
    while args.limit.is_none_or(|limit| written < limit) {
        if seen.is_multiple_of(STEP) {
            let now = events.bytes_read();
            watch.advance(now - bytes)?;
            bytes = now;
        }
        seen += 1;
        let Some(event) = events.next() else { break };
        if let Some(decoded) = sieve.pass(&event) {
            write(&Line {
                event: &event,
                decoded: &decoded,
                around,
            })?;
            written += 1;
        }
    }
    drop(watch);
    super::say_what_was_skipped(trace, events.damage());
    Ok(())
}
