//! Scenarios that ship with the program: the files in the repository's `scenarios/`.

/// Name and text of each shipped scenario, sorted by name.
const SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// Returns the names of all shipped scenarios, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// Returns the text of a shipped scenario, or `None` if no scenario has the name.
pub fn text(name: &str) -> Option<&'static str> {
    let at = SHIPPED.binary_search_by_key(&name, |(name, _)| name).ok()?;
    Some(SHIPPED[at].1)
}
