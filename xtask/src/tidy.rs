//! `cargo xtask tidy`: checks the rules of this repository that no standard tool checks.
//!
//! Each check is a function that takes files and returns faults. A test can therefore pass it a repository of
//! three files.

mod arrows;
mod markdown;
mod prose;
mod theories;

use std::fs;

use crate::command::{program, read, root};

/// Text file of the repository.
#[derive(Clone)]
struct File {
    /// Path relative to the repository's root, with `/` as separator.
    path: String,
    text: String,
}

/// Function that finds the places where files break a rule. Each place is formatted as `path:line: description`.
type Check = fn(&[File]) -> Vec<String>;

const CHECKS: [Check; 9] = [
    names_say_something,
    members_inherit_lints,
    unsafe_code_is_explained,
    members_are_optimised_or_listed,
    files_are_short,
    no_machine_is_named,
    architecture_names_every_crate,
    prose::all_faults,
    theories::faults,
];

/// Crates whose files may allow unsafe code, because they call the operating system. Tests, and workspace
/// members outside of `crates`, may always allow it.
const MAY_BE_UNSAFE: &[&str] = &[
    "adapters", "files", "flight", "ioring", "measure", "pgm", "record",
];

/// Workspace members that release builds optimise for size, with the reason.
const SMALL_IN_RELEASES: &[(&str, &str)] = &[
    ("adapters", "lists network adapters"),
    ("bisect", "waits for measurements"),
    ("dfsn", "reads small exports"),
    ("mcp", "passes questions to crates that are listed"),
    ("record", "writes a few small files"),
    ("replica", "sums counters of a few files"),
    ("selection", "writes queries"),
    ("serve", "passes requests to crates that are listed"),
    ("simulated", "is used by tests only"),
    ("sql", "plans queries; DataFusion and Arrow touch the rows"),
    ("testdata", "is used by tests only"),
    ("xml", "reads files of a few megabytes"),
    ("xtask", "is never released"),
];

/// Source files that may be longer than [`SOURCE_LINES`], with the reason.
const LONG_FILES: &[(&str, &str)] = &[
    (
        "crates/events/src/decode.rs",
        "one walk over every type that a payload can have",
    ),
    (
        "ui/src/api/types.ts",
        "generated from the types of the server",
    ),
    (
        "ui/src/table/GoldenTable.svelte",
        "table, tree and keyboard; to be split",
    ),
];

/// Maximum number of lines of a source file.
const SOURCE_LINES: usize = 800;

/// Maximum number of lines of a test file. It is larger than for sources, because test cases are a list.
const TEST_LINES: usize = 1_200;

/// Checks all rules, and prints each position that breaks a rule.
///
/// # Errors
///
/// Returns an error if git or cargo fails, a file cannot be read, or a rule is broken.
pub(crate) fn run() -> Result<(), String> {
    let files = files()?;
    let mut faults: Vec<String> = CHECKS.iter().flat_map(|check| check(&files)).collect();
    faults.extend(markdown::broken_links(&files, |path| {
        root().join(path).exists()
    }));
    faults.extend(arrows::faults(&arrows::tree()?));
    faults.extend(unlisted_tests(&files));
    faults.extend(ignored_files()?.iter().map(|path| {
        format!(
            "{path}: git tracks this file although .gitignore excludes it; run `git rm --cached`"
        )
    }));
    report(&faults)
}

/// Returns a fault for each file of tests that `tests/main.rs` of its crate does not list: cargo would not run it.
fn unlisted_tests(files: &[File]) -> Vec<String> {
    let mains = files.iter().filter_map(|file| {
        let folder = file.path.strip_suffix("main.rs")?;
        folder.ends_with("/tests/").then_some((folder, &file.text))
    });
    let unlisted = mains.flat_map(|(folder, main)| {
        let manifest = folder.replace("tests/", "Cargo.toml");
        let manifest = files.iter().find(|file| file.path == manifest);
        files.iter().filter_map(move |file| {
            let rest = file.path.strip_prefix(folder)?;
            let name = rest.strip_suffix("/mod.rs").or(rest.strip_suffix(".rs"))?;
            let is_program =
                manifest.is_some_and(|it| it.text.contains(&format!("\"tests/{rest}\"")));
            let is_listed =
                name == "main" || name.contains('/') || main.contains(&format!("mod {name};"));
            (!is_listed && !is_program).then(|| {
                file.fault(
                    0,
                    &format!("add `mod {name};` to {folder}main.rs, or cargo does not run it"),
                )
            })
        })
    });
    unlisted.collect()
}

