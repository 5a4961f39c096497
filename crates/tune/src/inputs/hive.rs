//! Reader of hive files: SYSTEM, SOFTWARE, NTUSER.DAT (settings of a user), and the BCD store.

use registry::{Hive, HiveError, HiveKey, HiveValue, Key, Value, bcd};

use super::Format;
use super::reading::Reading;
use super::walk::{KeyTree, KeyValue, read_wanted};
use crate::placed_value::{InputPosition, Place};

impl KeyTree for HiveKey<'_> {
    type Error = HiveError;

    fn child(&self, name: &str) -> Result<Option<Self>, HiveError> {
        HiveKey::child(self, name)
    }

    fn children(&self) -> Result<Vec<(String, Self)>, HiveError> {
        let children = HiveKey::children(self)?.into_iter();
        Ok(children.map(|child| (child.name(), child)).collect())
    }

    fn values(&self) -> Result<Vec<Result<KeyValue, HiveError>>, HiveError> {
        let values = HiveKey::values(self)?.into_iter();
        Ok(values.map(|value| value.map(KeyValue::from)).collect())
    }
}

impl From<HiveValue> for KeyValue {
    fn from(value: HiveValue) -> Self {
        KeyValue {
            name: value.name,
            value: value.value,
            at: InputPosition::Offset(value.offset),
        }
    }
}

/// Kind of a hive, which determines the registry key below which Windows loads it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    System,
    Software,
    User,
    Boot,
}

/// Reads the settings of a hive.
pub(super) fn read(name: &str, bytes: &[u8]) -> Result<Reading, HiveError> {
    let hive = Hive::open(bytes)?;
    let root = hive.root()?;
    let mut reading = Reading::new(name, Format::Hive);
    let claimed = hive.claimed_size();
    if claimed > bytes.len() as u64 {
        reading.complain(
            InputPosition::Whole,
            format!(
                "the file is cut off: {} of {claimed} bytes; settings in the rest are missing",
                bytes.len()
            ),
        );
    }
    match kind(&root)? {
        Some(Kind::Boot) => boot(&mut reading, &root)?,
        Some(Kind::System) => {
            // CurrentControlSet is a link to the control set in use, which exists only on a running
            // machine.
            let name = control_set(&mut reading, &root)?;
            match root.child(&name)? {
                Some(set) => {
                    read_wanted(&mut reading, &set, &key(r"HKLM\SYSTEM\CurrentControlSet"));
                }
                None => {
                    reading.complain(InputPosition::Whole, format!("the key {name} is missing"))
                }
            }
        }
        Some(Kind::Software) => read_wanted(&mut reading, &root, &key(r"HKLM\SOFTWARE")),
        Some(Kind::User) => read_wanted(&mut reading, &root, &key("HKCU")),
        None => reading.complain(
            InputPosition::Whole,
            "not SYSTEM, SOFTWARE, a user's hive or a BCD store: no settings were read",
        ),
    }
    Ok(reading)
}

fn key(text: &str) -> Key {
    Key::new(text).expect("a known hive")
}

/// Determines the kind of a hive by keys that only this kind has.
fn kind(root: &HiveKey<'_>) -> Result<Option<Kind>, HiveError> {
    for (key, kind) in [
        ("Select", Kind::System),
        ("Objects", Kind::Boot),
        ("Control Panel", Kind::User),
        (r"Microsoft\Windows NT", Kind::Software),
    ] {
        if root.descendant(key)?.is_some() {
            return Ok(Some(kind));
        }
    }
    Ok(None)
}

/// Returns the name of the control set in use, for a SYSTEM hive.
fn control_set(reading: &mut Reading, root: &HiveKey<'_>) -> Result<String, HiveError> {
    let current = match root.child("Select")? {
        Some(select) => select.value("Current")?,
        None => None,
    };
    match current.and_then(|current| current.value.number()) {
        Some(number) => Ok(format!("ControlSet{number:03}")),
        None => {
            reading.complain(
                InputPosition::Whole,
                r"Select\Current does not name the control set in use: ControlSet001 was read",
            );
            Ok("ControlSet001".to_owned())
        }
    }
}

/// Reads the boot entries of a BCD store.
fn boot(reading: &mut Reading, root: &HiveKey<'_>) -> Result<(), HiveError> {
    let Some(objects) = root.child("Objects")? else {
        return Ok(());
    };
    let entries = objects.children()?;
    // The output of `bcdedit` shows the default boot entry as {default}.
    let default = entries
        .iter()
        .find(|entry| entry.name().eq_ignore_ascii_case(bcd::BOOT_MANAGER))
        .and_then(|entry| element_text(entry, bcd::DEFAULT_OBJECT));
    for entry in entries {
        let id = entry.name();
        let name = match &default {
            Some(default) if default.eq_ignore_ascii_case(&id) => "{default}".to_owned(),
            _ => bcd::entry_name(&id).map_or(id, str::to_owned),
        };
        let Some(elements) = entry.child("Elements")? else {
            continue;
        };
        for element in elements.children()? {
            let Ok(number) = u32::from_str_radix(&element.name(), 16) else {
                let name = element.name();
                reading.complain(
                    InputPosition::Whole,
                    format!("not a number of a boot element: {name}"),
                );
                continue;
            };
            let Some(value) = element.value("Element")? else {
                continue;
            };
            // Elements that are devices or lists of objects do not affect the running machine.
            let Some(text) = bcd::element_text(number, &value.value) else {
                continue;
            };
            let place = Place::Boot {
                entry: name.clone(),
                element: bcd::element_name(number),
            };
            reading.found(
                place,
                Some(Value::Text(text)),
                InputPosition::Offset(value.offset),
            );
        }
    }
    Ok(())
}

fn element_text(entry: &HiveKey<'_>, number: u32) -> Option<String> {
    let element = entry
        .descendant(&format!(r"Elements\{number:08x}"))
        .ok()??;
    match element.value("Element").ok()??.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}
