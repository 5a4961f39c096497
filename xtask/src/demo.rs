//! `cargo xtask demo`: laglab at work, on your traces or on one made on the spot.

use std::path::PathBuf;
use std::process::Command;

use crate::command::{self, cargo, root, target};

/// Builds laglab and explains the traces at `paths`, or [`demo_trace`] when there are none.
///
/// # Errors
///
/// When the build fails, the trace cannot be made, or laglab cannot explain it.
pub(crate) fn run(paths: &[&str]) -> Result<(), String> {
    let mut explain = laglab();
    explain.arg("explain");
    if paths.is_empty() {
        let trace = demo_trace()?;
        println!(
            "A simulated machine: at 2.0 s a key press readies a thread of LockApp.exe, of priority \
             13 but rank 2.\nSee why it runs 1.9 s later. (The trace: {})\n",
            trace.display()
        );
        explain.arg(trace);
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

/// Writes the simulated trace of `crates/etl/examples/demo_trace.rs`.
fn demo_trace() -> Result<PathBuf, String> {
    let folder = target().join("demo");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let trace = folder.join("lock-screen.etl");
    let example = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "etl",
        "--example",
        "demo_trace",
        "--",
    ];
    println!("Building laglab; the first time this takes a minute or two.");
    command::run(cargo(&example).arg(&trace))?;
    Ok(trace)
}