/// Returns the paths of files that git tracks and `.gitignore` excludes. They are generated, so they would change with
/// each build.
fn ignored_files() -> Result<Vec<String>, String> {
    let mut git = program("git");
    git.args([
        "ls-files",
        "-z",
        "--cached",
        "--ignored",
        "--exclude-standard",
    ]);
    let paths = read(&mut git)?;
    Ok(paths.split_terminator('\0').map(str::to_owned).collect())
}

fn report(faults: &[String]) -> Result<(), String> {
    for fault in faults {
        eprintln!("{fault}");
    }
    match faults.len() {
        0 => Ok(()),
        1 => Err("1 place breaks a rule".to_owned()),
        count => Err(format!("{count} places break a rule")),
    }
}

/// Reads the text files that git tracks, and the text files that `git add` would add.
fn files() -> Result<Vec<File>, String> {
    let mut git = program("git");
    git.args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let mut files = Vec::new();
    for path in read(&mut git)?.split_terminator('\0') {
        let full = root().join(path);
        if !full.is_file() {
            continue; // the file is deleted but not committed, or is a submodule
        }
        let bytes = fs::read(&full).map_err(|error| format!("cannot read {path}: {error}"))?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(File {
                path: path.to_owned(),
                text,
            });
        }
    }
    Ok(files)
}

impl File {
    fn extension(&self) -> Option<&str> {
        let name = self.path.rsplit('/').next()?;
        name.rsplit_once('.').map(|(_, extension)| extension)
    }

    /// Formats a fault on a line. The first line has the number 0.
    fn fault(&self, line: usize, description: &str) -> String {
        format!("{}:{}: {description}", self.path, line + 1)
    }
}

/// Returns the manifests of the workspace members, each with the folder of the member.
fn members(files: &[File]) -> impl Iterator<Item = (&str, &File)> {
    files.iter().filter_map(|file| {
        let folder = file.path.strip_suffix("/Cargo.toml")?;
        let is_member = match folder.split_once('/') {
            Some((parent, name)) => parent == "crates" && !name.contains('/'),
            None => ["bench", "xtask"].contains(&folder),
        };
        is_member.then_some((folder, file))
    })
}

/// Finds files and folders whose name says nothing about their content.
fn names_say_something(files: &[File]) -> Vec<String> {
    const EMPTY: [&str; 6] = ["util", "utils", "helper", "helpers", "common", "misc"];
    let mut faults = Vec::new();
    for file in files {
        let parts = file.path.split('/');
        let names = parts.map(|part| part.split('.').next().unwrap_or(part));
        for name in names.filter(|name| EMPTY.contains(name)) {
            faults.push(file.fault(0, &format!("`{name}` says nothing about the content")));
        }
    }
    faults
}

/// Finds workspace members that do not use the workspace's lints.
fn members_inherit_lints(files: &[File]) -> Vec<String> {
    members(files)
        .filter(|(_, file)| {
            let text = file.text.replace("\r\n", "\n");
            !text.contains("[lints]\nworkspace = true")
        })
        .map(|(_, file)| file.fault(0, "lacks `[lints] workspace = true`"))
        .collect()
}

/// Finds files that allow unsafe code although their crate is not in [`MAY_BE_UNSAFE`], and files that allow
/// unsafe code without a reason. The reason must be in the attribute or in the first comment of the file. In
/// all other files, the workspace's lints forbid unsafe code.
fn unsafe_code_is_explained(files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.extension() == Some("rs")) {
        // The text is split in two, so that this file does not break the rule itself.
        let allows = concat!("(unsafe", "_code");
        let Some(line) = file.text.lines().position(|line| line.contains(allows)) else {
            continue;
        };
        let attribute: String = file.text.lines().skip(line).take(4).collect();
        let attribute = attribute.split(']').next().unwrap_or_default();
        let mut parts = file.path.split('/');
        let may_be = parts.next() != Some("crates")
            || parts
                .next()
                .is_some_and(|room| MAY_BE_UNSAFE.contains(&room))
            || parts.next() == Some("tests");
        let comment = file.text.lines().take_while(|line| line.starts_with("//"));
        let has_unsafe = |line: &str| line.to_lowercase().contains("unsafe");
        if !may_be {
            let advice = "is not in MAY_BE_UNSAFE (xtask/src/tidy.rs)";
            faults.push(file.fault(line, &format!("allows unsafe code, but the crate {advice}")));
        } else if !attribute.contains("reason =") && !comment.into_iter().any(has_unsafe) {
            let fault =
                "allows unsafe code, but neither the attribute nor the first comment says why";
            faults.push(file.fault(line, fault));
        }
    }
    faults
}

