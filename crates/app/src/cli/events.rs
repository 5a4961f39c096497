//! `laglab events`.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::Arc;

use etl::Trace;
use events::Decoder;
use facts::{Filter, KindNames, LinuxSieve, Processes, Sieve};
use import_linux::{LinuxDecoder, LinuxRecording};
use session::{MissingSymbols, StackModules, TraceTables, watched};
use wording::csv_cell;

use super::Failure;
use super::filter::FilterArgs;
use super::metadata::MetadataArgs;
use super::open::TraceFiles;
use super::symbols::SymbolArgs;
use crate::event_lines::{self, Choice, Header, Line, Names};
use crate::output::say;
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
    laglab events trace.etl --event SampledProfile --stacks --symbols 'srv*symbols'\n  \
    laglab events perf.data --event 'sched:sched_switch' --process firefox")]
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
    let format = if json { Format::Json } else { args.format };
    let choice = Choice {
        fields: args.fields.clone(),
        stacks: args.stacks,
    };
    match args.trace.of_linux() {
        Some(recording) => {
            let tables = recording.open_any()?;
            let mut out = Lines::new(format, choice)?;
            let missing = of_linux(args, &tables, &mut out)?;
            out.finish(&missing)
        }
        None => {
            let mut decoder = args.metadata.decoder()?;
            let trace = args.trace.open()?;
            let filter = args.filter.filter(&import_windows::info_of(&trace))?;
            let mut out = Lines::new(format, choice)?;
            let missing = of_windows(args, &mut decoder, &trace, &filter, &mut out)?;
            out.finish(&missing)
        }
    }
}

/// Output of events in the chosen format.
struct Lines {
    choice: Choice,
    /// Selected fields that no written event had.
    absent: Vec<String>,
    /// Some names of fields of the written events.
    known: BTreeSet<String>,
    out: Sink,
}

/// Maximum number of names in [`Lines::known`].
const MAX_KNOWN: usize = 1000;

enum Sink {
    Text(Box<dyn Write>),
    Json(Box<dyn Write>),
    Csv(Box<csv::Writer<Box<dyn Write>>>),
}

impl Lines {
    fn new(format: Format, choice: Choice) -> io::Result<Lines> {
        let out = match format {
            Format::Text => {
                let mut out = output::for_people();
                event_lines::write_heading(&mut out)?;
                Sink::Text(Box::new(out))
            }
            Format::Json => Sink::Json(Box::new(output::for_json())),
            Format::Csv => {
                let to: Box<dyn Write> = Box::new(output::for_programs());
                let mut out = csv::Writer::from_writer(to);
                out.write_record(event_lines::csv_headings(&choice))
                    .map_err(csv_error)?;
                Sink::Csv(Box::new(out))
            }
        };
        Ok(Lines {
            absent: choice.fields.clone(),
            known: BTreeSet::new(),
            choice,
            out,
        })
    }

    fn write(&mut self, line: &Line<'_, '_>) -> io::Result<()> {
        if !self.absent.is_empty() {
            let names = line.decoded.fields.values.iter();
            for name in names.map(|(name, _)| name) {
                self.absent.retain(|it| !it.eq_ignore_ascii_case(name));
                if self.known.len() < MAX_KNOWN && !self.known.contains(&**name) {
                    self.known.insert(name.to_string());
                }
            }
        }
        match &mut self.out {
            Sink::Text(out) => line.write_text(out, &self.choice),
            Sink::Json(out) => line.write_json(out, &self.choice),
            Sink::Csv(out) => {
                let cells = line.to_csv(&self.choice);
                for cell in cells.iter().map(|cell| csv_cell(cell)) {
                    out.write_field(&*cell).map_err(csv_error)?;
                }
                out.write_record(None::<&[u8]>).map_err(csv_error)
            }
        }
    }

    /// Ends the output, and warns of absent fields and of modules without symbols.
    fn finish(self, missing: &[MissingSymbols]) -> Result<(), Failure> {
        match self.out {
            Sink::Text(mut out) | Sink::Json(mut out) => out.flush()?,
            Sink::Csv(mut out) => out.flush()?,
        }
        for absent in self.absent.iter().filter(|_| !self.known.is_empty()) {
            let near = wording::closest(absent, self.known.iter().map(String::as_str), 3);
            say(&format!(
                "--fields: no event above has a field {absent}; the closest fields are {}",
                near.join(", ")
            ));
        }
        super::warn_of_missing_symbols(missing);
        Ok(())
    }
}

/// Number of events between two checks of progress and Ctrl-C.
const STEP: u64 = 1024;

/// Returns the progress display. If standard output is a terminal, the display is hidden, because the printed events
/// show the progress.
fn watch(size_bytes: u64) -> Watch {
    let watch = Watch::new("reading", size_bytes);
    if io::IsTerminal::is_terminal(&io::stdout()) {
        watch.quiet()
    } else {
        watch
    }
}

