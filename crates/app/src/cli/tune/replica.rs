//! `laglab tune replica`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use import_windows::WindowsRecording;
use replica::{
    Assessment, Link, Load, Percentiles, Reason, Verdict, Volume, WithBandwidth, WithLog,
    Write as DiskWrite, assess, read_counters,
};
use serde::Serialize;
use tables::{DiskIoView, Table};
use wording::{DefaultUnit, parse_duration};

use super::{chain, failure};
use crate::cli::Failure;
use crate::cli::open::TabledTrace;
use crate::output::say;
use crate::output::{self, Columns, Side, counted};
use crate::watch;

/// Estimates the costs of replicating a volume to another server (Storage Replica), from recorded
/// writes: bandwidth, log size, latency of synchronous replication, and the mode that the link
/// allows.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune replica trace.etl --volume D: --rtt 2ms\n  \
    laglab tune replica trace.etl --volume D: --rtt-file pings.txt --bandwidth 10Gbit --log 8G --size 2T\n  \
    laglab tune replica counters.csv --volume D: --rtt 2ms       disk counters, as typeperf writes them\n\n\
    Record a trace with the keywords DiskIO, DiskIOInit and Filename at the busiest time of the volume.\n\n\
    Exit code 1: synchronous replication is not advised over this link.")]
pub(super) struct Args {
    /// Trace, or disk counters as .csv
    #[arg(value_name = "TRACE|COUNTERS.csv")]
    input: PathBuf,
    /// Volume, such as D:
    #[arg(long, value_name = "LETTER", value_parser = volume, required_unless_present = "disk")]
    volume: Option<String>,
    /// Number of a whole disk, instead of a volume; only for a trace
    #[arg(long, value_name = "NUMBER", conflicts_with = "volume")]
    disk: Option<u32>,
    /// Round trip time to the other server, such as 2ms
    #[arg(long, value_name = "TIME", value_parser = time, required_unless_present = "rtt_file", conflicts_with = "rtt_file")]
    rtt: Option<i64>,
    /// Measured round trips: one time per line (default unit: milliseconds), or the output of ping
    #[arg(long, value_name = "FILE")]
    rtt_file: Option<PathBuf>,
    /// Bandwidth of the link, such as 10Gbit (10^10 bits per second) or 100M (100 MiB per second)
    #[arg(long, value_name = "RATE", value_parser = rate)]
    bandwidth: Option<f64>,
    /// Size of the log, such as 8G
    #[arg(long, value_name = "BYTES", value_parser = size)]
    log: Option<u64>,
    /// Size of the volume, such as 2T
    #[arg(long, value_name = "BYTES", value_parser = size)]
    size: Option<u64>,
    /// Rebuild the tables, and do not cache them
    #[arg(long)]
    no_cache: bool,
}

/// Maximum size of a text file, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// JSON output of `laglab tune replica`: the assessment and its basis. Programs rely on its fields.
#[derive(Serialize)]
struct Report<'a> {
    /// True if the trace is simulated.
    simulated: bool,
    /// Number of writes in the trace whose volume is unknown.
    unattributed: u64,
    /// True if the load comes from disk counters. Bursts that are shorter than the sampling interval are not
    /// visible.
    sampled: bool,
    #[serde(flatten)]
    assessment: &'a Assessment,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let sampled =
        (args.input.extension()).is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    let recording = match (sampled, &args.volume) {
        (true, Some(volume)) => {
            let counters = read_counters(&Failure::read(&args.input, MAX_BYTES)?, volume);
            Recording {
                load: counters.map_err(|error| Failure::input(&args.input, chain(&error)))?,
                simulated: false,
                unattributed: 0,
            }
        }
        (true, None) => return Err(Failure::Input("counters need --volume".to_owned())),
        (false, _) => read_trace(args)?,
    };
    let round_trips_ns = match (&args.rtt_file, args.rtt) {
        (Some(path), _) => round_trips(path)?,
        (None, rtt) => rtt.into_iter().collect(),
    };
    let link = Link {
        round_trips_ns,
        bytes_per_s: args.bandwidth,
    };
    let volume = Volume {
        size_bytes: args.size,
        log_bytes: args.log,
    };
    let assessment = assess(&recording.load, &link, volume);
    let assessment = assessment.map_err(|error| match error {
        replica::AssessError::NoWrites if recording.unattributed > 0 => {
            Failure::NotRecorded(format!(
                "{error}, but {} no volume: record the keyword Filename, or give --disk",
                counted(recording.unattributed, "write has", "writes have")
            ))
        }
        replica::AssessError::NoWrites => Failure::NotRecorded(error.to_string()),
        error => failure(&error),
    })?;
    let report = Report {
        simulated: recording.simulated,
        unattributed: recording.unattributed,
        sampled,
        assessment: &assessment,
    };
    if json {
        output::json(&report)?
    } else {
        write(&report)?
    }
    match assessment.verdict {
        Verdict::Synchronous => Ok(()),
        Verdict::Asynchronous => Err(Failure::Negative(
            "synchronous replication is not advised over this link".to_owned(),
        )),
        Verdict::Neither => Err(Failure::Negative(
            "this link cannot carry the load".to_owned(),
        )),
    }
}

