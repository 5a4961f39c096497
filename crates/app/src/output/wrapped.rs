//! Lines broken where a terminal ends.

use std::io;

/// Where a terminal is narrower, lines are broken as if it were so wide.
const NARROWEST: usize = 30;

/// How many columns the terminal has that standard output is; nothing if it is none.
pub(crate) fn width() -> Option<usize> {
    let (terminal_size::Width(columns), _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(columns.into())
}

/// The text in lines of at most so many columns, broken at spaces. Lines after the first stand below
/// what follows the label that the text begins with, if it does.
pub(super) fn lines(text: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width.map(|width| width.max(NARROWEST)) else {
        return vec![text.to_owned()];
    };
    let indent = " ".repeat(hanging(text));
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
        // The label is not parted from what follows it; a word longer than a line is parted.
        let from = if lines.is_empty() {
            indent.len().min(end)
        } else {
            0
        };
        let space = match rest[end..].starts_with(' ') {
            true => end,
            false => {
                let before = rest[..end].rfind(' ').filter(|space| *space > from);
                before.unwrap_or(end)
            }
        };
        lines.push(format!("{before}{}", rest[..space].trim_end()));
        rest = rest[space..].trim_start();
    }
}

/// By how many columns further lines are indented.
fn hanging(text: &str) -> usize {
    /// No label is longer.
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
