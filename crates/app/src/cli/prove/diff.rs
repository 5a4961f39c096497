//! `laglab prove diff`.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::NonEmptyStringValueParser;
use diff::{
    Change, Diff, Finding, Interval, Kind, Latency, LatencyInterval, NoPath, OtherDifferences,
    PathTimes, ReadOptions, Recording, Sum, When, Work, count_text, diff, rate_text,
};
use explore::Explorer;
use facts::Moment;
use serde::Serialize;
use session::{Symbolication, TraceTables};

use crate::cli::Failure;
use crate::cli::explain::write_evidence;
use crate::cli::open::TabledTrace;
use crate::cli::prove::both_sides;
use crate::cli::prove::diff_page::{NewPage, PictureSource};
use crate::cli::scope::time_range;
use crate::cli::symbols::SymbolArgs;
use crate::output::{self, Columns, Side, counted, duration, size};

/// Compares traces: which programs, drivers and disks took more or less time, and what else differs.
#[derive(clap::Args)]
#[command(
    override_usage = "laglab prove diff [OPTIONS] BEFORE… [--] AFTER…",
    after_help = "Examples:\n  \
    laglab prove diff before.etl after.etl\n  \
    laglab prove diff --evidence --symbols C:\\Symbols before.etl -- after.etl\n  \
    laglab prove diff --per frames before.etl -- after.etl\n  \
    laglab prove diff -o report.html before.etl -- after.etl\n  \
    laglab prove diff --before-between 0 10 --after-between 10 20 trace.etl -- trace.etl\n  \
    laglab prove diff old1.etl old2.etl old3.etl -- new1.etl new2.etl new3.etl\n  \
    laglab prove diff --json before.etl -- after.etl | jq '.per_second[0]'"
)]
pub(super) struct Args {
    /// Traces before the change and, after --, traces after it. Two traces need no --. Give one of each side, or at
    /// least three of each to show whether the change is the reason
    #[arg(value_name = "BEFORE", required = true)]
    files: Vec<PathBuf>,
    /// In the traces before the change, compare only the time from T1 to T2. Each is a time since the trace's
    /// start (for example 1.5 or 20ms) or in UTC
    #[arg(long, num_args = 2, value_names = ["T1", "T2"], allow_hyphen_values = true)]
    before_between: Vec<Moment>,
    /// In the traces after the change, compare only the time from T1 to T2
    #[arg(long, num_args = 2, value_names = ["T1", "T2"], allow_hyphen_values = true)]
    after_between: Vec<Moment>,
    /// Also follow the critical path of this thread, and divide its time into parts. NAME is the name of a
    /// thread or of a program; for a program, its busiest thread counts
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    thread: Option<String>,
    /// Follow the critical path only from each mark FROM to the next mark TO
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"], requires = "thread")]
    marks: Option<Vec<String>>,
    /// Show all rows, including those that did not change
    #[arg(long)]
    all: bool,
    /// Also compare all times per unit of this work: network-kib, transfers, disk-kib, frames, marks, dpcs, or
    /// waits=THREAD [default: network-kib, and only for DPCs and ISRs
    /// that depend on it]
    #[arg(long, value_name = "KIND")]
    per: Option<Work>,
    /// Show the rows behind each finding, and the query that returns them from each trace
    #[arg(long)]
    evidence: bool,
    /// Also write a page with pictures: waterfall, flame graphs, distributions, use of the CPUs (.html)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Rebuild the tables, and do not cache them
    #[arg(long)]
    no_cache: bool,
    #[command(flatten)]
    symbols: SymbolArgs,
}

