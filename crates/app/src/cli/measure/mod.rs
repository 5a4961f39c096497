//! `laglab measure`: one source file per probe, and options that all probes share.

mod delivery;
mod files;
mod net;
mod scheduling;
mod sleep;
mod until_sure;
mod why;

use std::fmt::Display;

use clap::Subcommand;

use super::Failure;

/// Measures latencies of this machine.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    probe: Probe,
}

#[derive(Subcommand)]
enum Probe {
    /// Measure the lateness of sleeps, by method, scheduling and timer resolution
    Sleep(Box<sleep::Args>),
    /// Measure the time to read many files, by method
    Files(Box<files::Args>),
    /// Measure round trips of packets to a reflector, or throughput
    Net(Box<net::Args>),
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    match &args.probe {
        Probe::Sleep(args) => sleep::run(args, json),
        Probe::Files(args) => files::run(args, json),
        Probe::Net(args) => net::run(args, json),
    }
}

/// Returns an error if two of the compared settings are equal. The error advises to change `option`.
fn differ(settings: &[impl PartialEq + Display], option: &str) -> Result<(), Failure> {
    for (number, setting) in settings.iter().enumerate() {
        if settings[..number].contains(setting) {
            return Err(Failure::Input(format!(
                "cannot compare the setting `{setting}` with itself; give another setting with {option}"
            )));
        }
    }
    Ok(())
}
