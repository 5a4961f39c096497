//! Findings, verdicts of theories, and evidence as HTML.

use explain::{Conclusion, Evidence, Explanation, Finding, Judgement, Severity, Source, Verdict};
use maud::{Markup, html};
use wording::{Printable, Side, duration};

use crate::ExplainedTrace;
use crate::evidence::{cell, side};

/// Returns the conclusion, and a numbered card for each finding.
pub(super) fn cards(explained: &ExplainedTrace) -> Markup {
    let explanation = &explained.explanation;
    let record = explanation.main_record();
    html! {
        @match explanation.conclusion() {
            Some(conclusion @ Conclusion::NothingNoticeable { .. }) => {
                p.good {
                    (conclusion) "."
                    @if let Some(record) = &record { " Record " (record) "." }
                }
            }
            Some(Conclusion::CannotAnswer) => {
                p.warning {
                    b { (explained.conclusion().unwrap_or_default()) }
                    @if let Some(record) = &record { " Record " (record) "." }
                }
            }
            Some(conclusion) => p.warning { b { (conclusion) "." } },
            None => {}
        }
        @for (number, finding) in (1..).zip(&explanation.findings) {
            (card(number, finding))
        }
    }
}

fn card(number: usize, finding: &Finding) -> Markup {
    let (class, severity) = match finding.severity {
        Severity::Problem => ("problem", "Problem"),
        Severity::Warning => ("warning", "Warning"),
        Severity::Information => ("information", "Good to know"),
    };
    let tables = finding.evidence.len();
    html! {
        article.finding.(class) id={ "finding-" (number) } {
            h3 {
                span.number { (number) } " " span.severity { (severity) }
                @if let Some(delay) = &finding.delay {
                    " " span.cost { (duration(delay.ns)) " lost" }
                }
            }
            p.sentence { (Printable(&finding.sentence)) }
            @for why in &finding.why { p { (Printable(why)) } }
            @if let Some(delay) = &finding.delay {
                p.how { "Delay: " b { (duration(delay.ns)) } " " (Printable(&delay.how)) }
            }
            @if let Some(during) = &finding.during {
                p.how {
                    @if during.start < during.end {
                        "From " (moment(during.start)) " to " (moment(during.end)) "."
                    } @else {
                        "At " (moment(during.start)) "."
                    }
                }
            }
            @if !finding.remedies.is_empty() {
                h4 { "What to do" }
                ul.remedies { @for remedy in &finding.remedies { li { (Printable(remedy)) } } }
            }
            @if !finding.doubts.is_empty() {
                h4 { "Doubts" }
                ul.doubts { @for doubt in &finding.doubts { li { (Printable(doubt)) } } }
            }
            @if !finding.weighed.is_empty() {
                details {
                    summary { "Examined causes: " (finding.weighed.len()) }
                    (verdicts(&finding.weighed.iter().collect::<Vec<&Verdict>>()))
                }
            }
            @if tables > 0 {
                details open[finding.severity != Severity::Information] {
                    summary { "Evidence" @if tables > 1 { ": " (tables) " tables" } }
                    div.tables { @for table in &finding.evidence { (evidence(table)) } }
                }
            }
            (sources(&finding.sources))
        }
    }
}

/// Returns the verdict of each theory. If a theory lacks data, its verdict says what to record.
fn verdicts(verdicts: &[&Verdict]) -> Markup {
    html! {
        ul.verdicts {
            @for verdict in verdicts {
                @let (class, word) = judgement(verdict.judgement);
                li.(class) {
                    span.judgement { (word) }
                    div {
                        p {
                            b { (verdict.question) } " " (Printable(&verdict.because))
                            @if let Some(ns @ 1..) = verdict.explains_ns {
                                " It explains " (duration(ns)) "."
                            }
                        }
                        @if let Some(missing) = &verdict.record {
                            p.note { "Record " (missing) "." }
                        }
                        @if !verdict.evidence.is_empty() {
                            details {
                                summary { "Evidence" }
                                div.tables { @for table in &verdict.evidence { (evidence(table)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the verdicts of theories without findings.
pub(super) fn others(explanation: &Explanation) -> Markup {
    let others: Vec<&Verdict> = explanation.without_findings().collect();
    html! {
        @if others.is_empty() {
            p { "Every theory has findings." }
        } @else {
            (verdicts(&others))
        }
    }
}

/// Returns the rows of evidence and their query.
pub(super) fn evidence(evidence: &Evidence) -> Markup {
    let sides: Vec<&str> = (0..evidence.columns.len())
        .map(|place| match side(evidence, place) {
            Side::Left => "text",
            Side::Right => "figure",
        })
        .collect();
    html! {
        div.evidence {
            div.scroll tabindex="0" role="region" aria-label=(Printable(&evidence.title)) {
                table {
                    caption { (Printable(&evidence.title)) }
                    thead {
                        tr {
                            @for (column, side) in evidence.columns.iter().zip(&sides) {
                                th.(side) scope="col" { (column.label) }
                            }
                        }
                    }
                    tbody {
                        @for row in &evidence.rows {
                            tr {
                                @for ((value, column), side) in row.iter().zip(&evidence.columns).zip(&sides) {
                                    td.(side) { (Printable(&cell(value.as_ref(), column.unit))) }
                                }
                            }
                        }
                    }
                }
            }
            details.query {
                summary { "Query" }
                pre { code { (Printable(&evidence.sql())) } }
            }
        }
    }
}

fn sources(sources: &[Source]) -> Markup {
    html! {
        @if !sources.is_empty() {
            p.sources {
                "Sources: "
                @for (place, source) in sources.iter().enumerate() {
                    @if place > 0 { " · " }
                    @if let Some(url) = source.url {
                        a href=(url) rel="noreferrer" { (source.title) }
                    } @else {
                        (source.title)
                    }
                }
            }
        }
    }
}

fn judgement(judgement: Judgement) -> (&'static str, &'static str) {
    match judgement {
        Judgement::For => ("for", "yes"),
        Judgement::Against => ("against", "no"),
        Judgement::NotRecorded => ("not-recorded", "not recorded"),
    }
}

/// Formats a time since the trace's start.
fn moment(ns: i64) -> String {
    format!("{:.6} s", ns as f64 / 1e9)
}
