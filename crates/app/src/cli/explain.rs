//! `laglab explain`.

use std::io::{self, Write};
use std::ops::Range;

use explain::{Asked, Evidence, Explanation, Finding, Judgement, Severity, Verdict};

use super::Failure;
use super::explained::Explained;
use super::open::{TabledTrace, TraceTables};
use crate::info::Info;
use crate::moment::Moment;
use crate::output::{self, Columns, Side, duration, grouped};
use crate::symbolication::SymbolOptions;

/// Says why the machine lagged: what cost the user time, with evidence and what to do about it.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab explain trace.etl\n  \
    laglab explain trace.etl --process LockApp --evidence\n  \
    laglab explain trace.etl --at 30.4s\n  \
    laglab explain trace.etl --between-focus explorer LockApp\n  \
    laglab explain kernel.etl user.etl --json | jq '.explanation.findings[0].sentence'")]
pub(super) struct Args {
    #[command(flatten)]
    trace: TabledTrace,
    /// Why did this thread wait? (its id; may be repeated)
    #[arg(long, value_name = "TID", help_heading = "What to look at")]
    thread: Vec<u32>,
    /// Why did threads of this process wait? (its name or id; may be repeated)
    #[arg(long, value_name = "PROCESS", help_heading = "What to look at")]
    process: Vec<String>,
    /// Waits at this moment: since the trace's start (1.5, 20ms) or UTC
    #[arg(long, value_name = "TIME", help_heading = "What to look at")]
    at: Option<Moment>,
    /// Waits between these moments
    #[arg(
        long,
        num_args = 2,
        value_names = ["T1", "T2"],
        conflicts_with = "at",
        help_heading = "What to look at"
    )]
    between: Option<Vec<Moment>>,
    /// Waits from the moment that process A got the focus until B did
    #[arg(
        long,
        num_args = 2,
        value_names = ["A", "B"],
        conflicts_with_all = ["at", "between"],
        help_heading = "What to look at"
    )]
    between_focus: Option<Vec<String>>,
    /// Show the rows that each finding rests on, and the query that gives them
    #[arg(long)]
    evidence: bool,
    #[command(flatten)]
    symbols: SymbolOptions,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let tables = args.trace.open()?;
    // In one pass: what follows asks for some of them alone.
    tables.make(&explain::tables())?;
    let asked = Asked {
        threads: args.thread.clone(),
        processes: args.process.clone(),
        during: during(args, &tables)?,
    };
    let detail = Detail {
        evidence: args.evidence,
        arguments: args.evidence || asked != Asked::default(),
    };
    let explained = Explained::of(&tables, asked, &args.symbols)?;
    if json {
        output::json(&explained)?;
    } else {
        let mut out = output::for_people();
        write(&mut out, &explained, detail)?;
        out.flush()?;
    }
    Ok(())
}

/// How much is told.
#[derive(Clone, Copy)]
struct Detail {
    /// The rows that findings rest on.
    evidence: bool,
    /// What was weighed of findings that are merely good to know, too.
    arguments: bool,
}

/// The time asked for, in nanoseconds since the trace's start.
fn during(args: &Args, tables: &TraceTables) -> Result<Option<Range<i64>>, Failure> {
    if let Some([from, to]) = args.between_focus.as_deref() {
        let between =
            tables.watched(|options| explain::between_focus(&tables.store, from, to, options))?;
        return between.map(Some).ok_or_else(|| {
            Failure::Input(format!(
                "--between-focus: nothing tells that {to} got the focus after {from} did (laglab \
                 focuschange shows who had it)"
            ))
        });
    }
    let clock = tables.store.trace().clock();
    let since_start = |moment: &Moment| moment.since_start(clock);
    if let Some(at) = &args.at {
        let at = since_start(at);
        return Ok(Some(at..at.saturating_add(1)));
    }
    match args.between.as_deref() {
        Some([from, to]) => match (since_start(from), since_start(to)) {
            (from, to) if from < to => Ok(Some(from..to)),
            _ => Err(Failure::Input(
                "--between: T1 is not before T2, so no time is between them".to_owned(),
            )),
        },
        _ => Ok(None),
    }
}

fn write(out: &mut dyn Write, explained: &Explained, detail: Detail) -> io::Result<()> {
    write_trace(out, &explained.info)?;
    let findings = &explained.explanation.findings;
    for (severity, heading) in [
        (Severity::Problem, "Problems"),
        (Severity::Warning, "Warnings"),
        (Severity::Information, "Good to know"),
    ] {
        let of_that: Vec<&Finding> = findings.iter().filter(|f| f.severity == severity).collect();
        if !of_that.is_empty() {
            output::heading(out, heading)?;
        }
        for finding in of_that {
            write_finding(out, finding, detail)?;
        }
    }
    if findings
        .iter()
        .all(|found| found.severity == Severity::Information)
    {
        output::heading(out, "Nothing that costs time was found")?;
    }
    write_judged(out, &explained.explanation)?;
    write_capture(out, &explained.info)
}

