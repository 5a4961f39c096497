//! `laglab report`: the explanation of a trace in one self-contained HTML file.
//!
//! The page contains findings and tables as HTML. Its script draws the charts from embedded JSON. All content
//! of a trace may be hostile. Therefore `maud` escapes text, the script only sets content as text, and the
//! page's policy forbids other scripts and external resources.

mod brief;
mod capture;
mod charts;
mod comparison;
mod error;
mod evidence;
mod explained;
mod figures;
mod findings;
mod histograms;
mod still;
mod usage;
mod views;

use std::io::Write as _;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use session::{SEVERAL_SYSTEMS, TraceTables};
use wording::{JsonText, Printable, duration, grouped, size};

pub use brief::{BYTES_PER_TOKEN, Brief, BriefFinding, answer, damage, json_bytes, not_recorded};
use charts::Charts;
pub use comparison::comparison_page;
pub use error::Error;
pub use evidence::{cell, side};
pub use explained::Explained;
pub use still::still_page;
pub use views::{Panel, ShownView};

const UPLOT_CSS: &str = include_str!("../assets/uplot/uPlot.min.css");
const UPLOT_JS: &str = include_str!("../assets/uplot/uPlot.iife.min.js");
/// Style sheet of all reports. It has the themes and colours of the page of `laglab open`.
const CSS: &str = concat!(
    include_str!("../../../ui/src/colours.css"),
    include_str!("page.css")
);
const JS: &str = include_str!("page.js");

/// Returns the tables that a page needs.
pub fn tables() -> Vec<tables::Table> {
    let mut tables = Explained::tables();
    tables.extend(Charts::TABLES);
    tables.sort_unstable();
    tables.dedup();
    tables
}

/// Returns the report as an HTML page. `views` are the views that were on screen. If the user gave no title,
/// the names of the trace's files are the title.
///
/// # Errors
/// Returns an error if a table cannot be read, or the user cancels.
pub fn page(
    trace: &TraceTables,
    explained: &Explained,
    title: Option<&str>,
    views: &[ShownView],
) -> Result<String, Error> {
    let charts = Charts::read(trace, explained)?;
    let (data, nonce, policy) = data_with_policy(&serde_json::to_string(&charts)?);
    let files = explained.info.trace.files.iter();
    let files: Vec<&str> = files.map(|path| tables::file_name(path)).collect();
    let title = title.map_or_else(|| files.join(", "), str::to_owned);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                meta name="generator" content=(concat!("laglab ", env!("CARGO_PKG_VERSION")));
                title { (Printable(&title)) " – why it lagged" }
                style { (PreEscaped(UPLOT_CSS)) (PreEscaped(CSS)) }
            }
            body {
                (header(explained, &title))
                main {
                    (views::section(views))
                    section id="findings" {
                        h2 { "Findings" }
                        (findings::cards(explained))
                    }
                    section id="time" {
                        h2 { "Over time" }
                        noscript {
                            p.missing { "The charts cannot be drawn: scripts are disabled here. The rest of the page needs no script." }
                        }
                        (figures::over_time(explained, &charts))
                    }
                    section id="spread" {
                        h2 { "How long things took" }
                        (histograms::all(explained, &charts))
                    }
                    section id="usage" {
                        h2 { "Who used what" }
                        (usage::tables(explained, &charts))
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
                    p { "Made by laglab " (env!("CARGO_PKG_VERSION")) ". Queries are for " code { "laglab sql TRACE" } ". Charts are drawn with uPlot (MIT)." }
                }
                script #data type="application/json" nonce=(nonce) { (PreEscaped(data)) }
                script nonce=(nonce) { (PreEscaped(UPLOT_JS)) }
                script nonce=(nonce) { (PreEscaped(JS)) }
            }
        }
    };
    Ok(page.into_string())
}

/// Returns names and values of facts about the recording. For a file without events, only the start time is
/// known.
fn facts(explained: &Explained) -> Vec<(&'static str, String)> {
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
fn header(explained: &Explained, title: &str) -> Markup {
    let info = &explained.info;
    let is_simulated = info.is_simulated();
    let facts = facts(explained);
    html! {
        header {
            div.bar {
                p.what { "Why it lagged" }
                button #theme type="button" hidden { "Dark" }
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

/// Returns three texts: the embedded JSON, the nonce of the page's scripts, and the policy. The policy allows
/// only scripts with this nonce.
fn data_with_policy(json: &str) -> (String, String, String) {
    let data = escape_json(json);
    // The nonce is a hash of all embedded data, so text of the trace cannot contain it.
    let nonce = blake3::hash(data.as_bytes()).to_hex().to_string();
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; base-uri \
         'none'; form-action 'none'"
    );
    (data, nonce, policy)
}

/// Escapes characters of JSON: characters that could end the enclosing script element, and harmful characters, such as
/// those that reorder text.
fn escape_json(json: &str) -> String {
    let mut escaped = Vec::with_capacity(json.len());
    // Writing to memory does not fail, and the bytes of a `str` are UTF-8.
    let _ = JsonText::new(&mut escaped).write_all(json.as_bytes());
    let mut escaped = String::from_utf8(escaped).unwrap_or_default();
    // These characters can only occur within strings of JSON, where an escape sequence is valid.
    for (character, escape) in [("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")] {
        escaped = escaped.replace(character, escape);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_the_script() {
        let text = "</script>&\u{2028}\u{2029}\u{202e}\u{9b}\u{85}\u{feff}<!--";
        let json = escape_json(&serde_json::to_string(text).unwrap());
        let harmful = [
            '<', '>', '&', '\u{2028}', '\u{2029}', '\u{202e}', '\u{9b}', '\u{85}', '\u{feff}',
        ];
        assert!(!json.contains(harmful));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
