//! The command line: commands, error messages and exit codes.

mod cache;
mod completions;
mod demo;
mod events;
mod explain;
#[cfg(feature = "export")]
mod export;
mod failure;
mod filter;
mod html_report;
mod info;
mod integer;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "measure")]
mod measure;
mod metadata;
mod open;
#[cfg(feature = "open")]
mod open_page;
mod percent;
mod prove;
mod record;
mod report;
mod scope;
mod simulate;
#[cfg(feature = "sql")]
mod sql;
mod stats;
mod symbols;
mod time_with_unit;
mod trim;
mod tune;
mod usage;

pub(crate) use failure::{Failure, cause};

use std::io;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::builder::styling::Styles;
use clap::{CommandFactory, Parser, Subcommand};
use etl::{Damage, Trace};
use facts::DamageReport;
use serde::Serialize;
use session::MissingSymbols;
use tables::Store;

use crate::output::say;
use crate::watch::INTERRUPTED_CODE;

/// Arguments of the program.
#[derive(Parser)]
#[command(
    name = "laglab",
    version,
    about = "Finds out why a machine lags, from recordings of Windows and Linux",
    after_help = "Exit codes: 0 success, 1 the trace lacks events that a report or export needs, or a \
                  check failed, 2 wrong usage or unreadable input, 130 interrupted.\nFor options and examples of a command: laglab COMMAND --help",
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
    /// Explain why the machine lagged: causes, evidence, remedies
    Explain(explain::Args),
    /// Write the causes of lag, with charts, as one HTML file
    #[command(name = "report")]
    HtmlReport(html_report::Args),
    /// Show traces in the browser: timeline, tables, stacks, causes of lag
    #[cfg(feature = "open")]
    Open(open_page::Args),
    /// Serve answers about traces to an assistant (MCP, on standard input and output)
    #[cfg(feature = "mcp")]
    Mcp(mcp::Args),
    /// Show system, session, clock, contents, missing events and damage of a trace
    Info(info::Args),
    /// Count events and bytes by kind
    #[command(visible_alias = "tracestats")]
    Stats(stats::Args),
    /// Print decoded events in time order
    Events(Box<events::Args>),
    /// Query the tables of traces in SQL
    #[cfg(feature = "sql")]
    Sql(Box<sql::Args>),
    /// Write a part of a trace as a new trace
    Trim(Box<trim::Args>),
    /// Measure latencies of this machine: sleeps, file reads, network
    #[cfg(feature = "measure")]
    Measure(measure::Args),
    /// Show whether a change helped, from measurements before and after it
    Prove(prove::Args),
    /// Show the effect of Windows settings, on this machine or from its exported registry
    Tune(tune::Args),
    /// Record this Linux machine, write kits that record Windows, and check profiles
    Record(Box<record::Args>),
    /// Write a trace for Perfetto, the Firefox Profiler or Wireshark, or as Parquet
    #[cfg(feature = "export")]
    Export(Box<export::Args>),
    /// Simulate Windows, and write a trace with known causes of lag
    Simulate(Box<simulate::Args>),
    /// Simulate a machine that lags, and explain the trace
    Demo(demo::Args),
    #[command(flatten)]
    Report(report::Report),
    /// Show or clear the cache of tables
    Cache(cache::Args),
    /// Print a completion script for your shell
    Completions(completions::Args),
}

