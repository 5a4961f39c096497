//! `laglab report`: why it lagged, as one HTML file that needs nothing else.
//!
//! Findings and tables are in the page as they are read; charts are drawn by its script from the
//! JSON in it. Everything that came from a trace is hostile: text is escaped by `maud`, the script
//! sets it as text only, and the page's own policy lets no other script run and nothing be loaded.

mod capture;
mod charts;
mod figures;
mod findings;
mod histograms;
mod still;
mod usage;
mod views;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::cli::{Explained, Failure, TraceTables};
use crate::output::{Printable, duration, grouped, size};
use charts::Charts;
pub(crate) use still::still_page;
pub(crate) use views::{Panel, ShownView};

const UPLOT_CSS: &str = include_str!("../../assets/uplot/uPlot.min.css");
const UPLOT_JS: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
/// How pages look.
const CSS: &str = include_str!("page.css");
const JS: &str = include_str!("page.js");

/// The tables that a page is made of.
pub(crate) fn tables() -> Vec<tables::Table> {
    let mut tables = explain::tables();
    tables.extend(Charts::TABLES);
    tables.sort_unstable();
    tables.dedup();
    tables
}

/// The page, with what was on screen. Without a title of the user's it is headed by the names of the
/// trace's files.
///
/// # Errors
/// If a table cannot be read, or the user stopped it.
pub(crate) fn page(
    trace: &TraceTables,
    explained: &Explained,
    title: Option<&str>,
    views: &[ShownView],
) -> Result<String, Failure> {
    let charts = Charts::read(trace, explained)?;
    let data = serde_json::to_string(&charts).map_err(std::io::Error::from)?;
    let data = harmless(&data);
    // A script runs only with this, which no text of the trace can hold: it is made of them all.
    let nonce = blake3::hash(data.as_bytes()).to_hex();
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; base-uri \
         'none'; form-action 'none'"
    );
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
                        (findings::cards(&explained.explanation))
                    }
                    section id="time" {
                        h2 { "Over time" }
                        noscript {
                            p.missing { "The charts are drawn by a script in this file, and scripts do not run here. Everything else is below and above." }
                        }
                        (figures::over_time(&charts))
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
                        h2 { "What else was looked at" }
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

/// What was recorded: of files without events no more than from when on.
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
    let mut facts = vec![("Windows", system.windows()), ("CPUs", cpus)];
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

/// What was recorded, and the way to the sections.
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
                p.note { "A model of Windows made this trace. No machine was recorded." }
            }
            @if !info.one_system {
                p.warning { (crate::cli::SEVERAL_SYSTEMS) }
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

/// A moment in ISO 8601, without what comes after its seconds.
pub(crate) fn to_the_second(moment: &str) -> String {
    let seconds = moment.get(..19).unwrap_or(moment);
    format!("{} UTC", seconds.replace('T', " "))
}

/// Says that there is nothing to show.
fn missing(title: &str, why: &str) -> Markup {
    html! {
        section.missing {
            h3 { (title) }
            p { (Printable(why)) }
        }
    }
}

/// What begins in the middle of a sentence, as one.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars).chain(['.']).collect()
}

/// JSON without what could end the element that it stands in.
fn harmless(json: &str) -> String {
    // All of these can stand in strings only.
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_the_script() {
        let text = "</script>&\u{2028}\u{2029}<!--";
        let json = harmless(&serde_json::to_string(text).unwrap());
        assert!(!json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