/// Recorded writes, with facts about the recording.
struct Recording {
    load: Load,
    simulated: bool,
    unattributed: u64,
}

/// Reads the writes to a volume or disk from a trace.
fn read_trace(args: &Args) -> Result<Recording, Failure> {
    let tables = TabledTrace::new(std::slice::from_ref(&args.input), args.no_cache).open()?;
    let table = tables.table(Table::DiskIo)?;
    let columns = [
        "time_ns",
        "init_ns",
        "duration_ns",
        "kind",
        "disk",
        "size_bytes",
        "path",
    ];
    let (mut writes, mut unattributed) = (Vec::new(), 0);
    let mut end_ns = tables.store().info().stated_length_ns.unwrap_or(0);
    for chunk in 0..table.chunks().len() {
        watch::check()?;
        let batch = table.read(chunk, &columns)?;
        let view = DiskIoView::new(&batch)?;
        for row in 0..view.len() {
            end_ns = end_ns.max(view.time_ns[row]);
            let Some(bytes) = view
                .size_bytes
                .get(row)
                .filter(|_| view.kind.get(row) == Some("write"))
            else {
                continue;
            };
            let is_there = match (&args.volume, args.disk) {
                (Some(volume), _) => match view.path.get(row) {
                    Some(path) => is_on(path, volume),
                    None => {
                        unattributed += 1;
                        false
                    }
                },
                (None, disk) => disk == Some(view.disk[row]),
            };
            if is_there {
                writes.push(DiskWrite {
                    // The replication of a write starts with its request, not with its completion.
                    time_ns: view.init_ns.get(row).unwrap_or(view.time_ns[row]),
                    bytes: bytes.into(),
                    count: 1,
                    latency_ns: view.duration_ns.get(row),
                });
            }
        }
    }
    Ok(Recording {
        load: Load::new(writes, 0, end_ns),
        simulated: WindowsRecording::from_store(tables.store())
            .is_some_and(|recording| events::is_simulated(recording.trace())),
        unattributed,
    })
}

fn is_on(path: &str, volume: &str) -> bool {
    (path.get(..volume.len())).is_some_and(|start| start.eq_ignore_ascii_case(volume))
}

/// Reads round trip times in nanoseconds from a file.
fn round_trips(path: &Path) -> Result<Vec<i64>, Failure> {
    let text = String::from_utf8_lossy(&Failure::read(path, MAX_BYTES)?).into_owned();
    let mut trips = Vec::new();
    let mut skipped = 0_u64;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match round_trip(line) {
            Some(ns) => trips.push(ns),
            None => skipped += 1,
        }
    }
    if trips.is_empty() {
        return Err(Failure::input(
            path,
            "no line has a time such as 1.2ms, or the output of ping with time=1.2 ms",
        ));
    }
    if skipped > 0 {
        say(&format!(
            "{}: {} skipped",
            path.display(),
            counted(
                skipped,
                "line without a time was",
                "lines without a time were"
            )
        ));
    }
    Ok(trips)
}

/// Parses a round trip time. The line contains only a time, or it contains `time=1.2 ms` or `time<1ms`.
fn round_trip(line: &str) -> Option<i64> {
    let text = match line.find("time=").or_else(|| line.find("time<")) {
        Some(at) => {
            let rest = &line[at + "time=".len()..];
            let end = rest.find("ms").map_or(rest.len(), |at| at + 2);
            rest[..end].replace(' ', "")
        }
        None => line.to_owned(),
    };
    parse_duration(&text, DefaultUnit::Milliseconds).filter(|ns| *ns >= 0)
}

fn write(report: &Report<'_>) -> Result<(), Failure> {
    let mut out = output::for_people();
    let found = report.assessment;
    let verdict = match found.verdict {
        Verdict::Synchronous => {
            "Synchronous replication is possible: the link meets Microsoft's advice"
        }
        Verdict::Asynchronous => {
            "Only asynchronous replication is possible: a failure can lose the latest writes"
        }
        Verdict::Neither => "The link cannot carry the load",
    };
    output::first_heading(&mut out, verdict)?;
    for reason in &found.reasons {
        output::paragraph(&mut out, &sentence(*reason, found))?;
    }

    if report.simulated {
        output::warning(
            &mut out,
            "The trace is simulated: this is not a real volume.",
        )?;
    }

    write_load(&mut out, report)?;
    write_latency(&mut out, found)?;
    if let Some(link) = &found.with_bandwidth {
        write_bandwidth(&mut out, link)?;
    }
    if let Some(log) = &found.with_log {
        write_log(&mut out, log)?;
    }
    out.flush()?;
    Ok(())
}

