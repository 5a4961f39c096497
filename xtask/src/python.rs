//! Programs in Python that other people wrote, each set in a virtual environment of its own.

use std::path::PathBuf;

use crate::command::{self, program, target};

/// A Python with `packages` installed, which name their versions, in `target()/home`.
///
/// # Errors
///
/// When there is no Python, or the package registry cannot be reached.
pub(crate) fn with(home: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let home = target().join(home);
    // Written last, so that an installation that was broken off is begun again.
    let done = home.join(packages.join("+"));
    let folder = if cfg!(windows) { "Scripts" } else { "bin" };
    let python = home.join(folder).join("python");
    if !done.is_file() {
        command::run(program("python3").args(["-m", "venv"]).arg(&home))?;
        let mut pip = program(&python);
        command::run(pip.args(["-m", "pip", "install", "--quiet"]).args(packages))?;
        std::fs::write(&done, "").map_err(|error| format!("{}: {error}", done.display()))?;
    }
    Ok(python)
}