/// JSON output of `laglab prove diff`.
#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    diff: Diff,
    /// Change of the latency of the thread that `--thread` names.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<Latency>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let (files_before, files_after) = both_sides(&args.files)?;
    if files_after.is_empty() {
        let advice = if files_before.len() > 1 {
            "put `--` between the sides, as in `laglab prove diff old1.etl old2.etl -- new1.etl new2.etl`"
        } else {
            "give them, too, as in `laglab prove diff old.etl new.etl`"
        };
        return Err(Failure::Input(format!(
            "no traces after the change: {advice}"
        )));
    }
    let files = [files_before, files_after].concat();
    let page = (args.output.as_deref()).map(|path| NewPage::create(path, &files));
    let page = page.transpose()?;
    let before = read(
        args,
        files_before,
        "--before-between",
        &args.before_between,
        files.len(),
    )?;
    let after = read(
        args,
        files_after,
        "--after-between",
        &args.after_between,
        files.len(),
    )?;
    let answer = Answer {
        diff: diff(&before.recordings, &after.recordings, args.per.as_ref()),
        latency: (args.thread.as_ref()).map(|_| Latency::compare(&before.paths, &after.paths)),
    };
    if let (Some(work), None) = (&args.per, &answer.diff.per_work) {
        let recordings = before.recordings.iter().chain(&after.recordings);
        let mut each = files.iter().zip(recordings);
        let without = each.find(|(_, recording)| !recording.has_work(work));
        let file = without.map_or(Path::new("a trace"), |(file, _)| file);
        let advice = match work {
            Work::Waits(_) => {
                "give the name of a thread that waited, and not of its program; `laglab sql TRACE \"SELECT DISTINCT name \
                 FROM threads\"` lists them, if they were recorded"
            }
            _ => "choose other work, or record it",
        };
        return Err(Failure::input(
            file,
            format!("no {work} was recorded, so times cannot be related to it (--per); {advice}"),
        ));
    }
    if answer.diff.per_second.is_empty() {
        return Err(Failure::Input(
            "cannot compare the traces: they have no kind of event in common; `laglab info` lists what each of \
             them recorded"
                .to_owned(),
        ));
    }
    let written = page.map(|page| {
        let sides = [&before, &after].map(|side| (&side.explored[..], &side.recordings[..]));
        page.write(&answer.diff, sides)
    });
    let written = written.transpose()?;
    if json {
        return Ok(output::json(&answer)?);
    }
    let mut out = output::for_people();
    write(&mut out, &answer, args)?;
    if let (Some(bytes), Some(path)) = (written, &args.output) {
        let file = output::Printable(&path.display().to_string()).to_string();
        writeln!(out, "\n{file}: {}", size(bytes))?;
    }
    Ok(out.flush()?)
}

/// Traces of one side: before the change, or after it.
struct SideTraces {
    recordings: Vec<Recording>,
    /// Critical paths of the thread that `--thread` names, one for each trace.
    paths: Vec<PathTimes>,
    /// Traces for the pictures, if a page is written.
    explored: Vec<PictureSource>,
}

/// Sums the traces `files`, which were all recorded before the change or all after it. If `between` has two times,
/// only the time between them counts; `option` is the name of the option with these two times. Also follows the
/// critical paths of the thread that `--thread` names. `all` is the number of traces on both sides.
fn read(
    args: &Args,
    files: &[PathBuf],
    option: &str,
    between: &[Moment],
    all: usize,
) -> Result<SideTraces, Failure> {
    let each = files.iter().map(|file| {
        let tables = TabledTrace::new(std::slice::from_ref(file), args.no_cache).open()?;
        // One call makes all tables, because each separate call would read the whole trace.
        tables.make(&Recording::tables(args.per.as_ref()))?;
        let during = match between {
            [from, to] => Some(time_range(option, [Some(*from), Some(*to)], &tables)?),
            _ => None,
        };
        let symbols = Symbolication::new(
            &args.symbols.options(),
            tables.store(),
            &tables.identities()?.images,
        );
        let symbols = Arc::new(symbols.map_err(session::Error::from)?);
        let path = path(args, &tables, file, during.as_ref())?;
        let read_options = ReadOptions {
            during,
            work: args.per.clone(),
            functions: Some(&*symbols),
        };
        let recording =
            tables.watched(|options| Recording::read(tables.store(), &read_options, options))?;
        crate::cli::warn_of_missing_symbols(&symbols.missing());
        let explored = args.output.as_ref().map(|_| {
            let memory_bytes = Explorer::MEMORY_BYTES / all;
            let store = Arc::clone(tables.store());
            PictureSource {
                name: file
                    .file_name()
                    .unwrap_or(file.as_os_str())
                    .to_string_lossy()
                    .into_owned(),
                explorer: Explorer::new(store, Some(symbols), memory_bytes),
            }
        });
        Ok::<_, Failure>((recording, path, explored))
    });
    let mut read = SideTraces {
        recordings: Vec::new(),
        paths: Vec::new(),
        explored: Vec::new(),
    };
    for one in each {
        let (recording, path, explored) = one?;
        read.recordings.push(recording);
        read.paths.extend(path);
        read.explored.extend(explored);
    }
    Ok(read)
}