fn write_load(out: &mut dyn Write, report: &Report<'_>) -> io::Result<()> {
    let found = report.assessment;
    output::heading(out, "Load")?;
    let line = format!(
        "{}, {} in {}: {} on average.",
        counted(found.writes, "write", "writes"),
        output::size(found.bytes),
        output::duration(found.watched_ns),
        per_second(found.mean_bytes_per_s),
    );
    output::paragraph(out, &line)?;
    if report.unattributed > 0 {
        let line = format!(
            "{} skipped.",
            counted(
                report.unattributed,
                "write of the trace has no path and was",
                "writes of the trace have no path and were"
            )
        );
        output::warning(out, &line)?;
    }
    if report.sampled {
        output::quiet(out, "The interval of the counters hides shorter bursts.")?;
    }
    let mut columns = Columns::new(&[Side::Right; 6]);
    columns.row([
        "within",
        "median",
        "90 %",
        "99 %",
        "maximum",
        "sliding maximum",
    ]);
    for burst in &found.bursts {
        let bytes = |bytes: i64| output::size(bytes.max(0).unsigned_abs());
        columns.row([
            output::duration(burst.length_ns),
            bytes(burst.bytes.p50),
            bytes(burst.bytes.p90),
            bytes(burst.bytes.p99),
            bytes(burst.bytes.max),
            output::size(burst.most_bytes),
        ]);
    }
    columns.write(out)
}

fn write_latency(out: &mut dyn Write, found: &Assessment) -> io::Result<()> {
    output::heading(out, "Latency")?;
    let mut columns = Columns::new(&[
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
        Side::Right,
    ]);
    columns.row(["", "median", "90 %", "99 %", "99.9 %", "maximum"]);
    let mut row = |what: &str, spread: &Percentiles| {
        let values = [spread.p50, spread.p90, spread.p99, spread.p99_9, spread.max];
        columns.row(
            [what.to_owned()]
                .into_iter()
                .chain(values.map(output::duration)),
        );
    };
    row("round trip", &found.round_trip_ns);
    if let Some(with) = &found.with_bandwidth {
        row("queue and wire", &with.queue_ns);
    }
    row("added to a write (synchronous)", &found.added_ns);
    if let Some(now) = &found.now_ns {
        row("a write now", now);
    }
    if let Some(then) = &found.then_ns {
        row("a write with replication", then);
    }
    columns.write(out)?;
    output::quiet(
        out,
        "This is an estimate. It assumes that both logs are as fast as the volume is now, and that round trips do not \
         depend on the load.",
    )
}

fn write_bandwidth(out: &mut dyn Write, link: &WithBandwidth) -> io::Result<()> {
    output::heading(out, &format!("Over {}", per_second(link.bytes_per_s)))?;
    let line = format!(
        "The load uses {:.1} % of this bandwidth on average. The largest amount of data that \
         was written but not yet sent is {}.",
        100.0 * link.utilisation,
        output::size(link.backlog_bytes)
    );
    output::paragraph(out, &line)?;
    if let Some(seconds) = link.initial_sync_s {
        let line = format!(
            "The initial synchronisation takes {} under this load.",
            long(seconds)
        );
        output::paragraph(out, &line)?;
    }
    Ok(())
}

fn write_log(out: &mut dyn Write, log: &WithLog) -> io::Result<()> {
    output::heading(out, &format!("With a log of {}", output::size(log.bytes)))?;
    let line = match log.needs_bytes_per_s {
        0.0 => "The log never overflows, even without a connection.".to_owned(),
        rate if rate.is_finite() => format!(
            "The log never overflows if the bandwidth is at least {}.",
            per_second(rate)
        ),
        _ => "A single write is larger than the log.".to_owned(),
    };
    output::paragraph(out, &line)?;
    if let Some(seconds) = log.outage_s {
        let line = format!(
            "At the average load, the log bridges an outage of {}.",
            long(seconds)
        );
        output::paragraph(out, &line)?;
    }
    let line = match log.worst_outage_s {
        Some(seconds) => format!(
            "At the busiest time, the log would be full after {}.",
            long(seconds)
        ),
        None => "The log can store all recorded writes.".to_owned(),
    };
    output::paragraph(out, &line)
}

