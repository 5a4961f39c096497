//! The scenarios that ship: the files of the repository's `scenarios/`.

/// Name and text of each, sorted by name.
const SHIPPED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The names of all shipped scenarios, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// The text of a shipped scenario.
pub fn text(name: &str) -> Option<&'static str> {
    let at = SHIPPED.binary_search_by_key(&name, |(name, _)| name).ok()?;
    Some(SHIPPED[at].1)
}
