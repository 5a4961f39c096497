//! `cargo xtask demo`: builds laglab quickly and explains a trace with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use crate::command::{self, cargo, root, target};
use crate::page;

/// Feature of the program that is built. It is also the name of a command.
const FEATURE: &str = "open";

/// Advice about the commands whose features are left out.
const MISSING: &str = "This build has no `sql`, `measure`, `export` and `mcp`; \
                       `cargo install --path crates/app` builds all commands.";

/// Builds laglab and its page, and explains the traces at `paths`. Without paths, runs `laglab demo`.
///
/// # Errors
///
/// Returns an error if the build fails, or laglab cannot explain the traces.
pub(crate) fn run(paths: &[&str]) -> Result<(), String> {
    let started = Instant::now();
    if !program().is_file() {
        println!("Building laglab. The first time, this takes about two minutes on two cores.");
    }
    let page = thread::spawn(page::build_if_possible);
    let program = build()?;
    println!();
    let trace = target().join("demo/rank-stall.etl");
    let mut first = laglab(&program);
    match paths {
        // This command prints how to open the trace.
        [] => first.args(["demo", "--output"]).arg(short(&trace)),
        _ => first.arg("explain").args(paths),
    };
    command::run(&mut first)?;
    println!(
        "\nThis took {:.0} s, including the build.",
        started.elapsed().as_secs_f64()
    );
    println!("{MISSING}");
    let page = page
        .join()
        .unwrap_or_else(|_| Err("building it panicked".to_owned()));
    if let Some(line) = about_page(page, short(&program), paths) {
        println!("{line}");
    }
    Ok(())
}

/// Returns the last line of the output: the command that opens the traces, or why it has no page. Without paths,
/// `laglab demo` has already printed this command. `page` is the result of building the page.
fn about_page(page: Result<bool, String>, program: &Path, paths: &[&str]) -> Option<String> {
    match page {
        Ok(true) if paths.is_empty() => None,
        Ok(true) => Some(format!(
            "In the browser: {} open {}",
            program.display(),
            paths.join(" ")
        )),
        Ok(false) => Some(
            "`laglab open` has no page, because npm is not installed. Install Node.js 20 or later \
             and run this again."
                .to_owned(),
        ),
        Err(error) => Some(format!("`laglab open` has no page: {error}")),
    }
}

/// Compiles laglab with the profile that compiles most quickly. Returns the path of the program. Commands
/// with large dependencies are left out. The main one is SQL, because its engine takes many minutes to
/// compile.
///
/// # Errors
///
/// Returns an error if it does not compile.
pub(crate) fn build() -> Result<PathBuf, String> {
    let profile = ["build", "--profile", "demo"];
    let laglab = ["--package", "app", "--bin", "laglab"];
    let features = ["--no-default-features", "--features", FEATURE];
    command::run(&mut cargo(&[&profile[..], &laglab, &features].concat()))?;
    Ok(program())
}

/// Returns the path of the program that [`build`] makes.
fn program() -> PathBuf {
    let name = format!("laglab{}", std::env::consts::EXE_SUFFIX);
    target().join("demo").join(name)
}

/// Returns a command that runs laglab in the current folder, so that relative paths of the user are valid.
fn laglab(program: &Path) -> Command {
    let mut command = Command::new(short(program));
    if let Ok(here) = std::env::current_dir() {
        command.current_dir(here);
    }
    command
}

/// Returns a path as a user types it: relative if the current folder is the repository's root.
fn short(path: &Path) -> &Path {
    let is_here = std::env::current_dir().is_ok_and(|here| here == root());
    match path.strip_prefix(root()) {
        Ok(relative) if is_here => relative,
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Manifest of the program. A comment before a feature names its command.
    const MANIFEST: &str = include_str!("../../crates/app/Cargo.toml");

    #[test]
    fn commands_that_the_build_lacks_are_named() {
        let comments = MANIFEST.split("# The command `laglab ").skip(1);
        let mut missing: Vec<&str> = comments
            .filter_map(|it| Some(it.split_once('`')?.0))
            .collect();
        assert!(missing.contains(&FEATURE), "{missing:?}");
        missing.retain(|command| *command != FEATURE);
        missing.sort_unstable();
        let mut named: Vec<&str> = (MISSING.split('`').skip(1).step_by(2))
            .filter(|name| !name.contains(' '))
            .collect();
        named.sort_unstable();
        assert_eq!(named, missing);
    }

    #[test]
    fn the_last_line_opens_the_traces_or_says_why_not() {
        let line = |page: Result<bool, String>, paths: &[&str]| {
            about_page(page, Path::new("laglab"), paths)
        };
        assert_eq!(line(Ok(true), &[]), None);
        let opened = line(Ok(true), &["a.etl", "b.etl"]);
        assert_eq!(opened.unwrap(), "In the browser: laglab open a.etl b.etl");
        for paths in [&[][..], &["a.etl"]] {
            assert!(line(Ok(false), paths).unwrap().contains("Install Node.js"));
            let failed = line(Err("npm run build failed".to_owned()), paths).unwrap();
            assert!(
                failed.ends_with("no page: npm run build failed"),
                "{failed}"
            );
        }
    }
}