fn sentence(reason: Reason, found: &Assessment) -> String {
    let mean = output::duration(found.mean_round_trip_ns);
    let p99 = output::duration(found.round_trip_ns.p99);
    match reason {
        Reason::RoundTripAdvised => format!(
            "The average round trip of {mean} is within the advised 5 ms; 99 % of round trips are \
             within {p99}."
        ),
        Reason::RoundTripTooLong => {
            format!("The average round trip of {mean} is longer than the advised 5 ms.")
        }
        Reason::RoundTripSometimesTooLong => format!(
            "The average round trip of {mean} is within the advised 5 ms, but 1 % take {p99} or \
             longer, and every write waits for a round trip."
        ),
        Reason::Overload => {
            "The load exceeds the bandwidth: replication would never finish.".to_owned()
        }
        Reason::QueuesTooLong => "1 % of writes wait longer than 5 ms for the link: the bandwidth \
                                  is too low for the bursts."
            .to_owned(),
        Reason::BandwidthUnknown => {
            "Without --bandwidth, the added latency does not include waits for the link.".to_owned()
        }
        Reason::LogTooSmall => {
            "The log is smaller than the largest amount of data that is written but not yet sent."
                .to_owned()
        }
        Reason::ShortWatch => format!(
            "The recording is only {} long and may miss busier times.",
            output::duration(found.watched_ns)
        ),
    }
}

fn per_second(bytes: f64) -> String {
    format!(
        "{}/s ({:.2} Mbit/s)",
        output::size(bytes.round() as u64),
        bytes * 8.0 / 1e6
    )
}

/// Formats a duration. Durations of two days or more are in days.
fn long(seconds: f64) -> String {
    match seconds {
        s if s >= 172_800.0 => format!("{:.1} days", s / 86_400.0),
        s => output::duration((s * 1e9) as i64),
    }
}

fn volume(text: &str) -> Result<String, String> {
    let text = text.trim_end_matches('\\');
    match text.as_bytes() {
        [letter, b':'] if letter.is_ascii_alphabetic() => Ok(text.to_owned()),
        _ => Err("expected a drive letter such as D:".to_owned()),
    }
}

fn time(text: &str) -> Result<i64, String> {
    (parse_duration(text, DefaultUnit::Milliseconds).filter(|ns| *ns >= 0))
        .ok_or_else(|| "expected a time such as 2ms or 350us".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    let plain = text.trim_end_matches("iB").trim_end_matches('B');
    wording::parse_bytes(plain).ok_or_else(|| "expected bytes, such as 8G or 512M".to_owned())
}

/// Parses a rate and returns bytes per second. The text is bits per second with decimal units (`10Gbit`), or
/// bytes per second.
fn rate(text: &str) -> Result<f64, String> {
    let what = || "expected a rate such as 10Gbit, 500Mbit or 100M (bytes)".to_owned();
    let plain = text.trim_end_matches("/s");
    let rate = match plain.strip_suffix("bit") {
        Some(bits) => {
            let units = [('K', 1e3), ('k', 1e3), ('M', 1e6), ('G', 1e9)];
            let (number, factor) = (units.iter())
                .find_map(|(unit, factor)| Some((bits.strip_suffix(*unit)?, *factor)))
                .unwrap_or((bits, 1.0));
            number.trim().parse::<f64>().map_err(|_| what())? * factor / 8.0
        }
        None => size(plain).map_err(|_| what())? as f64,
    };
    if rate.is_finite() && rate > 0.0 {
        Ok(rate)
    } else {
        Err(what())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_in_bits_or_bytes() {
        assert_eq!(rate("10Gbit"), Ok(1.25e9));
        assert_eq!(rate("8bit/s"), Ok(1.0));
        assert_eq!(rate("100MB/s"), Ok(104_857_600.0));
        assert_eq!(rate("1000"), Ok(1_000.0));
        for odd in ["", "bit", "-1Gbit", "0", "fast", "NaNbit"] {
            assert!(rate(odd).is_err(), "{odd}");
        }
    }

    /// Tests lines as ping prints them on Windows and on Linux.
    #[test]
    fn round_trips_are_times_or_lines_of_ping() {
        for (line, ns) in [
            ("1.5", Some(1_500_000)),
            ("350us", Some(350_000)),
            (
                "Reply from 10.0.0.7: bytes=32 time=12ms TTL=64",
                Some(12_000_000),
            ),
            (
                "Reply from 10.0.0.7: bytes=32 time<1ms TTL=64",
                Some(1_000_000),
            ),
            (
                "64 bytes from 10.0.0.7: icmp_seq=1 ttl=64 time=0.412 ms",
                Some(412_000),
            ),
            ("Request timed out.", None),
            ("-1", None),
        ] {
            assert_eq!(round_trip(line), ns, "{line}");
        }
    }
}
