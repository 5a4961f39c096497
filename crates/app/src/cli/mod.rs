//! The command line: its commands, and what their outcomes mean to the caller.

mod asked;
mod cache;
mod completions;
mod events;
mod explain;
mod explained;
mod export;
mod html_report;
mod info;
mod measure;
mod new_file;
mod open;
mod open_page;
mod record;
mod report;
mod simulate;
#[cfg(feature = "sql")]
mod sql;
mod stats;
mod trim;
mod tune;

pub(crate) use explained::Explained;
pub(crate) use new_file::NewFile;
pub(crate) use open::TraceTables;

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::builder::styling::Styles;
use clap::{Parser, Subcommand};
use etl::{Damage, Trace};

use crate::symbolication::MissingSymbols;
use crate::watch::{INTERRUPTED_CODE, Interrupted};

/// Finds out why a Windows machine lags, from the traces it recorded.
#[derive(Parser)]
#[command(
    name = "laglab",
    version,
    about = "Finds out why a Windows machine lags, from the traces it recorded",
    after_help = "Exit codes: 0 fine, 1 the trace does not hold what a report or export needs, or a \
                  check failed, 2 wrong usage or unreadable input, 130 interrupted.\nEvery command has examples: laglab COMMAND --help",
    styles = Styles::styled()
        .header(Style::new().bold())
        .usage(Style::new().bold())
        .literal(AnsiColor::Cyan.on_default())
)]
struct Cli {
    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Who used the CPUs, who waited, what interrupted, what the disks did
    Explain(explain::Args),
    /// Why it lagged, with charts: one HTML file to be sent or printed
    #[command(name = "report")]
    HtmlReport(html_report::Args),
    /// Traces in the browser: over time, as tables, as stacks, and why they lagged
    Open(open_page::Args),
    /// What a trace is: system, session, clock, contents, what is missing, damage
    Info(info::Args),
    /// How many events and bytes of each kind
    #[command(visible_alias = "tracestats")]
    Stats(stats::Args),
    /// The events themselves, decoded, in time order
    Events(Box<events::Args>),
    /// Your own questions about the tables of traces, in SQL
    #[cfg(feature = "sql")]
    Sql(Box<sql::Args>),
    /// A part of a trace, as a trace
    Trim(Box<trim::Args>),
    /// How late this machine is right now: live probes
    Measure(measure::Args),
    /// What settings of Windows really do, on a machine that was exported or on this one
    Tune(tune::Args),
    /// How to capture the evidence: kits for WPR and xperf, and a checker of profiles
    Record(Box<record::Args>),
    /// A trace for Perfetto or the Firefox Profiler, as Parquet, or its packets as pcapng
    Export(Box<export::Args>),
    /// Make a trace whose truth is known, with a model of Windows
    Simulate(Box<simulate::Args>),
    #[command(flatten)]
    Report(report::Report),
    /// Where tables are kept for the next question, and how much that is
    Cache(cache::Args),
    /// A completion script for your shell
    Completions(completions::Args),
}

/// Said where files of several systems are looked at as one trace.
pub(crate) const SEVERAL_SYSTEMS: &str = "These files were recorded by different systems, or after another \
                               boot: ids and names of one do not hold in the other, and sums mix \
                               them. Look at them one by one.";

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong usage or unreadable input; one line that says what and what to do.
    Input(String),
    /// The trace does not hold what was asked for; one line that says what to record.
    NotRecorded(String),
    /// The answer is no, or something is not as it should be; one line that sums it up.
    Negative(String),
    /// Output could not be written.
    Output(io::Error),
    /// The user stopped it.
    Interrupted,
}

impl Failure {
    /// Something is wrong with a file the user named.
    pub(crate) fn input(path: &Path, error: impl Display) -> Failure {
        Failure::Input(format!("{}: {error}", path.display()))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

impl From<Interrupted> for Failure {
    fn from(_: Interrupted) -> Failure {
        Failure::Interrupted
    }
}

/// Parses the arguments and runs the command.
pub(crate) fn run() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.command {
        Command::Explain(args) => explain::run(args, cli.json),
        Command::HtmlReport(args) => html_report::run(args, cli.json),
        Command::Open(args) => open_page::run(args, cli.json),
        Command::Info(args) => info::run(args, cli.json),
        Command::Stats(args) => stats::run(args, cli.json),
        Command::Events(args) => events::run(args, cli.json),
        #[cfg(feature = "sql")]
        Command::Sql(args) => sql::run(args, cli.json),
        Command::Trim(args) => trim::run(args, cli.json),
        Command::Export(args) => export::run(args, cli.json),
        Command::Measure(args) => measure::run(args, cli.json),
        Command::Tune(args) => tune::run(args, cli.json),
        Command::Record(args) => record::run(args, cli.json),
        Command::Simulate(args) => simulate::run(args, cli.json),
        Command::Report(report) => report.run(cli.json),
        Command::Cache(args) => cache::run(args, cli.json),
        Command::Completions(args) => completions::run(args, cli.json),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output has seen enough.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failure::Output(error)) => complain(&format!("cannot write the output: {error}"), 2),
        Err(Failure::NotRecorded(what) | Failure::Negative(what)) => complain(&what, 1),
        Err(Failure::Input(what)) => complain(&what, 2),
        Err(Failure::Interrupted) => complain("interrupted", INTERRUPTED_CODE),
    }
}

/// Says on stderr how many broken places opening the trace and a walk through it met.
fn say_what_was_skipped(trace: &Trace, walk: &Damage) {
    let faults = |damage: &Damage| damage.counts().values().sum::<u64>();
    let broken = faults(trace.damage()) + faults(walk);
    if broken > 0 {
        use io::Write;
        let places = if broken == 1 {
            "place was"
        } else {
            "places were"
        };
        let _ = writeln!(
            anstream::stderr(),
            "laglab: {broken} broken {places} skipped; `laglab info` says where"
        );
    }
}

/// Says on stderr which modules' symbols were not found, and why of the first.
pub(crate) fn say_what_lacks_symbols(missing: &[MissingSymbols]) {
    use io::Write;
    let Some(MissingSymbols { module, pdb, why }) = missing.first() else {
        return;
    };
    let pdb = pdb
        .as_ref()
        .map_or(String::new(), |pdb| format!(" ({pdb})"));
    let more = match missing.len() - 1 {
        0 => String::new(),
        more => format!("\nlaglab: and {more} more modules"),
    };
    let what = format!("no symbols of {module}{pdb}: {why}");
    let _ = writeln!(
        anstream::stderr(),
        "laglab: {}{more}",
        crate::output::Printable(&what)
    );
}

/// Says one line on stderr, as the reason to end with `code`.
fn complain(what: &str, code: u8) -> ExitCode {
    say(what);
    ExitCode::from(code)
}

/// Says one line on stderr, which is no reason to stop.
pub(crate) fn say(what: &str) {
    use io::Write;
    // There is nobody to tell if stderr is closed.
    let _ = writeln!(
        anstream::stderr(),
        "laglab: {}",
        crate::output::Printable(what)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
