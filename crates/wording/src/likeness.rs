//! Suggestions for a misspelt name.

use std::cmp::Ordering;

/// Minimum Jaro-Winkler similarity at which one name is probably a misspelling of the other.
const LIKELY: f64 = 0.85;

/// Returns up to `most` known names, sorted by decreasing similarity to `wrong`. Case is ignored. If several
/// names differ only in case, only one of them is returned.
pub fn closest<'n>(
    wrong: &str,
    known: impl IntoIterator<Item = &'n str>,
    most: usize,
) -> Vec<&'n str> {
    let mut names: Vec<&str> = known.into_iter().collect();
    names.sort_by_cached_key(|name| (name.to_lowercase(), *name));
    names.dedup_by(|one, other| one.eq_ignore_ascii_case(other));
    let mut names: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| (likeness(wrong, name), name))
        .collect();
    names.sort_by(by_likeness);
    names.truncate(most);
    names.into_iter().map(|(_, name)| name).collect()
}

/// Returns the known name that `wrong` most likely misspells. Returns `None` if no name is similar enough.
pub fn closest_one<'n>(wrong: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let names = known.into_iter().map(|name| (likeness(wrong, name), name));
    let (likeness, name) = names.max_by(|one, other| by_likeness(other, one))?;
    (likeness > LIKELY).then_some(name)
}

fn likeness(wrong: &str, name: &str) -> f64 {
    strsim::jaro_winkler(&wrong.to_lowercase(), &name.to_lowercase())
}

/// Compares names by decreasing similarity.
fn by_likeness(one: &(f64, &str), other: &(f64, &str)) -> Ordering {
    other.0.total_cmp(&one.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_come_first() {
        let known = ["Loader", "CSwitch", "cswitch", "ReadyThread"];
        assert_eq!(closest("cswich", known, 1), ["CSwitch"]);
        assert_eq!(closest("ready", known, 9).len(), 3);
        assert_eq!(closest_one("ReadyThreads", known), Some("ReadyThread"));
        assert_eq!(closest_one("NetworkTrace", known), None);
        assert_eq!(closest_one("anything", []), None);
    }
}
