//! `cargo xtask demo`: laglab at work, on your traces or on a scenario's.

use std::path::PathBuf;
use std::process::Command;

use crate::command::{self, cargo, root, target};
use crate::page;

/// The scenario that is shown: a login that waits although nothing of higher priority runs.
const SCENARIO: &str = "rank-stall";

/// Builds laglab and explains the traces at `paths`, or [`SCENARIO`]'s when there are none.
///
/// # Errors
///
/// When the build fails, the trace cannot be made, or laglab cannot explain it.
pub(crate) fn run(paths: &[&str]) -> Result<(), String> {
    page::build_if_possible()?;
    let mut explain = laglab();
    explain.arg("explain");
    if paths.is_empty() {
        explain.arg(demo_trace()?);
        println!();
    } else {
        explain.args(paths);
    }
    command::run(&mut explain)
}

/// The optimised laglab, run where the user stands, so that relative paths mean what they say.
fn laglab() -> Command {
    let mut command = cargo(&[
        "run",
        "--quiet",
        "--release",
        // What is shown needs no SQL, whose engine takes many minutes to compile.
        "--no-default-features",
        "--bin",
        "laglab",
        "--manifest-path",
    ]);
    command.arg(root().join("Cargo.toml")).arg("--");
    if let Ok(here) = std::env::current_dir() {
        command.current_dir(here);
    }
    command
}

/// Lets laglab simulate the scenario.
fn demo_trace() -> Result<PathBuf, String> {
    let folder = target().join("demo");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let trace = folder.join(SCENARIO).with_extension("etl");
    println!("Building laglab; the first time this takes a minute or two.");
    command::run(
        laglab()
            .args(["simulate", SCENARIO, "--output"])
            .arg(&trace),
    )?;
    Ok(trace)
}