/// Parses the arguments and runs the command.
pub(crate) fn run() -> ExitCode {
    let arguments = prove::arguments(std::env::args_os().collect());
    let json = arguments
        .iter()
        .take_while(|it| *it != "--")
        .any(|it| it == "--json");
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            return fail(&usage::text(&error, &Cli::command()), 2, json);
        }
        // The help or the version that the user asked for.
        Err(error) => error.exit(),
    };
    let outcome = match &cli.command {
        Command::Explain(args) => explain::run(args, cli.json),
        Command::HtmlReport(args) => html_report::run(args, cli.json),
        #[cfg(feature = "open")]
        Command::Open(args) => open_page::run(args, cli.json),
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => mcp::run(args),
        Command::Info(args) => info::run(args, cli.json),
        Command::Stats(args) => stats::run(args, cli.json),
        Command::Events(args) => events::run(args, cli.json),
        #[cfg(feature = "sql")]
        Command::Sql(args) => sql::run(args, cli.json),
        Command::Trim(args) => trim::run(args, cli.json),
        #[cfg(feature = "export")]
        Command::Export(args) => export::run(args, cli.json),
        #[cfg(feature = "measure")]
        Command::Measure(args) => measure::run(args, cli.json),
        Command::Prove(args) => prove::run(args, cli.json),
        Command::Tune(args) => tune::run(args, cli.json),
        Command::Record(args) => record::run(args, cli.json),
        Command::Simulate(args) => simulate::run(args, cli.json),
        Command::Demo(args) => demo::run(args, cli.json),
        Command::Report(report) => report.run(cli.json),
        Command::Cache(args) => cache::run(args, cli.json),
        Command::Completions(args) => completions::run(args, cli.json),
    };
    let (what, code) = match outcome {
        Ok(()) => return ExitCode::SUCCESS,
        // The program that reads the pipe, for example `head`, closed it on purpose.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            return ExitCode::SUCCESS;
        }
        Err(Failure::Output(error)) => (format!("cannot write the output: {}", cause(&error)), 2),
        Err(Failure::NotRecorded(what) | Failure::Negative(what)) => (what, 1),
        Err(Failure::Input(what)) => (what, 2),
        Err(Failure::Interrupted) => ("interrupted".to_owned(), INTERRUPTED_CODE),
    };
    fail(&what, code, cli.json)
}

/// Prints on stderr the number of skipped damaged places in the trace. The number includes the places that
/// were found when the trace was opened, and the places that were found while its events were read (`walk`).
fn warn_of_skipped_places(trace: &Trace, walk: &Damage) {
    let faults = |damage: &Damage| damage.counts().values().sum::<u64>();
    warn_of_faults(faults(trace.damage()) + faults(walk));
}

/// Prints on stderr the number of skipped damaged places in the trace.
fn warn_of_faults(broken: u64) {
    if broken > 0 {
        use io::Write;
        let places = if broken == 1 { "place" } else { "places" };
        let _ = writeln!(
            anstream::stderr(),
            "laglab: skipped {broken} broken {places}; `laglab info` lists them"
        );
    }
}

/// Prints on stderr the damage of a recording of Linux that was found when its tables were made. Prints nothing for a trace
/// of Windows.
fn warn_of_linux_damage(store: &Store) -> Result<(), Failure> {
    let damage = if store.info().is_linux() {
        DamageReport::made(store)?
    } else {
        None
    };
    if let Some(first) = damage.and_then(|damage| damage.sentences().into_iter().next()) {
        say(&first);
        say("counts and sums may be too small; `laglab info` lists all damage");
    }
    Ok(())
}

/// Prints the modules without symbols on stderr, and the reason for the first of these modules.
pub(crate) fn warn_of_missing_symbols(missing: &[MissingSymbols]) {
    for warning in MissingSymbols::warnings(missing) {
        say(&warning);
    }
}

/// Error that ends a command, as JSON. Programs rely on its fields.
#[derive(Serialize)]
struct ErrorJson<'a> {
    error: &'a str,
    exit_code: u8,
}

/// Prints an error on stderr, as text or as JSON in one line. Returns the exit code `code`.
fn fail(what: &str, code: u8, json: bool) -> ExitCode {
    use io::Write;
    if json {
        let error = ErrorJson {
            error: what,
            exit_code: code,
        };
        let mut out = wording::JsonText::new(io::stderr());
        // If stderr is closed, the error is lost.
        let _ = serde_json::to_writer(&mut out, &error);
        let _ = writeln!(out);
    } else {
        say(what);
    }
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
