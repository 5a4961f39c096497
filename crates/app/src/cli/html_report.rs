//! `laglab report`: why it lagged, as a page.

use std::io::Write;
use std::path::{Path, PathBuf};

use explain::{Asked, Severity};
use serde::Serialize;

use super::Failure;
use super::explained::Explained;
use super::new_file::NewFile;
use super::open::TabledTrace;
use crate::html_report;
use crate::output::{self, Printable, size};
use crate::symbolication::SymbolOptions;

/// Writes why the machine lagged as one HTML file: findings with their evidence, charts over time,
/// and what the trace cannot answer. It needs no network and no other file.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab report trace.etl -o report.html\n  \
    laglab report kernel.etl user.etl -o report.html --title 'Slow logon, office 17'\n  \
    laglab report trace.etl -o - | gzip > report.html.gz")]
pub(super) struct Args {
    #[command(flatten)]
    trace: TabledTrace,
    /// The file to write, which is replaced if it is there; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// What to head it with [default: the names of the trace's files]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    #[command(flatten)]
    symbols: SymbolOptions,
}

/// What was written.
#[derive(Serialize)]
struct Written {
    output: String,
    bytes: u64,
    problems: usize,
    warnings: usize,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let to_stdout = args.output == Path::new("-");
    if !to_stdout && args.trace.is_at(&args.output) {
        let message = "is the trace itself; give another file to write";
        return Err(Failure::input(&args.output, message));
    }
    // It can be written, or nothing is done.
    let new = match to_stdout {
        true => None,
        false => Some(NewFile::create(&args.output)?),
    };
    let tables = args.trace.open()?;
    tables.make(&html_report::tables())?;
    let explained = Explained::of(&tables, Asked::default(), &args.symbols)?;
    let page = html_report::page(&tables, &explained, args.title.as_deref(), &[])?;
    let Some(new) = new else {
        let mut out = output::for_programs();
        out.write_all(page.as_bytes())?;
        return Ok(out.flush()?);
    };
    let written = new.file().write_all(page.as_bytes());
    written.map_err(|error| Failure::input(&args.output, error))?;
    let findings = &explained.explanation.findings;
    let count = |severity| findings.iter().filter(|f| f.severity == severity).count();
    let written = Written {
        output: args.output.display().to_string(),
        bytes: new.finish()?,
        problems: count(Severity::Problem),
        warnings: count(Severity::Warning),
    };
    if json {
        return Ok(output::json(&written)?);
    }
    let mut out = output::for_people();
    writeln!(
        out,
        "{}: {}, {}, {}",
        Printable(&written.output),
        size(written.bytes),
        counted(written.problems, "problem"),
        counted(written.warnings, "warning"),
    )?;
    Ok(out.flush()?)
}

fn counted(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}
