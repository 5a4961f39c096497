//! Section about the recording: its sessions, losses and damage, and the questions that it cannot answer.

use facts::Info;
use maud::{Markup, html};
use wording::{Printable, duration, size};

use crate::ExplainedTrace;

pub(super) fn capture(explained: &ExplainedTrace) -> Markup {
    let info = &explained.info;
    let damage = explained.damage();
    html! {
        @if damage.is_empty() {
            p.good { "No loss or damage is known." }
        } @else {
            ul.damage {
                @for line in &damage { li { (Printable(line)) } }
            }
        }
        // A file without events has no sessions.
        @if explained.instead.is_none() { (sessions(info)) }
        @if !info.missing.is_empty() {
            h3 { "What this trace cannot answer" }
            dl.unanswered {
                @for missing in &info.missing {
                    dt { (missing.question) }
                    dd { (Printable(&missing.reason)) ". " span.note { (missing.advice) "." } }
                }
            }
        }
    }
}

/// Returns the table of the sessions that wrote the trace.
fn sessions(info: &Info) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Sessions" {
            table {
                caption { "Sessions: " (size(info.trace.size_bytes)) " in all" }
                thead {
                    tr {
                        th.text scope="col" { "session" }
                        th.text scope="col" { "file" }
                        th.text scope="col" { "start" }
                        th.figure scope="col" { "lasted" }
                        th.text scope="col" { "clock" }
                    }
                }
                tbody {
                    @for session in &info.sessions {
                        tr {
                            td.text { (Printable(&session.name)) }
                            td.text { (Printable(tables::file_name(&session.file))) }
                            td.text { (session.start.as_deref().unwrap_or("?")) }
                            td.figure { (session.duration_ns.map_or_else(|| "?".to_owned(), duration)) }
                            td.text { (session.clock.unwrap_or("?")) }
                        }
                    }
                }
            }
        }
    }
}
