//! Script of the pages, and its data.

use std::io::Write as _;

use rust_embed::Embed;
use serde::Serialize;
use wording::JsonText;

use crate::Error;

/// Script and style sheet of the pages, built from `ui/src/report`. Release builds embed them. Development builds read
/// them at run time.
#[derive(Embed)]
#[folder = "../../ui/dist-report"]
struct Files;

/// Script that draws the pictures of the pages, with its style sheet.
pub(super) struct Script {
    pub(super) code: String,
    pub(super) style: String,
}

impl Script {
    /// Returns the script. Returns `None` if the program was built without it.
    pub(super) fn read() -> Option<Script> {
        let file = |name| String::from_utf8(Files::get(name)?.data.into_owned()).ok();
        Some(Script {
            // Svelte has a byte order mark in a string. Pages have no invisible characters.
            code: file("report.js")?.replace('\u{feff}', "\\ufeff"),
            style: file("report.css")?,
        })
    }
}

/// Content that the script draws.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Content<T> {
    /// Pictures of `laglab report`, each in its place of the page.
    Report(T),
    /// Comparison of traces, the whole page.
    Comparison(T),
    /// Pictures of `laglab prove compare`, each in its place of the page.
    Runs(T),
}

/// Data of a page, as the page embeds it.
pub(super) struct Data {
    /// JSON without characters that could end the enclosing script element.
    pub(super) json: String,
    /// Nonce of the page's scripts: a hash of the data, so that text of the trace cannot contain it.
    pub(super) nonce: String,
}

impl Data {
    /// # Errors
    /// Returns an error if the content cannot be written as JSON.
    pub(super) fn new<T: Serialize>(content: &Content<T>) -> Result<Data, Error> {
        let json = escape_json(&serde_json::to_string(content)?);
        let nonce = blake3::hash(json.as_bytes()).to_hex().to_string();
        Ok(Data { json, nonce })
    }
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
