//! The words of the command that measured, so that it can be given again.

use std::ffi::OsString;

/// The words behind one another, quoted where a shell would take them apart; the program's by its name
/// alone, since where it lies says nothing.
pub(super) fn words(words: impl Iterator<Item = OsString>) -> String {
    let words = words.skip(1).map(|word| quoted(&word.to_string_lossy()));
    let words: Vec<String> = std::iter::once("laglab".to_owned()).chain(words).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./\\:,=+%@".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("\"{word}\""),
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
