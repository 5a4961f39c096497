//! Values that somebody set where the setting is not.

use super::{Kind, Remark};
use crate::catalogue::{Catalogue, Setting};
use crate::found::{Found, Place};

/// How many letters a misspelt name may differ in.
const MOST_LETTERS: usize = 2;

/// Names shorter than this are too near to each other by themselves.
const SHORTEST: usize = 6;

/// The setting that was meant, if one was.
pub(super) fn find(
    catalogue: &'static Catalogue,
    found: &Found,
) -> Option<(&'static Setting, Remark)> {
    // What is not set cannot be misspelt.
    found.value.as_ref()?;
    if let Some((setting, misspelling)) = catalogue.misspelt_at(&found.place) {
        let says = misspelling.why.clone();
        let kind = Kind::Misspelt;
        return Some((setting, Remark { kind, says }));
    }
    let Place::Registry { key, name } = &found.place else {
        return None;
    };
    let places = catalogue.settings().iter().flat_map(|setting| {
        let in_key = setting.places.iter().filter(|place| place.is_in(key));
        in_key.map(move |place| (setting, place.name()))
    });
    let near = places.filter(|(_, known)| is_near(known, name));
    let (setting, known) = near.min_by_key(|(_, known)| distance(known, name))?;
    let says = format!("Windows knows no {name} there; {known} is called nearly so.");
    let kind = Kind::PerhapsMisspelt;
    Some((setting, Remark { kind, says }))
}

fn distance(known: &str, name: &str) -> usize {
    strsim::osa_distance(&known.to_lowercase(), &name.to_lowercase())
}

/// Whether one name may be the other misspelt. Names that differ in digits are names of their own, as
/// those for IPv4 and IPv6 are.
fn is_near(known: &str, name: &str) -> bool {
    let letters = |name: &str| -> String {
        let letters = name.chars().filter(|letter| !letter.is_ascii_digit());
        letters.flat_map(char::to_lowercase).collect()
    };
    known.len() >= SHORTEST
        && known.len().abs_diff(name.len()) <= 2 * MOST_LETTERS
        && letters(known) != letters(name)
        && distance(known, name) <= MOST_LETTERS
}