/// Writes the selected events of a trace of Windows in time order. Returns the modules whose symbols are missing.
fn of_windows(
    args: &Args,
    decoder: &mut Decoder,
    trace: &Trace,
    filter: &Filter,
    out: &mut Lines,
) -> Result<Vec<MissingSymbols>, Failure> {
    let size = trace.size_bytes();
    let processes = watched(&Terminal, "looking for metadata", size, |options| {
        Processes::learn(decoder, trace, options)
    })?;
    let modules = if args.stacks {
        watched(&Terminal, "looking for modules", size, |options| {
            StackModules::read(trace, &args.symbols.options(), options)
        })?
    } else {
        StackModules::default()
    };
    let names = Names {
        processes: &processes,
        modules: &modules,
    };
    let mut sieve = Sieve::new(filter, decoder, &processes);
    let (from, to) = filter.range();
    let mut events = trace.events().within(from, to);
    let watch = watch(size);
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
            let header = Header::of_windows(&event, &decoded, &out.choice);
            out.write(&Line {
                header,
                decoded: &decoded,
                names,
            })?;
            written += 1;
        }
    }
    drop(watch);
    note_none(args, written, sieve.names(), || {
        (args.filter).absent(&import_windows::info_of(trace), || args.trace.tables())
    })?;
    super::warn_of_skipped_places(trace, events.damage());
    Ok(modules.missing())
}

/// Writes the selected events of a recording of Linux in time order. Returns the modules whose symbols are missing.
fn of_linux(
    args: &Args,
    tables: &TraceTables,
    out: &mut Lines,
) -> Result<Vec<MissingSymbols>, Failure> {
    let store = tables.store();
    let Some(recording) = LinuxRecording::of(store) else {
        return Ok(Vec::new());
    };
    let (recording, info) = (recording.events(), store.info());
    let filter = args.filter.filter(info)?;
    let processes = tables.watched(|options| Processes::of_tables(store, options))?;
    let modules = if args.stacks {
        StackModules::of_tables(tables, &args.symbols.options())?
    } else {
        StackModules::default()
    };
    let names = Names {
        processes: &processes,
        modules: &modules,
    };
    let decoder = LinuxDecoder::new(recording);
    let sieve = LinuxSieve::new(&filter, &decoder, &processes);
    let (from, to) = filter.range();
    let watch = watch(recording.size_bytes());
    let (mut seen, mut written, mut bytes) = (0u64, 0u64, 0u64);
    let mut each = |event: &linux::Event<'_>| -> Result<bool, Failure> {
        if seen.is_multiple_of(STEP) {
            watch.advance(bytes)?;
            bytes = 0;
        }
        seen += 1;
        bytes += u64::from(event.bytes);
        let time_ns = decoder.time_ns(event);
        if let Some(decoded) = sieve.pass(event, time_ns) {
            let unix_ns = info
                .start_unix_ns
                .and_then(|start| start.checked_add(time_ns));
            let header = Header::of_linux(event, &decoder, unix_ns, &out.choice);
            out.write(&Line {
                header,
                decoded: &decoded,
                names,
            })?;
            written += 1;
        }
        Ok(args.limit.is_none_or(|limit| written < limit))
    };
    if args.limit == Some(0) {
        return Ok(modules.missing());
    }
    let mut failed = None;
    let range = decoder.clock_range(from, to);
    let read = recording.read_in_order(range, &mut |event| match each(event) {
        Ok(true) => ControlFlow::Continue(()),
        Ok(false) => ControlFlow::Break(()),
        Err(failure) => {
            failed = Some(failure);
            ControlFlow::Break(())
        }
    });
    drop(watch);
    match failed {
        Some(failure) => return Err(failure),
        None => read?,
    };
    super::warn_of_linux_damage(store)?;
    note_none(args, written, &sieve.names(), || {
        args.filter.absent(info, || {
            let observer = Arc::clone(tables.observer());
            Ok(TraceTables::of(Arc::clone(store), observer))
        })
    })?;
    Ok(modules.missing())
}

/// Prints a note if no event matches. The note states what the trace lacks, which `absent` returns, or names of events.
/// With `--limit 0`, no event is expected.
fn note_none(
    args: &Args,
    written: u64,
    names: &KindNames,
    absent: impl FnOnce() -> Result<Option<String>, Failure>,
) -> Result<(), Failure> {
    if written > 0 || args.limit == Some(0) {
        return Ok(());
    }
    match absent() {
        Ok(Some(reason)) => {
            say(&format!("no event matches: {reason}"));
            return Ok(());
        }
        Err(Failure::Interrupted) => return Err(Failure::Interrupted),
        // The events were read, so an error of the tables is no error of this command.
        Ok(None) | Err(_) => {}
    }
    let near = args.filter.near(names);
    let advice = if near.is_empty() {
        "`laglab info` prints contents, start and end of the trace".to_owned()
    } else {
        format!("the closest names are {}", near.join(", "))
    };
    say(&format!("no event matches; {advice}"));
    Ok(())
}
