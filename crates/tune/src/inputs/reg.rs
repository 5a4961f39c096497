//! Reader and writer of `.reg` files: exports of the Registry Editor, versions 4 and 5, and files
//! written by hand.
//!
//! Syntax:
//! <https://learn.microsoft.com/troubleshoot/windows-server/performance/distribute-registry-changes>

use std::fmt::Write as _;
use std::iter::Enumerate;
use std::str::Lines;

use registry::{Entry, Key, Value};

use super::Format;
use super::reading::{Reading, line};
use super::text::Text;

/// First line of a file in version 5 of the format.
const VERSION_5: &str = "Windows Registry Editor Version 5.00";

/// First line of a file in version 4 of the format.
const VERSION_4: &str = "REGEDIT4";

/// Reason why a value cannot be read.
#[derive(Debug, thiserror::Error)]
enum RegError {
    #[error("the text has no closing quotation mark")]
    OpenText,
    #[error("the name has no closing quotation mark: {0}")]
    OpenName(String),
    #[error("no = after the name: {0}")]
    NoEquals(String),
    #[error("unexpected text after the value: {0}")]
    AfterText(String),
    #[error("unknown form of a value: {0}")]
    Form(String),
    #[error("unknown type: {0}")]
    Type(String),
    #[error("expected one to eight hexadecimal digits after dword:, found {0}")]
    Dword(String),
    #[error("not a hexadecimal byte: {0}")]
    Byte(String),
}

/// Returns true if the first line is the first line of a `.reg` file.
pub(super) fn starts(text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or("").trim_end();
    first.eq_ignore_ascii_case(VERSION_5) || first == VERSION_4
}

pub(super) fn read(name: &str, text: &Text) -> Reading {
    let mut reading = Reading::new(name, Format::Reg);
    let utf16 = !text.text.trim_start().starts_with(VERSION_4);
    let mut lines = text.text.lines().enumerate();
    let mut key = None;
    while let Some((start, written)) = lines.next() {
        let written = written.trim();
        if written.is_empty() || written.starts_with(';') || starts(written) {
            continue;
        }
        if let Some(inner) = written.strip_prefix('[') {
            key = read_key(&mut reading, inner, start);
            continue;
        }
        if !written.starts_with(['"', '@']) {
            reading.complain(line(start), format!("neither a key nor a value: {written}"));
            continue;
        }
        let whole = match whole_value(written, &mut lines) {
            Ok(whole) => whole,
            Err(error) => {
                reading.complain(line(start), error.to_string());
                continue;
            }
        };
        match (&key, parse_value(&whole, utf16)) {
            (Some(key), Ok((name, value))) => reading.registry(key, &name, value, line(start)),
            (None, Ok(_)) => reading.complain(line(start), "a value outside a known key"),
            (_, Err(error)) => reading.complain(line(start), error.to_string()),
        }
    }
    reading
}

/// Parses the line of a key, given without its opening bracket.
fn read_key(reading: &mut Reading, inner: &str, start: usize) -> Option<Key> {
    let Some((path, _)) = inner.rsplit_once(']') else {
        reading.complain(line(start), "the key has no closing ]");
        return None;
    };
    let (path, deleted) = match path.strip_prefix('-') {
        Some(path) => (path, true),
        None => (path, false),
    };
    let Some(key) = Key::new(path) else {
        reading.complain(line(start), format!("unknown hive: {path}"));
        return None;
    };
    if deleted {
        reading.deleted(key, line(start));
        None
    } else {
        Some(key)
    }
}

/// Joins a value with its continuation lines. If the value is complete, removes the continuation lines from
/// `lines`. Numbers continue after a backslash at the end of a line. Text continues until its closing
/// quotation mark.
fn whole_value(first: &str, lines: &mut Enumerate<Lines<'_>>) -> Result<String, RegError> {
    let mut whole = first.to_owned();
    let mut rest = lines.clone();
    if let Some(text) = text_of(&whole) {
        // This search may continue to the end of the file, but only once. If it finds no closing mark, no
        // later line contains a quotation mark, so no later line starts another search.
        let mut open = is_open(text);
        while open {
            let (_, more) = rest.next().ok_or(RegError::OpenText)?;
            whole.push('\n');
            whole.push_str(more);
            open = is_open(more);
        }
    } else {
        while whole.ends_with('\\') {
            whole.pop();
            let Some((_, more)) = rest.next() else { break };
            let more = more.trim();
            // A comment line may be between the lines of a value.
            if !more.starts_with(';') {
                whole.push_str(more);
            } else {
                whole.push('\\');
            }
        }
    }
    *lines = rest;
    Ok(whole)
}

