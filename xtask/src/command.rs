//! Running other programs: what every task is made of.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The repository's root folder.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// Where this repository's builds go.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// A program to be run in the repository's root.
pub(crate) fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    command
}

/// The cargo that runs this task, in the repository's root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

/// Runs `command` to its end.
///
/// # Errors
///
/// When it cannot be started or ends with anything but success; the message holds the whole
/// command, so that it can be repeated by hand.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{}` ended with {status}", written(command))),
        Err(error) => Err(format!("`{}` cannot be started: {error}", written(command))),
    }
}

/// Runs `command` and returns what it wrote to its standard output.
///
/// # Errors
///
/// As [`run`], and when the output is not UTF-8.
pub(crate) fn read(command: &mut Command) -> Result<String, String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("`{}` cannot be started: {error}", written(command)))?;
    if !output.status.success() {
        return Err(format!(
            "`{}` ended with {}",
            written(command),
            output.status
        ));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| format!("`{}` wrote something that is not UTF-8", written(command)))
}

/// Runs `command` and gives each line of its standard output to `look` as it comes.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn watch(command: &mut Command, mut look: impl FnMut(&str)) -> Result<(), String> {
    let what = written(command);
    let failed = |error: String| format!("`{what}` {error}");
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| failed(format!("cannot be started: {error}")))?;
    let lines = child
        .stdout
        .take()
        .into_iter()
        .flat_map(|out| BufReader::new(out).split(b'\n'));
    for line in lines {
        let line = line.map_err(|error| failed(error.to_string()))?;
        look(String::from_utf8_lossy(&line).trim_end());
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(format!("ended with {status}"))),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Whether a program of this name is on the search path.
pub(crate) fn is_installed(name: &str) -> bool {
    installed(name).is_some()
}

/// Where the program of this name is that the search path leads to.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

/// The command as it would be typed.
fn written(command: &Command) -> String {
    let program = Path::new(command.get_program());
    std::iter::once(program.file_name().unwrap_or(program.as_os_str()))
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Makes sure that Rust's library for a target is here.
///
/// # Errors
///
/// When it is missing and cannot be installed.
pub(crate) fn add_target(target: &str) -> Result<(), String> {
    let library = read(program("rustc").args(["--print", "target-libdir", "--target", target]))?;
    match Path::new(library.trim()).is_dir() {
        true => Ok(()),
        false => run(program("rustup").args(["target", "add", target])),
    }
}
