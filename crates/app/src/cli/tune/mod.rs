//! `laglab tune`: one source file per subcommand.

mod adapters;
mod apply;
mod audit;
mod bisect;
mod dfsn;
mod diff;
mod explain;
mod inputs;
mod plan;
mod replica;
mod supports;
mod texts;

use std::error::Error;
use std::io;

use clap::Subcommand;
use tune::machine::{Edition, Machine};

use super::{Failure, cause};

/// Explains, audits and changes settings of Windows.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Explain a setting and its values
    Explain(Box<explain::Args>),
    /// Check whether kernels support a setting
    Supports(supports::Args),
    /// Check the settings of a machine: wrong, without effect, different from the default
    Audit(Box<audit::Args>),
    /// Plan changes with their undo, checks and measurements
    Plan(Box<plan::Args>),
    /// Apply or undo a plan on this machine (Windows)
    Apply(apply::Args),
    /// Compare two machines, or one machine at two moments
    Diff(diff::Args),
    /// Find the setting that makes the machine slow, among many, by measuring
    Bisect(Box<bisect::Args>),
    /// Move a DFS namespace to other servers and full names
    Dfsn(dfsn::Args),
    /// Estimate the costs of replicating a volume
    Replica(Box<replica::Args>),
    /// List the network adapters of this machine
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

/// Build and edition of Windows.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
struct MachineOptions {
    /// Build of Windows, such as 22631
    #[arg(long, value_name = "BUILD")]
    build: Option<u32>,
    /// Edition: home, pro (or client), enterprise, server, domain-controller (or dc)
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

/// Creates a failure whose message has the messages of an error and of its sources.
pub(super) fn failure(error: &dyn Error) -> Failure {
    Failure::Input(chain(error))
}

/// Joins the messages of an error and its sources.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text += ": ";
        text += &match error.downcast_ref::<io::Error>() {
            Some(error) => cause(error),
            None => error.to_string(),
        };
        source = error.source();
    }
    text
}
