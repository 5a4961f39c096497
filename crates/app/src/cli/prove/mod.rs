//! `laglab prove`: one source file per command.

mod compare;
mod diff;
mod diff_page;
mod history;
mod plan;
mod verdict;
mod what_if;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use session::NewFile;

use super::Failure;

/// Shows whether a change helped, and how certain the result is.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare measurements before and after a change
    Compare(compare::Args),
    /// Compare traces before and after a change
    Diff(diff::Args),
    /// Find changes in a history of measurements
    History(history::Args),
    /// Plan a comparison from a pilot: pairs of runs, precision and time
    Plan(plan::Args),
    /// Give the verdict about the changes of a plan of `laglab tune plan`
    Verdict(verdict::Args),
    /// Predict from one trace what a change would do
    WhatIf(what_if::Args),
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    match &args.command {
        Command::Compare(args) => compare::run(args, json),
        Command::Diff(args) => diff::run(args, json),
        Command::History(args) => history::run(args, json),
        Command::Plan(args) => plan::run(args, json),
        Command::Verdict(args) => verdict::run(args, json),
        Command::WhatIf(args) => what_if::run(args, json),
    }
}

/// Argument between the files before and after a change. No file can have this name.
const SEPARATOR: &str = "\0";

/// Returns the arguments of the program. `--` between the files of a comparison becomes [`SEPARATOR`], so that options
/// may stand behind these files.
pub(super) fn arguments(mut all: Vec<OsString>) -> Vec<OsString> {
    let is_option = |word: &&OsString| word.as_encoded_bytes().starts_with(b"-");
    let mut words = all.iter().skip(1).filter(|word| !is_option(word));
    let is_comparison = words.next().is_some_and(|word| word == "prove")
        && words
            .next()
            .is_some_and(|word| word == "diff" || word == "compare");
    if is_comparison && let Some(word) = all.iter_mut().find(|word| *word == "--") {
        *word = SEPARATOR.into();
    }
    all
}

/// Returns the files before and after the change. Two files without [`SEPARATOR`] are one of each.
///
/// # Errors
/// Returns [`Failure::Input`] if there are no files before the change.
fn both_sides(files: &[PathBuf]) -> Result<(&[PathBuf], &[PathBuf]), Failure> {
    let separator = files.iter().position(|file| file == SEPARATOR);
    let (before, after) = match (separator, files) {
        (Some(at), _) => (&files[..at], &files[at + 1..]),
        (None, [_, _]) => files.split_at(1),
        (None, _) => (files, &files[..0]),
    };
    if before.is_empty() {
        let message = "no files before the change: give them before `--`";
        return Err(Failure::Input(message.to_owned()));
    }
    Ok((before, after))
}

/// Returns an error if one of the files looks like an option. After `--`, an option is read as the name of a file.
fn refuse_options_among(files: &[PathBuf]) -> Result<(), Failure> {
    let mut files = files.iter();
    match files.find(|file| file.to_string_lossy().starts_with('-')) {
        Some(misplaced) => Err(Failure::Input(format!(
            "cannot open a file named {}: give options before the files",
            misplaced.display()
        ))),
        None => Ok(()),
    }
}

/// Creates the file of a page before the comparison. If the file cannot be written, no time is lost.
fn new_page(path: &Path, inputs: &[PathBuf]) -> Result<NewFile, Failure> {
    if inputs.iter().any(|input| files::is_same_file(input, path)) {
        let message = "this is an input file; give another file to write";
        return Err(Failure::input(path, message));
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.exists()) {
        let message = "its folder does not exist; create it, or give another path";
        return Err(Failure::input(path, message));
    }
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("html" | "htm") => Ok(NewFile::create(path)?),
        _ => Err(Failure::input(path, "unknown format; use .html")),
    }
}
