//! The keys of a registry that settings are kept in, found in whatever holds it.

use std::collections::BTreeSet;
use std::fmt::Display;

use super::identity;
use super::reading::Reading;
use crate::catalogue::{Catalogue, PlacePattern, is_open};
use crate::found::At;
use crate::registry::{Key, Value};

/// A key with the keys below it: of a hive, or of the running system.
pub(super) trait KeyTree: Sized {
    /// Why a key cannot be read.
    type Error: Display;

    /// The key of that name below this one, whatever its case.
    fn child(&self, name: &str) -> Result<Option<Self>, Self::Error>;

    /// The keys below this one, with their names.
    fn children(&self) -> Result<Vec<(String, Self)>, Self::Error>;

    /// The values of this key: those that can be read, and what is wrong with the others.
    fn values(&self) -> Result<Vec<Result<KeyValue, Self::Error>>, Self::Error>;
}

/// A value of a key.
pub(super) struct KeyValue {
    pub(super) name: String,
    pub(super) value: Value,
    pub(super) at: At,
}

/// The keys that settings of the catalogue are kept in, or are mistaken to be, and those that tell
/// what machine it is; parts in `<…>` stand for any name.
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

/// Reads all values of the wanted keys below `root`, which is loaded as the key `at`.
///
/// All, not only those of the catalogue: a name that is nearly one's is worth knowing.
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
        Err(error) => reading.complain(At::Whole, format!("{key}: {error}")),
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
                    Err(error) => reading.complain(At::Whole, format!("{key}: {error}")),
                }
            }
        }
        Err(error) => reading.complain(At::Whole, format!("{key}: {error}")),
    }
}
