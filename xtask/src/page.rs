//! Page of `laglab open`. npm builds and tests it in `ui/`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::command::{self, is_installed, root, target};
use crate::junit::Report;
use crate::steps::{Extent, left_out};
use crate::{apt, browser, built};

/// Folders of `ui/` that do not contain sources of the page.
const NOT_SOURCES: [&str; 4] = ["dist", "dist-report", "node_modules", "e2e"];

/// Builds the page, unless the existing build is newer than all sources.
///
/// # Errors
///
/// Returns an error if npm is missing or fails.
pub(crate) fn build() -> Result<(), String> {
    let built = modified(&ui().join("dist/index.html"));
    if built.is_some() && built >= newest_source(&ui())? {
        return Ok(());
    }
    install()?;
    command::read(&mut npm(&["run", "build"])).map(drop)
}

/// Builds the page if npm is installed. Returns false if npm is not installed.
///
/// # Errors
///
/// Returns an error if npm fails.
pub(crate) fn build_if_possible() -> Result<bool, String> {
    if is_installed(NPM) {
        build().map(|()| true)
    } else {
        Ok(false)
    }
}

/// Checks the sources of the page, builds it, and runs the tests that need no server.
///
/// # Errors
///
/// Returns an error if something is wrong with the page. In CI, also if npm is missing.
pub(crate) fn is_sound() -> Result<(), String> {
    if let Err(why) = apt::provide(&[apt::NPM]) {
        return left_out("the page", &why);
    }
    install()?;
    command::run(&mut npm(&["run", "lint"]))?;
    command::run(&mut npm(&["run", "check"]))?;
    build()?;
    command::run(&mut npm(&["test"]))
}

/// Tests of the page that run in the gate, as a part of the names of their files.
const GATE: &[&str] = &["kept", "report"];

/// Runs tests that open simulated traces with the page in a browser, as users do.
///
/// # Errors
///
/// Returns an error if the page does not work. In CI, also if npm or a browser is missing.
pub(crate) fn works(extent: Extent) -> Result<(), String> {
    if let Err(why) = apt::provide(&[apt::NPM, apt::CHROMIUM]) {
        return left_out("the page in a browser", &why);
    }
    build()?;
    let mut tests = npm(&["run", "test:e2e", "--"]);
    if extent == Extent::Gate {
        tests.args(GATE);
    }
    tests.env("JUNIT", report().path);
    tests.env("LAGLAB", built::laglab());
    if let Some(firefox) = command::installed(FIREFOX) {
        tests.env("FIREFOX", firefox);
    }
    command::run(tests.env("CHROMIUM", browser::find()?))
}

/// Returns the report of the tests in a browser.
pub(crate) fn report() -> Report {
    Report {
        path: target().join("browser.xml"),
        command: |_, _| "cargo xtask test --full --step browser".to_owned(),
    }
}

/// Name of Firefox on Debian.
const FIREFOX: &str = "firefox-esr";

fn ui() -> PathBuf {
    root().join("ui")
}

/// Name of the script that starts npm. It has an extension on Windows.
const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };

fn npm(arguments: &[&str]) -> Command {
    let mut command = Command::new(NPM);
    command.current_dir(ui()).args(arguments);
    command
}

/// Installs the packages in the versions that the lock file names.
fn install() -> Result<(), String> {
    let lock = modified(&ui().join("package-lock.json"));
    // npm writes this file at the end of an installation.
    let installed = modified(&ui().join("node_modules/.package-lock.json"));
    if installed.is_some() && installed >= lock {
        Ok(())
    } else {
        command::install(&mut npm(&["ci", "--silent", "--no-audit", "--no-fund"]))
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|about| about.modified()).ok()
}

/// Returns the time of the last change of a source of the page.
fn newest_source(folder: &Path) -> Result<Option<SystemTime>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut newest = None;
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_source = !NOT_SOURCES.iter().any(|name| path == ui().join(name));
        let changed = match path.is_dir() {
            _ if !is_source => None,
            true => newest_source(&path)?,
            false => modified(&path),
        };
        newest = newest.max(changed);
    }
    Ok(newest)
}
