//! Search for the keys of settings in a hive or in the live registry.

use std::collections::BTreeSet;
use std::fmt::Display;

use registry::{Key, Value};

use super::identity;
use super::reading::Reading;
use crate::catalogue::{Catalogue, PlacePattern, is_open};
use crate::placed_value::InputPosition;

/// A registry key with its subkeys, in a hive or in the live registry.
pub(super) trait KeyTree: Sized {
    /// Error of reading a key.
    type Error: Display;

    /// Returns the subkey of this name, ignoring case.
    fn child(&self, name: &str) -> Result<Option<Self>, Self::Error>;

    /// Returns all subkeys with their names.
    fn children(&self) -> Result<Vec<(String, Self)>, Self::Error>;

    /// Returns all values of this key. Each value can have its own error.
    fn values(&self) -> Result<Vec<Result<KeyValue, Self::Error>>, Self::Error>;
}

/// A registry value of a key.
pub(super) struct KeyValue {
    pub(super) name: String,
    pub(super) value: Value,
    pub(super) at: InputPosition,
}

/// Returns the keys of all settings and of their misspellings, and the keys that identify the machine. A
/// part in `<…>` matches any name.
pub(super) fn wanted_keys() -> BTreeSet<&'static str> {
    let settings = Catalogue::get().settings().iter();
    let places = settings.flat_map(|setting| {
        let misspelt = setting.misspellings.iter();
        (setting.places.iter()).chain(misspelt.map(|misspelling| &misspelling.place))
    });
    let keys = places.filter_map(|place| match place {
        PlacePattern::Registry { key, .. } => Some(key.as_str()),
        _ => None,
    });
    keys.chain(identity::KEYS).collect()
}

/// Reads all values of the wanted keys below `root`, which corresponds to the registry key `at`.
///
/// Values with unknown names are also read, because they may be misspelt settings.
pub(super) fn read_wanted<T: KeyTree>(reading: &mut Reading, root: &T, at: &Key) {
    let prefix = format!("{}\\", at.as_str());
    for wanted in wanted_keys() {
        let Some((start, below)) = wanted.split_at_checked(prefix.len()) else {
            continue;
        };
        if start.eq_ignore_ascii_case(&prefix) {
            walk(reading, root, at, below);
        }
    }
}

fn walk<T: KeyTree>(reading: &mut Reading, tree: &T, key: &Key, below: &str) {
    if below.is_empty() {
        return read_values(reading, tree, key);
    }
    let (name, rest) = below.split_once('\\').unwrap_or((below, ""));
    let children = if is_open(name) {
        tree.children()
    } else {
        let child = tree.child(name);
        child.map(|child| {
            child
                .map(|child| (name.to_owned(), child))
                .into_iter()
                .collect()
        })
    };
    match children {
        Ok(children) => {
            for (name, child) in children {
                walk(reading, &child, &key.child(&name), rest);
            }
        }
        Err(error) => reading.complain(InputPosition::Whole, format!("{key}: {error}")),
    }
}

fn read_values<T: KeyTree>(reading: &mut Reading, tree: &T, key: &Key) {
    match tree.values() {
        Ok(values) => {
            for value in values {
                match value {
                    Ok(KeyValue { name, value, at }) => {
                        reading.registry(key, &name, Some(value), at);
                    }
                    Err(error) => reading.complain(InputPosition::Whole, format!("{key}: {error}")),
                }
            }
        }
        Err(error) => reading.complain(InputPosition::Whole, format!("{key}: {error}")),
    }
}
