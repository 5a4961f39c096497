//! `laglab record`: kits for recordings, the checker of profiles, and the logger of input.

mod check;
mod input;
mod kit;
mod now;
mod run;

use std::fs;
use std::path::Path;

use clap::Subcommand;

use super::Failure;
pub(super) use check::read as read_profile;

/// Writes a kit that records the evidence for a question on Windows: a profile for WPR, scripts for WPR and
/// xperf, the cost of recording, and the questions that `laglab explain` can then answer. Linux is recorded
/// directly, by `laglab record now`.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  \
    laglab record --list\n  \
    laglab record --for long-wait -o kit\n  \
    laglab record --for dpc --memory 256 --cpus 64 --nodes 2 -o kit\n  \
    laglab record --for rank --dry-run\n  \
    laglab record --for cpu --run --seconds 30 --note \"after resume\"     (Windows)\n  \
    laglab record --for full --run --circular                            (Windows)\n  \
    laglab record now --for 10s                                          (Linux)\n  \
    laglab record check some.wprp\n  \
    laglab record input                                                  (Windows)"
)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    kit: kit::KitOptions,
}

#[derive(Subcommand)]
enum Command {
    /// Check profiles of WPR for errors
    Check(check::Args),
    /// Windows: log key presses and foreground windows as events for a recording
    Input(input::Args),
    /// Linux: record this machine now, keep the last events in memory and save them
    Now(now::Args),
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    match &args.command {
        Some(Command::Check(args)) => check::run(args, json),
        Some(Command::Input(args)) => input::run(args),
        Some(Command::Now(args)) => now::run(args, json),
        None => kit::run(&args.kit, json),
    }
}

/// Creates a folder and runs a task in it. If the task fails, removes the folder, unless it existed before or
/// has files.
fn in_folder<T>(folder: &Path, task: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let is_new = !folder.exists();
    fs::create_dir_all(folder).map_err(|error| Failure::writing(folder, &error))?;
    let done = task();
    if done.is_err() && is_new {
        // `remove_dir` fails if the folder has files. These files are kept.
        let _ = fs::remove_dir(folder);
    }
    done
}
