//! Hives as files: SYSTEM, SOFTWARE, a user's NTUSER.DAT, and the BCD store.

use super::Format;
use super::bcd;
use super::reading::Reading;
use super::regf::{Hive, HiveError, Node};
use super::walk::{KeyTree, read_wanted};
use crate::found::{At, Place};
use crate::registry::{Key, Value};

/// What a hive is loaded as.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    System,
    Software,
    User,
    Boot,
}

/// Reads what the hive holds of settings.
pub(super) fn read(name: &str, bytes: &[u8]) -> Result<Reading, HiveError> {
    let hive = Hive::open(bytes)?;
    let root = hive.root()?;
    let mut reading = Reading::new(name, Format::Hive);
    let claimed = hive.claimed_size();
    if claimed > bytes.len() as u64 {
        reading.complain(
            At::Whole,
            format!(
                "the file is cut off: {} of {claimed} bytes are there, and what is in the others is missing",
                bytes.len()
            ),
        );
    }
    match kind(&root)? {
        Some(Kind::Boot) => boot(&mut reading, &root)?,
        Some(Kind::System) => {
            // What is called so on a running machine is a link to the control set in use.
            let name = control_set(&mut reading, &root)?;
            match root.child(&name)? {
                Some(set) => {
                    read_wanted(&mut reading, &set, &key(r"HKLM\SYSTEM\CurrentControlSet"));
                }
                None => reading.complain(At::Whole, format!("there is no key {name}")),
            }
        }
        Some(Kind::Software) => read_wanted(&mut reading, &root, &key(r"HKLM\SOFTWARE")),
        Some(Kind::User) => read_wanted(&mut reading, &root, &key("HKCU")),
        None => reading.complain(
            At::Whole,
            "neither SYSTEM, SOFTWARE, a user's hive nor a BCD store: no setting is looked for in it",
        ),
    }
    Ok(reading)
}

fn key(text: &str) -> Key {
    Key::new(text).expect("the hive is known")
}

/// What the hive is, by the keys that only it has.
fn kind(root: &Node<'_>) -> Result<Option<Kind>, HiveError> {
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

/// The name of the control set that is in use, in SYSTEM.
fn control_set(reading: &mut Reading, root: &Node<'_>) -> Result<String, HiveError> {
    let current = match root.child("Select")? {
        Some(select) => select.value("Current")?,
        None => None,
    };
    match current.and_then(|current| current.value.number()) {
        Some(number) => Ok(format!("ControlSet{number:03}")),
        None => {
            reading.complain(
                At::Whole,
                r"Select\Current does not say which control set is in use: ControlSet001 is taken",
            );
            Ok("ControlSet001".to_owned())
        }
    }
}

/// Reads the entries of a BCD store.
fn boot(reading: &mut Reading, root: &Node<'_>) -> Result<(), HiveError> {
    let Some(objects) = root.child("Objects")? else {
        return Ok(());
    };
    let entries = objects.children()?;
    // The entry that is started unless somebody chooses another; `bcdedit` shows it as {default}.
    let default = entries
        .iter()
        .find(|(id, _)| id.eq_ignore_ascii_case(bcd::BOOT_MANAGER))
        .and_then(|(_, entry)| element_text(entry, bcd::DEFAULT_OBJECT));
    for (id, entry) in entries {
        let name = match &default {
            Some(default) if default.eq_ignore_ascii_case(&id) => "{default}".to_owned(),
            _ => bcd::well_known(&id).map_or(id, str::to_owned),
        };
        let Some(elements) = entry.child("Elements")? else {
            continue;
        };
        for (number, element) in elements.children()? {
            let Ok(number) = u32::from_str_radix(&number, 16) else {
                reading.complain(At::Whole, format!("no element is numbered {number}"));
                continue;
            };
            let Some(value) = element.value("Element")? else {
                continue;
            };
            // What a device or a list of objects is says nothing about how the machine runs.
            let Some(text) = bcd::stored(number, &value.value) else {
                continue;
            };
            let place = Place::Boot {
                entry: name.clone(),
                element: bcd::name(number),
            };
            reading.found(place, Some(Value::Text(text)), value.at);
        }
    }
    Ok(())
}

fn element_text(entry: &Node<'_>, number: u32) -> Option<String> {
    let element = entry
        .descendant(&format!(r"Elements\{number:08x}"))
        .ok()??;
    match element.value("Element").ok()??.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}
