//! Reader of `registry.pol` files, which contain the registry values of a policy in the format PReg.
//!
//! Format:
//! <https://learn.microsoft.com/openspecs/windows_protocols/ms-gpreg/5c092c22-bf6b-4e7f-b180-b20743d368f5>

use registry::{Key, Value};

use super::Format;
use super::reading::Reading;
use crate::placed_value::InputPosition;

/// First bytes of a file: the signature and the version 1.
const START: &[u8] = b"PReg\x01\0\0\0";

/// Returns true if the file starts with the signature and a known version.
pub(super) fn starts(bytes: &[u8]) -> bool {
    bytes.starts_with(START)
}

/// Reads a policy. Its values apply to the registry root `hive`: `HKLM` for the policy of the machine, `HKCU`
/// for the policy of users.
///
/// Reading stops at the first damaged entry, because the start of the next entry is unknown.
pub(super) fn read(name: &str, bytes: &[u8], hive: &str) -> Reading {
    let mut reading = Reading::new(name, Format::RegistryPol);
    let mut cursor = Cursor {
        bytes,
        at: START.len(),
    };
    while cursor.at < bytes.len() {
        let at = InputPosition::Offset(cursor.at as u64);
        let Some(entry) = cursor.entry() else {
            let left = bytes.len() - cursor.at;
            reading.complain(
                InputPosition::Offset(cursor.at as u64),
                format!(
                    "damaged entry, expected [key;value;type;size;data]: the last {left} bytes were not read"
                ),
            );
            break;
        };
        match Key::new(&format!("{hive}\\{}", entry.key)) {
            Some(key) if !entry.key.is_empty() => add(&mut reading, &key, &entry, at),
            _ => reading.complain(at, "an entry without a key"),
        }
    }
    reading
}

struct Entry<'a> {
    key: String,
    name: String,
    kind: u32,
    data: &'a [u8],
}

