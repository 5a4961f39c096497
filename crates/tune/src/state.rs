//! Index of the values that inputs contain, by place.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use indexmap::map::Entry;
use registry::{Key, Value};

use crate::inputs::{Format, Input};
use crate::placed_value::{Origin, Place, PlacedValue};

/// State of a place according to the inputs: set, absent or unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// An input sets or deletes the value of the place.
    Set(PlacedValue),
    /// An input lists all values of the key or boot entry, and this value is not among them.
    Absent,
    /// No input contains the place, and no input lists all values of its key or boot entry.
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

/// Change that one input makes at a place: it sets or deletes the value.
#[derive(Clone, Copy)]
pub(crate) struct InputChange<'a> {
    /// New value. `None` if the input deletes the value.
    pub(crate) value: Option<&'a Value>,
    pub(crate) origin: &'a Origin,
}

impl InputChange<'_> {
    pub(crate) fn into_found(self, place: &Place) -> PlacedValue {
        PlacedValue {
            place: place.clone(),
            value: self.value.cloned(),
            origin: self.origin.clone(),
        }
    }
}

/// Statements of the inputs about one place, in their order.
pub(crate) struct History<'a> {
    /// Last statement. It overrides the earlier statements.
    pub(crate) last: InputChange<'a>,
    pub(crate) before: Vec<InputChange<'a>>,
}

impl<'a> History<'a> {
    fn push(&mut self, said: InputChange<'a>) {
        self.before.push(std::mem::replace(&mut self.last, said));
    }
}

/// Places with their histories, in the order in which the inputs first mention them. An export may have a million
/// values, so this index contains only references to the inputs.
pub(crate) struct States<'a> {
    places: IndexMap<&'a Place, History<'a>>,
    /// Registry keys whose values an input lists completely.
    keys: HashSet<&'a Key>,
    /// Boot entries whose elements an input lists completely.
    boot_entries: HashSet<&'a str>,
    /// Roots of the hives that were read completely.
    hives: HashSet<String>,
}

impl<'a> States<'a> {
    pub(crate) fn new(inputs: &'a [Input]) -> Self {
        let mut states = Self {
            places: IndexMap::new(),
            keys: HashSet::new(),
            boot_entries: HashSet::new(),
            hives: HashSet::new(),
        };
        for input in inputs {
            let is_hive = matches!(input.format, Format::Hive | Format::Live);
            for found in &input.found {
                if is_hive {
                    states.hives.extend(hive_root(&found.place));
                }
                states.add(found);
            }
            delete_keys(input, &mut states.places);
        }
        states
    }

    fn add(&mut self, found: &'a PlacedValue) {
        match &found.place {
            Place::Registry { key, .. } => {
                self.keys.insert(key);
            }
            Place::Boot { entry, .. } => {
                self.boot_entries.insert(entry);
            }
            Place::Answer { .. } | Place::Power { .. } | Place::Kernel { .. } => {}
        }
        let said = InputChange {
            value: found.value.as_ref(),
            origin: &found.origin,
        };
        match self.places.entry(&found.place) {
            Entry::Occupied(mut there) => there.get_mut().push(said),
            Entry::Vacant(new) => {
                new.insert(History {
                    last: said,
                    before: Vec::new(),
                });
            }
        }
    }

    /// Returns all places.
    pub(crate) fn places(&self) -> impl Iterator<Item = &'a Place> {
        self.places.keys().copied()
    }

    pub(crate) fn into_histories(self) -> impl Iterator<Item = (&'a Place, History<'a>)> {
        self.places.into_iter()
    }

    pub(crate) fn contains(&self, place: &Place) -> bool {
        self.places.contains_key(place)
    }

    /// Returns the value that the inputs set at a place, if any.
    pub(crate) fn value(&self, place: &Place) -> Option<&'a Value> {
        self.places.get(place)?.last.value
    }

    /// Returns the state of a place.
    pub(crate) fn state(&self, place: &Place) -> State {
        match self.places.get_key_value(place) {
            Some((place, history)) => State::Set(history.last.into_found(place)),
            None if self.covers(place) => State::Absent,
            None => State::Unknown,
        }
    }

    /// Returns true if an input would list the value of the place if the value existed. Exports of registry
    /// keys and boot entries are complete. The output of a command is not complete: a property can be missing
    /// because it is empty, because its name is translated, or because some builds do not print it.
    fn covers(&self, place: &Place) -> bool {
        let is_listed = match place {
            Place::Registry { key, .. } => self.keys.contains(key),
            Place::Boot { entry, .. } => self.boot_entries.contains(entry.as_str()),
            Place::Answer { .. } | Place::Power { .. } | Place::Kernel { .. } => false,
        };
        is_listed || hive_root(place).is_some_and(|root| self.hives.contains(&root))
    }
}

/// Removes the values below the registry keys that an input deletes. Keeps the values that this input itself
/// sets after the deletion.
fn delete_keys<'a>(input: &'a Input, places: &mut IndexMap<&'a Place, History<'a>>) {
    let mut deleted = HashMap::new();
    for (key, origin) in &input.deleted_keys {
        // If the input deletes a key twice, only the last deletion counts.
        deleted.insert(key.as_str().to_lowercase(), origin);
    }
    if deleted.is_empty() {
        return;
    }
    for (place, history) in places {
        let Place::Registry { key, .. } = place else {
            continue;
        };
        let key = key.as_str().to_lowercase();
        let ends = key.match_indices('\\').map(|(at, _)| at).chain([key.len()]);
        let deletions = ends.filter_map(|end| deleted.get(&key[..end]).copied());
        let Some(origin) = deletions.max_by_key(|origin| origin.at) else {
            continue;
        };
        let last = history.last.origin;
        if last.source != origin.source || last.at < origin.at {
            history.push(InputChange {
                value: None,
                origin,
            });
        }
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
