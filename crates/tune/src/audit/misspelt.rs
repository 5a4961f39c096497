//! Detection of misspelt settings.

use super::{Kind, Remark};
use crate::catalogue::{Catalogue, Setting};
use crate::placed_value::Place;

/// Maximum edit distance between a misspelt name and the known name, in letters.
const MOST_LETTERS: usize = 2;

/// Minimum length of names that are compared. Shorter names are often similar by chance.
const SHORTEST: usize = 6;

/// Returns the setting that the user probably meant, if the name or location of a value is a misspelling.
pub(super) fn find(
    catalogue: &'static Catalogue,
    place: &Place,
) -> Option<(&'static Setting, Remark)> {
    if let Some((setting, misspelling)) = catalogue.misspelt_at(place) {
        let says = misspelling.why.clone();
        let kind = Kind::Misspelt;
        return Some((setting, Remark { kind, says }));
    }
    let Place::Registry { key, name } = place else {
        return None;
    };
    let similar = catalogue
        .names_in(key)
        .filter(|(_, known)| is_similar(known, name));
    let (setting, known) = similar.min_by_key(|(_, known)| distance(known, name))?;
    let says = format!("Windows has no value {name} in this key; did you mean {known}?");
    let kind = Kind::PerhapsMisspelt;
    Some((setting, Remark { kind, says }))
}

fn distance(known: &str, name: &str) -> usize {
    strsim::osa_distance(&known.to_lowercase(), &name.to_lowercase())
}

/// Returns true if one name may be a misspelling of the other. Names that differ only in digits belong to
/// different settings, such as the settings of IPv4 and IPv6.
fn is_similar(known: &str, name: &str) -> bool {
    let letters = |name: &str| -> String {
        let letters = name.chars().filter(|letter| !letter.is_ascii_digit());
        letters.flat_map(char::to_lowercase).collect()
    };
    known.len() >= SHORTEST
        && known.len().abs_diff(name.len()) <= 2 * MOST_LETTERS
        && letters(known) != letters(name)
        && distance(known, name) <= MOST_LETTERS
}
