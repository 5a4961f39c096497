//! Reader of the output of `powercfg /query` (`/q`, `/qh`) in any language. It reads only the GUID of a
//! setting and its two numbers. The first number applies on mains, the second on battery.
//!
//! <https://learn.microsoft.com/windows-hardware/design/device-experiences/powercfg-command-line-options>

use registry::Value;

use super::Format;
use super::reading::{Reading, line};
use super::text::Text;
use crate::placed_value::Place;

/// Indentation of lines with the GUID of a scheme, in spaces.
const SCHEME: usize = 0;

/// Indentation of lines with the GUID of a subgroup, in spaces.
const SUBGROUP: usize = 2;

/// Indentation of lines with the GUID of a setting, in spaces.
const SETTING: usize = 4;

pub(super) fn starts(text: &str) -> bool {
    let levels = levels(text);
    levels.first() == Some(&SCHEME) && levels.contains(&SUBGROUP)
}

/// Returns true if a text is the output of `powercfg /list` or `/getactivescheme`: GUIDs of schemes without settings.
pub(super) fn is_list(text: &str) -> bool {
    let levels = levels(text);
    !levels.is_empty() && levels.iter().all(|level| *level == SCHEME)
}

/// Returns the indentations of the first lines with a GUID.
fn levels(text: &str) -> Vec<usize> {
    (text.lines().take(60))
        .filter_map(|line| guid(line).map(|(level, _)| level))
        .collect()
}

/// Returns the indentation and the GUID of a line.
fn guid(line: &str) -> Option<(usize, &str)> {
    let level = line.len() - line.trim_start().len();
    let (_, rest) = line.split_once(": ")?;
    let word = rest.split_whitespace().next()?;
    is_guid(word).then_some((level, word))
}

fn is_guid(word: &str) -> bool {
    word.len() == 36
        && word.bytes().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

pub(super) fn read(name: &str, text: &Text) -> Reading {
    let mut reading = Reading::new(name, Format::PowerScheme);
    let (mut scheme, mut subgroup) = (None, None);
    let mut setting = None;
    let mut numbers = 0;
    for (index, written) in text.text.lines().enumerate() {
        if let Some((level, guid)) = guid(written) {
            let guid = guid.to_ascii_lowercase();
            match level {
                SCHEME => (scheme, subgroup, setting) = (Some(guid), None, None),
                SUBGROUP => (subgroup, setting) = (Some(guid), None),
                SETTING => (setting, numbers) = (Some(guid), 0),
                _ => {}
            }
            continue;
        }
        // Bounds and steps of a setting are also numbers, but their lines are indented more.
        let level = written.len() - written.trim_start().len();
        let number = written.rsplit_once(": 0x").filter(|_| level == SETTING);
        let ((Some(scheme), Some(subgroup), Some(setting)), Some((_, digits))) =
            ((&scheme, &subgroup, &setting), number)
        else {
            continue;
        };
        match u32::from_str_radix(digits.trim(), 16) {
            Ok(number) if numbers < 2 => {
                let place = Place::Power {
                    scheme: scheme.as_str().into(),
                    subgroup: subgroup.as_str().into(),
                    setting: setting.as_str().into(),
                    on_battery: numbers == 1,
                };
                reading.found(place, Some(Value::Dword(number)), line(index));
            }
            Ok(_) => reading.complain(line(index), "a setting has a third number, expected two"),
            Err(_) => reading.complain(line(index), format!("not a hexadecimal number: {digits}")),
        }
        numbers += 1;
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::text::decode;

    #[test]
    fn both_numbers_of_a_setting_are_read_in_any_language() {
        let english = "Power Scheme GUID: 381b4222-f694-41f0-9685-ff5bb260df2e  (Balanced)\n\
            \x20 GUID Alias: SCHEME_BALANCED\n\
            \x20 Subgroup GUID: 54533251-82be-4824-96c1-47b60b740d00  (Processor power management)\n\
            \x20   GUID Alias: SUB_PROCESSOR\n\
            \x20   Power Setting GUID: 893dee8e-2bef-41e0-89c6-b55d0929964c  (Minimum processor state)\n\
            \x20     GUID Alias: PROCTHROTTLEMIN\n\
            \x20     Minimum Possible Setting: 0x00000000\n\
            \x20     Maximum Possible Setting: 0x00000064\n\
            \x20   Current AC Power Setting Index: 0x00000064\n\
            \x20   Current DC Power Setting Index: 0x00000005\n";
        let german = english
            .replace(
                "Current AC Power Setting Index",
                "Index der aktuellen Wechselstromeinstellung",
            )
            .replace(
                "Current DC Power Setting Index",
                "Index der aktuellen Gleichstromeinstellung",
            )
            .replace("Power Setting GUID", "GUID der Energieeinstellung");
        let scheme = "381b4222-f694-41f0-9685-ff5bb260df2e";
        let setting = "893dee8e-2bef-41e0-89c6-b55d0929964c";
        for text in [english, &german] {
            assert!(starts(text));
            let read = read("power.txt", &decode(text.as_bytes())).input;
            let lines: Vec<String> = (read.found.iter())
                .map(|found| format!("{} {}", found.place, found.value.as_ref().unwrap()))
                .collect();
            assert_eq!(
                lines,
                [
                    format!("power {scheme} {setting} AC 0x64"),
                    format!("power {scheme} {setting} DC 0x5"),
                ]
            );
        }
    }
}
