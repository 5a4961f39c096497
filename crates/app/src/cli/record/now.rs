//! `laglab record now`: records this Linux machine into memory, and saves the recording as `perf.data`.

use std::path::PathBuf;
use std::time::Duration;

use record::Investigation;

use super::kit::investigation;
use crate::cli::Failure;
use crate::cli::integer::integer;
use crate::cli::time_with_unit::time_with_unit;

/// Records this Linux machine now, into memory. The recording is saved on Ctrl-C, on the signals SIGTERM and SIGUSR2, or
/// after the time of --for. It is a file that `laglab` and `perf` read.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab record now                        until Ctrl-C; keeps the last 30 s\n  \
    laglab record now disk --for 10s -o slow.data\n  \
    laglab record now --last 5m --memory 2048\n  \
    kill -USR2 PID                           saves what the recorder with this id has, and continues\n\n\
    Needs root, or the capabilities CAP_PERFMON, CAP_IPC_LOCK and CAP_DAC_READ_SEARCH, and tracefs \
    (/sys/kernel/tracing). Without them, `laglab measure sleep` still shows how late threads are.")]
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "other systems refuse the command")
)]
pub(super) struct Args {
    /// Question to investigate; see --list of `laglab record`
    #[arg(value_name = "INVESTIGATION", default_value = "long-wait", value_parser = investigation)]
    investigation: Investigation,
    /// Record for this time, then save [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = time_with_unit)]
    time: Option<Duration>,
    /// Keep only the events of this last time [default: 30s, or all with --for]
    #[arg(long, value_name = "TIME", value_parser = time_with_unit)]
    last: Option<Duration>,
    /// Maximum memory for events in MiB; if it is full, the oldest events are dropped
    #[arg(long, value_name = "MIB", default_value_t = 512, value_parser = integer::<u32>(1, 1 << 20))]
    memory: u32,
    /// File to write; an existing file is never replaced, later files are numbered [default: laglab-INVESTIGATION.data]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[cfg(not(target_os = "linux"))]
pub(super) fn run(_args: &Args, _json: bool) -> Result<(), Failure> {
    Err(Failure::Input(
        "cannot record now: `laglab record now` records Linux only; on Windows, use `laglab record --for INVESTIGATION \
         --run`"
            .to_owned(),
    ))
}

#[cfg(target_os = "linux")]
pub(super) use system::run;

#[cfg(target_os = "linux")]
mod system {
    use std::io::{self, BufWriter, IsTerminal, Write};
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use flight::{Capture, Cost, MissingEvent, Order, Recorder};
    use serde::Serialize;
    use session::NewFile;
    use signal_hook::consts::{SIGTERM, SIGUSR2};
    use signal_hook::flag::register;

    use super::*;
    use crate::output::say;
    use crate::output::{self, counted, duration, grouped, percent, size};
    use crate::watch;

    /// Time for which events are kept if the user gives no time.
    const LAST: Duration = Duration::from_secs(30);

    /// Interval between checks for Ctrl-C and signals.
    const STEP: Duration = Duration::from_millis(50);

    /// JSON output. Programs rely on its fields.
    #[derive(Serialize)]
    struct Report {
        files: Vec<SavedRecording>,
        investigation: &'static str,
        theories: &'static [&'static str],
        /// Cost from the start to the end of the recording.
        cost: Cost,
        left_out: Vec<MissingEvent>,
    }

    /// Recording that was saved.
    #[derive(Serialize)]
    struct SavedRecording {
        path: String,
        bytes: u64,
        /// Length of the time that the recording covers, in nanoseconds.
        covers_ns: u64,
    }

