//! Rust source as tidy sees it: code apart from comments and literals, words apart from others.

/// `source` without what is in its comments, strings and characters; lines stay lines.
pub(super) fn code_only(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let literal = comment(rest)
            .or_else(|| string(rest))
            .or_else(|| character(rest));
        let (piece, tail) = match literal {
            Some(length) => rest.split_at(length.min(rest.len())),
            // A whole word, so that its last letter is not taken for the `r` or `b` of a literal.
            None if is_word(first) => {
                rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()))
            }
            None => rest.split_at(first.len_utf8()),
        };
        if literal.is_some() {
            code.push(' ');
            code.extend(piece.chars().filter(|c| *c == '\n'));
        } else {
            code.push_str(piece);
        }
        rest = tail;
    }
    code
}

/// The comment that a file starts with, however long; empty when it starts with something else.
pub(super) fn first_comment(source: &str) -> String {
    source
        .lines()
        .take_while(|line| line.starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Whether `word` stands in `line`, not as a part of a longer word.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    places_of(line, word).next().is_some()
}

/// The words that follow each `word` in `line`.
pub(super) fn words_after<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    places_of(line, word).filter_map(move |at| {
        let rest = line.get(at + word.len()..)?.trim_start();
        rest.split(|c| !is_word(c))
            .next()
            .filter(|next| !next.is_empty())
    })
}

fn places_of<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = usize> {
    line.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| {
            let (before, rest) = line.split_at(*at);
            let after = rest.strip_prefix(word).unwrap_or_default();
            let ends_open = word.ends_with(is_word) && after.starts_with(is_word);
            !before.ends_with(is_word) && !ends_open
        })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of the comment at the start of `text`.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if !text.starts_with("/*") {
        return None;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        match text.as_bytes().get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return Some(at);
        }
    }
    Some(text.len())
}

/// The length of the string literal at the start of `text`, of any kind.
fn string(text: &str) -> Option<usize> {
    let unprefixed = text.strip_prefix(['b', 'c']).unwrap_or(text);
    if let Some(raw) = unprefixed.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let (fence, body) = raw.split_at(hashes);
        let body = body.strip_prefix('"')?;
        let end = format!("\"{fence}");
        let length = body.find(&end).map_or(body.len(), |at| at + end.len());
        return Some(text.len() - body.len() + length);
    }
    let body = unprefixed.strip_prefix('"')?;
    Some(text.len() - body.len() + quoted(body, '"'))
}

/// The length of the character literal at the start of `text`; a lifetime is none.
fn character(text: &str) -> Option<usize> {
    let body = text.strip_prefix('b').unwrap_or(text).strip_prefix('\'')?;
    let mut after = body.chars();
    let is_literal = after.next()? == '\\' || after.next() == Some('\'');
    is_literal.then(|| text.len() - body.len() + quoted(body, '\''))
}

/// The length of what a `quote` opened, with the quote that closes it.
fn quoted(body: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    body.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_left_out() {
        for (source, expected) in [
            ("a // b\nc", "a  \nc"),
            ("a /* b /* c */ d */ e", "a   e"),
            ("a /* b\n c */ d", "a  \n d"),
            (r#"f("a\"b", c)"#, "f( , c)"),
            ("f(r#\"a\"b\"#, br\"c\", c\"d\", b\"e\")", "f( ,  ,  ,  )"),
            ("let for_ = var\"s\"", "let for_ = var "),
            (r"['\'', b'\\', 'é', '\u{41}']", "[ ,  ,  ,  ]"),
            (
                "fn f<'a>(x: &'a str) -> &'static str",
                "fn f<'a>(x: &'a str) -> &'static str",
            ),
            ("r#type + '\"' + \"'\" + x", "r#type +   +   + x"),
            ("\"never closed", " "),
            ("/* never closed é", " "),
        ] {
            assert_eq!(code_only(source), expected, "{source}");
        }
    }

    #[test]
    fn a_word_is_not_part_of_a_word() {
        assert!(has_word("x.print!(a)", "print!"));
        assert!(has_word("unsafe{}", "unsafe"));
        assert!(!has_word("eprint!()", "print!"));
        assert!(!has_word("not_unsafe unsafely", "unsafe"));
        assert_eq!(
            words_after("pub mod a; modest; mod  b {", "mod").collect::<Vec<_>>(),
            ["a", "b"]
        );
    }
}
