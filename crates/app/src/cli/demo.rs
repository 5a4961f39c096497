//! `laglab demo`.

use std::io::Write;
use std::path::PathBuf;

use super::{Failure, explain, simulate};
use crate::output;

/// Scenario with a cause that is hard to find: a login waits although no thread of higher priority runs.
const SCENARIO: &str = "rank-stall";

/// Simulates a machine that lags, writes the trace to the current folder, and explains it.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab demo\n  \
    laglab demo dpc-flood-no-teaming\n  \
    laglab simulate --list")]
pub(super) struct Args {
    /// Name of a built-in scenario, or a scenario file
    #[arg(value_name = "SCENARIO", default_value = SCENARIO)]
    scenario: String,
    /// Trace to write or replace [default: SCENARIO.etl]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let trace = simulate::only_trace(&args.scenario, args.output.clone())?;
    explain::explain(&trace, json)?;
    if json {
        return Ok(());
    }
    let program = std::env::args().next().unwrap_or_default();
    let shown = trace.display();
    let mut out = output::for_people();
    writeln!(out)?;
    let line = format!("Examined causes:  {program} explain {shown} --why 1");
    output::verbatim(&mut out, &line)?;
    if cfg!(feature = "open") {
        let line = format!("In the browser:   {program} open {shown}");
        output::verbatim(&mut out, &line)?;
    }
    Ok(out.flush()?)
}
