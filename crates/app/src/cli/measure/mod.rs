//! `laglab measure`: one file per probe, and what they have in common.

mod delivery;
mod scheduling;
mod sleep;

use clap::Subcommand;

use super::Failure;

/// Probes the machine that it runs on.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    probe: Probe,
}

#[derive(Subcommand)]
enum Probe {
    /// How late sleeps end, by way to sleep, scheduling and timer resolution
    Sleep(Box<sleep::Args>),
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    match &args.probe {
        Probe::Sleep(args) => sleep::run(args, json),
    }
}
