//! Finds words and phrases that our comments, documents and messages must not use.

use super::File;

/// Words that must not begin a doc comment. A doc comment should begin with a noun or a verb in the third
/// person.
const FIRST_WORDS: &[&str] = &[
    "What", "Whether", "How", "Who", "Whose", "Whom", "Which", "Why", "Of", "As", "The same",
    "None", "Neither", "Nothing", "Nobody", "Where", "When", "If", "Only",
];

/// Words that may begin a sentence only if it is a question. A statement with this beginning is hard to
/// understand.
const QUESTION_WORDS: &[&str] = &["What", "Whatever", "Which", "Whichever", "Who", "Whoever"];

/// Phrases that are not used, each with words to use instead.
const PHRASES: &[(&str, &str)] = &[
    ("anew", "again"),
    ("are said", "print, state"),
    ("are to be had", "are available"),
    ("are told", "print, report"),
    ("bears", "has, carries"),
    ("beside", "next to, compared with"),
    ("comes to", "is, sums to"),
    ("for want of", "without"),
    ("goes on", "continues"),
    ("in its stead", "in its place"),
    ("in the stead of", "instead of"),
    ("is content", "returns without an error"),
    ("is had", "is available"),
    ("is said", "is printed, is stated"),
    ("is to be had", "is available"),
    ("is told", "is printed, is reported"),
    ("meanwhile", "during this time"),
    ("mended", "fixed"),
    ("nobody", "no user, no caller"),
    ("none of its own", "no separate …"),
    ("in vain", "without success"),
    ("of what is", "name the thing"),
    ("of what was", "name the thing"),
    ("of its own", "its own …, a separate …"),
    ("of our own", "our own …"),
    ("of their own", "their own …"),
    ("reckoned", "computed"),
    ("save that", "except that"),
    ("seldom", "rarely"),
    ("so many", "N, this number of"),
    ("somebody", "a user, a caller"),
    ("stands in", "is in"),
    ("stretch of time", "time range"),
    ("stretches of time", "time ranges"),
    ("tells of", "describes"),
    ("that is what", "name the thing"),
    ("the same of", "a sentence that stands alone"),
    ("thereof", "of it"),
    ("to be had", "available"),
    ("told of", "reported, described"),
    ("what is had", "what is available"),
    ("which is whose", "which belongs to which"),
    ("who asked", "the user, the caller"),
    ("whoever", "the user, the caller"),
    ("whomever", "the user, the caller"),
    ("whose is", "name the owner"),
    ("whosesoever", "of any …"),
];

/// Files that contain texts of other authors, or these rules. They are not checked.
const EXEMPT: &[&str] = &[
    "LICENSE-APACHE",
    "bench/runs/",
    "fuzz/corpus/",
    "xtask/src/tidy/prose.rs",
    "/assets/",
    "/data/",
    "/golden/",
    "/vectors/",
];

/// Extensions of the files that are checked.
const CHECKED: &[&str] = &[
    "css", "html", "js", "md", "py", "rs", "slt", "sql", "svelte", "toml", "ts",
];

/// Returns the faults of all files.
pub(super) fn all_faults(files: &[File]) -> Vec<String> {
    files.iter().flat_map(faults).collect()
}

/// Returns the faults of one file with their line numbers.
fn faults(file: &File) -> Vec<String> {
    let is_checked = file.extension().is_some_and(|e| CHECKED.contains(&e));
    if !is_checked || EXEMPT.iter().any(|part| file.path.contains(part)) {
        return Vec::new();
    }
    let mut faults = first_words(&file.text);
    faults.extend(clauses(&file.text, file.extension() == Some("md")));
    faults.extend(phrases(&file.text));
    faults.sort();
    faults
        .iter()
        .map(|(line, fault)| file.fault(*line, fault))
        .collect()
}

/// Finds doc comments that begin with one of [`FIRST_WORDS`].
fn first_words(text: &str) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    let mut above = "";
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let marker = ["///", "//!", "/**"]
            .into_iter()
            .find(|marker| line.starts_with(marker))
            .unwrap_or("");
        // Four slashes begin an ordinary comment, not a doc comment.
        if !marker.is_empty() && marker != above && !line.starts_with("////") {
            let comment = line[marker.len()..].trim_start();
            let word = FIRST_WORDS.iter().find(|word| {
                let rest = comment.strip_prefix(*word);
                rest.is_some_and(|rest| !rest.starts_with(is_word))
            });
            if let Some(word) = word {
                let advice = "begin with a noun or a verb such as \"Returns\"";
                faults.push((
                    number,
                    format!("doc comment begins with {word:?}: {advice}"),
                ));
            }
        }
        above = if marker == "/**" { "" } else { marker };
    }
    faults
}

