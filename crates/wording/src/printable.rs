//! Text from a trace, made harmless for each kind of output.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, Write};

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Shows text. Characters that could control a terminal or mislead a reader are escaped.
#[derive(Clone, Copy, Debug)]
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            if is_harmless(c) {
                f.write_char(c)?
            } else {
                write!(f, "{}", c.escape_default())?
            }
        }
        Ok(())
    }
}

/// Wrapper that displays text as a single value. The text is quoted if it is empty or contains a character
/// that could end a value.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = !self.0.is_empty()
            && !self
                .0
                .contains(|c: char| c.is_whitespace() || c == '"' || c == '=');
        if plain {
            return Printable(self.0).fmt(f);
        }
        f.write_char('"')?;
        for (i, part) in self.0.split('"').enumerate() {
            if i > 0 {
                f.write_str("\\\"")?;
            }
            Printable(part).fmt(f)?;
        }
        f.write_char('"')
    }
}

/// Shows text as a code span of Markdown, in which no character has a meaning. Harmful characters are escaped
/// in the same way as by [`Printable`]. In a table, `|` would still end the cell.
///
/// Rules of code spans: <https://spec.commonmark.org/0.31.2/#code-spans>
#[derive(Clone, Copy, Debug)]
pub struct MarkdownCode<'a>(pub &'a str);

impl fmt::Display for MarkdownCode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = Printable(self.0).to_string();
        // A span starts and ends with equal runs of backquotes. So these runs must be longer than any run in
        // the text.
        let runs = text.split(|c| c != '`').map(str::len);
        let fence = "`".repeat(runs.max().unwrap_or(0) + 1);
        // Readers of Markdown remove one blank from each side of the text.
        let touches = |c| matches!(c, '`' | ' ');
        let blank = if text.is_empty() || text.starts_with(touches) || text.ends_with(touches) {
            " "
        } else {
            ""
        };
        write!(f, "{fence}{blank}{text}{blank}{fence}")
    }
}

/// Shows a document in TOML. Harmful characters are escaped as `\uXXXX` or `\UXXXXXXXX`, which readers of TOML convert
/// back in strings between `"`. In strings between `'` and in comments, the escapes stay.
///
/// Rules of strings: <https://toml.io/en/v1.0.0#string>
#[derive(Clone, Copy, Debug)]
pub struct TomlText<'a>(pub &'a str);

impl fmt::Display for TomlText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match u32::from(c) {
                _ if is_harmless(c) || matches!(c, '\n' | '\r' | '\t') => f.write_char(c)?,
                code @ ..=0xFFFF => write!(f, "\\u{code:04X}")?,
                code => write!(f, "\\U{code:08X}")?,
            }
        }
        Ok(())
    }
}

/// Returns a text as a cell of CSV, without quotes. Characters are escaped as by [`Printable`]. A text that a
/// spreadsheet would run as a formula gets a `'` in front. Numbers stay as they are.
pub fn csv_cell(text: &str) -> Cow<'_, str> {
    let is_formula = match text.bytes().next() {
        Some(b'=' | b'@') => true,
        Some(b'+' | b'-') => text.parse::<f64>().is_err(),
        _ => false,
    };
    if is_formula || !text.chars().all(is_harmless) {
        let quote = if is_formula { "'" } else { "" };
        Cow::Owned(format!("{quote}{}", Printable(text)))
    } else {
        Cow::Borrowed(text)
    }
}

/// Writer that escapes harmful characters in JSON as `\uXXXX`. Readers of JSON convert these escapes back
/// into the text.
#[derive(Debug)]
pub struct JsonText<W: Write> {
    out: W,
    /// Bytes of a character that is not written yet, because it is incomplete.
    begun: Vec<u8>,
}

impl<W: Write> JsonText<W> {
    /// Creates a writer of UTF-8 to `out`.
    pub fn new(out: W) -> JsonText<W> {
        JsonText {
            out,
            begun: Vec::new(),
        }
    }

