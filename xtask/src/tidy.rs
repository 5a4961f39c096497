//! `cargo xtask tidy`: the repository keeps its own rules.
//!
//! Each check is a function from the repository's files to the places that break one rule, so that
//! a test can hand it a repository of three files.

mod manifest;
mod markdown;
mod source;

use std::fs;

use crate::command::{program, read, root};
use manifest::Manifest;
use source::{code_only, first_comment, has_word, words_after};

/// One text file of the repository.
#[derive(Clone)]
struct File {
    /// Path from the repository's root, with `/` between its parts.
    path: String,
    text: String,
}

/// Finds the places that break one rule, each as `path:line: what is wrong`.
type Check = fn(&[File]) -> Vec<String>;

const CHECKS: [Check; 9] = [
    names_say_something,
    manifests_inherit_lints,
    unsafe_code_says_why,
    only_sql_knows_datafusion,
    arrows_point_one_way,
    only_the_program_prints,
    files_hold_one_idea,
    no_machine_is_named,
    architecture_names_every_crate,
];

/// Checks every rule and prints each place that breaks one.
///
/// # Errors
///
/// When git cannot list the files, one cannot be read, or a rule is broken.
pub(crate) fn run() -> Result<(), String> {
    let files = files()?;
    let mut faults: Vec<String> = CHECKS.iter().flat_map(|check| check(&files)).collect();
    faults.extend(markdown::broken_links(&files, |path| {
        root().join(path).exists()
    }));
    for fault in &faults {
        eprintln!("{fault}");
    }
    match faults.len() {
        0 => Ok(()),
        1 => Err("1 place breaks a rule".to_owned()),
        count => Err(format!("{count} places break a rule")),
    }
}

/// The text files that git tracks, or would if they were added.
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
            continue; // deleted but not yet committed so, or a submodule
        }
        let bytes = fs::read(&full).map_err(|error| format!("{path} cannot be read: {error}"))?;
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
        self.path
            .rsplit('/')
            .next()?
            .rsplit_once('.')
            .map(|(_, extension)| extension)
    }

    fn is_rust(&self) -> bool {
        self.extension() == Some("rs")
    }

    /// The `X` of `crates/X/…`.
    fn room(&self) -> Option<&str> {
        self.path
            .strip_prefix("crates/")?
            .split_once('/')
            .map(|(room, _)| room)
    }

    fn fault(&self, line: usize, what: &str) -> String {
        format!("{}:{}: {what}", self.path, line + 1)
    }
}

/// The workspace's crates: the room of each (or `xtask`) and its manifest.
fn crates(files: &[File]) -> impl Iterator<Item = (&str, &File, Manifest)> {
    files.iter().filter_map(|file| {
        let folder = file.path.strip_suffix("/Cargo.toml")?;
        let name = folder
            .strip_prefix("crates/")
            .or((folder == "xtask").then_some(folder))?;
        (!name.contains('/')).then(|| (name, file, Manifest::parse(&file.text)))
    })
}

/// A file is named after its one idea; these names are of no idea at all.
fn names_say_something(files: &[File]) -> Vec<String> {
    const EMPTY: [&str; 6] = ["util", "utils", "helper", "helpers", "common", "misc"];
    let mut faults = Vec::new();
    for file in files {
        let parts = file
            .path
            .split('/')
            .map(|part| part.split('.').next().unwrap_or(part));
        for part in parts.filter(|part| EMPTY.contains(part)) {
            faults.push(file.fault(0, &format!("`{part}` names no idea")));
        }
        if file.is_rust() {
            for (number, line) in code_only(&file.text).lines().enumerate() {
                for name in words_after(line, "mod").filter(|name| EMPTY.contains(name)) {
                    faults.push(file.fault(number, &format!("module `{name}` names no idea")));
                }
            }
        }
    }
    faults
}

/// A crate has the workspace's lints: by inheriting them or, if it must call the system, by repeating
/// them all with unsafe code denied, which single files may allow, instead of forbidden.
fn manifests_inherit_lints(files: &[File]) -> Vec<String> {
    let root = files.iter().find(|file| file.path == "Cargo.toml");
    let mut wanted = root.map_or(vec![], |root| Manifest::parse(&root.text).lints);
    for (_, lint) in &mut wanted {
        *lint = lint.replace("unsafe_code = \"forbid\"", "unsafe_code = \"deny\"");
    }
    let repeats = |manifest: &Manifest| !wanted.is_empty() && manifest.lints == wanted;
    crates(files)
        .filter(|(_, _, manifest)| !manifest.inherits_lints && !repeats(manifest))
        .map(|(_, file, _)| {
            let what = "lacks `[lints] workspace = true`, or all lints of the workspace";
            file.fault(0, what)
        })
        .collect()
}

/// `unsafe` only where the file's first comment says why.
fn unsafe_code_says_why(files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        if first_comment(&file.text).contains("unsafe") {
            continue;
        }
        for (number, line) in code_only(&file.text).lines().enumerate() {
            if has_word(line, "unsafe") {
                let what = "`unsafe`, and the file's first comment does not say why";
                faults.push(file.fault(number, what));
            }
        }
    }
    faults
}

