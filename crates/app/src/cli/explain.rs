//! `laglab explain`.

use std::io::{self, Write};

use explain::{Asked, Conclusion, Evidence, Explanation, Finding, Judgement, Severity, Verdict};

use super::Failure;
use super::asked::Question;
use super::explained::Explained;
use super::open::TabledTrace;
use crate::output::{self, Columns, Side, duration, grouped};
use crate::symbolication::SymbolOptions;

/// Says why the machine lagged: what cost the user time, with evidence and what to do about it.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab explain trace.etl\n  \
    laglab explain trace.etl --process LockApp --evidence\n  \
    laglab explain trace.etl --at 30.4s\n  \
    laglab explain trace.etl --between-focus UIforETW LockApp\n  \
    laglab explain kernel.etl user.etl --json | jq '.explanation.findings[0].sentence'")]
pub(super) struct Args {
    #[command(flatten)]
    trace: TabledTrace,
    #[command(flatten)]
    question: Question,
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
    let asked = args.question.of(&tables)?;
    let detail = Detail {
        evidence: args.evidence,
        is_asked: asked != Asked::default(),
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
    /// Whether something is asked for: then what was weighed is told of what is good to know, too.
    is_asked: bool,
}

fn write(out: &mut dyn Write, explained: &Explained, detail: Detail) -> io::Result<()> {
    write_trace(out, explained)?;
    match detail.is_asked {
        true => write_answer(out, &explained.explanation, detail)?,
        false => write_findings(out, &explained.explanation, detail)?,
    }
    write_judged(out, &explained.explanation)?;
    write_capture(out, explained)
}

/// What was found, the worst first.
fn write_findings(
    out: &mut dyn Write,
    explanation: &Explanation,
    detail: Detail,
) -> io::Result<()> {
    if let Some(conclusion) = explanation.conclusion() {
        output::heading(out, &conclusion.to_string())?;
        if let (Conclusion::CannotAnswer(..), Some(record)) =
            (conclusion, explanation.what_to_record())
        {
            output::paragraph(out, &format!("Record {record}."))?;
        }
    }
    for (severity, heading) in [
        (Severity::Problem, "Problems"),
        (Severity::Warning, "Warnings"),
        (Severity::Information, "Good to know"),
    ] {
        let findings = explanation.findings.iter();
        let of_that: Vec<&Finding> = findings.filter(|f| f.severity == severity).collect();
        if !of_that.is_empty() {
            output::heading(out, heading)?;
        }
        for finding in of_that {
            write_finding(out, finding, detail)?;
        }
    }
    Ok(())
}

/// What was found of what is asked for, and then in short what else is there.
fn write_answer(out: &mut dyn Write, explanation: &Explanation, detail: Detail) -> io::Result<()> {
    let (aside, about): (Vec<&Finding>, Vec<&Finding>) =
        explanation.findings.iter().partition(|found| found.aside);
    output::heading(out, "What is asked for")?;
    if about.is_empty() {
        let because = explanation.theories.first().map(|v| v.because.as_str());
        let because = because.unwrap_or_default();
        output::paragraph(out, &format!("Nothing was found: {because}."))?;
    }
    for finding in about {
        write_finding(out, finding, detail)?;
    }
    if !aside.is_empty() {
        output::heading(out, "Beside that, of others or of other times")?;
    }
    for finding in aside {
        match finding.severity {
            Severity::Information => output::quiet(out, &finding.sentence)?,
            _ => output::paragraph(out, &finding.sentence)?,
        }
    }
    Ok(())
}

/// What was recorded, in one paragraph.
fn write_trace(out: &mut dyn Write, explained: &Explained) -> io::Result<()> {
    let info = &explained.info;
    let (windows, cpus) = (info.system.windows(), info.cpus.counted());
    let extent = &info.trace;
    let span = extent.recorded_ns().map_or("no time".to_owned(), duration);
    let start = extent
        .start
        .as_deref()
        .map_or(String::new(), |s| format!(" from {s}"));
    match &explained.instead {
        Some(instead) => writeln!(out, "{instead}.")?,
        // From one to the other nothing was recorded, for years maybe.
        None if !info.one_system => writeln!(
            out,
            "{} events in {} sessions.",
            grouped(extent.events),
            info.sessions.len()
        )?,
        None => writeln!(
            out,
            "{} over {span}{start}, on {windows} with {cpus}.",
            match extent.events {
                1 => "1 event".to_owned(),
                events => format!("{} events", grouped(events)),
            }
        )?,
    }
    if info.is_simulated() {
        output::paragraph(
            out,
            "Simulated: a model of Windows made this trace, and no machine was recorded.",
        )?;
    }
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
    if finding.severity > Severity::Information || detail.evidence || detail.is_asked {
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
    output::verbatim(out, &format!("  {}", evidence.query))
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
        if let Some(record) = &verdict.record {
            output::quiet(out, &format!("                Record {record}."))?;
        }
    }
    Ok(())
}

/// Whether the capture can be trusted, and what it cannot answer.
fn write_capture(out: &mut dyn Write, explained: &Explained) -> io::Result<()> {
    output::heading(out, "The capture")?;
    let (info, damage) = (&explained.info, explained.damage());
    if damage.is_empty() {
        output::paragraph(out, "Nothing is known to be lost or broken.")?;
    }
    for line in damage {
        output::warning(out, &line)?;
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
