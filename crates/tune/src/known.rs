//! What inputs say of one place: a value, that there is none, or nothing.

use crate::found::{Found, Place};
use crate::inputs::{Format, Input};

/// What is known of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It has a value, or was deleted.
    Said(Found),
    /// It has none: its key was read, and it was not there.
    Absent,
    /// No input tells.
    Unknown,
}

/// All that inputs say, by place.
pub(crate) struct Known<'a> {
    inputs: &'a [Input],
    words: Vec<Found>,
}

impl<'a> Known<'a> {
    pub(crate) fn of(inputs: &'a [Input]) -> Self {
        let words = crate::audit::last_words(inputs);
        Self {
            inputs,
            words: words.into_iter().map(|(last, _)| last).collect(),
        }
    }

    /// What was found last at each place.
    pub(crate) fn words(&self) -> &[Found] {
        &self.words
    }

    pub(crate) fn state(&self, place: &Place) -> State {
        let mut words = self.words.iter();
        match words.find(|found| found.place.is(place)) {
            Some(found) => State::Said(found.clone()),
            None if self.is_covered(place) => State::Absent,
            None => State::Unknown,
        }
    }

    /// Whether an input would have told the place's value if it had one: it is a whole hive, or it tells
    /// of another value of the key, which exports do whole, or of another element of the entry.
    fn is_covered(&self, place: &Place) -> bool {
        self.words.iter().any(|found| match (&found.place, place) {
            (Place::Registry { key: found, .. }, Place::Registry { key, .. }) => found == key,
            (Place::Boot { entry: found, .. }, Place::Boot { entry, .. }) => found == entry,
            (
                Place::Answer {
                    command: found,
                    object: of,
                    ..
                },
                Place::Answer {
                    command, object, ..
                },
            ) => found == command && of == object,
            _ => false,
        }) || self.inputs.iter().any(|input| is_in_hive(input, place))
    }
}

/// Whether the input is the hive that would hold the place.
fn is_in_hive(input: &Input, place: &Place) -> bool {
    let Place::Registry { key, .. } = place else {
        return false;
    };
    let root = |key: &str| -> String {
        let depth = if key.starts_with("HKCU") { 1 } else { 2 };
        let names = key.split('\\').take(depth);
        names.collect::<Vec<_>>().join("\\").to_lowercase()
    };
    matches!(input.format, Format::Hive | Format::Live)
        && input.found.iter().any(|found| match &found.place {
            Place::Registry { key: known, .. } => root(known.as_str()) == root(key.as_str()),
            _ => false,
        })
}
