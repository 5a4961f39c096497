//! Starts other programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Returns the root folder of the repository.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// Returns the folder for builds of this repository.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// Returns a command that runs a program. Its current folder is the repository's root. It does not inherit cargo's
/// variables about the package of this task: some build scripts of libraries run again if these variables change.
pub(crate) fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
    command
}

/// Returns a command that runs the cargo that started this task. Its current folder is the repository's root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

/// Runs `command` and waits for its end.
///
/// # Errors
///
/// Returns an error if the command cannot be started or fails. The message has the whole command,
/// so that the user can repeat it.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{}` ended with {status}", written(command))),
        Err(error) => Err(format!("cannot start `{}`: {error}", written(command))),
    }
}

/// Runs a command that installs something from a server. Tries it three times, because connections fail for moments.
///
/// # Errors
///
/// Returns the errors of [`run`] at the last try.
pub(crate) fn install(command: &mut Command) -> Result<(), String> {
    for pause in [10, 30] {
        match run(command) {
            Ok(()) => return Ok(()),
            Err(error) => println!("{error}; trying again in {pause} s"),
        }
        std::thread::sleep(Duration::from_secs(pause));
    }
    run(command)
}

/// Runs `command` and returns its standard output.
///
/// # Errors
///
/// Returns the errors of [`run`], and an error if the output is not UTF-8.
pub(crate) fn read(command: &mut Command) -> Result<String, String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot start `{}`: {error}", written(command)))?;
    if !output.status.success() {
        return Err(format!(
            "`{}` ended with {}",
            written(command),
            output.status
        ));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| format!("`{}` wrote text that is not UTF-8", written(command)))
}

/// Returns true if a program with this name is on the search path.
pub(crate) fn is_installed(name: &str) -> bool {
    installed(name).is_some()
}

/// Returns the path of a program on the search path.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

/// Formats a command as a user would type it.
fn written(command: &Command) -> String {
    let program = Path::new(command.get_program());
    std::iter::once(program.file_name().unwrap_or(program.as_os_str()))
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Installs Rust's standard library for a target if it is missing.
///
/// # Errors
///
/// Returns an error if the library cannot be installed.
pub(crate) fn add_target(target: &str) -> Result<(), String> {
    let library = read(program("rustc").args(["--print", "target-libdir", "--target", target]))?;
    if Path::new(library.trim()).is_dir() {
        Ok(())
    } else {
        install(program("rustup").args(["target", "add", target]))
    }
}
