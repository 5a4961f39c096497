//! `laglab report`: the explanation of a trace in one self-contained HTML file.
//!
//! The page contains findings and tables as HTML. Its script draws the pictures from embedded answers of `explore`, with
//! the components of the page of `laglab open`. All content of a trace may be hostile. Therefore `maud` escapes text,
//! the script only sets content as text, and the page's policy forbids other scripts and external resources.

mod brief;
mod capture;
mod charts;
mod comparison;
mod document;
mod error;
mod evidence;
mod explained_trace;
mod findings;
mod script;
mod text_page;
mod usage;
mod views;

use std::sync::atomic::AtomicBool;

use explain::Severity;
use explore::Explorer;
use maud::{Markup, html};
use serde::Serialize;
use session::SEVERAL_SYSTEMS;
use ts_rs::TS;
use wording::{Printable, duration, grouped, size};

pub use brief::{BYTES_PER_TOKEN, Brief, BriefFinding, answer, damage, json_bytes, not_recorded};
use charts::Charts;
pub use comparison::comparison_page;
use document::Document;
pub use error::Error;
pub use evidence::{cell, side};
pub use explained_trace::ExplainedTrace;
use script::{Content, Data, Script};
pub use text_page::TextPage;
use views::Picture;
pub use views::{Panel, ShownView};

/// Themes and rules of the page of `laglab open`. The style sheet of the script has them, too.
const THEMES: &str = concat!(
    include_str!("../../../ui/src/colours.css"),
    include_str!("../../../ui/src/app.css"),
);
/// Libraries of the script, which their licence asks to name.
const DRAWN_WITH: &str = "Pictures are drawn with Svelte and uPlot (MIT).";
/// Style sheet of the text of reports.
const CSS: &str = include_str!("page.css");

/// Pictures of a report, and data that they share.
#[derive(Serialize, TS)]
pub struct ReportData<'a> {
    /// Time range of the graphs, in nanoseconds since the trace's start; `None` if there is no graph over time.
    range: Option<[i64; 2]>,
    /// Number of CPUs; `None` if it is unknown.
    cpus: Option<u32>,
    /// True if the limits of Microsoft for DPCs and ISRs hold.
    has_limits: bool,
    /// Findings that graphs shade.
    findings: Vec<ReportFinding>,
    /// Pictures, in the order of their places.
    pictures: Vec<Picture<'a>>,
}

/// Finding with a time range.
#[derive(Serialize, TS)]
struct ReportFinding {
    /// Number of the finding on the page.
    number: usize,
    severity: Severity,
    /// Start and end, in nanoseconds since the trace's start.
    range: [i64; 2],
    sentence: String,
}

/// Maximum number of findings that graphs shade. They are ordered by importance.
const MOST_SHADED: usize = 24;

/// Returns the tables that a page needs.
pub fn tables() -> Vec<tables::Table> {
    let mut tables = ExplainedTrace::tables();
    tables.extend(Charts::TABLES);
    tables.sort_unstable();
    tables.dedup();
    tables
}

/// Returns the report as an HTML page. `shown` are the views that were on screen. If the user gave no title,
/// the names of the trace's files are the title.
///
/// # Errors
/// Returns an error if a table cannot be read, or the user cancels.
pub fn page(
    explorer: &Explorer,
    explained: &ExplainedTrace,
    title: Option<&str>,
    shown: &[ShownView],
    cancelled: &AtomicBool,
) -> Result<String, Error> {
    let charts = Charts::ask(explorer, explained, cancelled)?;
    let views = shown.iter().chain(charts.views());
    let data = Content::Report(ReportData {
        range: charts.range(),
        cpus: explained.info.cpus.stated,
        has_limits: !explained.explanation.is_linux,
        findings: shaded(explained),
        pictures: views.filter_map(ShownView::picture).collect(),
    });
    let data = Data::new(&data)?;
    let files = explained.info.trace.files.iter();
    let files: Vec<&str> = files.map(|path| tables::file_name(path)).collect();
    let title = title.map_or_else(|| files.join(", "), str::to_owned);
    Ok(document(explained, &title, shown, &charts, &data))
}

/// Returns the findings that have a time range, the most important first.
fn shaded(explained: &ExplainedTrace) -> Vec<ReportFinding> {
    let findings = (1..).zip(&explained.explanation.findings);
    let shaded = findings.filter_map(|(number, finding)| {
        let during = finding.during.as_ref()?;
        Some(ReportFinding {
            number,
            severity: finding.severity,
            range: [during.start, during.end],
            sentence: finding.sentence.to_string(),
        })
    });
    shaded.take(MOST_SHADED).collect()
}

