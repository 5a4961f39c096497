//! The page of `laglab open`: built and tested by npm, in `ui/`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::command::{self, cargo, is_installed, root, target};
use crate::{apt, browser};

/// What of `ui/` is made of the rest.
const MADE: [&str; 3] = ["dist", "node_modules", "e2e"];

/// Builds the page, unless it is newer than all that it is made of: whatever is built after it holds
/// it.
///
/// # Errors
///
/// When there is no npm, or it fails.
pub(crate) fn build() -> Result<(), String> {
    let built = modified(&ui().join("dist/index.html"));
    if built.is_some() && built >= newest_source(&ui())? {
        return Ok(());
    }
    install()?;
    command::run(&mut npm(&["run", "build"]))
}

/// The same where there is npm; else says that the page is left out.
///
/// # Errors
///
/// When npm fails.
pub(crate) fn build_if_possible() -> Result<(), String> {
    match is_there() {
        true => build(),
        false => {
            println!("The page of `laglab open` is left out: it takes npm to build it.");
            Ok(())
        }
    }
}

/// Checks the page's sources, builds it and runs the tests that need no server. Where there is no npm
/// and none can be installed, it says so and is content.
///
/// # Errors
///
/// When something is wrong with the page.
pub(crate) fn is_sound() -> Result<(), String> {
    if !is_there()
        && let Err(why) = apt::install(&["nodejs", "npm"])
    {
        println!("left out: there is no npm: {why}");
        return Ok(());
    }
    install()?;
    command::run(&mut npm(&["run", "check"]))?;
    build()?;
    command::run(&mut npm(&["test"]))
}

/// Looks at simulated traces with the page in a browser, as users do. Where there is no Chromium and
/// none can be installed, it says so and is content.
///
/// # Errors
///
/// When the page does not do what it should.
pub(crate) fn works() -> Result<(), String> {
    if !is_there() {
        println!("left out: there is no npm");
        return Ok(());
    }
    let chromium = match browser::find() {
        Ok(chromium) => chromium,
        Err(why) => {
            println!("left out: {why}");
            return Ok(());
        }
    };
    build()?;
    command::run(&mut cargo(&["build", "--quiet", "--bin", "laglab"]))?;
    let laglab = target()
        .join("debug")
        .join(format!("laglab{}", std::env::consts::EXE_SUFFIX));
    let mut tests = npm(&["run", "test:e2e"]);
    command::run(tests.env("LAGLAB", laglab).env("CHROMIUM", chromium))
}

fn ui() -> PathBuf {
    root().join("ui")
}

/// What starts npm: a script, which Windows tells from a program by its ending.
const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };

fn is_there() -> bool {
    is_installed(NPM)
}

fn npm(arguments: &[&str]) -> Command {
    let mut command = Command::new(NPM);
    command.current_dir(ui()).args(arguments);
    command
}

/// Makes sure that just the packages are there that the lock file names.
fn install() -> Result<(), String> {
    let lock = modified(&ui().join("package-lock.json"));
    // npm writes it when it is done.
    let installed = modified(&ui().join("node_modules/.package-lock.json"));
    match installed.is_some() && installed >= lock {
        true => Ok(()),
        false => command::run(&mut npm(&["ci", "--no-audit", "--no-fund"])),
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|about| about.modified()).ok()
}

/// When one of the files that the page is made of was changed last.
fn newest_source(folder: &Path) -> Result<Option<SystemTime>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut newest = None;
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_made = MADE.iter().any(|made| path == ui().join(made));
        let changed = match path.is_dir() {
            _ if is_made => None,
            true => newest_source(&path)?,
            false => modified(&path),
        };
        newest = newest.max(changed);
    }
    Ok(newest)
}
