//! `laglab stats`.

use std::io::{self, Write};

use facts::Stats;
use session::watched;

use super::Failure;
use super::metadata::MetadataArgs;
use super::open::TraceFiles;
use crate::output::{self, Columns, Side, counted, grouped};
use crate::watch::Terminal;

/// Counts events and bytes per kind.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab stats trace.etl\n  \
    laglab stats trace.etl --events\n  \
    laglab stats --json trace.etl | jq '.providers[] | {name, count}'")]
pub(super) struct Args {
    #[command(flatten)]
    trace: TraceFiles,
    /// Show each provider's events, not only their sum
    #[arg(long)]
    events: bool,
    #[command(flatten)]
    metadata: MetadataArgs,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let (stats, place) = match args.trace.of_linux() {
        Some(recording) => {
            let tables = recording.open_any()?;
            let store = tables.store();
            let size = store.info().size_bytes;
            let stats = tables.watched(|options| Stats::of_tables(store, options))?;
            (stats, format!("a file of {}", output::size(size)))
        }
        None => {
            let mut decoder = args.metadata.decoder()?;
            let trace = args.trace.open()?;
            let size = trace.size_bytes();
            let stats = watched(&Terminal, "counting", size, |options| {
                Stats::read(&trace, &mut decoder, options)
            })?;
            let buffers = counted(trace.buffers().len() as u64, "buffer", "buffers");
            (
                stats,
                format!("{buffers} ({} in total)", output::size(size)),
            )
        }
    };
    if json {
        output::json(&stats)?;
    } else {
        let mut out = output::for_people();
        write(&mut out, &place, &stats, args.events)?;
        out.flush()?;
    }
    Ok(())
}

/// Writes the counts. `place` is the name of the counted trace.
fn write(out: &mut dyn Write, place: &str, stats: &Stats, with_events: bool) -> io::Result<()> {
    writeln!(
        out,
        "{} with {} of event records, in {place}",
        counted(stats.total_events, "event", "events"),
        counted(stats.total_bytes, "byte", "bytes"),
    )?;
    output::heading(out, "Header kinds")?;
    let mut columns = Columns::new(&[Side::Right, Side::Left]);
    let mut kinds: Vec<_> = stats.header_kinds.iter().collect();
    kinds.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    for (name, count) in kinds {
        columns.row([grouped(*count), (*name).to_owned()]);
    }
    columns.write(out)?;
    write_kernel(out, stats)?;
    write_providers(out, stats, with_events)?;
    if !stats.messages.is_empty() {
        output::heading(out, "WPP messages")?;
        let mut columns = Columns::new(&[Side::Right, Side::Right, Side::Left, Side::Left]);
        columns.row(["events", "bytes", "provider", "message"]);
        for m in &stats.messages {
            let guid = m.guid.map(|g| g.to_string()).unwrap_or_default();
            let provider = m.provider.as_deref().unwrap_or(&guid);
            let name = m
                .name
                .as_deref()
                .map_or(m.number.to_string(), str::to_owned);
            columns.row([
                grouped(m.count),
                grouped(m.bytes),
                provider.to_owned(),
                name,
            ]);
        }
        columns.write(out)?;
    }
    if !stats.damage.none {
        output::heading(out, "Damage")?;
        for line in stats.damage.sentences() {
            output::warning(out, &line)?;
        }
    }
    Ok(())
}

fn write_kernel(out: &mut dyn Write, stats: &Stats) -> io::Result<()> {
    if stats.kernel_events.is_empty() {
        return Ok(());
    }
    output::heading(out, "Kernel events")?;
    let mut columns = Columns::new(&[
        Side::Right,
        Side::Right,
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
    ]);
    columns.row(["events", "bytes", "event", "opcode", "version", "payload"]);
    for e in &stats.kernel_events {
        let class = e
            .class
            .map_or_else(|| format!("group {:#04x}", e.group), str::to_owned);
        let payload = if e.payload_min == e.payload_max {
            e.payload_min.to_string()
        } else {
            format!("{}-{}", e.payload_min, e.payload_max)
        };
        columns.row([
            grouped(e.count),
            grouped(e.bytes),
            format!("{class}/{}", e.name.unwrap_or("?")),
            e.opcode.to_string(),
            e.version.to_string(),
            payload,
        ]);
    }
    columns.write(out)
}

fn write_providers(out: &mut dyn Write, stats: &Stats, with_events: bool) -> io::Result<()> {
    if stats.providers.is_empty() {
        return Ok(());
    }
    let has_guids = stats.providers.iter().any(|it| it.guid.is_some());
    output::heading(
        out,
        if has_guids {
            "Providers and event classes"
        } else {
            "Subsystems"
        },
    )?;
    let mut columns = Columns::new(&[Side::Right, Side::Right, Side::Left, Side::Left]);
    columns.row([
        "events",
        "bytes",
        "name",
        if has_guids { "GUID" } else { "" },
    ]);
    for provider in &stats.providers {
        columns.row([
            grouped(provider.count),
            grouped(provider.bytes),
            match (&provider.name, provider.guid) {
                (Some(name), _) => name.to_string(),
                (None, Some(_)) => "?".to_owned(),
                (None, None) => "events of perf itself".to_owned(),
            },
            provider
                .guid
                .map(|guid| guid.to_string())
                .unwrap_or_default(),
        ]);
        for e in provider.events.iter().filter(|_| with_events) {
            let id = e.id.map(|id| format!("id {id}"));
            let id = id.or_else(|| e.opcode.map(|opcode| format!("opcode {opcode}")));
            let version = e.version.map(|version| format!("version {version}"));
            let known: Vec<String> = id.into_iter().chain(version).collect();
            columns.row([
                grouped(e.count),
                grouped(e.bytes),
                format!("  {}", e.name.as_deref().unwrap_or("?")),
                format!("  {}", known.join(", ")),
            ]);
        }
    }
    columns.write(out)
}
