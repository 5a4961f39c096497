//! `laglab report`: the explanation as one HTML file.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use explain::{Scope, Severity};
use explore::Explorer;
use report::ExplainedTrace;
use serde::Serialize;
use session::NewFile;

use super::Failure;
use super::open::TabledTrace;
use super::symbols::SymbolArgs;
use crate::output::{self, Printable, counted, size};

/// Explains why the machine lagged, in one HTML file: findings with evidence, charts over time, and
/// questions that the trace cannot answer. The file needs no network and no other file.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab report trace.etl -o report.html\n  \
    laglab report kernel.etl user.etl -o report.html --title 'Slow logon, office 17'\n  \
    laglab report trace.etl -o - | gzip > report.html.gz")]
pub(super) struct Args {
    #[command(flatten)]
    trace: TabledTrace,
    /// File to write or replace; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Title of the report [default: the names of the trace's files]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    #[command(flatten)]
    symbols: SymbolArgs,
}

/// JSON output of `laglab report`. Programs rely on its fields.
#[derive(Serialize)]
struct ReportJson {
    output: String,
    bytes: u64,
    problems: usize,
    warnings: usize,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let to_stdout = args.output == Path::new("-");
    if !to_stdout && args.trace.is_at(&args.output) {
        let message = "this is an input file; give another file to write";
        return Err(Failure::input(&args.output, message));
    }
    // The file is created first. If it cannot be written, no time is lost on the analysis.
    let new = if to_stdout {
        None
    } else {
        Some(NewFile::create(&args.output)?)
    };
    let tables = args.trace.open_any()?;
    tables.make(&report::tables())?;
    let symbols = args.symbols.options();
    let (explained, symbols) = ExplainedTrace::read(&tables, Scope::default(), &symbols)?;
    super::warn_of_missing_symbols(&symbols.missing());
    let explorer = Explorer::new(Arc::clone(tables.store()), None, Explorer::MEMORY_BYTES);
    let title = args.title.as_deref();
    let page = report::page(&explorer, &explained, title, &[], &AtomicBool::new(false))?;
    let Some(new) = new else {
        let mut out = output::for_programs();
        out.write_all(page.as_bytes())?;
        return Ok(out.flush()?);
    };
    let written = new.file().write_all(page.as_bytes());
    written.map_err(|error| Failure::writing(&args.output, &error))?;
    let findings = &explained.explanation.findings;
    let count = |severity| findings.iter().filter(|f| f.severity == severity).count();
    let written = ReportJson {
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
        counted(written.problems as u64, "problem", "problems"),
        counted(written.warnings as u64, "warning", "warnings"),
    )?;
    Ok(out.flush()?)
}
