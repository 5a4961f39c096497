//! `cargo xtask demo`: laglab at work, on your traces or on one at hand.

use std::path::PathBuf;
use std::process::Command;

use crate::command::{self, cargo, root};

/// Builds laglab and explains the traces at `paths`, or [`demo_trace`] when there are none.
///
/// # Errors
///
/// When the build fails, there is no trace to show, or laglab cannot explain it.
pub(crate) fn run(paths: &[&str]) -> Result<(), String> {
    let mut explain = laglab();
    explain.arg("explain");
    if paths.is_empty() {
        explain.arg(demo_trace()?);
    } else {
        explain.args(paths);
    }
    command::run(&mut explain)
}

/// The optimised laglab, run where the user stands, so that relative paths mean what they say.
fn laglab() -> Command {
    let mut command = cargo(&["run", "--release", "--bin", "laglab", "--manifest-path"]);
    command.arg(root().join("Cargo.toml")).arg("--");
    if let Ok(here) = std::env::current_dir() {
        command.current_dir(here);
    }
    command
}

/// A trace to show when none is named.
fn demo_trace() -> Result<PathBuf, String> {
    let trace = root().join("../shared/data/etl/perfview__net.4.5.2.x64.etl");
    if trace.is_file() {
        Ok(trace)
    } else {
        Err("there is no trace to show here; name one: `cargo xtask demo TRACE.etl`".to_owned())
    }
}