/// Finds sentences of comments or of a document that begin with one of [`QUESTION_WORDS`] and end with a full
/// stop.
fn clauses(text: &str, is_document: bool) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    let mut block = String::new();
    let mut starts = Vec::new();
    let mut is_code = false;
    for (number, line) in text.lines().chain([""]).enumerate() {
        let content = if is_document {
            line.trim()
        } else {
            without_marker(line)
        };
        is_code ^= content.starts_with("```");
        let is_comment = is_document || content.len() < line.trim().len();
        let is_heading = content.starts_with('#');
        if is_comment && !is_code && !is_heading && !content.is_empty() {
            starts.push((block.len(), number));
            block.push_str(content);
            block.push(' ');
            continue;
        }
        for at in sentences_without_question(&block) {
            let line = starts.partition_point(|(start, _)| *start <= at) - 1;
            let word = block[at..].split(' ').next().unwrap_or_default();
            let fault = format!("sentence begins with {word:?} and is no question: name the thing");
            faults.push((starts[line].1, fault));
        }
        block.clear();
        starts.clear();
    }
    faults
}

/// Returns the offsets of sentences that begin with one of [`QUESTION_WORDS`] and end with a full stop.
fn sentences_without_question(block: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(rest) = block.get(at..).filter(|rest| !rest.is_empty()) {
        let ends = [". ", "? ", "! "].iter().filter_map(|end| rest.find(end));
        let length = ends.min().unwrap_or(rest.len().saturating_sub(1));
        let begins = |word: &&&str| {
            let after = rest.strip_prefix(**word);
            after.is_some_and(|after| !after.starts_with(is_word))
        };
        if QUESTION_WORDS.iter().any(|word| begins(&word)) && rest[length..].starts_with('.') {
            places.push(at);
        }
        at += (length + 2).min(rest.len());
    }
    places
}

/// Finds uses of one of [`PHRASES`], also if a phrase continues on the next line.
fn phrases(text: &str) -> Vec<(usize, String)> {
    let mut flat = String::with_capacity(text.len());
    let mut starts = Vec::new();
    for line in text.lines() {
        starts.push(flat.len());
        flat.push_str(&without_marker(line).to_ascii_lowercase());
        flat.push(' ');
    }
    let mut faults = Vec::new();
    for (phrase, instead) in PHRASES {
        for (at, _) in flat.match_indices(phrase) {
            let before = flat[..at].ends_with(is_word);
            let after = flat[at + phrase.len()..].starts_with(is_word);
            if !before && !after {
                let line = starts.partition_point(|start| *start <= at) - 1;
                faults.push((line, format!("{phrase:?}: write {instead:?}")));
            }
        }
    }
    faults
}

/// Returns the words of a line, without the characters that begin a comment or continue a string.
fn without_marker(line: &str) -> &str {
    let line = line.trim();
    let markers = ["///", "//!", "//", "/**", "/*", "* ", "-- ", "# "];
    let marker = markers.into_iter().find(|marker| line.starts_with(marker));
    let line = line.strip_prefix(marker.unwrap_or("")).unwrap_or(line);
    line.trim_end_matches('\\').trim()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(faults: &[(usize, String)]) -> Vec<usize> {
        faults.iter().map(|(line, _)| line + 1).collect()
    }

    #[test]
    fn first_words_are_checked_once_a_comment() {
        let text = "\
//! What it does.
//! How it does it.
fn f() {}
/// Returns it.
/// None of these lines is first.
    /// The same of another.
//// Of no document.
// What an ordinary comment says.
/// `None` if there is none.
/// Offset of it.
/** Whether a page shows it. */
/** Whose it is. */
";
        // Line 6 continues a comment, so its first word is not checked.
        assert_eq!(lines(&first_words(text)), [1, 11, 12]);
    }

    #[test]
    fn phrases_are_found_across_lines() {
        let text = "\
// There are so
// many of them.
let bearskin = \"Nobody\";
let text = \"it is \\
    told\";
";
        assert_eq!(
            phrases(text),
            [
                (
                    3,
                    "\"is told\": write \"is printed, is reported\"".to_owned()
                ),
                (2, "\"nobody\": write \"no user, no caller\"".to_owned()),
                (0, "\"so many\": write \"N, this number of\"".to_owned()),
            ]
        );
    }

    #[test]
    fn clauses_are_found_in_comments_and_documents() {
        let text = "\
//! Reads it. What is bad
//! is skipped. What is left? Nothing.
fn f() {} // not a comment of its own line

/// Whoever asked. Whose?
let text = \"What is it.\";
";
        assert_eq!(lines(&clauses(text, false)), [1, 5]);
        let text = "# What it does.\n\nIt. Who had it, got it.\n```\nWhat is code.\n```\n";
        assert_eq!(lines(&clauses(text, true)), [3]);
    }
}
