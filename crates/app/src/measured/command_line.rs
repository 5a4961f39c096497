//! Command line of a measurement. The user can repeat the measurement with it.

use std::ffi::OsString;

/// Joins the words of a command line. Quotes the words that a shell would split. Replaces the path of the
/// program by the program's name.
pub(super) fn words(words: impl Iterator<Item = OsString>) -> String {
    let words = words.skip(1).map(|word| quoted(&word.to_string_lossy()));
    let words: Vec<String> = std::iter::once("laglab".to_owned()).chain(words).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./\\:,=+%@".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("\"{word}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_spaces_stay_one() {
        let line = [
            "/usr/bin/laglab",
            "measure",
            "files",
            "my set",
            "--cache=warm",
            "",
        ];
        assert_eq!(
            words(line.into_iter().map(OsString::from)),
            "laglab measure files \"my set\" --cache=warm \"\""
        );
    }
}