/// Follows the critical path of the thread that `--thread` names. Returns `None` without this option.
fn path(
    args: &Args,
    tables: &TraceTables,
    file: &Path,
    during: Option<&Range<i64>>,
) -> Result<Option<PathTimes>, Failure> {
    let Some(thread) = &args.thread else {
        return Ok(None);
    };
    let marks = match args.marks.as_deref() {
        Some([from, to]) => Some([from.clone(), to.clone()]),
        _ => None,
    };
    let interval = LatencyInterval {
        thread: thread.clone(),
        marks,
        during: during.cloned(),
    };
    let divided = tables.watched(|options| PathTimes::read(tables.store(), &interval, options))?;
    divided.map(Some).map_err(|none| match none {
        NoPath::NoThread => Failure::input(
            file,
            format!("no thread and no program named {thread} ran (--thread); laglab process lists programs"),
        ),
        NoPath::NoMarks => Failure::input(
            file,
            "no time begins and ends with these marks (--marks); the table `marks` of laglab sql lists them",
        ),
    })
}

fn write(out: &mut dyn Write, answer: &Answer, args: &Args) -> io::Result<()> {
    let diff = &answer.diff;
    output::first_heading(out, &diff.answer())?;
    for doubt in diff.doubts() {
        output::paragraph(out, &format!("Doubt: {doubt}"))?;
    }
    let mut doubts = BTreeSet::new();
    let shown = if args.all || args.evidence {
        diff.findings.len()
    } else {
        SHOWN.min(diff.findings.len())
    };
    for (place, finding) in diff.findings[..shown].iter().enumerate() {
        write_finding(out, place == 0, finding, &mut doubts, args.evidence)?;
    }
    if let (Some(latency), Some(thread)) = (&answer.latency, &args.thread) {
        write_latency(out, latency, thread)?;
    }
    if args.all {
        besides(out, &diff.besides)?;
        tables(out, &diff.per_second, "per second", true)?;
    }
    if let Some(work) = &diff.per_work
        && (args.all || work.is_asked)
    {
        output::heading(out, &format!("Per {}", work.work))?;
        let (before, after) = (
            rate_text(&work.work, work.before),
            rate_text(&work.work, work.after),
        );
        let none = if work.changes.iter().any(Change::differs) {
            ""
        } else {
            " No row differs."
        };
        output::paragraph(
            out,
            &format!("Work: {before} before, {after} after the change.{none}"),
        )?;
        tables(out, &work.changes, "per unit", args.all)?;
    }
    if args.all {
        return unmatched(out, diff);
    }
    let hidden = (diff.per_work.as_ref()).filter(|work| !work.is_asked);
    let per_work = hidden.iter().flat_map(|work| &work.changes);
    let rows = diff.per_second.iter().chain(per_work);
    let rows = rows.filter(|change| change.differs()).count();
    let more = [
        ((diff.findings.len() - shown) as u64, "finding", "findings"),
        (rows as u64, "row that differs", "rows that differ"),
        (
            (diff.besides.facts.len() + diff.besides.drivers.len()) as u64,
            "other difference",
            "other differences",
        ),
    ];
    let more = more.into_iter().filter(|(count, ..)| *count > 0);
    let more: Vec<String> = more
        .map(|(count, one, many)| counted(count, one, many))
        .collect();
    let what = if more.is_empty() {
        "all rows".to_owned()
    } else {
        wording::listed(&more)
    };
    output::quiet(out, &format!("More: --all ({what}), --evidence"))
}

/// Maximum number of findings, if not all are requested.
const SHOWN: usize = 5;

/// Writes a finding. For the first finding, leaves out the sentence and the first cause, because the answer above
/// already contains them. Leaves out doubts that `written` contains, and adds the other doubts to `written`.
fn write_finding<'d>(
    out: &mut dyn Write,
    is_first: bool,
    finding: &'d Finding,
    written: &mut BTreeSet<&'d str>,
    evidence: bool,
) -> io::Result<()> {
    let why = if is_first {
        finding.why.get(1..).unwrap_or_default()
    } else {
        output::paragraph(out, &format!("Also: {}", finding.sentence))?;
        &finding.why[..]
    };
    for why in why {
        output::paragraph(out, &format!("  {why}"))?;
    }
    for doubt in finding.doubts.iter().filter(|it| written.insert(it)) {
        output::quiet(out, &format!("  Doubt: {doubt}"))?;
    }
    for proof in finding.evidence.iter().filter(|_| evidence) {
        let side = match proof.side {
            When::Before => "Before",
            When::After => "After",
        };
        let source = format!("{side} the change, trace {}", proof.recording);
        write_evidence(out, Some(&source), &proof.evidence)?;
    }
    Ok(())
}

