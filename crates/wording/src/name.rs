//! Names from traces as parts of sentences.

use std::fmt::{self, Write as _};

use crate::printable::is_harmless;

/// Maximum number of characters of a name in a sentence.
const MAX_CHARS: usize = 80;

/// Characters before and after a name in a text that will become a [`Sentence`](crate::Sentence). They are
/// noncharacters, which Unicode reserves for the internal use of a program. If a name contains such a character,
/// [`Name`] escapes it.
pub(crate) const BEGIN: char = '\u{fdd0}';
pub(crate) const END: char = '\u{fdd1}';

/// Name from a trace in a text that will become a [`Sentence`](crate::Sentence): a process, thread, module,
/// function or file.
///
/// The name is data of unknown origin. Harmful characters are escaped (`\u{202e}`), and a long name is cut.
/// A name with a blank or a quotation mark is quoted, so that the reader sees where it ends. With the alternate
/// format (`{:#}`), every name is quoted.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a>(pub &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char(BEGIN)?;
        if f.alternate() || !is_plain(self.0) {
            write!(f, "{}", QuotedName(self.0))?
        } else {
            f.write_str(self.0)?
        }
        f.write_char(END)
    }
}

/// Name from a trace outside of sentences. It is escaped and cut like a [`Name`], and always quoted: “…”.
#[derive(Clone, Copy, Debug)]
pub struct QuotedName<'a>(pub &'a str);

impl fmt::Display for QuotedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('“')?;
        let end = self.0.char_indices().nth(MAX_CHARS);
        let shown = end.map_or(self.0, |(end, _)| &self.0[..end]);
        for (at, c) in shown.char_indices() {
            // A name may contain the letters `\u{7f}`. The backslash of these letters is also escaped. Otherwise, they
            // would look like an escaped character.
            if is_quote(c) || !is_harmless(c) || shown[at..].starts_with(ESCAPE) {
                write!(f, "\\u{{{:x}}}", c as u32)?
            } else {
                f.write_char(c)?
            }
        }
        if end.is_some() {
            f.write_char('…')?;
        }
        f.write_char('”')
    }
}

/// First characters of an escaped character.
const ESCAPE: &str = "\\u{";

/// Returns true for the quotation marks that begin or end a name. Other quotation marks in a name do not end the name.
fn is_quote(c: char) -> bool {
    matches!(c, '“' | '”' | '„' | '‟')
}

/// Returns true if the name needs no quotation marks: a reader sees where the name begins and ends.
fn is_plain(name: &str) -> bool {
    let ends = |c: char| c.is_whitespace() || is_quote(c) || c == '"';
    !name.is_empty()
        && name.chars().nth(MAX_CHARS).is_none()
        && !name.contains(ends)
        && name.chars().all(is_harmless)
        && !name.contains(ESCAPE)
}

#[cfg(test)]
mod tests {
    use testdata::HOSTILE_NAMES;

    use super::*;
    use crate::{Printable, Sentence};

    fn in_sentence(name: &str) -> String {
        Sentence::from(Name(name).to_string()).to_string()
    }

    #[test]
    fn usual_names_stay_as_they_are() {
        for name in [
            "firefox.exe",
            "Zoë.exe",
            "ntoskrnl.exe!KeSetEvent+0x1f",
            r"C:\日本\x.dll",
        ] {
            assert_eq!(in_sentence(name), name);
        }
        assert_eq!(in_sentence("Memory Compression"), "“Memory Compression”");
        let quoted = Sentence::from(format!("{:#}", Name("dwm.exe")));
        assert_eq!(quoted.to_string(), "“dwm.exe”");
        assert_eq!(in_sentence(""), "“”");
    }

    #[test]
    fn a_name_cannot_end_itself() {
        assert_eq!(
            in_sentence("x” is fine. Ignore “this"),
            "“x\\u{201d} is fine. Ignore \\u{201c}this”"
        );
        assert_eq!(
            in_sentence("a\u{fdd1}b\u{fdd0}c"),
            "“a\\u{fdd1}b\\u{fdd0}c”"
        );
        for name in HOSTILE_NAMES {
            let shown = in_sentence(name);
            let inner = shown.trim_start_matches('“').trim_end_matches('”');
            assert!(!inner.contains(is_quote), "{shown}");
            assert_eq!(Printable(inner).to_string(), inner);
        }
    }

    #[test]
    fn a_long_name_is_cut() {
        let whole = "é".repeat(80);
        assert_eq!(in_sentence(&whole), whole);
        assert_eq!(in_sentence(&"é".repeat(1_000_000)), format!("“{whole}…”"));
    }
}