/// Adds an entry. It sets a value or, if its name is special, deletes values and keys.
fn add(reading: &mut Reading, key: &Key, entry: &Entry<'_>, at: InputPosition) {
    let value = Value::from_bytes(entry.kind, entry.data);
    let list = || match Value::from_bytes(1, entry.data) {
        Value::Text(names) => names.split(';').map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    // Windows ignores the case of special names.
    let lower = entry.name.to_ascii_lowercase();
    // The prefixes are ASCII, so converting the name to lower case does not change their length.
    if lower.starts_with("**del.") {
        reading.registry(key, &entry.name["**del.".len()..], None, at);
    } else if lower.starts_with("**soft.") {
        reading.registry(key, &entry.name["**soft.".len()..], Some(value), at);
    } else if lower.starts_with("**deletevalues") {
        for name in list() {
            reading.registry(key, &name, None, at);
        }
    } else if lower.starts_with("**deletekeys") {
        for name in list() {
            reading.deleted(key.child(&name), at);
        }
    } else if lower.starts_with("**delvals") {
        reading.complain(
            at,
            format!(
                "the policy deletes all values of {key} before it sets new ones; laglab did not apply \
                 this deletion"
            ),
        );
    } else if lower.starts_with("**securekey") {
        // This name sets permissions of the key, not a value.
    } else if entry.name.is_empty() && entry.data.is_empty() && entry.kind == 0 {
        // This entry only creates the key.
    } else {
        reading.registry(key, &entry.name, Some(value), at);
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Reads the next entry. If the entry is damaged, the cursor does not move.
    fn entry(&mut self) -> Option<Entry<'a>> {
        let start = self.at;
        let entry = self.whole_entry();
        if entry.is_none() {
            self.at = start;
        }
        entry
    }

    fn whole_entry(&mut self) -> Option<Entry<'a>> {
        self.mark('[')?;
        let key = self.text()?;
        self.mark(';')?;
        let name = self.text()?;
        self.mark(';')?;
        let kind = self.number()?;
        self.mark(';')?;
        let size = usize::try_from(self.number()?).ok()?;
        self.mark(';')?;
        let data = self.take(size)?;
        self.mark(']')?;
        Some(Entry {
            key,
            name,
            kind,
            data,
        })
    }

    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(size)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn mark(&mut self, mark: char) -> Option<()> {
        (self.take(2)? == [mark as u8, 0]).then_some(())
    }

    /// Reads text up to its terminating NUL.
    fn text(&mut self) -> Option<String> {
        let mut units = Vec::new();
        loop {
            match u16::from_le_bytes(self.take(2)?.try_into().ok()?) {
                0 => return Some(String::from_utf16_lossy(&units)),
                unit => units.push(unit),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use testdata::Rng;

    use super::*;
    use crate::placed_value::Place;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    /// Returns the bytes of an entry according to the grammar of the specification.
    fn entry(key: &str, name: &str, kind: u32, data: &[u8]) -> Vec<u8> {
        let size = u32::try_from(data.len()).unwrap();
        [
            utf16(&format!("[{key}\0;{name}\0;")),
            kind.to_le_bytes().to_vec(),
            utf16(";"),
            size.to_le_bytes().to_vec(),
            utf16(";"),
            data.to_vec(),
            utf16("]"),
        ]
        .concat()
    }

    #[test]
    fn values_and_deletions_are_read() {
        let key = r"Software\Policies\Microsoft\Windows\QoS\Game";
        let bytes = [
            START.to_vec(),
            entry(key, "DSCP Value", 1, &utf16("46\0")),
            entry(key, "Number", 4, &7u32.to_le_bytes()),
            entry(key, "**del.Old", 1, &utf16(" \0")),
            entry(key, "**DeleteKeys", 1, &utf16("A;B\0")),
        ]
        .concat();
        let read = read("registry.pol", &bytes, "HKLM").input;
        let values: Vec<String> = read
            .found
            .iter()
            .map(|values| format!("{} {:?}", values.place, values.value))
            .collect();
        let path = format!(r"HKLM\{key}");
        assert_eq!(
            values,
            [
                format!("{path}\\DSCP Value Some(Text(\"46\"))"),
                format!("{path}\\Number Some(Dword(7))"),
                format!("{path}\\Old None"),
            ]
        );
        assert_eq!(read.deleted_keys[1].0.as_str(), format!("{path}\\B"));
        assert_eq!(read.complaints.count, 0);
    }

    #[test]
    fn a_damaged_entry_ends_the_reading_where_it_is() {
        let mut bytes = [START.to_vec(), entry("A", "b", 4, &[1, 0, 0, 0])].concat();
        let end = bytes.len();
        bytes.extend(entry("A", "c", 4, &[1, 0, 0, 0]));
        bytes.truncate(bytes.len() - 3);
        let read = read("registry.pol", &bytes, "HKCU").input;
        assert_eq!(read.found.len(), 1);
        assert_eq!(
            read.complaints.first[0].at,
            InputPosition::Offset(end as u64)
        );
    }

    #[test]
    fn any_entries_are_read_as_they_were_written_and_any_bytes_without_panic() {
        let mut rng = Rng(3);
        for _ in 0..300 {
            let mut bytes = START.to_vec();
            let written: Vec<(String, Value)> = (0..rng.below(6))
                .map(|index| {
                    let value = match rng.below(4) {
                        0 => Value::Text(format!("{};[]漢", rng.bits())),
                        1 => Value::Dword(rng.bits() as u32),
                        2 => Value::Qword(rng.bits()),
                        _ => Value::Binary((0..rng.below(40)).map(|_| rng.bits() as u8).collect()),
                    };
                    (format!("n{index};]"), value)
                })
                .collect();
            for (name, value) in &written {
                let (kind, data) = value.to_bytes();
                bytes.extend(entry(r"Software\K", name, kind, &data));
            }
            let values = read("a", &bytes, "HKLM").input.found;
            let names = |values: &crate::placed_value::PlacedValue| match &values.place {
                Place::Registry { name, .. } => (name.clone(), values.value.clone().unwrap()),
                _ => unreachable!(),
            };
            assert_eq!(values.iter().map(names).collect::<Vec<_>>(), written);
            for _ in 0..4 {
                let place = rng.below(bytes.len());
                bytes[place] = rng.bits() as u8;
                read("a", &bytes, "HKLM");
            }
        }
    }
}
