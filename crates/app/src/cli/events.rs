//! `laglab events`.

use std::io::{self, Write};

use etl::Trace;
use facts::{Filter, Processes, Sieve};
use session::{StackModules, watched};
use wording::csv_cell;

use super::Failure;
use super::filter::FilterArgs;
use super::metadata::MetadataArgs;
use super::open::TraceFiles;
use super::symbols::SymbolArgs;
use crate::event_lines::{self, Choice, Line, Names};
use crate::output::{self, Format, csv_error};
use crate::watch::{Terminal, Watch};

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
    filter: FilterArgs,
    /// Show only these fields (comma-separated; case-insensitive)
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        help_heading = "Output"
    )]
    fields: Vec<String>,
    /// Show stacks below their events: one line for each address, with module and function
    #[arg(long, help_heading = "Output")]
    stacks: bool,
    /// Stop after N events
    #[arg(long, value_name = "N", help_heading = "Which events")]
    limit: Option<u64>,
    /// Format of the output (--json is --format json)
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    format: Format,
    #[command(flatten)]
    metadata: MetadataArgs,
    #[command(flatten)]
    symbols: SymbolArgs,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let mut decoder = args.metadata.decoder()?;
    let trace = args.trace.open()?;
    let filter = args.filter.filter(trace.clock())?;
    let size = trace.size_bytes();
    let processes = watched(&Terminal, "looking for metadata", size, |options| {
        Processes::learn(&mut decoder, &trace, options)
    })?;
    let modules = match args.stacks {
        true => watched(&Terminal, "looking for modules", size, |options| {
            StackModules::read(&trace, &args.symbols.options(), options)
        })?,
        false => StackModules::default(),
    };
    let choice = Choice {
        fields: args.fields.clone(),
        stacks: args.stacks,
    };
    let sieve = Sieve::new(&filter, &decoder, &processes, trace.clock());
    let names = Names {
        processes: &processes,
        modules: &modules,
    };
    let format = if json { Format::Json } else { args.format };
    let done = match format {
        Format::Text => {
            let mut out = output::for_people();
            event_lines::write_heading(&mut out)?;
            let done = walk(args, &filter, &trace, sieve, names, |line| {
                line.write_text(&mut out, &choice)
            });
            out.flush()?;
            done
        }
        Format::Json => {
            let mut out = output::for_json();
            let done = walk(args, &filter, &trace, sieve, names, |line| {
                line.write_json(&mut out, &choice)
            });
            out.flush()?;
            done
        }
        Format::Csv => {
            let mut out = csv::Writer::from_writer(output::for_programs());
            out.write_record(event_lines::csv_headings(&choice))
                .map_err(csv_error)?;
            let done = walk(args, &filter, &trace, sieve, names, |line| {
                let cells = line.to_csv(&choice);
                let cells = cells.iter().map(|cell| csv_cell(cell));
                for cell in cells {
                    out.write_field(&*cell).map_err(csv_error)?;
                }
                out.write_record(None::<&[u8]>).map_err(csv_error)
            });
            out.flush()?;
            done
        }
    };
    super::warn_of_missing_symbols(&modules.missing());
    done
}

/// Decodes the selected events in time order, and passes each of them to `write`.
fn walk(
    args: &Args,
    filter: &Filter,
    trace: &Trace,
    mut sieve: Sieve<'_>,
    names: Names<'_>,
    mut write: impl FnMut(&Line<'_, '_>) -> io::Result<()>,
) -> Result<(), Failure> {
    /// Number of events between two checks of progress and Ctrl-C.
    const STEP: u64 = 1024;
    let (from, to) = filter.range(trace.clock());
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
                names,
            })?;
            written += 1;
        }
    }
    drop(watch);
    super::warn_of_skipped_places(trace, events.damage());
    Ok(())
}
