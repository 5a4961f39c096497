//! `laglab measure`: one file per probe, and what they have in common.

mod delivery;
mod net;
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
    /// How long packets take to a reflector and back, and how many get through
    Net(Box<net::Args>),
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    match &args.probe {
        Probe::Sleep(args) => sleep::run(args, json),
        Probe::Net(args) => net::run(args, json),
    }
}
