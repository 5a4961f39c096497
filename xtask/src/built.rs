//! Development build that several steps use: laglab, all tests and all examples.

use std::path::PathBuf;
use std::process::Command;

use crate::command::{self, cargo, program, target};

/// Compiles laglab, the tests and the examples for this system.
///
/// # Errors
///
/// Returns an error if something does not compile.
pub(crate) fn compile() -> Result<(), String> {
    command::run(&mut cargo(&["test", "--workspace", "--no-run"]))
}

/// Returns the path of the program laglab that [`compile`] builds.
pub(crate) fn laglab() -> PathBuf {
    let name = format!("laglab{}", std::env::consts::EXE_SUFFIX);
    target().join("debug").join(name)
}

/// Returns a command that runs laglab with arguments. Its current folder is the repository's root.
pub(crate) fn run_laglab(arguments: &[&str]) -> Command {
    let mut command = program(laglab());
    command.args(arguments);
    command
}

/// Returns a command that runs an example of a crate. Its current folder is the repository's root.
pub(crate) fn run_example(name: &str) -> Command {
    let file = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    program(target().join("debug/examples").join(file))
}