fn only_sql_knows_datafusion(files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, file, manifest) in crates(files).filter(|(name, _, _)| *name != "sql") {
        for dependency in &manifest.dependencies {
            if dependency.name.starts_with("datafusion") {
                faults.push(file.fault(
                    dependency.line,
                    &format!("`{name}` depends on {}; only `sql` may", dependency.name),
                ));
            }
        }
    }
    faults
}

/// The lower rooms know only what is below them, and nothing knows the program.
fn arrows_point_one_way(files: &[File]) -> Vec<String> {
    const BELOW: [(&str, &[&str]); 12] = [
        ("etl", &[]),
        ("pgm", &[]),
        ("tune", &["etl"]),
        ("record", &[]),
        ("views", &[]),
        ("sim", &["etl", "tune"]),
        ("symbols", &["etl"]),
        ("events", &["etl"]),
        ("tables", &["etl", "events"]),
        ("sql", &["events", "tables"]),
        ("measure", &["ioring", "pgm", "tables", "views"]),
        ("explore", &["events", "tables", "views"]),
    ];
    const TOP: [&str; 2] = ["app", "xtask"];

    let crates: Vec<_> = crates(files).collect();
    let mut faults = Vec::new();
    for (room, file, manifest) in &crates {
        let below = BELOW
            .iter()
            .find(|(name, _)| name == room)
            .map(|(_, below)| *below);
        for dependency in manifest
            .dependencies
            .iter()
            .filter(|dependency| !dependency.is_dev)
        {
            let target = crates
                .iter()
                .find(|(_, _, other)| other.name == dependency.name);
            let Some((target, _, _)) = target else {
                continue;
            };
            if TOP.contains(target) || below.is_some_and(|below| !below.contains(target)) {
                faults.push(file.fault(
                    dependency.line,
                    &format!("`{room}` may not depend on `{target}`: arrows point one way"),
                ));
            }
        }
    }
    faults
}

/// In `crates/`, only `app` writes to the terminal (and tests, and build scripts, whose output cargo
/// reads).
fn only_the_program_prints(files: &[File]) -> Vec<String> {
    let mut faults = Vec::new();
    let libraries = files.iter().filter(|file| {
        let is_library = file.room().is_some_and(|room| room != "app");
        let is_test = file.path.contains("/tests/");
        is_library && file.is_rust() && !is_test && !file.path.ends_with("/build.rs")
    });
    for file in libraries {
        for (number, line) in code_only(&file.text).lines().enumerate() {
            for name in ["print!", "println!", "eprint!", "eprintln!"] {
                if has_word(line, name) {
                    faults.push(file.fault(number, &format!("`{name}` belongs in `app`")));
                }
            }
        }
    }
    faults
}

/// A long file says in its first line why it is one idea; a generated one says that it is.
fn files_hold_one_idea(files: &[File]) -> Vec<String> {
    const CODE: [&str; 8] = ["rs", "ts", "js", "svelte", "css", "py", "sql", "sh"];
    const LIMIT: usize = 1500;
    let mut faults = Vec::new();
    for file in files
        .iter()
        .filter(|file| file.extension().is_some_and(|e| CODE.contains(&e)))
    {
        let lines = file.text.lines().count();
        let first = file.text.lines().next().unwrap_or_default().to_lowercase();
        if lines > LIMIT && !first.contains("long because") && !first.contains("generated") {
            faults.push(file.fault(
                0,
                &format!("{lines} lines, and the first does not say \"long because …\""),
            ));
        }
    }
    faults
}

