//! Checks the dependencies between workspace members, as cargo reports them.

use crate::command::{cargo, read};

/// Workspace members on which each workspace member may depend. These are the arrows of the diagram in ARCHITECTURE.md.
/// Development dependencies are not limited.
const MAY_USE: &[(&str, &[&str])] = &[
    ("adapters", &[]),
    ("bisect", &["statistics"]),
    ("dfsn", &["xml"]),
    ("etl", &["files"]),
    ("files", &[]),
    ("ioring", &[]),
    ("linux", &["files"]),
    ("pgm", &[]),
    ("record", &["wording", "xml"]),
    ("registry", &[]),
    ("rules", &[]),
    ("statistics", &[]),
    ("testdata", &[]),
    ("views", &[]),
    ("wording", &[]),
    ("xml", &[]),
    ("xtask", &[]),
    ("answer", &["wording"]),
    ("events", &["etl", "rules", "xml"]),
    ("store", &["files"]),
    ("symbols", &["etl", "files"]),
    ("replica", &["views"]),
    (
        "tune",
        &["etl", "files", "registry", "rules", "wording", "xml"],
    ),
    ("sim", &["etl", "events", "record", "rules"]),
    ("simulated", &["sim", "symbols"]),
    ("tables", &["rules", "store"]),
    ("import_windows", &["etl", "events", "files", "tables"]),
    (
        "import_linux",
        &["events", "files", "linux", "symbols", "tables"],
    ),
    (
        "imports",
        &["files", "import_linux", "import_windows", "tables"],
    ),
    ("selection", &["tables"]),
    ("sql", &["tables"]),
    (
        "explore",
        &["record", "selection", "tables", "views", "wording"],
    ),
    (
        "measure",
        &["ioring", "pgm", "statistics", "tables", "views", "wording"],
    ),
    (
        "explain",
        &["record", "rules", "selection", "tables", "wording"],
    ),
    ("facts", &["events", "record", "tables", "wording"]),
    (
        "raw_events",
        &[
            "etl",
            "events",
            "facts",
            "files",
            "import_linux",
            "import_windows",
            "linux",
            "tables",
        ],
    ),
    (
        "session",
        &[
            "etl",
            "files",
            "import_windows",
            "imports",
            "record",
            "symbols",
            "tables",
            "wording",
        ],
    ),
    (
        "prove",
        &[
            "diff",
            "explain",
            "imports",
            "statistics",
            "tables",
            "tune",
            "wording",
        ],
    ),
    (
        "diff",
        &[
            "explain",
            "explore",
            "facts",
            "selection",
            "statistics",
            "tables",
            "wording",
        ],
    ),
    (
        "replay",
        &["explain", "rules", "sim", "statistics", "tables", "wording"],
    ),
    ("trim", &["etl", "events", "raw_events", "tables"]),
    ("export", &["session", "tables", "wording"]),
    ("flight", &["record"]),
    ("xperf", &["record", "session", "tables", "wording"]),
    (
        "report",
        &[
            "explain", "explore", "facts", "session", "tables", "views", "wording",
        ],
    ),
    (
        "mcp",
        &[
            "answer",
            "diff",
            "explain",
            "explore",
            "facts",
            "import_linux",
            "import_windows",
            "imports",
            "record",
            "report",
            "session",
            "sql",
            "tables",
            "wording",
        ],
    ),
    (
        "serve",
        &[
            "answer", "diff", "explain", "explore", "facts", "mcp", "report", "session", "sql",
            "tables",
        ],
    ),
    (
        "app",
        &[
            "adapters",
            "answer",
            "bisect",
            "dfsn",
            "diff",
            "etl",
            "events",
            "explain",
            "export",
            "explore",
            "facts",
            "files",
            "flight",
            "import_linux",
            "import_windows",
            "imports",
            "linux",
            "mcp",
            "measure",
            "prove",
            "raw_events",
            "record",
            "registry",
            "replay",
            "replica",
            "report",
            "rules",
            "serve",
            "session",
            "sim",
            "sql",
            "symbols",
            "tables",
            "trim",
            "tune",
            "wording",
            "xperf",
        ],
    ),
    (
        "bench",
        &[
            "etl",
            "flight",
            "imports",
            "prove",
            "record",
            "statistics",
            "tables",
            "testdata",
            "views",
        ],
    ),
];

/// Returns a list of all members and the packages that they use, one per line. A line starts with `0` for a
/// member, and with `1` for a package that the member above uses.
///
/// # Errors
///
/// Returns an error if cargo fails, for example because Cargo.lock does not match the manifests.
pub(super) fn tree() -> Result<String, String> {
    let mut tree = cargo(&["tree", "--locked", "--workspace", "--all-features"]);
    tree.args([
        "--target",
        "all",
        "--edges",
        "normal,build",
        "--depth",
        "1",
        "--no-dedupe",
    ]);
    read(tree.args([
        "--prefix",
        "depth",
        "--format",
        " {p}",
        "--charset",
        "ascii",
    ]))
}

/// Finds dependencies in `tree` that [`MAY_USE`] does not allow.
pub(super) fn faults(tree: &str) -> Vec<String> {
    let lines: Vec<(bool, &str)> = (tree.lines())
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()? == "0", words.next()?))
        })
        .collect();
    let is_member = |name: &str| lines.iter().any(|(root, member)| *root && *member == name);
    let mut faults = Vec::new();
    let mut member = "";
    let mut allowed: Option<&[&str]> = None;
    for (is_root, name) in &lines {
        if *is_root {
            member = name;
            allowed = (MAY_USE.iter())
                .find(|(listed, _)| listed == name)
                .map(|(_, allowed)| *allowed);
            if allowed.is_none() {
                faults.push(format!(
                    "`{name}` is not in MAY_USE (xtask/src/tidy/arrows.rs): add it and its arrows"
                ));
            }
        } else if is_member(name) && allowed.is_some_and(|allowed| !allowed.contains(name)) {
            faults.push(format!(
                "`{member}` may not depend on `{name}`: see MAY_USE (xtask/src/tidy/arrows.rs)"
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_that_are_not_listed_are_found() {
        let tree = "\
0 etl v0.1.0 (/x/crates/etl)
1 zip v2.0.0

0 events v0.1.0 (/x/crates/events)
1 etl v0.1.0 (/x/crates/etl)
1 tables v0.1.0 (/x/crates/tables)

0 novel v0.1.0 (/x/crates/novel)
1 etl v0.1.0 (/x/crates/etl)

0 tables v0.1.0 (/x/crates/tables)
";
        assert_eq!(
            faults(tree),
            [
                "`events` may not depend on `tables`: see MAY_USE (xtask/src/tidy/arrows.rs)",
                "`novel` is not in MAY_USE (xtask/src/tidy/arrows.rs): add it and its arrows",
            ]
        );
    }
}
