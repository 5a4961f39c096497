//! Self-contained pages without scripts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{CSS, THEMES};

/// Returns the page as HTML. `style` is added after the report's style sheet. The page's policy forbids
/// scripts and external resources.
pub fn still_page(title: &str, style: &'static str, header: &Markup, main: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(concat!("laglab ", env!("CARGO_PKG_VERSION")));
                title { (title) }
                style { (PreEscaped(THEMES)) (PreEscaped(CSS)) (PreEscaped(style)) }
            }
            body {
                header { (header) }
                main { (main) }
                footer { p { "Made by laglab " (env!("CARGO_PKG_VERSION")) "." } }
            }
        }
    };
    page.into_string()
}