/// No path of one particular machine.
fn no_machine_is_named(files: &[File]) -> Vec<String> {
    // In two pieces, so that this file does not break the rule.
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

fn architecture_names_every_crate(files: &[File]) -> Vec<String> {
    let Some(architecture) = files.iter().find(|file| file.path == "ARCHITECTURE.md") else {
        return vec!["ARCHITECTURE.md is missing".to_owned()];
    };
    crates(files)
        .filter_map(|(_, file, _)| file.path.strip_suffix("/Cargo.toml"))
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

    fn manifest(room: &str, rest: &str) -> File {
        let text = format!("[package]\nname = \"{room}\"\n[lints]\nworkspace = true\n{rest}");
        file(&format!("crates/{room}/Cargo.toml"), &text)
    }

    #[test]
    fn a_name_without_an_idea_is_found_in_paths_and_modules() {
        let faults = names_say_something(&[
            file("crates/etl/src/utils.rs", ""),
            file("crates/etl/tests/common/mod.rs", ""),
            file(
                "crates/etl/src/lib.rs",
                "mod clock;\npub(crate) mod helpers {}\n// mod misc;",
            ),
            file("crates/etl/src/commonplace.rs", "let common = misc;"),
        ]);
        assert_eq!(
            faults,
            [
                "crates/etl/src/utils.rs:1: `utils` names no idea",
                "crates/etl/tests/common/mod.rs:1: `common` names no idea",
                "crates/etl/src/lib.rs:2: module `helpers` names no idea",
            ]
        );
    }

    #[test]
    fn a_manifest_must_inherit_lints() {
        let lax = file("crates/sim/Cargo.toml", "[package]\nname = \"sim\"\n");
        let elsewhere = file("fuzz/Cargo.toml", "[package]\nname = \"fuzz\"\n");
        assert_eq!(
            manifests_inherit_lints(&[manifest("etl", ""), lax, elsewhere]),
            [
                "crates/sim/Cargo.toml:1: lacks `[lints] workspace = true`, or all lints of the workspace"
            ]
        );
    }

    #[test]
    fn a_crate_that_calls_the_system_repeats_all_other_lints() {
        let root = file(
            "Cargo.toml",
            "[workspace.lints.rust]\nunsafe_code = \"forbid\"\nmissing_docs = \"warn\"\n",
        );
        let own = |lints: &str| {
            let text = format!("[package]\nname = \"io\"\n[lints.rust]\n{lints}");
            file("crates/io/Cargo.toml", &text)
        };
        let faults = |lints| manifests_inherit_lints(&[root.clone(), own(lints)]).len();
        assert_eq!(
            faults("unsafe_code = \"deny\"\nmissing_docs = \"warn\"\n"),
            0
        );
        assert_eq!(faults("unsafe_code = \"deny\"\n"), 1);
        assert_eq!(
            faults("unsafe_code = \"allow\"\nmissing_docs = \"warn\"\n"),
            1
        );
    }

    #[test]
    fn unsafe_needs_a_reason_in_the_first_comment() {
        let code = "fn f() {\n    unsafe { g() }\n}\n";
        assert_eq!(
            unsafe_code_says_why(&[
                file("a.rs", code),
                file(
                    "b.rs",
                    &format!("//! Maps files; unsafe because the OS is asked.\n{code}")
                ),
                file(
                    "c.rs",
                    "//! Reads.\n\n// unsafe\nlet s = \"unsafe\";\nfn unsafely() {}\n"
                ),
            ]),
            ["a.rs:2: `unsafe`, and the file's first comment does not say why"]
        );
    }

    #[test]
    fn datafusion_stays_in_sql() {
        let dependency = "[dependencies]\ndatafusion-expr.workspace = true\n";
        assert_eq!(
            only_sql_knows_datafusion(&[
                manifest("sql", dependency),
                manifest("views", dependency)
            ]),
            ["crates/views/Cargo.toml:6: `views` depends on datafusion-expr; only `sql` may"]
        );
    }

    #[test]
    fn arrows_may_not_point_up() {
        let app = file(
            "crates/app/Cargo.toml",
            "[package]\nname = \"laglab\"\n[dependencies]\netl.workspace = true\n",
        );
        let faults = arrows_point_one_way(&[
            app,
            manifest("etl", "[dev-dependencies]\nevents.workspace = true\n"),
            manifest(
                "events",
                "[dependencies]\netl.workspace = true\ntables = { path = \"x\" }\n",
            ),
            manifest("tables", "[dependencies.events]\nworkspace = true\n"),
            manifest("views", "[dependencies]\netl.workspace = true\n"),
            manifest(
                "sql",
                "[dependencies]\ntables.workspace = true\nlaglab = \"1\"\n",
            ),
        ]);
        assert_eq!(
            faults,
            [
                "crates/events/Cargo.toml:7: `events` may not depend on `tables`: arrows point one way",
                "crates/views/Cargo.toml:6: `views` may not depend on `etl`: arrows point one way",
                "crates/sql/Cargo.toml:7: `sql` may not depend on `app`: arrows point one way",
            ]
        );
    }

    #[test]
    fn libraries_do_not_print() {
        let code = "/// println!(\"in an example\")\nfn f() {\n    eprintln!(\"no\");\n}\n";
        assert_eq!(
            only_the_program_prints(&[
                file("crates/etl/src/lib.rs", code),
                file("crates/etl/build.rs", code),
                file("crates/etl/tests/truth.rs", code),
                file("crates/app/src/main.rs", code),
                file("xtask/src/main.rs", code),
            ]),
            ["crates/etl/src/lib.rs:3: `eprintln!` belongs in `app`"]
        );
    }

    #[test]
    fn a_long_file_says_why() {
        let long = "x\n".repeat(1501);
        assert_eq!(
            files_hold_one_idea(&[
                file("a.rs", &long),
                file(
                    "b.rs",
                    &format!("//! Long because every kernel class is here.\n{long}")
                ),
                file("c.json", &long),
                file("d.rs", &long[2..]),
            ]),
            ["a.rs:1: 1501 lines, and the first does not say \"long because …\""]
        );
    }

    #[test]
    fn a_machine_is_recognised_by_its_homes() {
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
    fn architecture_names_the_rooms() {
        let architecture = file("ARCHITECTURE.md", "`crates/etl` and etlx");
        assert_eq!(
            architecture_names_every_crate(&[
                architecture,
                manifest("etl", ""),
                manifest("events", "")
            ]),
            ["ARCHITECTURE.md:1: does not name `crates/events`"]
        );
    }
}