/// Returns the part after the opening quotation mark of a text value.
fn text_of(written: &str) -> Option<&str> {
    let (_, rest) = split_name(written).ok()?;
    rest.trim_start().strip_prefix('"')
}

/// Returns true if a line of text has no closing quotation mark.
fn is_open(text: &str) -> bool {
    closing_mark(text).is_none()
}

/// Returns the position of the closing quotation mark.
fn closing_mark(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(place, character)| {
        let closes = character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        closes.then_some(place)
    })
}

/// Splits a line into the name of a value and the part after `=`.
fn split_name(written: &str) -> Result<(String, &str), RegError> {
    let (name, rest) = if let Some(rest) = written.strip_prefix('@') {
        (String::new(), rest)
    } else {
        let quoted = &written[1..];
        let end = closing_mark(quoted).ok_or_else(|| RegError::OpenName(written.to_owned()))?;
        (unescaped(&quoted[..end]), &quoted[end + 1..])
    };
    let rest = rest
        .trim_start()
        .strip_prefix('=')
        .ok_or_else(|| RegError::NoEquals(written.to_owned()))?;
    Ok((name, rest))
}

/// Parses a value whose lines are joined. The returned value is `None` if the file deletes the value.
fn parse_value(written: &str, utf16: bool) -> Result<(String, Option<Value>), RegError> {
    let (name, rest) = split_name(written)?;
    let rest = rest.trim_start();
    if let Some(text) = rest.strip_prefix('"') {
        let end = closing_mark(text).ok_or(RegError::OpenText)?;
        let after = text[end + 1..].trim_start();
        if !after.is_empty() && !after.starts_with(';') {
            return Err(RegError::AfterText(after.to_owned()));
        }
        return Ok((name, Some(Value::Text(unescaped(&text[..end])))));
    }
    // For the Registry Editor, everything after a semicolon is a comment.
    let rest = rest.split(';').next().unwrap_or("").trim_end();
    if rest == "-" {
        return Ok((name, None));
    }
    let (kind, data) = rest
        .split_once(':')
        .ok_or_else(|| RegError::Form(rest.to_owned()))?;
    let kind = kind.to_ascii_lowercase();
    if kind == "dword" {
        let number =
            u32::from_str_radix(data.trim(), 16).map_err(|_| RegError::Dword(data.to_owned()))?;
        return Ok((name, Some(Value::Dword(number))));
    }
    let number = match kind.strip_prefix("hex") {
        Some("") => Some(3),
        Some(inner) => inner
            .strip_prefix('(')
            .and_then(|inner| inner.strip_suffix(')'))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok()),
        None => None,
    };
    let number = number.ok_or(RegError::Type(kind))?;
    let mut bytes = hexadecimal(data)?;
    if !utf16 && matches!(number, 1 | 2 | 7) {
        bytes = bytes.iter().flat_map(|byte| [*byte, 0]).collect();
    }
    Ok((name, Some(Value::from_bytes(number, &bytes))))
}

/// Parses hexadecimal bytes separated by commas.
fn hexadecimal(data: &str) -> Result<Vec<u8>, RegError> {
    data.split(',')
        .map(str::trim)
        .filter(|byte| !byte.is_empty())
        .map(|byte| u8::from_str_radix(byte, 16).map_err(|_| RegError::Byte(byte.to_owned())))
        .collect()
}

/// Removes the backslashes before backslashes and quotation marks.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('\\', Some(&next @ ('\\' | '"'))) => {
                plain.push(next);
                characters.next();
            }
            _ => plain.push(character),
        }
    }
    plain
}

/// Error for a name that contains a control character. In a `.reg` file, this character would end the line,
/// so the rest of the name could change other keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot write \"{}\" to a .reg file: the name has a control character; use the PowerShell command that \
     sets it",
    .0.escape_debug()
)]
pub struct ControlCharacter(pub String);

/// Makes a `.reg` file of version 5 that sets or deletes the entries in their order. The encoding is UTF-16
/// with a byte order mark, like that of the Registry Editor.
///
/// # Errors
/// Returns an error if the name of a key or value contains a control character other than a tab.
pub fn to_bytes(entries: &[Entry]) -> Result<Vec<u8>, ControlCharacter> {
    let text = format(entries)?;
    let units = [0xFEFF].into_iter().chain(text.encode_utf16());
    Ok(units.flat_map(u16::to_le_bytes).collect())
}

