//! Index of the values that inputs contain, by place.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use registry::Value;

use crate::found::{Found, Place};
use crate::inputs::{Format, Input};

/// State of a place in the inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// An input sets or deletes the value of the place.
    Set(Found),
    /// An input lists all values of the key or boot entry, and this value is not among them.
    Absent,
    /// No input mentions the place or would list its value.
    Unknown,
}

impl State {
    /// Returns the value that the inputs set, if any.
    pub fn value(&self) -> Option<&Value> {
        match self {
            State::Set(found) => found.value.as_ref(),
            State::Absent | State::Unknown => None,
        }
    }
}

/// All findings of the inputs about one place, in the order of the inputs.
pub(crate) struct History<'a> {
    /// The last finding. It overrides the earlier ones.
    pub(crate) last: Cow<'a, Found>,
    /// Earlier findings.
    pub(crate) before: Vec<Cow<'a, Found>>,
}

impl<'a> History<'a> {
    fn push(&mut self, found: Cow<'a, Found>) {
        self.before.push(std::mem::replace(&mut self.last, found));
    }

    /// Returns the last finding and the earlier findings.
    pub(crate) fn into_owned(self) -> (Found, Vec<Found>) {
        let before = self.before.into_iter().map(Cow::into_owned);
        (self.last.into_owned(), before.collect())
    }
}

/// Places with their histories, in the order in which the inputs first mention them.
pub(crate) struct States<'a> {
    places: IndexMap<String, History<'a>>,
    /// Registry keys and boot entries whose values an input lists completely.
    containers: HashSet<String>,
    /// Roots of the hives that were read completely.
    hives: HashSet<String>,
}

impl<'a> States<'a> {
    pub(crate) fn new(inputs: &'a [Input]) -> Self {
        let mut places: IndexMap<String, History<'a>> = IndexMap::new();
        let (mut containers, mut hives) = (HashSet::new(), HashSet::new());
        for input in inputs {
            let is_hive = matches!(input.format, Format::Hive | Format::Live);
            for found in &input.found {
                if is_hive {
                    hives.extend(hive_root(&found.place));
                }
                containers.extend(container(&found.place));
                let (id, found) = (found.place.id(), Cow::Borrowed(found));
                if let Some(history) = places.get_mut(&id) {
                    history.push(found);
                } else {
                    let before = Vec::new();
                    places.insert(
                        id,
                        History {
                            last: found,
                            before,
                        },
                    );
                }
            }
            delete_keys(input, &mut places);
        }
        Self {
            places,
            containers,
            hives,
        }
    }

    /// Returns the ids of all places, with their histories.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &History<'a>)> {
        self.places
            .iter()
            .map(|(id, history)| (id.as_str(), history))
    }

    /// Returns the last finding of each place.
    pub(crate) fn found(&self) -> impl Iterator<Item = &Found> {
        self.places.values().map(|history| &*history.last)
    }

    pub(crate) fn into_histories(self) -> impl Iterator<Item = History<'a>> {
        self.places.into_values()
    }

    pub(crate) fn contains(&self, id: &str) -> bool {
        self.places.contains_key(id)
    }

    /// Returns the state of a place whose [`Place::id`] is `id`.
    pub(crate) fn state(&self, id: &str, place: &Place) -> State {
        match self.places.get(id) {
            Some(history) => State::Set(history.last.clone().into_owned()),
            None if self.covers(place) => State::Absent,
            None => State::Unknown,
        }
    }

    /// Returns whether an input would list the value of the place if it existed. Exports of registry
    /// keys and boot entries are complete. The output of a command is not: a property can be missing
    /// because it is empty, because its name is translated, or because some builds do not print it.
    fn covers(&self, place: &Place) -> bool {
        container(place).is_some_and(|container| self.containers.contains(&container))
            || hive_root(place).is_some_and(|root| self.hives.contains(&root))
    }
}

/// Removes the values below the registry keys that an input deletes. Values that this input itself sets
/// are kept, because it sets them after the deletion.
fn delete_keys(input: &Input, places: &mut IndexMap<String, History<'_>>) {
    let mut deleted = HashMap::new();
    for (key, origin) in &input.deleted_keys {
        deleted
            .entry(key.as_str().to_lowercase())
            .or_insert_with(|| origin.clone());
    }
    if deleted.is_empty() {
        return;
    }
    for history in places.values_mut() {
        let Place::Registry { key, .. } = &history.last.place else {
            continue;
        };
        let key = key.as_str().to_lowercase();
        let ends = key.match_indices('\\').map(|(at, _)| at).chain([key.len()]);
        let Some(origin) = ends.filter_map(|end| deleted.get(&key[..end])).next() else {
            continue;
        };
        if history.last.origin.source == origin.source {
            continue;
        }
        let deletion = Found {
            place: history.last.place.clone(),
            value: None,
            origin: origin.clone(),
        };
        history.push(Cow::Owned(deletion));
    }
}

/// Returns the id of the registry key or boot entry that contains the place.
fn container(place: &Place) -> Option<String> {
    match place {
        Place::Registry { key, .. } => Some(key.as_str().to_lowercase()),
        Place::Boot { entry, .. } => Some(format!("bcd {entry}")),
        Place::Answer { .. } | Place::Power { .. } | Place::Kernel { .. } => None,
    }
}

/// Returns the root of the registry hive that contains the place, such as `hklm\software`.
fn hive_root(place: &Place) -> Option<String> {
    let Place::Registry { key, .. } = place else {
        return None;
    };
    let key = key.as_str().to_lowercase();
    let depth = if key.starts_with("hkcu") { 1 } else { 2 };
    let end = key.match_indices('\\').nth(depth - 1);
    Some(end.map_or(&key[..], |(at, _)| &key[..at]).to_owned())
}
