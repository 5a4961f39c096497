//! `laglab explain`.

mod all;
mod screen;

use std::io::Write;
use std::path::Path;

use explain::{Finding, Scope};
use report::{Brief, ExplainedTrace};

use super::Failure;
use super::open::TabledTrace;
use super::scope::ScopeArgs;
use super::symbols::SymbolArgs;
use crate::output;
use all::Detail;
pub(super) use all::write_evidence;

/// Explains why the machine lagged: noticeable delays with their causes, evidence and remedies.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab explain trace.etl\n  \
    laglab explain trace.etl --why 1\n  \
    laglab explain trace.etl --process LockApp --evidence\n  \
    laglab explain trace.etl --at 30.4s\n  \
    laglab explain trace.etl --between-focus UIforETW LockApp\n  \
    laglab explain trace.etl --json --brief\n  \
    laglab explain kernel.etl user.etl --json | jq '.explanation.findings[0].sentence'")]
pub(super) struct Args {
    #[command(flatten)]
    trace: TabledTrace,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Show the finding with this number in full, with the causes that were examined
    #[arg(long, value_name = "N", conflicts_with = "all")]
    why: Option<usize>,
    /// Show all findings in full, and the answer to each question
    #[arg(long)]
    all: bool,
    /// Show the rows behind each finding, and the query that returns these rows; without --why, for all
    /// findings (like --all)
    #[arg(long)]
    evidence: bool,
    /// Print a summary of at most 2,000 tokens, for assistants; needs --json
    #[arg(long, conflicts_with_all = ["why", "all", "evidence"])]
    brief: bool,
    #[command(flatten)]
    symbols: SymbolArgs,
}

/// Maximum number of tokens of a summary.
const TOKENS: usize = 2_000;

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    if args.brief && !json {
        let message = "--brief: the summary is JSON; add --json";
        return Err(Failure::Input(message.to_owned()));
    }
    let tables = args.trace.open_any()?;
    // The scope is also read from tables. If they were made alone, the trace would be read again for the others.
    tables.make(&ExplainedTrace::tables())?;
    let scope = args.scope.scope(&tables)?;
    let is_scoped = scope != Scope::default();
    let (explained, symbols) = ExplainedTrace::read(&tables, scope, &args.symbols.options())?;
    super::warn_of_missing_symbols(&symbols.missing());
    if json {
        if args.brief {
            output::json_line(&Brief::new(&explained, TOKENS))?
        } else {
            output::json(&explained)?
        }
        return Ok(());
    }
    let evidence = args.evidence;
    let mut out = output::for_people();
    if let Some(number) = args.why {
        let detail = Detail {
            evidence,
            is_scoped: true,
        };
        let finding = numbered(&explained.explanation.findings, number)?;
        all::write_finding(&mut out, finding, detail)?;
    } else if args.all || evidence {
        let detail = Detail {
            evidence,
            is_scoped,
        };
        all::write(&mut out, &explained, detail)?;
    } else {
        screen::write(&mut out, &explained, is_scoped)?;
    }
    out.flush()?;
    Ok(())
}

/// Explains the trace at `path` as `laglab explain TRACE` does.
pub(super) fn explain(path: &Path, json: bool) -> Result<(), Failure> {
    let args = Args {
        trace: TabledTrace::new(&[path.to_owned()], false),
        scope: ScopeArgs::default(),
        why: None,
        all: false,
        evidence: false,
        brief: false,
        symbols: SymbolArgs::default(),
    };
    run(&args, json)
}

/// Returns the finding with this number.
fn numbered(findings: &[Finding], number: usize) -> Result<&Finding, Failure> {
    let finding = number.checked_sub(1).and_then(|place| findings.get(place));
    finding.ok_or_else(|| {
        let there = match findings.len() {
            0 => "there are no findings".to_owned(),
            1 => "there is one finding".to_owned(),
            count => format!("there are findings 1 to {count}"),
        };
        Failure::Input(format!("cannot show finding {number}: {there}"))
    })
}