/// What was recorded, in one paragraph.
fn write_trace(out: &mut dyn Write, info: &Info) -> io::Result<()> {
    let (windows, cpus) = (info.system.windows(), info.cpus.counted());
    let extent = &info.trace;
    let span = extent.recorded_ns().map_or("no time".to_owned(), duration);
    let start = extent
        .start
        .as_deref()
        .map_or(String::new(), |s| format!(" from {s}"));
    writeln!(
        out,
        "{} events over {span}{start}, on {windows} with {cpus}.",
        grouped(extent.events)
    )?;
    if !info.one_system {
        output::warning(out, super::SEVERAL_SYSTEMS)?;
    }
    Ok(())
}

fn write_finding(out: &mut dyn Write, finding: &Finding, detail: Detail) -> io::Result<()> {
    match finding.severity {
        Severity::Information => output::paragraph(out, &finding.sentence)?,
        _ => output::warning(out, &finding.sentence)?,
    }
    if let Some(loss) = &finding.loss {
        output::paragraph(
            out,
            &format!("  Cost: {} {}", duration(loss.lost_ns), loss.how),
        )?;
    }
    if finding.severity > Severity::Information || detail.arguments {
        for verdict in &finding.weighed {
            write_verdict(out, verdict)?;
        }
    }
    for remedy in &finding.remedies {
        output::paragraph(out, &format!("  What to do: {remedy}"))?;
    }
    for doubt in &finding.doubts {
        output::quiet(out, &format!("  Doubt: {doubt}"))?;
    }
    if detail.evidence {
        let weighed = finding.weighed.iter().flat_map(|verdict| &verdict.evidence);
        for evidence in finding.evidence.iter().chain(weighed) {
            write_evidence(out, evidence)?;
        }
        for source in finding.sources {
            output::quiet(out, &format!("  Source: {} {}", source.title, source.url))?;
        }
    }
    Ok(())
}

fn write_verdict(out: &mut dyn Write, verdict: &Verdict) -> io::Result<()> {
    let judgement = judgement(verdict.judgement);
    let line = format!(
        "  {judgement:<12}  {} {}",
        verdict.question, verdict.because
    );
    match verdict.judgement {
        Judgement::For => output::paragraph(out, &line),
        Judgement::Against | Judgement::NotRecorded => output::quiet(out, &line),
    }
}

fn judgement(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::For => "for",
        Judgement::Against => "against",
        Judgement::NotRecorded => "not recorded",
    }
}

fn write_evidence(out: &mut dyn Write, evidence: &Evidence) -> io::Result<()> {
    output::paragraph(out, &format!("  {}", evidence.title))?;
    let sides: Vec<Side> = (0..evidence.columns.len())
        .map(|place| output::side(evidence, place))
        .collect();
    let mut columns = Columns::new(&sides);
    columns.row(evidence.columns.iter().map(|column| column.label));
    for row in &evidence.rows {
        let cells = row.iter().zip(&evidence.columns);
        columns.row(cells.map(|(cell, column)| output::cell(cell.as_ref(), column.unit)));
    }
    columns.write(out)?;
    output::quiet(out, &format!("  {}", evidence.query))
}

/// What theories said that found nothing.
fn write_judged(out: &mut dyn Write, explanation: &Explanation) -> io::Result<()> {
    let others: Vec<&Verdict> = explanation.without_findings().collect();
    if others.is_empty() {
        return Ok(());
    }
    output::heading(out, "What else was looked at")?;
    for verdict in others {
        write_verdict(out, verdict)?;
        if let Some(record) = verdict.record {
            output::quiet(out, &format!("                Record {record}."))?;
        }
    }
    Ok(())
}

/// Whether the capture can be trusted, and what it cannot answer.
fn write_capture(out: &mut dyn Write, info: &Info) -> io::Result<()> {
    output::heading(out, "The capture")?;
    if info.damage.none {
        output::paragraph(out, "Nothing is known to be lost or broken.")?;
    } else {
        for line in info.damage.sentences() {
            output::warning(out, &line)?;
        }
    }
    if !info.missing.is_empty() {
        output::heading(out, "What this trace cannot answer")?;
        for missing in &info.missing {
            output::paragraph(out, &format!("{}: {}", missing.question, missing.reason))?;
            output::quiet(out, &format!("  {}", missing.advice))?;
        }
    }
    Ok(())
}