    fn write_text(&mut self, text: &str) -> io::Result<()> {
        // In JSON, raw line breaks and tabs occur only between values. They do no harm there.
        let is_harmful = |c: char| !matches!(c, '\n' | '\r' | '\t') && !is_harmless(c);
        let mut rest = text;
        while let Some(at) = rest.find(is_harmful) {
            let (before, from) = rest.split_at(at);
            self.out.write_all(before.as_bytes())?;
            let mut after = from.chars();
            for unit in after.next().unwrap_or_default().encode_utf16(&mut [0; 2]) {
                write!(self.out, "\\u{unit:04x}")?;
            }
            rest = after.as_str();
        }
        self.out.write_all(rest.as_bytes())
    }
}

impl<W: Write> Write for JsonText<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.begun.is_empty() && bytes.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) {
            self.out.write_all(bytes)?;
            return Ok(bytes.len());
        }
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let text = match str::from_utf8(&all) {
            Ok(text) => text,
            Err(error) if error.error_len().is_none() => {
                let whole = error.valid_up_to();
                self.begun = all[whole..].to_vec();
                str::from_utf8(&all[..whole]).map_err(io::Error::other)?
            }
            Err(error) => return Err(io::Error::other(error)),
        };
        self.write_text(text)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns false for characters that are invisible or change the text around them:
///
/// * control characters
/// * format characters, such as changes of the writing direction
/// * private-use characters
/// * separators except the blank
/// * characters that programs do not draw: variation selectors, tags, fillers. They have the property
///   `Default_Ignorable_Code_Point` of Unicode: <https://www.unicode.org/Public/17.0.0/ucd/DerivedCoreProperties.txt>.
/// * the blank pattern of Braille, which looks like a blank
pub(crate) fn is_harmless(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\u{34f}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{ffa0}'
        | '\u{e0000}'..='\u{e0fff}' => false,
        _ => !matches!(
            c.general_category(),
            GeneralCategory::Control
                | GeneralCategory::Format
                | GeneralCategory::PrivateUse
                | GeneralCategory::Unassigned
                | GeneralCategory::LineSeparator
                | GeneralCategory::ParagraphSeparator
                | GeneralCategory::SpaceSeparator
        ),
    }
}

#[cfg(test)]
mod tests {
    use testdata::HOSTILE_NAMES;

    use super::*;

    #[test]
    fn a_trace_cannot_control_the_terminal() {
        assert_eq!(
            Printable("a\x1b[2Jb\r\u{202e}\u{9b}\u{2028}\u{61c}\u{feff}\u{200b}\u{ad}\u{e0001}")
                .to_string(),
            "a\\u{1b}[2Jb\\r\\u{202e}\\u{9b}\\u{2028}\\u{61c}\\u{feff}\\u{200b}\\u{ad}\\u{e0001}"
        );
        assert_eq!(Printable("Zoë 𝒳 日本.exe").to_string(), "Zoë 𝒳 日本.exe");
    }

    #[test]
    fn readers_of_toml_see_the_same_strings() {
        for name in HOSTILE_NAMES {
            let raw: String = name.chars().filter(|c| !c.is_ascii_control()).collect();
            let quoted = raw.replace('\\', "\\\\").replace('"', "\\\"");
            let document = TomlText(&format!("name = \"{quoted}\"\r\n# x\n")).to_string();
            let is_plain = |c: char| is_harmless(c) || matches!(c, '\r' | '\n');
            assert!(document.chars().all(is_plain), "{document}");
            let read: toml::Table = document.parse().unwrap();
            assert_eq!(read["name"].as_str(), Some(&*raw));
        }
    }

