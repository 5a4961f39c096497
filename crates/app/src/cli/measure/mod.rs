//! `laglab measure`: one file per probe, and what they have in common.

mod delivery;
mod files;
mod net;
mod scheduling;
mod sleep;

use std::fmt::Display;

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
    /// How long files take to be read, by way to read them
    Files(Box<files::Args>),
    /// How long packets take to a reflector and back, and how many get through
    Net(Box<net::Args>),
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    match &args.probe {
        Probe::Sleep(args) => sleep::run(args, json),
        Probe::Files(args) => files::run(args, json),
        Probe::Net(args) => net::run(args, json),
    }
}

/// Settings that are compared must differ; else `option` can say another.
fn differ(settings: &[impl PartialEq + Display], option: &str) -> Result<(), Failure> {
    for (number, setting) in settings.iter().enumerate() {
        if settings[..number].contains(setting) {
            return Err(Failure::Input(format!(
                "the setting `{setting}` is to be compared with itself; let {option} say another"
            )));
        }
    }
    Ok(())
}

/// A share, given in percent.
fn percent(text: &str) -> Result<f64, String> {
    text.trim_end_matches('%')
        .parse()
        .ok()
        .filter(|percent| (0.01..=100.0).contains(percent))
        .map(|percent: f64| percent / 100.0)
        .ok_or_else(|| "expected a number of percent, 0.01 to 100".to_owned())
}