/// Finds workspace members that are neither in `[profile.release.package]` nor in [`SMALL_IN_RELEASES`].
fn members_are_optimised_or_listed(files: &[File]) -> Vec<String> {
    let Some(root) = files.iter().find(|file| file.path == "Cargo.toml") else {
        return Vec::new();
    };
    let listed: Vec<&str> = (root.text.lines())
        .skip_while(|line| line.trim() != "[profile.release.package]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| Some(line.split_once('=')?.0.trim()))
        .collect();
    let excepted = |name: &str| SMALL_IN_RELEASES.iter().any(|(room, _)| *room == name);
    members(files)
        .filter_map(|(folder, _)| folder.rsplit('/').next())
        .filter(|name| !listed.contains(name) && !excepted(name))
        .map(|name| {
            let place = "is neither in [profile.release.package] nor in SMALL_IN_RELEASES";
            root.fault(0, &format!("`{name}` {place} (xtask/src/tidy.rs)"))
        })
        .collect()
}

/// Finds code files with more lines than [`SOURCE_LINES`], or test files with more lines than [`TEST_LINES`].
fn files_are_short(files: &[File]) -> Vec<String> {
    const CODE: [&str; 8] = ["rs", "ts", "js", "svelte", "css", "py", "sql", "sh"];
    let is_code = |file: &&File| file.extension().is_some_and(|e| CODE.contains(&e));
    let is_excepted = |file: &File| LONG_FILES.iter().any(|(path, _)| *path == file.path);
    let mut faults = Vec::new();
    for file in files.iter().filter(is_code) {
        let is_test = file.path.contains("/tests/") || file.path.contains("/e2e/");
        let limit = if is_test { TEST_LINES } else { SOURCE_LINES };
        let lines = file.text.lines().count();
        if lines > limit && !is_excepted(file) {
            let advice = "split it, or list it in LONG_FILES (xtask/src/tidy.rs)";
            faults.push(file.fault(0, &format!("{lines} lines, more than {limit}: {advice}")));
        }
    }
    faults
}

/// Finds paths that exist on one machine only.
fn no_machine_is_named(files: &[File]) -> Vec<String> {
    // The texts are split in two, so that this file does not break the rule itself.
    const HOMES: [&str; 2] = [concat!("/wo", "rk/"), concat!("/ro", "ot/")];
    let mut faults = Vec::new();
    for file in files {
        for (number, line) in file.text.lines().enumerate() {
            for home in HOMES {
                let starts_a_path = |(at, _): (usize, &str)| {
                    !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-/*}".contains(c))
                };
                if line.match_indices(home).any(starts_a_path) {
                    faults.push(file.fault(number, &format!("`{home}` is on one machine only")));
                }
            }
        }
    }
    faults
}

/// Finds workspace members that ARCHITECTURE.md does not name.
fn architecture_names_every_crate(files: &[File]) -> Vec<String> {
    let Some(architecture) = files.iter().find(|file| file.path == "ARCHITECTURE.md") else {
        return vec!["ARCHITECTURE.md is missing".to_owned()];
    };
    members(files)
        .map(|(folder, _)| folder)
        .filter(|folder| !architecture.text.contains(&format!("`{folder}`")))
        .map(|folder| architecture.fault(0, &format!("does not name `{folder}`")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn manifest(room: &str) -> File {
        let text = format!("[package]\nname = \"{room}\"\n\n[lints]\nworkspace = true\n");
        file(&format!("crates/{room}/Cargo.toml"), &text)
    }

    #[test]
    fn empty_names_are_found_in_paths() {
        let faults = names_say_something(&[
            file("crates/etl/src/utils.rs", ""),
            file("crates/etl/tests/common/mod.rs", ""),
            file("crates/etl/src/commonplace.rs", ""),
        ]);
        assert_eq!(
            faults,
            [
                "crates/etl/src/utils.rs:1: `utils` says nothing about the content",
                "crates/etl/tests/common/mod.rs:1: `common` says nothing about the content",
            ]
        );
    }

    #[test]
    fn members_must_inherit_lints() {
        let lax = file("crates/sim/Cargo.toml", "[package]\nname = \"sim\"\n");
        let elsewhere = file("fuzz/Cargo.toml", "[package]\nname = \"fuzz\"\n");
        assert_eq!(
            members_inherit_lints(&[manifest("etl"), lax, elsewhere]),
            ["crates/sim/Cargo.toml:1: lacks `[lints] workspace = true`"]
        );
    }

    #[test]
    fn unsafe_code_needs_a_listed_crate_and_a_reason() {
        let allow = concat!("#![allow(unsafe", "_code)]\n");
        let explained = format!("//! Maps files; unsafe because it calls the system.\n{allow}");
        assert_eq!(
            unsafe_code_is_explained(&[
                file("crates/pgm/src/a.rs", &explained),
                file("crates/pgm/src/b.rs", allow),
                file("crates/explain/src/c.rs", &explained),
                file("crates/etl/tests/d.rs", &explained),
                file("bench/src/e.rs", &explained),
                file("crates/etl/src/f.rs", "// unsafe"),
            ]),
            [
                "crates/pgm/src/b.rs:1: allows unsafe code, but neither the attribute nor the first \
                 comment says why",
                "crates/explain/src/c.rs:2: allows unsafe code, but the crate is not in MAY_BE_UNSAFE \
                 (xtask/src/tidy.rs)",
            ]
        );
    }

    #[test]
    fn members_missing_in_the_release_profile_are_found() {
        let root = file(
            "Cargo.toml",
            "[profile.dev.package]\nviews = {}\n[profile.release.package]\n# why\netl = {}\n[x]\n",
        );
        let faults = members_are_optimised_or_listed(&[
            root,
            manifest("etl"),
            manifest("dfsn"),
            manifest("views"),
        ]);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("Cargo.toml:1: `views` is neither"));
    }

    #[test]
    fn tests_that_cargo_does_not_run_are_found() {
        let files = [
            file("crates/a/Cargo.toml", "path = \"tests/apart.rs\""),
            file("crates/a/tests/main.rs", "mod here;\nmod folder;\n"),
            file("crates/a/tests/apart.rs", ""),
            file("crates/a/tests/here.rs", ""),
            file("crates/a/tests/folder/mod.rs", ""),
            file("crates/a/tests/folder/part.rs", ""),
            file("crates/a/tests/lost.rs", ""),
            file("crates/b/tests/alone.rs", ""),
        ];
        let faults = unlisted_tests(&files);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with("crates/a/tests/lost.rs:1: "));
    }

    #[test]
    fn long_files_are_found() {
        let long = "x\n".repeat(801);
        let faults = files_are_short(&[
            file("crates/a/src/a.rs", &long),
            file("crates/events/src/decode.rs", &long),
            file("crates/a/tests/a.rs", &long),
            file("crates/a/tests/b.rs", &"x\n".repeat(1201)),
            file("c.json", &long),
            file("d.rs", &long[2..]),
        ]);
        let starts: Vec<_> = faults.iter().filter_map(|f| f.split(": ").next()).collect();
        assert_eq!(starts, ["crates/a/src/a.rs:1", "crates/a/tests/b.rs:1"]);
    }

    #[test]
    fn machines_are_recognised_by_home_folders() {
        let home = concat!("/wo", "rk/");
        assert_eq!(
            no_machine_is_named(&[
                file("a.rs", &format!("let a = \"{home}shared\";")),
                file(
                    "b.md",
                    &format!("https://example.org{home}x and frame{home}y")
                ),
            ]),
            [format!("a.rs:1: `{home}` is on one machine only")]
        );
    }

    #[test]
    fn architecture_names_the_members() {
        let architecture = file("ARCHITECTURE.md", "`crates/etl` and etlx");
        assert_eq!(
            architecture_names_every_crate(&[architecture, manifest("etl"), manifest("events")]),
            ["ARCHITECTURE.md:1: does not name `crates/events`"]
        );
    }
}
