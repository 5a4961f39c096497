//! Wraps lines to the width of the terminal.

use std::io;

/// Minimum width in columns to which lines are wrapped. A narrower terminal is treated as if it had this
/// width.
const NARROWEST: usize = 30;

/// Returns the width of the terminal in columns; `None` if standard output is not a terminal.
pub(crate) fn width() -> Option<usize> {
    let (terminal_size::Width(columns), _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(columns.into())
}

/// Wraps text at spaces to at most `width` columns. If the text begins with a label, all lines after the
/// first are indented to the text after the label.
pub(super) fn lines(text: &str, width: Option<usize>) -> Vec<String> {
    match width {
        Some(width) => indented(text, width, hanging(text)),
        None => vec![text.to_owned()],
    }
}

/// Wraps text at spaces to at most `width` columns. All lines after the first have an indent of `indent`
/// columns.
pub(super) fn indented(text: &str, width: usize, indent: usize) -> Vec<String> {
    let width = width.max(NARROWEST);
    let indent = " ".repeat(indent);
    let mut lines = Vec::new();
    let mut rest = text;
    loop {
        let before = if lines.is_empty() {
            ""
        } else {
            indent.as_str()
        };
        let room = width - before.len();
        let Some((end, _)) = rest.char_indices().nth(room) else {
            lines.push(format!("{before}{rest}"));
            return lines;
        };
        // The first line must not break directly after the label. Words that are longer than a line are
        // broken.
        let from = if lines.is_empty() {
            indent.len().min(end)
        } else {
            0
        };
        let space = if rest[end..].starts_with(' ') {
            end
        } else {
            let before = rest[..end].rfind(' ').filter(|space| *space > from);
            before.unwrap_or(end)
        };
        lines.push(format!("{before}{}", rest[..space].trim_end()));
        rest = rest[space..].trim_start();
    }
}

/// Returns the indent, in columns, of all lines after the first.
fn hanging(text: &str) -> usize {
    /// Maximum length of a label, in bytes.
    const LONGEST: usize = 20;
    let own = text.len() - text.trim_start().len();
    let label = text[own..].find("  ").map(|end| own + end);
    let after = label.map(|end| text.len() - text[end..].trim_start().len());
    match after {
        Some(after) if after <= LONGEST => after,
        _ => own.min(LONGEST) + if own < LONGEST { 2 } else { 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces_and_keep_their_indent() {
        let text = "  for           Was it so? It was so, by all that is known.";
        assert_eq!(lines(text, None), [text]);
        assert_eq!(
            lines(text, Some(40)),
            [
                "  for           Was it so? It was so, by",
                "                all that is known.",
            ]
        );
        let plain = "Words and words and more words than fit.";
        assert_eq!(
            lines(plain, Some(30)),
            ["Words and words and more words", "  than fit."]
        );
        let long = "ä".repeat(70);
        assert!(
            lines(&long, Some(40))
                .iter()
                .all(|line| line.chars().count() <= 40)
        );
        assert_eq!(lines("", Some(40)), [""]);
    }
}
