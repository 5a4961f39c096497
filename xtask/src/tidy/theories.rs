//! Checks the layers within `crates/explain`: `survey` ← `chain` ← theories, and no theory imports another one.

use super::File;

const SRC: &str = "crates/explain/src/";
const THEORIES: &str = "crates/explain/src/theories/";

/// Imports between theories that have not moved to `chain` yet: the importing and the imported theory. The list only
/// shrinks.
const OPEN: &[(&str, &str)] = &[
    ("hangs", "long_waits"),
    ("interrupts", "network"),
    ("lock_convoys", "hangs"),
    ("short_waits", "long_waits"),
];

/// Finds lines of `crates/explain` that name a layer above their own, or another theory.
pub(super) fn faults(files: &[File]) -> Vec<String> {
    let mut theories: Vec<&str> = (files.iter().filter_map(|file| theory(&file.path))).collect();
    theories.sort_unstable();
    theories.dedup();
    let mut faults = Vec::new();
    for file in files {
        let Some(path) = file.path.strip_prefix(SRC) else {
            continue;
        };
        let layer = path.split(['/', '.']).next().unwrap_or_default();
        let above: &[&str] = match layer {
            "survey" => &["chain", "theories"],
            "chain" => &["theories"],
            _ => &[],
        };
        let own = theory(&file.path);
        for (line, text) in (1..).zip(file.text.lines()) {
            if text.trim_start().starts_with("//") {
                continue;
            }
            let is_named = |name: &&&str| text.contains(&format!("crate::{name}::"));
            faults.extend(
                above
                    .iter()
                    .find(is_named)
                    .map(|name| format!("{}:{line}: `{layer}` may not use `{name}`", file.path)),
            );
            let Some(own) = own else {
                continue;
            };
            let mut others = theories.iter().filter(|other| **other != own);
            let other =
                others.find(|other| is_import(text, other, path) && !OPEN.contains(&(own, other)));
            faults.extend(other.map(|other| {
                format!(
                    "{}:{line}: `{own}` may not use the theory `{other}`: shared code belongs in `chain`",
                    file.path
                )
            }));
        }
    }
    faults
}

/// Returns the name of the theory to which a file belongs; `None` for other files.
fn theory(path: &str) -> Option<&str> {
    let name = path.strip_prefix(THEORIES)?.split(['/', '.']).next()?;
    (name != "mod").then_some(name)
}

/// Returns true if the line names the module `other` of `theories`. `path` is the path of the file within the crate.
fn is_import(text: &str, other: &str, path: &str) -> bool {
    // `super` of a folder's files is the theory itself, except in its `mod.rs`.
    let is_inner = path.matches('/').count() > 1 && !path.ends_with("/mod.rs");
    let to_theories = if is_inner { "super::super" } else { "super" };
    [to_theories, "crate::theories"].iter().any(|parent| {
        let at = format!("{parent}::{other}");
        text.match_indices(&at).any(|(place, _)| {
            let is_longer = text[..place].ends_with("super::");
            let end = text[place + at.len()..].chars().next();
            !is_longer && matches!(end, Some(':' | ';' | ','))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: format!("{SRC}{path}"),
            text: text.to_owned(),
        }
    }

    #[test]
    fn imports_of_upper_layers_and_other_theories_are_found() {
        let files = [
            file("survey/mod.rs", "use crate::chain::path;"),
            file(
                "chain/mod.rs",
                "use crate::survey::Wait;\nuse crate::theories::disks;",
            ),
            file("theories/disks.rs", "use super::paging::Page;"),
            file("theories/paging.rs", "use crate::chain::path;"),
            file("theories/timers/mod.rs", "use super::disks::{self, Disk};"),
            file(
                "theories/timers/sleeps.rs",
                "use super::requests;\nuse super::super::disks;",
            ),
            file(
                "theories/timers/requests.rs",
                "// use crate::theories::disks;",
            ),
            file("theories/mod.rs", "pub(crate) use disks::Disks;"),
        ];
        let faults = faults(&files);
        let places: Vec<&str> = (faults.iter())
            .filter_map(|fault| fault.strip_prefix(SRC)?.split(": ").next())
            .collect();
        assert_eq!(
            places,
            [
                "survey/mod.rs:1",
                "chain/mod.rs:2",
                "theories/disks.rs:1",
                "theories/timers/mod.rs:1",
                "theories/timers/sleeps.rs:2",
            ]
        );
    }
}
