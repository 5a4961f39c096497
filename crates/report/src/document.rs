//! Skeleton of all pages: their head, their policy, and the script with its data.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use wording::Printable;

use crate::script::{Data, Script};

/// HTML page that needs no other files.
pub(super) struct Document<'a> {
    pub(super) title: &'a str,
    /// Style sheets, in their order.
    pub(super) styles: &'a [&'a str],
    pub(super) body: Markup,
    /// Data and script; `None` for a page without scripts. Without the script, the data is still in the page.
    pub(super) drawn: Option<(&'a Data, Option<&'a Script>)>,
}

impl Document<'_> {
    /// Returns the page as HTML. Its policy forbids external resources, and scripts other than its own.
    pub(super) fn into_html(self) -> String {
        let scripts = self.drawn.map_or_else(String::new, |(data, _)| {
            format!("script-src 'nonce-{}'; ", data.nonce)
        });
        let policy = format!(
            "default-src 'none'; style-src 'unsafe-inline'; {scripts}base-uri 'none'; form-action 'none'"
        );
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta name="referrer" content="no-referrer";
                    meta name="generator" content=(concat!("laglab ", env!("CARGO_PKG_VERSION")));
                    title { (Printable(self.title)) }
                    style { @for style in self.styles { (PreEscaped(style)) } }
                }
                body {
                    (self.body)
                    @if let Some((data, script)) = self.drawn {
                        script #data type="application/json" nonce=(data.nonce) { (PreEscaped(&data.json)) }
                        @if let Some(script) = script {
                            script nonce=(data.nonce) { (PreEscaped(&script.code)) }
                        }
                    }
                }
            }
        };
        page.into_string()
    }
}
