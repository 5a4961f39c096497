//! Reader of the output of `bcdedit /enum` in any language.
//!
//! A boot entry is a heading, a line of hyphens, and lines with the name and value of an element. The
//! first of these lines has the identifier of the entry. Headings, the word for "identifier", Yes and No
//! are translated; names of elements are not.
//! <https://learn.microsoft.com/windows-hardware/drivers/devtest/bcdedit--enum>

use registry::{Value, bcd};

use super::Format;
use super::reading::{Reading, line};
use super::text::Text;
use crate::placed_value::Place;

/// Translations of "Yes" and "No", in lower case.
const YES: [&str; 17] = [
    "yes", "ja", "oui", "sí", "si", "sì", "sim", "да", "tak", "ano", "áno", "igen", "evet",
    "kyllä", "はい", "是", "예",
];
const NO: [&str; 15] = [
    "no",
    "nein",
    "non",
    "não",
    "нет",
    "nie",
    "ne",
    "nem",
    "hayır",
    "ei",
    "nej",
    "nee",
    "いいえ",
    "否",
    "아니요",
];

/// Returns true if the text has a boot entry: a heading, a line of hyphens, and a line with an identifier.
pub(super) fn starts(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().take(40).map(str::trim_end).collect();
    lines.windows(3).any(|lines| {
        !lines[0].is_empty()
            && is_rule(lines[1])
            && element(lines[2]).is_some_and(|(_, id)| is_id(id))
    })
}

fn is_rule(line: &str) -> bool {
    line.len() >= 3 && line.bytes().all(|byte| byte == b'-')
}

fn is_id(value: &str) -> bool {
    value.starts_with('{') && value.ends_with('}')
}

/// Splits a line into the name of an element and its value.
fn element(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(char::is_whitespace)?;
    (!name.is_empty()).then_some((name, value.trim()))
}

pub(super) fn read(name: &str, text: &Text) -> Reading {
    let mut reading = Reading::new(name, Format::BcdEdit);
    let mut entry = None;
    let mut after_rule = false;
    for (index, written) in text.text.lines().enumerate() {
        let written = written.trim_end();
        if is_rule(written) {
            after_rule = true;
            continue;
        }
        // An indented line continues the list of the line above it. Lists are not read.
        if written.is_empty() || written.starts_with(char::is_whitespace) {
            continue;
        }
        let Some((element, value)) = element(written) else {
            continue;
        };
        if after_rule {
            after_rule = false;
            entry = is_id(value).then(|| value.to_ascii_lowercase());
            if entry.is_none() {
                reading.complain(
                    line(index),
                    format!("not an identifier of a boot entry: {value}"),
                );
            }
            continue;
        }
        // Skip headings between entries, and output of the shell before the first entry.
        let Some(entry) = entry.as_ref().filter(|_| is_element(element)) else {
            continue;
        };
        let value = match (bcd::is_boolean(element), value.to_lowercase()) {
            (true, word) if YES.contains(&word.as_str()) => "Yes",
            (true, word) if NO.contains(&word.as_str()) => "No",
            (true, _) => {
                reading.complain(
                    line(index),
                    format!("{element} must be yes or no, not {value}"),
                );
                continue;
            }
            (false, _) => value,
        };
        let place = Place::Boot {
            entry: entry.clone(),
            element: element.to_ascii_lowercase(),
        };
        reading.found(place, Some(Value::Text(value.to_owned())), line(index));
    }
    reading
}

/// Returns true if a word can be the name of an element: in every language, names have only lower-case ASCII
/// letters and digits.
fn is_element(word: &str) -> bool {
    word.bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        || word.starts_with("custom:")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::text::decode;

    fn found(text: &str) -> Vec<String> {
        assert!(starts(text));
        let read = read("bcd.txt", &decode(text.as_bytes())).input;
        assert_eq!(read.complaints.count, 0);
        let values = read.found.iter();
        values
            .map(|values| format!("{} = {}", values.place, values.value.as_ref().unwrap()))
            .collect()
    }

    #[test]
    fn entries_are_read() {
        let text = "\r\nWindows Boot Manager\r\n--------------------\r\n\
            identifier              {bootmgr}\r\n\
            displayorder            {current}\r\n                        {other}\r\n\
            timeout                 30\r\n\r\n\
            Windows Boot Loader\r\n-------------------\r\n\
            identifier              {current}\r\n\
            useplatformclock        Yes\r\n\
            tscsyncpolicy           Enhanced\r\n";
        let values = found(text);
        assert_eq!(
            values[2..],
            [
                "bcd {current} useplatformclock = \"Yes\"",
                "bcd {current} tscsyncpolicy = \"Enhanced\""
            ]
        );
    }

    #[test]
    fn a_translated_listing_is_read_alike() {
        let text = "Windows-Startladeprogramm\n-------------------------\n\
            Bezeichner              {current}\n\
            disabledynamictick      Ja\n\
            useplatformtick         Nein\n";
        assert_eq!(
            found(text),
            [
                "bcd {current} disabledynamictick = \"Yes\"",
                "bcd {current} useplatformtick = \"No\""
            ]
        );
    }
}
