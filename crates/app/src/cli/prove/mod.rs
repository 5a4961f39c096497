//! `laglab prove`: one source file per command.

mod compare;
mod diff;
mod diff_page;
mod history;
mod plan;
mod verdict;

use clap::Subcommand;

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
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    match &args.command {
        Command::Compare(args) => compare::run(args, json),
        Command::Diff(args) => diff::run(args, json),
        Command::History(args) => history::run(args, json),
        Command::Plan(args) => plan::run(args, json),
        Command::Verdict(args) => verdict::run(args, json),
    }
}
