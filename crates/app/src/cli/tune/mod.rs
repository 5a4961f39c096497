//! `laglab tune`: a file per subcommand, and what they have in common.

mod adapters;
mod apply;
mod audit;
mod bisect;
mod described;
mod dfsn;
mod diff;
mod explain;
mod plan;
mod replica;
mod said;
mod supports;

use std::fs;
use std::path::Path;

use clap::Subcommand;
use tune::machine::{Edition, Machine};

use super::Failure;

/// Says what settings really do on a machine, from what was exported of it.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// What a setting does, and what a value of it stands for
    Explain(Box<explain::Args>),
    /// Whether kernels know a setting
    Supports(supports::Args),
    /// What is set on a machine, and what of it is wrong or does nothing
    Audit(Box<audit::Args>),
    /// Changes with their undo, checks, and what to measure
    Plan(Box<plan::Args>),
    /// A plan's changes made, or undone, on this machine (Windows)
    Apply(apply::Args),
    /// Two machines or moments side by side
    Diff(diff::Args),
    /// Which of many settings makes it slow, found by measuring
    Bisect(Box<bisect::Args>),
    /// A DFS namespace moves to other servers and full names
    Dfsn(dfsn::Args),
    /// What replicating a volume would cost
    Replica(Box<replica::Args>),
    /// The network adapters of this machine
    Adapters(adapters::Args),
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    match &args.task {
        Task::Explain(args) => explain::run(args, json),
        Task::Supports(args) => supports::run(args, json),
        Task::Audit(args) => audit::run(args, json),
        Task::Plan(args) => plan::run(args, json),
        Task::Apply(args) => apply::run(args, json),
        Task::Diff(args) => diff::run(args, json),
        Task::Bisect(args) => bisect::run(args, json),
        Task::Dfsn(args) => dfsn::run(args, json),
        Task::Replica(args) => replica::run(args, json),
        Task::Adapters(args) => adapters::run(args, json),
    }
}

/// Which Windows is meant.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
struct MachineOptions {
    /// The build of Windows, such as 22631
    #[arg(long, value_name = "BUILD")]
    build: Option<u32>,
    /// The edition: home, pro (or client), enterprise, server, domain-controller (or dc)
    #[arg(long, value_name = "EDITION")]
    edition: Option<Edition>,
}

impl MachineOptions {
    fn machine(self) -> Machine {
        Machine {
            name: None,
            build: self.build,
            edition: self.edition,
        }
    }
}

/// A file of at most so many bytes.
fn read(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let length = fs::metadata(path)
        .map_err(|error| Failure::input(path, error))?
        .len();
    if length > most {
        return Err(Failure::input(
            path,
            format!("has {length} bytes; at most {most} are read"),
        ));
    }
    fs::read(path).map_err(|error| Failure::input(path, error))
}

/// The names most like the one that was asked for.
fn nearest<'n>(names: impl Iterator<Item = &'n str>, asked: &str) -> Vec<&'n str> {
    /// Names that are told.
    const TOLD: usize = 5;
    let plain = asked.to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&name.to_lowercase(), &plain);
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup_by(|one, other| one.eq_ignore_ascii_case(other));
    names.sort_by(|one, other| likeness(other).total_cmp(&likeness(one)));
    names.truncate(TOLD);
    names
}
