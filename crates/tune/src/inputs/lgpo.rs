//! Reader of LGPO text, the output of `LGPO.exe /parse`. A policy is a block of four lines.
//!
//! Format: document of LGPO in the Security Compliance Toolkit,
//! <https://learn.microsoft.com/windows/security/operating-system-security/device-management/windows-security-configuration-framework/security-compliance-toolkit-10>

use registry::{Key, Value};

use super::Format;
use super::reading::{Reading, line};
use super::text::Text;

/// Returns true if the text starts with a block of LGPO text.
pub(super) fn starts(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| is_content(line));
    lines.next().is_some_and(|first| hive(first).is_some())
        && lines.next().is_some_and(|key| key.contains('\\'))
        && lines.next().is_some()
        && lines.next().is_some_and(|action| {
            action.contains(':') || action.chars().all(|letter| letter.is_ascii_uppercase())
        })
}

fn is_content(line: &str) -> bool {
    !line.is_empty() && !line.starts_with(';')
}

/// Returns the registry root for the first line of a block: a policy for the computer or for users.
fn hive(line: &str) -> Option<&'static str> {
    let target = line.split(':').next().unwrap_or("");
    match target.to_ascii_lowercase().as_str() {
        "computer" => Some("HKLM"),
        "user" => Some("HKCU"),
        _ => None,
    }
}

pub(super) fn read(name: &str, text: &Text) -> Reading {
    let mut reading = Reading::new(name, Format::Lgpo);
    let mut lines = text.text.lines().enumerate().map(|(index, line)| {
        // Names and data may end with spaces, but no line of the format starts with a space.
        (index, line.trim_start())
    });
    while let Some((index, first)) = lines.next() {
        if !is_content(first.trim_end()) {
            continue;
        }
        let Some(hive) = hive(first.trim_end()) else {
            reading.complain(
                line(index),
                format!("a block starts with Computer or User, not with {first}"),
            );
            continue;
        };
        let (Some((_, path)), Some((_, value_name)), Some((at, action))) =
            (lines.next(), lines.next(), lines.next())
        else {
            reading.complain(line(index), "a block with fewer than four lines");
            break;
        };
        let Some(key) = Key::new(&format!("{hive}\\{}", path.trim_end())) else {
            continue;
        };
        // An empty line ends a block, so the name of a key's default value is written as *.
        let value_name = if value_name == "*" { "" } else { value_name };
        match action.trim_end() {
            "DELETE" => reading.registry(&key, value_name, None, line(at)),
            "DELETEALLVALUES" => reading.complain(
                line(at),
                format!(
                    "the policy deletes all values of {key} before it sets new ones; laglab did not apply \
                     this deletion"
                ),
            ),
            "DELETEKEYS" => reading.deleted(key, line(at)),
            "CREATEKEY" => {}
            _ => match value(action) {
                Some(value) => reading.registry(&key, value_name, Some(value), line(at)),
                None => reading.complain(line(at), format!("unknown action: {action}")),
            },
        }
    }
    reading
}

fn value(action: &str) -> Option<Value> {
    let (kind, data) = action.split_once(':')?;
    let number = || {
        let data = data.trim();
        match data.strip_prefix("0x").or_else(|| data.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => data.parse().ok(),
        }
    };
    Some(match kind {
        "SZ" => Value::Text(data.to_owned()),
        "EXSZ" => Value::Expandable(data.to_owned()),
        "MULTISZ" => Value::List(data.split("\\0").map(str::to_owned).collect()),
        "DWORD" => Value::Dword(number()?.try_into().ok()?),
        "QWORD" => Value::Qword(number()?),
        "BINARY" => Value::Binary(bytes(data)?),
        _ => return None,
    })
}

/// Parses pairs of hexadecimal digits, with or without separators. The format document has no example of
/// binary data.
fn bytes(data: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = (data.bytes())
        .filter(|byte| !matches!(byte, b' ' | b',' | b':' | b'-'))
        .collect();
    let (pairs, odd) = digits.as_chunks::<2>();
    let value = |digit: u8| char::from(digit).to_digit(16);
    let byte = |pair: &[u8; 2]| u8::try_from(value(pair[0])? << 4 | value(pair[1])?).ok();
    odd.is_empty().then(|| pairs.iter().map(byte).collect())?
}

#[cfg(test)]
mod tests {
    use testdata::Rng;

    use super::*;
    use crate::inputs::text::decode;

    #[test]
    fn blocks_are_read() {
        let text = "; ----\n; PARSING Computer POLICY\n\nComputer\nSoftware\\Policies\\A\nOne\n\
                    DWORD:0x10\n\nUser\nSoftware\\Policies\\B\nTwo\nSZ:a b \n\nComputer\n\
                    Software\\Policies\\A\nThree\nDELETE\n\nComputer\nSoftware\\C\nFour\n\
                    MULTISZ:a\\0b\n\nUser\nSoftware\\C\nFive\nBINARY:00fF\n\nUser\nSoftware\\C\n\
                    Six\nBINARY:0\n\nnonsense\n";
        assert!(starts(text));
        let read = read("a.txt", &decode(text.as_bytes())).input;
        let values: Vec<String> = read
            .found
            .iter()
            .map(|values| format!("{} {:?} {}", values.place, values.value, values.origin))
            .collect();
        assert_eq!(
            values,
            [
                "HKLM\\Software\\Policies\\A\\One Some(Dword(16)) a.txt:7",
                "HKCU\\Software\\Policies\\B\\Two Some(Text(\"a b \")) a.txt:12",
                "HKLM\\Software\\Policies\\A\\Three None a.txt:17",
                "HKLM\\Software\\C\\Four Some(List([\"a\", \"b\"])) a.txt:22",
                "HKCU\\Software\\C\\Five Some(Binary([0, 255])) a.txt:27",
            ]
        );
        let complaints: Vec<_> = (read.complaints.first.iter())
            .map(|complaint| complaint.at)
            .collect();
        assert_eq!(complaints, [line(31), line(33)]);
    }

    #[test]
    fn any_block_is_read() {
        let mut rng = Rng(7);
        for _ in 0..200 {
            let number = rng.bits();
            let (action, value) = match rng.below(4) {
                0 => (
                    format!("DWORD:{}", number as u32),
                    Value::Dword(number as u32),
                ),
                1 => (format!("QWORD:{number}"), Value::Qword(number)),
                2 => (
                    format!("SZ:x{number}:;"),
                    Value::Text(format!("x{number}:;")),
                ),
                _ => (
                    format!("EXSZ:%{number}%"),
                    Value::Expandable(format!("%{number}%")),
                ),
            };
            let text = format!("User\nSoftware\\K{number}\nname {number}\n{action}\n");
            let read = read("a.txt", &decode(text.as_bytes())).input;
            assert_eq!(read.complaints.count, 0);
            assert_eq!(read.found[0].value, Some(value));
        }
    }
}
