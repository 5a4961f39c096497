//! `laglab record check`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use record::wprp::{self, Remark, Severity};
use serde::Serialize;

use crate::cli::Failure;

use crate::output::say;
use crate::output::{self, counted};

/// Checks profiles of Windows Performance Recorder: structure, order, names, keywords, stacks and
/// their keywords, references, ids and modes.
#[derive(clap::Args)]
#[command(
    after_help = "Prints line, column and severity of each remark: error, newer (needs a newer WPR) \
                        or advice.\nExit code 1 if there are errors."
)]
pub(super) struct Args {
    /// Profiles (.wprp)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

#[derive(Serialize)]
struct FileRemarks {
    file: String,
    remarks: Vec<Remark>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let (mut all, mut unreadable) = (Vec::new(), Vec::new());
    for path in &args.files {
        let checked = read(path)
            .and_then(|text| wprp::check(&text).map_err(|error| Failure::input(path, error)));
        match checked {
            Ok(remarks) => all.push(FileRemarks {
                file: path.display().to_string(),
                remarks,
            }),
            Err(Failure::Input(why)) => unreadable.push(why),
            Err(other) => return Err(other),
        }
    }
    if json {
        output::json(&all)?
    } else {
        write(&all)?
    }
    // If a file is unreadable, the others are checked nevertheless.
    if let Some(last) = unreadable.pop() {
        for why in unreadable {
            say(&why);
        }
        return Err(Failure::Input(last));
    }
    let remarks = all.iter().flat_map(|checked| &checked.remarks);
    match remarks
        .filter(|remark| remark.severity == Severity::Error)
        .count()
    {
        0 => Ok(()),
        count => Err(Failure::Negative(counted(count as u64, "error", "errors"))),
    }
}

/// Reads a profile.
pub(in crate::cli) fn read(path: &Path) -> Result<String, Failure> {
    const MAX: u64 = 1 << 20;
    let bytes = Failure::read(path, MAX)?;
    wprp::text(&bytes).map_err(|error| Failure::input(path, error))
}

fn write(all: &[FileRemarks]) -> io::Result<()> {
    let mut out = output::for_people();
    for FileRemarks { file, remarks } in all {
        if remarks.is_empty() {
            writeln!(
                out,
                "{}: valid for every release of WPR",
                output::Printable(file)
            )?;
        }
        for remark in remarks {
            let line = format!("{file}:{remark}");
            writeln!(out, "{}", output::Printable(&line))?;
        }
    }
    out.flush()
}
