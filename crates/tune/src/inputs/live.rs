//! The registry of the running system: what it says of settings, and single values, read and written.

use std::io;

use windows_registry::{
    CLASSES_ROOT, CURRENT_CONFIG, CURRENT_USER, Key as Open, LOCAL_MACHINE, Type, USERS,
};

use super::reading::Reading;
use super::walk::{KeyTree, KeyValue, read_wanted};
use super::{Format, Input, identity};
use crate::found::At;
use crate::registry::{Entry, Key, Value};

/// The registry's name as an input.
pub const NAME: &str = "the live registry";

/// What is not there: `ERROR_FILE_NOT_FOUND` as an `HRESULT`.
const NOT_FOUND: i32 = 0x8007_0002_u32.cast_signed();

/// Reads what the registry of the running system says of settings. Keys that may not be read are
/// complaints.
pub fn read() -> Input {
    let mut reading = Reading::new(NAME, Format::Live);
    for (hive, path, name) in [
        (LOCAL_MACHINE, "SYSTEM", r"HKLM\SYSTEM"),
        (LOCAL_MACHINE, "SOFTWARE", r"HKLM\SOFTWARE"),
        (CURRENT_USER, "", "HKCU"),
    ] {
        let key = Key::new(name).expect("the hive is known");
        match hive.open(path) {
            Ok(root) => read_wanted(&mut reading, &Tree(root), &key),
            Err(error) => reading.complain(At::Whole, format!("{key}: {error}")),
        }
    }
    let mut input = reading.input;
    input.machine = identity::of(&input.found);
    input
}

/// A key of the running system.
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
            // Some keys may be seen but not opened, those of other users for instance.
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
                    at: At::Whole,
                })
            })
            .collect())
    }
}

/// What is where the entry says; `None` as its value if there is nothing.
///
/// # Errors
/// If it may not be read.
pub fn now(entry: &Entry) -> io::Result<Entry> {
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

/// Makes what is where the entry says what it says: sets the value, making the key if it is not there,
/// or removes it. A key that was made stays.
///
/// # Errors
/// If it may not be written.
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
    io::Error::other(format!("{key}: {error}"))
}

/// The hive of a key, and the path below it.
fn split(key: &Key) -> io::Result<(&'static Open, &str)> {
    let (hive, path) = key.as_str().split_once('\\').unwrap_or((key.as_str(), ""));
    let hive = match hive {
        "HKLM" => LOCAL_MACHINE,
        "HKCU" => CURRENT_USER,
        "HKU" => USERS,
        "HKCR" => CLASSES_ROOT,
        "HKCC" => CURRENT_CONFIG,
        other => return Err(io::Error::other(format!("no hive is called {other}"))),
    };
    Ok((hive, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_there_until_it_is_removed() {
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
            assert_eq!(now(&entry(None)).unwrap().value, Some(value));
        }
        write(&entry(None)).unwrap();
        write(&entry(None)).unwrap();
        assert_eq!(now(&entry(None)).unwrap().value, None);
        CURRENT_USER
            .remove_tree(r"Software\laglab-test-of-live")
            .unwrap();
    }

    #[test]
    fn the_running_system_tells_which_windows_it_is() {
        let input = read();
        assert!(input.machine.build.is_some());
    }
}
