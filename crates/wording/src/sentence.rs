//! Sentences made of words of this program and of names from traces.

use std::fmt;
use std::ops::{Deref, Range};

use serde::{Serialize, Serializer};

use crate::QuotedName;
use crate::name::{BEGIN, END};

/// Text of one or more sentences, in which the places of names from a trace are known.
///
/// A `Sentence` is made from a text in which each [`Name`](crate::Name) was formatted. It is displayed and serialized
/// as plain text. The alternate format (`{:#}`) keeps the places of names, for a text that becomes a part of another
/// sentence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sentence {
    text: String,
    /// Places of the names in the text, in ascending order.
    names: Vec<Range<usize>>,
}

/// Part of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part<'s> {
    /// Words of this program.
    Words(&'s str),
    /// Name from the trace: escaped, cut, and quoted if it is unusual.
    Name(&'s str),
}

impl Sentence {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns sentences as one text, with a blank between them.
    pub fn joined(sentences: &[Sentence]) -> String {
        let texts: Vec<&str> = sentences.iter().map(Sentence::as_str).collect();
        texts.join(" ")
    }

    /// Returns the parts of the text, in order.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let mut at = 0;
        let of_name = self.names.iter().flat_map(move |name| {
            let words = &self.text[at..name.start];
            at = name.end;
            [Part::Words(words), Part::Name(&self.text[name.clone()])]
        });
        let rest = self.names.last().map_or(0, |name| name.end);
        of_name
            .chain([Part::Words(&self.text[rest..])])
            .filter(|part| *part != Part::Words(""))
    }

    /// Returns the text with all names in quotation marks.
    pub fn quoted(&self) -> String {
        let parts = self.parts().map(|part| match part {
            Part::Name(name) if !name.starts_with('“') => QuotedName(name).to_string(),
            Part::Name(text) | Part::Words(text) => text.to_owned(),
        });
        parts.collect()
    }
}

impl From<String> for Sentence {
    fn from(marked: String) -> Sentence {
        if !marked.contains([BEGIN, END]) {
            return Sentence {
                text: marked,
                names: Vec::new(),
            };
        }
        let mut sentence = Sentence::default();
        let mut begun = None;
        for part in marked.split_inclusive([BEGIN, END]) {
            sentence.text.push_str(part.trim_end_matches([BEGIN, END]));
            let at = sentence.text.len();
            match part.chars().next_back() {
                Some(BEGIN) => begun = Some(at),
                Some(END) => sentence.names.extend(begun.take().map(|begun| begun..at)),
                _ => {}
            }
        }
        sentence
    }
}

impl From<&str> for Sentence {
    fn from(marked: &str) -> Sentence {
        Sentence::from(marked.to_owned())
    }
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            self.parts().try_for_each(|part| match part {
                Part::Words(words) => f.write_str(words),
                Part::Name(name) => write!(f, "{BEGIN}{name}{END}"),
            })
        } else {
            f.write_str(&self.text)
        }
    }
}

impl Deref for Sentence {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl PartialEq<str> for Sentence {
    fn eq(&self, other: &str) -> bool {
        self.text == other
    }
}

impl PartialEq<&str> for Sentence {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

impl Serialize for Sentence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;

    #[test]
    fn words_and_names_are_told_apart() {
        let text = format!("{} (7) woke {:#}.", Name("a.exe"), Name("b c"));
        let sentence = Sentence::from(text);
        assert_eq!(sentence, "a.exe (7) woke “b c”.");
        let parts: Vec<Part<'_>> = sentence.parts().collect();
        assert_eq!(
            parts,
            [
                Part::Name("a.exe"),
                Part::Words(" (7) woke "),
                Part::Name("“b c”"),
                Part::Words("."),
            ]
        );
        assert_eq!(sentence.quoted(), "“a.exe” (7) woke “b c”.");
        let json = serde_json::json!([{"name": "a.exe"}, {"words": " (7) woke "}, {"name": "“b c”"}, {"words": "."}]);
        assert_eq!(serde_json::to_value(&parts).unwrap(), json);

        let outer = Sentence::from(format!("It shows: {sentence:#}"));
        assert_eq!(outer.quoted(), "It shows: “a.exe” (7) woke “b c”.");
        assert_eq!(outer.names.len(), 2);
    }

    #[test]
    fn words_alone_are_one_part() {
        let sentence = Sentence::from("Nothing.");
        assert_eq!(
            sentence.parts().collect::<Vec<_>>(),
            [Part::Words("Nothing.")]
        );
        assert_eq!(Sentence::default().parts().count(), 0);
    }

    /// Checks that marks without a name are removed from the text.
    #[test]
    fn stray_marks_are_removed() {
        for text in ["a\u{fdd0}b", "a\u{fdd1}b", "\u{fdd1}a\u{fdd0}\u{fdd0}b"] {
            let sentence = Sentence::from(text);
            assert!(!sentence.contains(['\u{fdd0}', '\u{fdd1}']));
            assert_eq!(sentence.parts().count(), 1);
        }
    }
}