fn format(entries: &[Entry]) -> Result<String, ControlCharacter> {
    let is_refused = |letter: char| letter.is_control() && letter != '\t';
    let mut text = format!("{VERSION_5}\r\n");
    let mut last: Option<&Key> = None;
    for Entry { key, name, value } in entries {
        if let Some(text) = [key.as_str(), name]
            .into_iter()
            .find(|text| text.contains(is_refused))
        {
            return Err(ControlCharacter(text.to_owned()));
        }
        if last != Some(key) {
            let _ = write!(text, "\r\n[{}]\r\n", key.long());
            last = Some(key);
        }
        if name.is_empty() {
            text.push('@');
        } else {
            let _ = write!(text, "\"{}\"", escaped(name));
        }
        text.push('=');
        match value {
            None => text.push('-'),
            // Text with line breaks is written as bytes, so that text tools cannot split it.
            Some(Value::Text(plain)) if !plain.contains(['\r', '\n', '\0']) => {
                let _ = write!(text, "\"{}\"", escaped(plain));
            }
            Some(Value::Dword(number)) => {
                let _ = write!(text, "dword:{number:08x}");
            }
            Some(value) => write_bytes(&mut text, value),
        }
        text.push_str("\r\n");
    }
    Ok(text)
}

fn write_bytes(text: &mut String, value: &Value) {
    let (kind, bytes) = value.to_bytes();
    match kind {
        3 => text.push_str("hex:"),
        _ => {
            let _ = write!(text, "hex({kind:x}):");
        }
    }
    for (place, byte) in bytes.iter().enumerate() {
        if place > 0 {
            text.push(',');
            if place % 25 == 0 {
                text.push_str("\\\r\n  ");
            }
        }
        let _ = write!(text, "{byte:02x}");
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use testdata::Rng;

    use super::*;
    use crate::inputs::text::decode;
    use crate::placed_value::Place;

    fn entries(reading: &Reading) -> Vec<Entry> {
        let entry = |found: &crate::placed_value::PlacedValue| match &found.place {
            Place::Registry { key, name } => Entry {
                key: key.clone(),
                name: name.clone(),
                value: found.value.clone(),
            },
            other => panic!("{other:?}"),
        };
        reading.input.found.iter().map(entry).collect()
    }

    fn read_text(text: &str) -> Reading {
        read("test.reg", &decode(text.as_bytes()))
    }

    #[test]
    fn every_form_of_a_value_is_read() {
        let read = read_text(
            "Windows Registry Editor Version 5.00\r\n\
             \r\n\
             ; a comment\r\n\
             [HKEY_LOCAL_MACHINE\\SOFTWARE\\Test]\r\n\
             @=\"default\"\r\n\
             \"path\"=\"C:\\\\Windows \\\"here\\\"\"\r\n\
             \"number\"=dword:0000002A\r\n\
             \"gone\"=-\r\n\
             \"bytes\"=hex:01,ff,\\\r\n  10\r\n\
             \"long\"=hex(b):01,00,00,00,00,00,00,80\r\n\
             \"expands\"=hex(2):25,00,41,00,25,00,00,00\r\n\
             \"list\"=hex(7):41,00,00,00,42,00,43,00,00,00,00,00\r\n\
             \"lines\"=\"first\r\nsecond\"\r\n\
             \"short\"=hex(4):01,02\r\n\
             \r\n\
             [-HKEY_CURRENT_USER\\Software\\Gone]\r\n",
        );
        let value = |name: &str| {
            let entry = entries(&read)
                .into_iter()
                .find(|entry| entry.name == name)
                .unwrap();
            entry.value
        };
        assert_eq!(value(""), Some(Value::Text("default".into())));
        assert_eq!(
            value("path"),
            Some(Value::Text("C:\\Windows \"here\"".into()))
        );
        assert_eq!(value("number"), Some(Value::Dword(42)));
        assert_eq!(value("gone"), None);
        assert_eq!(value("bytes"), Some(Value::Binary(vec![1, 255, 16])));
        assert_eq!(value("long"), Some(Value::Qword(0x8000_0000_0000_0001)));
        assert_eq!(value("expands"), Some(Value::Expandable("%A%".into())));
        assert_eq!(
            value("list"),
            Some(Value::List(vec!["A".into(), "BC".into()]))
        );
        assert_eq!(value("lines"), Some(Value::Text("first\nsecond".into())));
        assert_eq!(value("short"), Some(Value::Other(4, vec![1, 2])));
        assert_eq!(read.input.complaints.count, 0);
        let (key, origin) = &read.input.deleted_keys[0];
        assert_eq!(key.as_str(), r"HKCU\Software\Gone");
        assert_eq!(origin.to_string(), "test.reg:18");
    }

    #[test]
    fn version_4_has_text_as_bytes() {
        let read = read_text("REGEDIT4\n\n[HKEY_USERS\\X]\n\"e\"=hex(2):25,41,25,00\n");
        assert_eq!(
            entries(&read)[0].value,
            Some(Value::Expandable("%A%".into()))
        );
    }

    #[test]
    fn unreadable_lines_are_reported_and_the_rest_is_read() {
        let read = read_text(
            "Windows Registry Editor Version 5.00\n[HKLM\\A]\nnonsense\n\"a\"=dword:xyz\n\
             \"b\"=dword:1\n[C:\\A]\n\"c\"=dword:1\n\"d\"=\"open\n",
        );
        assert_eq!(entries(&read).len(), 1);
        let lines: Vec<String> = read
            .input
            .complaints
            .first
            .iter()
            .map(|complaint| format!("{:?}", complaint.at))
            .collect();
        assert_eq!(
            lines,
            ["Line(3)", "Line(4)", "Line(6)", "Line(7)", "Line(8)"]
        );
    }

    #[test]
    fn written_files_are_read_back() {
        let mut rng = Rng(9);
        let letters: Vec<char> = "aZ09 \\\"=;,[]()-@%äß漢😀\t".chars().collect();
        for _ in 0..500 {
            let text = |rng: &mut Rng, longest: usize| -> String {
                (0..rng.below(longest) + 1)
                    .map(|_| letters[rng.below(letters.len())])
                    .collect()
            };
            let bytes = |rng: &mut Rng| (0..rng.below(70)).map(|_| rng.bits() as u8).collect();
            let written: Vec<Entry> = (0..rng.below(8))
                .map(|_| {
                    let value = match rng.below(8) {
                        0 => None,
                        1 => Some(Value::Text(text(&mut rng, 20))),
                        2 => Some(Value::Expandable(text(&mut rng, 20))),
                        3 => Some(Value::Binary(bytes(&mut rng))),
                        4 => Some(Value::Dword(rng.bits() as u32)),
                        5 => Some(Value::List(vec![text(&mut rng, 9), text(&mut rng, 9)])),
                        6 => Some(Value::Qword(rng.bits())),
                        _ => Some(Value::Other(9, bytes(&mut rng))),
                    };
                    Entry {
                        key: Key::new(&format!(r"HKLM\SOFTWARE\k{}\[x]", rng.below(3))).unwrap(),
                        name: text(&mut rng, 6),
                        value,
                    }
                })
                .collect();
            let text = format(&written).unwrap();
            let read = read_text(&text);
            assert_eq!(read.input.complaints.count, 0, "{text}");
            assert_eq!(entries(&read), written, "{text}");
        }
    }

    #[test]
    fn names_with_control_characters_are_refused() {
        let entry = |key: &str, name: &str| Entry {
            key: Key::new(key).unwrap(),
            name: name.to_owned(),
            value: None,
        };
        for (key, name) in [
            ("HKLM\\A\r\n[HKEY_CURRENT_USER", "b"),
            ("HKLM\\A\u{85}B", "b"),
            ("HKLM\\A", "b\n[HKEY_CURRENT_USER]"),
            ("HKLM\\A", "b\0"),
        ] {
            assert!(to_bytes(&[entry(key, name)]).is_err(), "{key:?} {name:?}");
        }
        assert!(to_bytes(&[entry("HKLM\\A", "a\tb")]).is_ok());
    }

    #[test]
    fn any_text_is_read_without_panic() {
        let parts = [
            "[HKLM\\A]",
            "\"",
            "\\",
            "=",
            "hex(7):",
            "41,00",
            ",",
            "\r\n",
            "dword:",
            "@",
            "-",
            "é",
            "hex(",
            "[",
            "]",
            ";",
        ];
        let mut rng = Rng(4);
        for _ in 0..2000 {
            let text: String = (0..rng.below(30))
                .map(|_| parts[rng.below(parts.len())])
                .collect();
            read_text(&text);
        }
    }
}