    pub(in crate::cli::record) fn run(args: &Args, json: bool) -> Result<(), Failure> {
        let investigation = args.investigation;
        let events = record::linux::events(investigation);
        if events.is_empty() {
            return Err(Failure::Input(format!(
                "cannot record for `{}`: this question is about Windows; on Linux, use long-wait, dpc, cpu, disk \
                 or full",
                investigation.name()
            )));
        }
        let mut order = Order::new(events);
        order.last = match (args.last, args.time) {
            (Some(last), _) => last,
            (None, Some(_)) => Duration::MAX,
            (None, None) => LAST,
        };
        order.memory_bytes = (args.memory as usize) << 20;
        order.command_line = std::env::args().collect();
        let saves = Arc::new(AtomicBool::new(false));
        let ends = Arc::new(AtomicBool::new(false));
        // Without these handlers, both signals would end the program, and the recording would be lost. A second SIGTERM has
        // no effect, because `timeout` sends it twice.
        register(SIGUSR2, Arc::clone(&saves))
            .and_then(|_| register(SIGTERM, Arc::clone(&ends)))
            .map_err(|error| Failure::Input(format!("cannot wait for signals: {error}")))?;
        let recorder =
            Recorder::start(&order).map_err(|error| Failure::Input(error.to_string()))?;
        let id = std::process::id();
        if io::stderr().is_terminal() {
            say(&format!(
                "recording: reproduce the lag now; Ctrl-C saves and ends, `kill -USR2 {id}` saves and continues"
            ));
        }
        let began = Instant::now();
        let mut files = Vec::new();
        let is_over = || args.time.is_some_and(|time| began.elapsed() >= time);
        let is_stopped = || watch::check().is_err() || ends.load(Ordering::Relaxed);
        while !is_stopped() && !is_over() {
            if saves.swap(false, Ordering::Relaxed) {
                let saved = save(args, &recorder.capture())?;
                if io::stderr().is_terminal() {
                    say(&format!("saved {}", saved.path));
                }
                files.push(saved);
            }
            std::thread::sleep(STEP);
        }
        let capture = recorder.stop();
        files.push(save(args, &capture)?);
        let report = Report {
            files,
            investigation: investigation.name(),
            theories: record::linux::theories(investigation),
            cost: capture.cost(),
            left_out: capture.left_out().to_vec(),
        };
        if json {
            output::json(&report)?
        } else {
            write(&report)?
        }
        Ok(())
    }

    /// Saves a recording under an unused name, and the facts in a file next to it.
    fn save(args: &Args, capture: &Capture) -> Result<SavedRecording, Failure> {
        let wanted = args
            .output
            .clone()
            .unwrap_or_else(|| PathBuf::from(format!("laglab-{}.data", args.investigation.name())));
        let path = unused(&wanted);
        let failed = |error: io::Error| Failure::writing(&path, &error);
        let new = NewFile::create(&path)?;
        let mut out = BufWriter::new(new.file());
        let bytes = capture.write(&mut out).map_err(failed)?;
        out.flush().map_err(failed)?;
        drop(out);
        // The facts are written first. The recording appears only when its facts exist, because explanations need the
        // CPUs and limits in them.
        let facts = import_linux::facts_path(&path);
        std::fs::write(&facts, capture.facts())
            .map_err(|error| Failure::writing(&facts, &error))?;
        new.finish()?;
        let covers = capture.range().map_or(0, |range| range.end - range.start);
        Ok(SavedRecording {
            path: path.display().to_string(),
            bytes,
            covers_ns: covers,
        })
    }

    /// Returns the first name that neither a recording nor a file of facts has: `x.data`, `x-2.data`, and so on.
    fn unused(wanted: &Path) -> PathBuf {
        let stem = wanted.file_stem().unwrap_or_default().to_string_lossy();
        let extension = wanted
            .extension()
            .map(|it| format!(".{}", it.to_string_lossy()));
        let extension = extension.unwrap_or_default();
        let numbered = |number: u32| wanted.with_file_name(format!("{stem}-{number}{extension}"));
        let mut names = std::iter::once(wanted.to_owned()).chain((2..).map(numbered));
        names
            .find(|name| !name.exists() && !import_linux::facts_path(name).exists())
            .unwrap_or_else(|| wanted.to_owned())
    }

    fn write(report: &Report) -> io::Result<()> {
        let mut out = output::for_people();
        let cost = &report.cost;
        for file in &report.files {
            let covers = i64::try_from(file.covers_ns).unwrap_or(i64::MAX);
            let text = format!(
                "Recorded {} into {} ({}).",
                duration(covers),
                file.path,
                size(file.bytes)
            );
            output::paragraph(&mut out, &text)?;
        }
        let lost = match cost.lost {
            0 => "no event was lost".to_owned(),
            lost => format!(
                "{} lost; record fewer events",
                counted(lost, "event was", "events were")
            ),
        };
        let text = format!(
            "Cost: {} of a CPU for the recorder ({}), {} records per second, {lost}.",
            percent(cost.cpu_share()),
            duration(i64::try_from(cost.cpu_ns).unwrap_or(i64::MAX)),
            grouped(cost.per_second().round() as u64)
        );
        match cost.lost {
            0 => output::paragraph(&mut out, &text)?,
            _ => output::warning(&mut out, &text)?,
        }
        if cost.dropped_bytes > 0 {
            let text = format!(
                "{} of the oldest events were dropped because the memory was full; give more with --memory.",
                size(cost.dropped_bytes)
            );
            output::warning(&mut out, &text)?;
        }
        for left in &report.left_out {
            output::quiet(
                &mut out,
                &format!("Not recorded: {}: {}", left.event, left.why),
            )?;
        }
        if let Some(last) = report.files.last() {
            output::paragraph(&mut out, &format!("Next: laglab explain {}", last.path))?;
        }
        out.flush()
    }
}