    /// Tests the ranges of the property `Default_Ignorable_Code_Point` of Unicode 17.
    #[test]
    fn characters_that_are_not_drawn_are_escaped() {
        for range in [
            0xAD..=0xAD,
            0x34F..=0x34F,
            0x61C..=0x61C,
            0x115F..=0x1160,
            0x17B4..=0x17B5,
            0x180B..=0x180F,
            0x200B..=0x200F,
            0x202A..=0x202E,
            0x2060..=0x206F,
            0x3164..=0x3164,
            0xFE00..=0xFE0F,
            0xFEFF..=0xFEFF,
            0xFFA0..=0xFFA0,
            0xFFF0..=0xFFF8,
            0x1_BCA0..=0x1_BCA3,
            0x1_D173..=0x1_D17A,
            0xE_0000..=0xE_0FFF,
        ] {
            for c in range.filter_map(char::from_u32) {
                let shown = Printable(c.encode_utf8(&mut [0; 4])).to_string();
                assert_eq!(shown, format!("\\u{{{:x}}}", c as u32));
            }
        }
    }

    #[test]
    fn values_end_where_they_end() {
        assert_eq!(Quoted(r"C:\Windows").to_string(), r"C:\Windows");
        assert_eq!(Quoted("").to_string(), "\"\"");
        assert_eq!(Quoted("a \"b\"").to_string(), r#""a \"b\"""#);
        assert_eq!(Quoted("a=b").to_string(), "\"a=b\"");
    }

    /// Returns the content of a line of Markdown that is a single code span, by the rules of CommonMark.
    fn read_code_span(line: &str) -> Option<String> {
        let fence = line.len() - line.trim_start_matches('`').len();
        let (start, rest) = line.split_at(fence);
        let inner = rest.strip_suffix(start)?;
        let closes = |run: &str| run.len() == fence;
        if fence == 0 || inner.ends_with('`') || inner.split(|c| c != '`').any(closes) {
            return None;
        }
        let stripped = inner.strip_prefix(' ').and_then(|s| s.strip_suffix(' '));
        let is_blank = inner.chars().all(|c| c == ' ');
        Some(stripped.filter(|_| !is_blank).unwrap_or(inner).to_owned())
    }

    #[test]
    fn a_code_span_has_the_whole_text() {
        // These examples are from the specification of CommonMark.
        assert_eq!(read_code_span("`` foo ` bar ``").unwrap(), "foo ` bar");
        assert_eq!(read_code_span("` `` `").unwrap(), "``");
        assert_eq!(read_code_span("`foo`bar`"), None);
        let own = [
            "`",
            "``",
            "a``b`",
            " a",
            "a ",
            "*a* _b_ [c](d) <e> &amp; \\`f`",
        ];
        for name in HOSTILE_NAMES.iter().chain(&own) {
            let written = MarkdownCode(name).to_string();
            assert_eq!(written, Printable(&written).to_string());
            assert_eq!(
                read_code_span(&written),
                Some(Printable(name).to_string()),
                "{written}"
            );
        }
        assert_eq!(MarkdownCode("").to_string(), "`  `");
    }

    #[test]
    fn a_cell_is_no_formula() {
        for (text, cell) in [
            ("=cmd|\"/c calc\"!A1", "'=cmd|\"/c calc\"!A1"),
            ("+1+1.exe", "'+1+1.exe"),
            ("-2+3", "'-2+3"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "\\t=1"),
            ("-12.5", "-12.5"),
            ("+3", "+3"),
            ("a-b", "a-b"),
            ("", ""),
        ] {
            assert_eq!(csv_cell(text), cell);
        }
    }

    #[test]
    fn json_keeps_its_texts() {
        let text = "a\x1b\u{7f}\u{9b}\u{202e}\u{2028}\u{e0001}ë日\u{10ffff}\"\\";
        let json = format!("{{\n\t\"a\": {}\r\n}}", serde_json::json!(text));
        for size in 1..json.len() {
            let mut written = Vec::new();
            let mut out = JsonText::new(&mut written);
            for part in json.as_bytes().chunks(size) {
                out.write_all(part).unwrap();
            }
            let written = String::from_utf8(written).unwrap();
            let is_plain = |c: char| is_harmless(c) || "\n\t\r".contains(c);
            assert!(written.chars().all(is_plain), "{written}");
            let read: serde_json::Value = serde_json::from_str(&written).unwrap();
            assert_eq!(read["a"], text);
        }
    }
}
