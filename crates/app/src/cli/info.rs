//! `laglab info`.

use std::io::{self, Write};

use facts::Info;
use session::{SEVERAL_SYSTEMS, watched};
use wording::counted;

use super::Failure;
use super::open::TraceFiles;
use crate::output::{self, Columns, Side, duration, grouped};
use crate::watch::Terminal;

/// Shows what a trace contains and which questions it can answer.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab info trace.etl\n  \
    laglab info trace.etl.zip --cpus\n  \
    laglab info --json trace.etl | jq .missing")]
pub(super) struct Args {
    #[command(flatten)]
    trace: TraceFiles,
    /// Show every CPU's activity
    #[arg(long)]
    cpus: bool,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let recording = args.trace.recording()?;
    let size = recording.info().size_bytes;
    let info = watched(&Terminal, "reading", size, |options| {
        Info::from_events(&*recording, options)
    })?;
    if json {
        output::json(&info)?;
    } else {
        let mut out = output::for_people();
        write(&mut out, &info, args.cpus)?;
        out.flush()?;
    }
    Ok(())
}

/// List of facts with a name and a value. Facts with unknown values are omitted.
struct FactList {
    columns: Columns,
}

impl FactList {
    fn new() -> FactList {
        FactList {
            columns: Columns::new(&[Side::Left, Side::Left]),
        }
    }

    fn fact(&mut self, name: &str, value: impl Into<Option<String>>) {
        if let Some(value) = value.into() {
            self.columns.row([name.to_owned(), value]);
        }
    }
}

fn write(out: &mut dyn Write, info: &Info, with_cpus: bool) -> io::Result<()> {
    output::paragraph(out, &summary(info))?;
    writeln!(out)?;
    write_system(out, info)?;
    write_sessions(out, info)?;
    write_extent(out, info)?;
    write_cpus(out, info, with_cpus)?;
    output::heading(out, "Contents")?;
    let mut columns = Columns::new(&[Side::Right, Side::Left]);
    for content in &info.contents {
        columns.row([
            grouped(content.count),
            content.data.name(content.count).to_owned(),
        ]);
    }
    columns.write(out)?;
    if !info.kernel_flags.is_empty() {
        output::heading(out, "Kernel events enabled")?;
        output::paragraph(out, &info.kernel_flags.join(", "))?;
    }
    if !info.missing.is_empty() {
        output::heading(out, "What this trace cannot answer")?;
        for missing in &info.missing {
            output::paragraph(out, &format!("{}: {}", missing.question, missing.reason))?;
            output::quiet(out, &format!("  {}", missing.advice))?;
        }
    }
    write_damage(out, info)
}

/// Returns one sentence: name, duration, system, number of events, damage.
fn summary(info: &Info) -> String {
    let trace = &info.trace;
    let name = match &trace.files[..] {
        [file] => file.clone(),
        files => counted(files.len() as u64, "file", "files"),
    };
    let lasts = trace
        .recorded_ns()
        .map_or_else(String::new, |ns| format!(" over {}", duration(ns)));
    let system = if info.is_simulated() {
        format!("a simulated {}", info.system.name())
    } else {
        info.system.name()
    };
    let mut damage = info.damage.sentences().into_iter();
    let damage = match (damage.next(), damage.len(), info.last_dropped.len()) {
        (None, _, 0) => "no known damage".to_owned(),
        (None, _, cpus) => {
            let cpus = counted(cpus as u64, "CPU", "CPUs");
            format!("{cpus} dropped events (see Damage)")
        }
        (Some(only), 0, 0) => only,
        (Some(first), ..) => format!("{first} (more under Damage)"),
    };
    format!(
        "{name}: {}{lasts}, from {system} with {}; {damage}.",
        counted(trace.events, "event", "events"),
        info.cpus.counted(),
    )
}

fn write_system(out: &mut dyn Write, info: &Info) -> io::Result<()> {
    let system = &info.system;
    output::first_heading(out, "System")?;
    if !info.one_system {
        output::warning(out, SEVERAL_SYSTEMS)?;
    }
    let mut facts = FactList::new();
    let version = system.os_version.as_deref().unwrap_or("?");
    facts.fact(
        "Windows",
        match (system.release, system.build) {
            (Some(release), Some(build)) => Some(format!("{release} (build {build})")),
            (None, Some(build)) => Some(format!("version {version}, build {build}")),
            _ => None,
        },
    );
    let unknown = || system.is_linux.then(|| "unknown release".to_owned());
    facts.fact("Linux", system.linux.clone().or_else(unknown));
    facts.fact("product", system.product.clone());
    facts.fact("build lab", system.build_lab.clone());
    facts.fact("computer", system.computer.clone());
    let model: Vec<&str> = [&system.manufacturer, &system.model]
        .iter()
        .filter_map(|t| t.as_deref())
        .collect();
    facts.fact("model", (!model.is_empty()).then(|| model.join(" ")));
    facts.fact("firmware", system.bios.clone());
    let mhz = system.cpu_mhz.map(|mhz| format!("{mhz} MHz"));
    let cpu: Vec<&str> = [&system.cpu, &mhz]
        .iter()
        .filter_map(|t| t.as_deref())
        .collect();
    facts.fact("CPU", (!cpu.is_empty()).then(|| cpu.join(", ")));
    facts.fact(
        "memory",
        system
            .memory_mib
            .map(|mib| output::size(mib.saturating_mul(1 << 20))),
    );
    let yes = |b: bool| if b { "on" } else { "off" }.to_owned();
    facts.fact("hypervisor", system.hypervisor.map(yes));
    facts.fact(
        "virtualization-based security",
        system.virtualization_based_security.map(yes),
    );
    facts.fact("booted", system.boot.clone());
    facts.columns.write(out)
}

