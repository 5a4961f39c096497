//! `cargo xtask demo`: builds laglab quickly and explains a trace with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use crate::command::{self, cargo, root, target};
use crate::page;

/// Scenario with a cause that is hard to find: a login waits although no thread of higher priority runs.
const SCENARIO: &str = "rank-stall";

/// Builds laglab and its page, and explains the traces at `paths`. Without paths, explains a simulated trace
/// of [`SCENARIO`].
///
/// # Errors
///
/// Returns an error if the build fails, the trace cannot be made, or laglab cannot explain it.
pub(crate) fn run(paths: &[&str]) -> Result<(), String> {
    let started = Instant::now();
    if !program().is_file() {
        println!("Building laglab. The first time, this takes about two minutes on two cores.");
    }
    let page = thread::spawn(page::build_if_possible);
    let program = build()?;
    let trace = match paths {
        [] => Some(simulate(&program)?),
        _ => None,
    };
    println!();
    let mut explain = laglab(&program);
    explain.arg("explain").args(paths).args(&trace);
    command::run(&mut explain)?;
    println!(
        "\nThis took {:.0} s, including the build.",
        started.elapsed().as_secs_f64()
    );
    let page = page
        .join()
        .unwrap_or_else(|_| Err("building it panicked".to_owned()));
    match page {
        Ok(true) => {
            let shown = trace.map_or(paths.join(" "), |trace| short(&trace));
            println!(
                "To open it in the browser: {} open {shown}",
                short(&program)
            );
        }
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
    let mut command = Command::new(program);
    if let Ok(here) = std::env::current_dir() {
        command.current_dir(here);
    }
    command
}

/// Simulates the scenario with laglab. Returns the path of the trace.
fn simulate(program: &Path) -> Result<PathBuf, String> {
    let trace = target().join("demo").join(SCENARIO).with_extension("etl");
    let mut simulate = laglab(program);
    simulate
        .args(["simulate", SCENARIO, "--output"])
        .arg(&trace);
    command::run(&mut simulate)?;
    Ok(trace)
}

/// Returns a path relative to the repository's root, as a user types it.
fn short(path: &Path) -> String {
    let path = path.strip_prefix(root()).unwrap_or(path);
    path.display().to_string()
}
