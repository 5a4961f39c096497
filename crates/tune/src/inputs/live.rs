//! Access to the live registry: reads all settings, and reads and writes single values.

use std::io;

use registry::{Entry, Key, Value};
use windows_registry::{
    CLASSES_ROOT, CURRENT_CONFIG, CURRENT_USER, Key as Open, LOCAL_MACHINE, Type, USERS,
};

use super::reading::Reading;
use super::walk::{KeyTree, KeyValue, read_wanted};
use super::{Format, Input, identity};
use crate::placed_value::InputPosition;

/// Name of the live registry as an input of findings.
pub const NAME: &str = "the live registry";

/// `ERROR_FILE_NOT_FOUND` as an `HRESULT`.
const NOT_FOUND: i32 = 0x8007_0002_u32.cast_signed();

/// Reads the settings of the live registry. A key that cannot be read is reported as a complaint.
pub fn read() -> Input {
    let mut reading = Reading::new(NAME, Format::Live);
    for (hive, path, name) in [
        (LOCAL_MACHINE, "SYSTEM", r"HKLM\SYSTEM"),
        (LOCAL_MACHINE, "SOFTWARE", r"HKLM\SOFTWARE"),
        (CURRENT_USER, "", "HKCU"),
    ] {
        let key = Key::new(name).expect("a known hive");
        match hive.open(path) {
            Ok(root) => read_wanted(&mut reading, &Tree(root), &key),
            Err(error) => reading.complain(InputPosition::Whole, format!("{key}: {error}")),
        }
    }
    let mut input = reading.input;
    input.machine = identity::identify(&input.found);
    input
}

/// A key of the live registry.
struct Tree(Open);

impl KeyTree for Tree {
    type Error = windows_result::Error;

    fn child(&self, name: &str) -> Result<Option<Self>, Self::Error> {
        match self.0.open(name) {
            Ok(child) => Ok(Some(Self(child))),
            Err(error) if error.code().0 == NOT_FOUND => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn children(&self) -> Result<Vec<(String, Self)>, Self::Error> {
        let mut children = Vec::new();
        for name in self.0.keys()? {
            // Some listed keys cannot be opened, for instance keys of other users.
            if let Ok(child) = self.0.open(&name) {
                children.push((name, Self(child)));
            }
        }
        Ok(children)
    }

    fn values(&self) -> Result<Vec<Result<KeyValue, Self::Error>>, Self::Error> {
        let values = self.0.values()?;
        Ok(values
            .map(|(name, value)| {
                Ok(KeyValue {
                    name,
                    value: Value::from_bytes(value.ty().into(), &value),
                    at: InputPosition::Whole,
                })
            })
            .collect())
    }
}

/// Reads the current value of an entry. The value of the returned entry is `None` if it is not set.
///
/// # Errors
/// Returns an error if the value cannot be read.
pub fn current(entry: &Entry) -> io::Result<Entry> {
    let (hive, path) = split(&entry.key)?;
    let value = match hive.open(path).and_then(|key| key.get_value(&entry.name)) {
        Ok(value) => Some(Value::from_bytes(value.ty().into(), &value)),
        Err(error) if error.code().0 == NOT_FOUND => None,
        Err(error) => return Err(failed(&entry.key, &error)),
    };
    Ok(Entry {
        value,
        ..entry.clone()
    })
}

/// Sets the value of an entry. If the key does not exist, creates the key. If the value is `None`, removes the value
/// but not its key.
///
/// # Errors
/// Returns an error if the value cannot be written.
pub fn write(entry: &Entry) -> io::Result<()> {
    let (hive, path) = split(&entry.key)?;
    let outcome = match &entry.value {
        Some(value) => {
            let (kind, bytes) = value.to_bytes();
            let key = hive.create(path);
            key.and_then(|key| key.set_bytes(&entry.name, Type::from(kind), &bytes))
        }
        None => {
            let key = hive.options().read().write().open(path);
            match key.and_then(|key| key.remove_value(&entry.name)) {
                Err(error) if error.code().0 == NOT_FOUND => Ok(()),
                outcome => outcome,
            }
        }
    };
    outcome.map_err(|error| failed(&entry.key, &error))
}

fn failed(key: &Key, error: &windows_result::Error) -> io::Error {
    io::Error::other(format!("cannot access {key}: {error}"))
}

/// Splits a key into its root and the path below the root.
fn split(key: &Key) -> io::Result<(&'static Open, &str)> {
    let (hive, path) = key.as_str().split_once('\\').unwrap_or((key.as_str(), ""));
    let hive = match hive {
        "HKLM" => LOCAL_MACHINE,
        "HKCU" => CURRENT_USER,
        "HKU" => USERS,
        "HKCR" => CLASSES_ROOT,
        "HKCC" => CURRENT_CONFIG,
        other => return Err(io::Error::other(format!("unknown hive {other}"))),
    };
    Ok((hive, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_written_read_and_removed() {
        let key = Key::new(r"HKCU\Software\laglab-test-of-live").unwrap();
        let entry = |value| Entry {
            key: key.clone(),
            name: "value".to_owned(),
            value,
        };
        for value in [
            Value::Dword(7),
            Value::Text("text".to_owned()),
            Value::List(vec!["a".to_owned(), "b".to_owned()]),
            Value::Binary(vec![1, 2, 3]),
            Value::Qword(1 << 40),
        ] {
            write(&entry(Some(value.clone()))).unwrap();
            assert_eq!(current(&entry(None)).unwrap().value, Some(value));
        }
        write(&entry(None)).unwrap();
        write(&entry(None)).unwrap();
        assert_eq!(current(&entry(None)).unwrap().value, None);
        CURRENT_USER
            .remove_tree(r"Software\laglab-test-of-live")
            .unwrap();
    }

    #[test]
    fn the_live_registry_identifies_the_build() {
        let input = read();
        assert!(input.machine.build.is_some());
    }
}
