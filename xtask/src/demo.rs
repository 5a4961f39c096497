//! `cargo xtask demo`: builds laglab quickly and explains a trace with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use crate::command::{self, cargo, root, target};
use crate::page;

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
    println!(
        "This build has no `sql`, `measure`, `export` and `mcp`; `cargo install --path crates/app` builds all commands."
    );
    let page = page
        .join()
        .unwrap_or_else(|_| Err("building it panicked".to_owned()));
    match page {
        Ok(true) if paths.is_empty() => {}
        Ok(true) => println!(
            "In the browser: {} open {}",
            short(&program).display(),
            paths.join(" ")
        ),
        Ok(false) => println!(
            "`laglab open` has no page, because npm is not installed. Install Node.js 20 or later \
             and run this again."
        ),
        Err(error) => println!("`laglab open` has no page: {error}"),
    }
    Ok(())
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
    let features = ["--no-default-features", "--features", "open"];
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