fn write_sessions(out: &mut dyn Write, info: &Info) -> io::Result<()> {
    for session in &info.sessions {
        output::heading(out, &format!("Session {}", output::Quoted(&session.name)))?;
        let mut facts = FactList::new();
        facts.fact(
            "file",
            Some(session.file.clone()).filter(|_| info.sessions.len() > 1),
        );
        facts.fact(
            "logged to",
            Some(session.log_file.clone()).filter(|f| !f.is_empty()),
        );
        facts.fact(
            "mode",
            Some(session.modes.join(", ")).filter(|m| !m.is_empty()),
        );
        let clock = session.clock.zip(session.clock_frequency);
        facts.fact(
            "clock",
            clock.map(|(clock, hz)| format!("{clock}, {} Hz", grouped(hz))),
        );
        facts.fact("start", session.start.clone());
        facts.fact(
            "end",
            session
                .end
                .clone()
                .or(Some("unknown (never finalised)".to_owned())),
        );
        facts.fact("duration", session.duration_ns.map(duration));
        let compression = session
            .compression
            .map_or(String::new(), |c| format!(", compressed with {c}"));
        let buffers = session.buffer_size;
        facts.fact(
            "buffers of",
            buffers.map(|bytes| format!("{}{compression}", output::size(bytes.into()))),
        );
        facts.columns.write(out)?;
    }
    Ok(())
}

fn write_extent(out: &mut dyn Write, info: &Info) -> io::Result<()> {
    output::heading(out, "Trace")?;
    let trace = &info.trace;
    let mut facts = FactList::new();
    for file in &trace.files {
        facts.fact("file", file.clone());
    }
    let uncompressed = match trace.compressed_buffers {
        0 => String::new(),
        _ => format!(" ({} uncompressed)", output::size(trace.uncompressed_bytes)),
    };
    facts.fact("size", output::size(trace.size_bytes) + &uncompressed);
    let buffers = counted(trace.buffers, "buffer", "buffers");
    let events = grouped(trace.events);
    facts.fact(
        "events",
        if info.system.is_linux {
            events
        } else {
            format!("{events} in {buffers}")
        },
    );
    if let (Some(first), Some(last)) = (trace.first_event_ns, trace.last_event_ns) {
        facts.fact(
            "time",
            format!(
                "{} (first event {}, last event {} after the start)",
                duration(last.saturating_sub(first)),
                duration(first),
                duration(last)
            ),
        );
    }
    facts.columns.write(out)
}

fn write_cpus(out: &mut dyn Write, info: &Info, with_cpus: bool) -> io::Result<()> {
    let cpus = &info.cpus;
    output::heading(out, "CPUs")?;
    if !cpus.known {
        return output::paragraph(
            out,
            "unknown: the session had no per-CPU buffers, so the CPU of an event is not recorded",
        );
    }
    let stated = cpus.stated.map_or("?".to_owned(), |n| n.to_string());
    let source = if info.system.is_linux {
        "online"
    } else {
        "according to the header"
    };
    let with_events = cpus.seen.len();
    output::paragraph(
        out,
        &format!("{stated} {source}, {with_events} with events"),
    )?;
    if !cpus.without_events.is_empty() {
        output::paragraph(
            out,
            &format!("without events: {}", ranges(&cpus.without_events)),
        )?;
    }
    if let Some(cpu) = cpus.seen.iter().max_by_key(|c| c.longest_silence_ns) {
        output::paragraph(
            out,
            &format!(
                "longest silence (time without events): {} on CPU {}, from {}",
                duration(cpu.longest_silence_ns),
                cpu.cpu,
                duration(cpu.longest_silence_from_ns)
            ),
        )?;
    }
    if !with_cpus {
        return Ok(());
    }
    let mut columns = Columns::new(&[Side::Right; 6]);
    columns.row(["CPU", "events", "first", "last", "longest silence", "from"]);
    for cpu in &cpus.seen {
        columns.row([
            cpu.cpu.to_string(),
            grouped(cpu.events),
            duration(cpu.first_ns),
            duration(cpu.last_ns),
            duration(cpu.longest_silence_ns),
            duration(cpu.longest_silence_from_ns),
        ]);
    }
    columns.write(out)
}

fn write_damage(out: &mut dyn Write, info: &Info) -> io::Result<()> {
    output::heading(out, "Damage")?;
    if info.damage.none && info.last_dropped.is_empty() {
        output::paragraph(out, "none known")?;
    }
    for line in info.damage.sentences() {
        output::warning(out, &line)?;
    }
    for drop in &info.last_dropped {
        output::warning(
            out,
            &format!(
                "CPU {} dropped events, last at {}",
                drop.cpu,
                duration(drop.last_ns)
            ),
        )?;
    }
    Ok(())
}

/// Formats sorted numbers as ranges: `0-3, 7` for 0, 1, 2, 3, 7.
fn ranges(numbers: &[u32]) -> String {
    numbers
        .chunk_by(|a, b| a + 1 == *b)
        .map(|run| match run {
            [first, .., last] => format!("{first}-{last}"),
            _ => run.iter().map(u32::to_string).collect(),
        })
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_joined() {
        assert_eq!(ranges(&[0, 1, 2, 3, 7, 9, 10]), "0-3, 7, 9-10");
        assert_eq!(ranges(&[]), "");
    }
}