/// Writes the parts of a thread's latency.
fn write_latency(out: &mut dyn Write, latency: &Latency, thread: &str) -> io::Result<()> {
    output::heading(out, &format!("Critical path of {thread}"))?;
    let (before, after) = (latency.before_ns, latency.after_ns);
    let intervals = |count: usize| counted(count as u64, "interval", "intervals");
    let text = format!(
        "{} before ({}), {} after the change ({}), on average.",
        time_text(before),
        intervals(latency.intervals_before),
        time_text(after),
        intervals(latency.intervals_after)
    );
    output::paragraph(out, &text)?;
    let mut table = Columns::new(&[
        Side::Left,
        Side::Left,
        Side::Right,
        Side::Right,
        Side::Right,
    ]);
    table.row(["program", "state", "before", "after", "change"]);
    for part in &latency.parts {
        table.row([
            part.program.clone().unwrap_or_else(|| thread.to_owned()),
            part.state.clone(),
            time_text(part.before_ns),
            time_text(part.after_ns),
            signed(part.after_ns - part.before_ns),
        ]);
    }
    table.row([
        String::new(),
        "outside the path".to_owned(),
        String::new(),
        String::new(),
        signed(latency.residual_ns),
    ]);
    table.write(out)?;
    match latency.doubt() {
        Some(doubt) => output::quiet(out, &format!("  Doubt: {doubt}")),
        None => Ok(()),
    }
}

/// Writes, for each kind of rows, the share of the time in rows that only one side of the change has. Kinds whose
/// shares before and after the change are both below 1 % are left out.
fn unmatched(out: &mut dyn Write, diff: &Diff) -> io::Result<()> {
    let kinds = diff.unmatched.iter();
    let kinds = kinds
        .filter(|it| it.before.max(it.after) >= 0.01)
        .map(|it| {
            let share = |share: f64| format!("{:.0} %", share * 100.0);
            format!(
                "{}: {} before, {} after the change",
                title(it.kind),
                share(it.before),
                share(it.after)
            )
        });
    let kinds: Vec<String> = kinds.collect();
    if kinds.is_empty() {
        Ok(())
    } else {
        output::heading(out, "Share of the time in rows that only one side has")?;
        kinds.iter().try_for_each(|kind| output::quiet(out, kind))
    }
}

/// Writes a table for each kind of row. Rows that did not change are left out, unless all are requested.
fn tables(out: &mut dyn Write, changes: &[Change], unit: &str, all: bool) -> io::Result<()> {
    for kind in Kind::ALL {
        let rows = changes.iter().filter(|change| change.kind == kind);
        let rows: Vec<&Change> = rows.filter(|change| all || change.differs()).collect();
        if rows.is_empty() {
            continue;
        }
        output::heading(out, title(kind))?;
        let right = [Side::Right; 6];
        let mut table = Columns::new(&[&[Side::Left], &right[..], &[Side::Left]].concat());
        table.row([
            unit,
            "before",
            "after",
            "change",
            "95 % interval",
            "by count",
            "by mean",
            "conclusion",
        ]);
        for change in rows {
            table.row(row(change));
        }
        table.write(out)?;
    }
    Ok(())
}

