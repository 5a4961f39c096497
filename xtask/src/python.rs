//! Installs programs from the Python package index. Each set of programs has its own virtual environment.

use std::path::{Path, PathBuf};

use crate::command::{self, program, target};

/// Installs `packages` in a virtual environment in the folder `home` of `target()`. Each package is a line of
/// a requirements file. Returns the path of the environment's Python.
///
/// # Errors
///
/// Returns an error if there is no Python or the package index cannot be reached.
pub(crate) fn with(home: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let home = target().join(home);
    let list = packages.join("\n");
    let requirements = home.join("requirements.txt");
    // This file is written at the end. If it is missing, a previous installation was interrupted.
    let done = home.join("installed.txt");
    let python = programs(&home).join("python");
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == list) {
        return Ok(python);
    }
    let write = |path: &PathBuf| {
        std::fs::write(path, &list).map_err(|error| format!("{}: {error}", path.display()))
    };
    command::run(program("python3").args(["-m", "venv"]).arg(&home))?;
    write(&requirements)?;
    let mut pip = program(&python);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    command::install(pip.arg("--requirement").arg(requirements))?;
    write(&done)?;
    Ok(python)
}

/// Returns the folder of the programs in a virtual environment.
fn programs(home: &Path) -> PathBuf {
    home.join(if cfg!(windows) { "Scripts" } else { "bin" })
}