fn document(
    explained: &ExplainedTrace,
    title: &str,
    shown: &[ShownView],
    charts: &Charts,
    data: &Data,
) -> String {
    let script = Script::read();
    let themes = script.as_ref().map_or(THEMES, |script| &script.style);
    // Counts the pictures, in the order of the data.
    let mut place = 0;
    let body = html! {
        (header(explained, title))
        main {
            (without_script(script.is_some()))
            (views::section(shown, &mut place))
            section id="findings" {
                h2 { "Findings" }
                (findings::cards(explained))
            }
            section id="time" {
                h2 { "Over time" }
                (charts.over_time(explained, &mut place))
            }
            section id="spread" {
                h2 { "How long things took" }
                (charts.histograms(explained, &mut place))
            }
            section id="usage" {
                h2 { "Who used what" }
                (usage::tables(explained))
            }
            section id="theories" {
                h2 { "Other questions" }
                (findings::others(&explained.explanation))
            }
            section id="capture" {
                h2 { "The capture" }
                (capture::capture(explained))
            }
        }
        footer {
            p { "Made by laglab " (env!("CARGO_PKG_VERSION")) ". Queries are for " code { "laglab sql TRACE" } ". " (DRAWN_WITH) }
        }
    };
    let document = Document {
        title: &format!("{title} – why it lagged"),
        styles: &[themes, CSS],
        body,
        drawn: Some((data, script.as_ref())),
    };
    document.into_html()
}

/// Returns notes for readers who do not see the pictures of a page.
fn without_script(has_script: bool) -> Markup {
    html! {
        noscript {
            p.missing { "The pictures cannot be drawn: scripts are disabled here. The rest of the page needs no script." }
        }
        @if !has_script {
            p.missing { "The pictures are missing: this laglab was built without their script." }
        }
    }
}

/// Returns names and values of facts about the recording. For a file without events, only the start time is
/// known.
fn facts(explained: &ExplainedTrace) -> Vec<(&'static str, String)> {
    let info = &explained.info;
    let start = info.trace.start.as_deref();
    let from = start.map(|start| ("from", to_the_second(start)));
    if explained.instead.is_some() {
        return from.into_iter().collect();
    }
    let system = &info.system;
    let maker = [&system.manufacturer, &system.model];
    let maker: Vec<&str> = maker.into_iter().flatten().map(String::as_str).collect();
    let cpus = match &system.cpu {
        Some(name) => format!("{} ({})", info.cpus.counted(), name),
        None => info.cpus.counted(),
    };
    let mut facts = vec![
        (
            if system.is_linux { "system" } else { "Windows" },
            system.name(),
        ),
        ("CPUs", cpus),
    ];
    facts.extend(system.computer.clone().map(|name| ("machine", name)));
    if !maker.is_empty() {
        facts.push(("model", maker.join(" ")));
    }
    let lasted = info.trace.recorded_ns();
    facts.extend(lasted.map(|ns| ("recorded", duration(ns))));
    facts.extend(from);
    facts.push(("events", grouped(info.trace.events)));
    facts.push(("size", size(info.trace.size_bytes)));
    facts
}

/// Returns the header of the page: facts about the recording and links to the sections.
fn header(explained: &ExplainedTrace, title: &str) -> Markup {
    let info = &explained.info;
    let is_simulated = info.is_simulated();
    let facts = facts(explained);
    html! {
        header {
            div.bar {
                p.what { "Why it lagged" }
                div #theme {}
            }
            h1 {
                (Printable(title))
                @if is_simulated { " " span.simulated { "simulated" } }
            }
            dl.facts {
                @for (name, fact) in &facts {
                    div { dt { (name) } dd { (Printable(fact)) } }
                }
            }
            @if let Some(instead) = &explained.instead { p.note { (instead) "." } }
            @if is_simulated {
                p.note { "This trace was made by a model of Windows, not recorded on a machine." }
            }
            @if !info.one_system {
                p.warning { (SEVERAL_SYSTEMS) }
            }
            nav aria-label="Sections" {
                @for (id, name) in [
                    ("findings", "Findings"),
                    ("time", "Over time"),
                    ("spread", "How long"),
                    ("usage", "Who used what"),
                    ("theories", "What else"),
                    ("capture", "The capture"),
                ] {
                    a href={ "#" (id) } { (name) }
                }
            }
        }
    }
}

/// Formats an ISO 8601 time without fractions of a second.
pub fn to_the_second(moment: &str) -> String {
    let seconds = moment.get(..19).unwrap_or(moment);
    format!("{} UTC", seconds.replace('T', " "))
}

/// Returns a note with the reason why a chart or table is missing.
fn missing(title: &str, why: &str) -> Markup {
    html! {
        section.missing {
            h3 { (title) }
            p { (Printable(why)) }
        }
    }
}

/// Turns a clause into a sentence: its first letter becomes upper case, and it ends with a full stop.
fn sentence(clause: &str) -> String {
    wording::capitalized(clause) + "."
}