fn besides(out: &mut dyn Write, besides: &OtherDifferences) -> io::Result<()> {
    if *besides == OtherDifferences::default() {
        return Ok(());
    }
    output::heading(out, "Other differences")?;
    let mut table = Columns::new(&[Side::Left; 3]);
    table.row(["", "before", "after"]);
    let text =
        |value: &Option<String>, absent: &str| value.clone().unwrap_or_else(|| absent.to_owned());
    for fact in &besides.facts {
        table.row([
            fact.fact.to_owned(),
            text(&fact.before, "-"),
            text(&fact.after, "-"),
        ]);
    }
    for driver in &besides.drivers {
        table.row([
            driver.name.clone(),
            text(&driver.before, "not loaded"),
            text(&driver.after, "not loaded"),
        ]);
    }
    if !(besides.facts.is_empty() && besides.drivers.is_empty()) {
        table.write(out)?;
    }
    for (kinds, side) in [
        (&besides.recorded_before_only, "before"),
        (&besides.recorded_after_only, "after"),
    ] {
        if !kinds.is_empty() {
            let kinds: Vec<&str> = kinds.iter().map(|kind| title(*kind)).collect();
            let text = format!(
                "Recorded only {side} the change, so not compared: {}.",
                wording::listed(&kinds)
            );
            output::warning(out, &text)?;
        }
    }
    if besides.own_time_unknown {
        output::warning(
            out,
            "Only one side has all DPCs and ISRs, so the CPU time of programs is not compared.",
        )
    } else {
        Ok(())
    }
}

fn row(change: &Change) -> [String; 8] {
    let is_sampled = change.kind.is_sampled();
    let times = |sum: Sum| {
        if is_sampled && sum.mean_ns().is_some() {
            time_text(sum.ns)
        } else {
            product_text(sum)
        }
    };
    let part = |ns: f64| {
        if is_sampled {
            "-".to_owned()
        } else {
            signed(ns)
        }
    };
    let interval = |change: &Change| {
        let Interval { low, high, .. } = change.change?;
        Some(format!("{} to {}", signed(low), signed(high)))
    };
    [
        change.name.clone(),
        times(change.before),
        times(change.after),
        signed(change.ns()),
        interval(change).unwrap_or_else(|| "-".to_owned()),
        part(change.parts.count_ns),
        part(change.parts.mean_ns),
        change.conclusion.in_words().to_owned(),
    ]
}

/// Formats a total time with its factors, the count and the mean time.
fn product_text(sum: Sum) -> String {
    sum.mean_ns().map_or("-".to_owned(), |mean| {
        format!(
            "{} ({} × {})",
            time_text(sum.ns),
            count_text(sum.count),
            time_text(mean)
        )
    })
}

/// Returns the title of the table for a kind of rows.
fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Program => "CPU time of programs, without DPCs and ISRs",
        Kind::Thread => "CPU time of threads, without DPCs and ISRs",
        Kind::Dpc => "DPCs by module",
        Kind::DpcFunction => "DPCs by function",
        Kind::Isr => "ISRs by module",
        Kind::IsrFunction => "ISRs by function",
        Kind::Cpu => "DPCs and ISRs by CPU",
        Kind::InterruptCode => "Code within DPCs and ISRs, by module (samples)",
        Kind::InterruptFunction => "Code within DPCs and ISRs, by function (samples)",
        Kind::ThreadCode => "Code within threads, by module (samples)",
        Kind::ThreadFunction => "Code within threads, by function (samples)",
        Kind::Ready => "Waits of ready threads for a CPU, by program",
        Kind::Wait => "Other waits, by program and reason",
        Kind::WaitCode => "Other waits, by program, reason and code that waited",
        Kind::Disk => "Disk requests",
        Kind::File => "Disk requests by file",
    }
}

fn time_text(ns: f64) -> String {
    duration(ns.round() as i64)
}

fn signed(ns: f64) -> String {
    match ns.round() {
        1.0.. => format!("+{}", time_text(ns)),
        0.0 => time_text(0.0),
        _ => format!("-{}", time_text(-ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use wording::{DefaultUnit, parse_duration};

    /// A rare event happens less than once per second, or per unit of work.
    #[test]
    fn count_times_mean_is_the_printed_time() {
        let time = |text: &str| parse_duration(text, DefaultUnit::Seconds).unwrap() as f64;
        for count in [0.000_123, 0.0233, 0.16, 0.999] {
            let text = product_text(Sum {
                count,
                ns: 16_000.0,
            });
            let (total, factors) = text.strip_suffix(')').unwrap().split_once(" (").unwrap();
            let (count, mean) = factors.split_once(" × ").unwrap();
            let product = count.parse::<f64>().unwrap() * time(mean);
            assert_eq!(time(total), 16_000.0, "{text}");
            // Both factors are rounded to at least three digits.
            assert!((product / 16_000.0 - 1.0).abs() < 0.01, "{text}");
        }
    }
}
