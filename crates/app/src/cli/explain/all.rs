//! Complete output of `laglab explain`: all findings with verdicts, and the answers of all theories.

use std::io::{self, Write};

use explain::{Evidence, Explanation, Finding, Judgement, Severity, Verdict};
use report::ExplainedTrace;
use session::SEVERAL_SYSTEMS;

use crate::output::{self, Columns, Side, counted, duration};

/// Level of detail of the output.
#[derive(Clone, Copy)]
pub(super) struct Detail {
    /// True to show the rows of evidence for each finding.
    pub(super) evidence: bool,
    /// True if options limit the scope. In this case, verdicts of informational findings are shown, too.
    pub(super) is_scoped: bool,
}

pub(super) fn write(
    out: &mut dyn Write,
    explained: &ExplainedTrace,
    detail: Detail,
) -> io::Result<()> {
    write_trace(out, explained)?;
    if detail.is_scoped {
        write_answer(out, &explained.explanation, detail)?
    } else {
        write_findings(out, explained, detail)?
    }
    write_judged(out, &explained.explanation)?;
    write_capture(out, explained)
}

/// Writes all findings. The most severe finding comes first.
fn write_findings(
    out: &mut dyn Write,
    explained: &ExplainedTrace,
    detail: Detail,
) -> io::Result<()> {
    let explanation = &explained.explanation;
    if let Some(conclusion) = explained.conclusion() {
        output::heading(out, conclusion.trim_end_matches('.'))?;
        if let Some(record) = explanation.main_record() {
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

/// Writes the findings within the scope, then a short list of the other findings.
fn write_answer(out: &mut dyn Write, explanation: &Explanation, detail: Detail) -> io::Result<()> {
    let (off_topic, about): (Vec<&Finding>, Vec<&Finding>) = explanation
        .findings
        .iter()
        .partition(|found| found.off_topic);
    output::heading(out, "In scope")?;
    if about.is_empty() {
        let because = explanation.theories.first().map(|v| v.because.as_str());
        let because = because.unwrap_or_default();
        output::paragraph(out, &format!("Found nothing: {because}."))?;
    }
    for finding in about {
        write_finding(out, finding, detail)?;
    }
    if !off_topic.is_empty() {
        output::heading(out, "Other threads, processes or times")?;
    }
    for finding in off_topic {
        match finding.severity {
            Severity::Information => output::quiet(out, &finding.sentence)?,
            _ => output::paragraph(out, &finding.sentence)?,
        }
    }
    Ok(())
}

/// Writes one paragraph about the recording: events, duration, system.
fn write_trace(out: &mut dyn Write, explained: &ExplainedTrace) -> io::Result<()> {
    let info = &explained.info;
    let (windows, cpus) = (info.system.name(), info.cpus.counted());
    let extent = &info.trace;
    let span = extent.recorded_ns().map_or("no time".to_owned(), duration);
    let start = extent
        .start
        .as_deref()
        .map_or(String::new(), |s| format!(" from {s}"));
    match &explained.instead {
        Some(instead) => writeln!(out, "{instead}.")?,
        // The sessions of the trace may be years apart, so the duration from the first to the last event
        // would mislead.
        None if !info.one_system => writeln!(
            out,
            "{} in {}.",
            counted(extent.events, "event", "events"),
            counted(info.sessions.len() as u64, "session", "sessions")
        )?,
        None => writeln!(
            out,
            "{} over {span}{start}, on {windows} with {cpus}.",
            counted(extent.events, "event", "events")
        )?,
    }
    if info.is_simulated() {
        output::paragraph(
            out,
            "Simulated: this trace was made by a model of Windows, not recorded on a machine.",
        )?;
    }
    if !info.one_system {
        output::warning(out, SEVERAL_SYSTEMS)?;
    }
    Ok(())
}

/// Writes a finding, with the verdict on each cause that was examined.
pub(super) fn write_finding(
    out: &mut dyn Write,
    finding: &Finding,
    detail: Detail,
) -> io::Result<()> {
    match finding.severity {
        Severity::Information => output::paragraph(out, &finding.sentence)?,
        _ => output::warning(out, &finding.sentence)?,
    }
    for why in &finding.why {
        output::paragraph(out, &format!("  {why}"))?;
    }
    if let Some(delay) = &finding.delay {
        output::paragraph(
            out,
            &format!("  Delay: {} {}", duration(delay.ns), delay.how),
        )?;
    }
    for remedy in &finding.remedies {
        output::paragraph(out, &format!("  What to do: {remedy}"))?;
    }
    if finding.severity > Severity::Information || detail.evidence || detail.is_scoped {
        for verdict in &finding.weighed {
            write_verdict(out, verdict)?;
        }
    }
    for doubt in &finding.doubts {
        output::quiet(out, &format!("  Doubt: {doubt}"))?;
    }
    if detail.evidence {
        let weighed = finding.weighed.iter().flat_map(|verdict| &verdict.evidence);
        for evidence in finding.evidence.iter().chain(weighed) {
            write_evidence(out, None, evidence)?;
        }
        for source in &finding.sources {
            let url = source.url.map_or_else(String::new, |url| format!(" {url}"));
            output::quiet(out, &format!("  Source: {}{url}", source.title))?;
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
        Judgement::For => "yes",
        Judgement::Against => "no",
        Judgement::NotRecorded => "not recorded",
    }
}

/// Writes the rows of evidence, then the query that returns the rows. `source` names the trace if there are several.
pub(crate) fn write_evidence(
    out: &mut dyn Write,
    source: Option<&str>,
    evidence: &Evidence,
) -> io::Result<()> {
    let source = source.map_or(String::new(), |source| format!("{source}: "));
    output::paragraph(out, &format!("  {source}{}", evidence.title))?;
    let sides: Vec<Side> = (0..evidence.columns.len())
        .map(|place| report::side(evidence, place))
        .collect();
    let mut columns = Columns::new(&sides);
    columns.row(evidence.columns.iter().map(|column| column.label));
    for row in &evidence.rows {
        let cells = row.iter().zip(&evidence.columns);
        columns.row(cells.map(|(cell, column)| report::cell(cell.as_ref(), column.unit)));
    }
    columns.write(out)?;
    output::verbatim(out, &format!("  {}", evidence.sql()))
}

/// Writes the verdicts of theories without findings.
fn write_judged(out: &mut dyn Write, explanation: &Explanation) -> io::Result<()> {
    let others: Vec<&Verdict> = explanation.without_findings().collect();
    if others.is_empty() {
        return Ok(());
    }
    output::heading(out, "Other questions")?;
    for verdict in others {
        write_verdict(out, verdict)?;
    }
    match explanation.what_to_record() {
        Some(record) => output::paragraph(
            out,
            &format!("To answer the questions marked as not recorded, record {record}."),
        ),
        None => Ok(()),
    }
}

/// Writes the loss and damage of the recording, and the questions that it cannot answer.
fn write_capture(out: &mut dyn Write, explained: &ExplainedTrace) -> io::Result<()> {
    output::heading(out, "The capture")?;
    let (info, damage) = (&explained.info, explained.damage());
    if damage.is_empty() {
        output::paragraph(out, "No loss or damage is known.")?;
    }
    for line in damage {
        output::warning(out, &line)?;
    }
    if !info.missing.is_empty() {
        output::heading(out, "What this trace cannot answer")?;
        for missing in &info.missing {
            output::paragraph(out, &format!("{}: {}", missing.question, missing.reason))?;
        }
        output::quiet(
            out,
            "`laglab info` shows what to record for each of these questions.",
        )?;
    }
    Ok(())
}
