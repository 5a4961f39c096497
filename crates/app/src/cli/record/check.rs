//! `laglab record check`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use record::wprp::{self, Gravity, Remark};
use serde::Serialize;

use crate::cli::{Failure, say};
use crate::output;

/// Checks profiles of Windows Performance Recorder: structure, order, names, keywords, stacks and
/// their keywords, references, ids and modes.
#[derive(clap::Args)]
#[command(
    after_help = "Of each remark: line and column, and whether it is wrong, known to newer WPR \
                        only, or advice.\nIt ends with exit code 1 if anything is wrong."
)]
pub(super) struct Args {
    /// Profiles (.wprp)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Checked {
    file: String,
    remarks: Vec<Remark>,
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let (mut all, mut no_profiles) = (Vec::new(), Vec::new());
    for path in &args.files {
        let checked = read(path)
            .and_then(|text| wprp::check(&text).map_err(|error| Failure::input(path, error)));
        match checked {
            Ok(remarks) => all.push(Checked {
                file: path.display().to_string(),
                remarks,
            }),
            Err(Failure::Input(why)) => no_profiles.push(why),
            Err(other) => return Err(other),
        }
    }
    match json {
        true => output::json(&all)?,
        false => write(&all)?,
    }
    // What is no profile does not keep others from being checked.
    if let Some(last) = no_profiles.pop() {
        for why in no_profiles {
            say(&why);
        }
        return Err(Failure::Input(last));
    }
    let wrong = all.iter().flat_map(|checked| &checked.remarks);
    match wrong
        .filter(|remark| remark.gravity == Gravity::Wrong)
        .count()
    {
        0 => Ok(()),
        1 => Err(Failure::Negative("1 thing is wrong".to_owned())),
        count => Err(Failure::Negative(format!("{count} things are wrong"))),
    }
}

/// The text of a profile, which is no longer than any that people write.
pub(in crate::cli) fn read(path: &Path) -> Result<String, Failure> {
    /// A little more than the checker takes, so that it says that it is too long.
    const MOST: u64 = (1 << 20) + 1;
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| Failure::input(path, error))?;
    file.take(MOST)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::input(path, error))?;
    wprp::text(&bytes).map_err(|error| Failure::input(path, error))
}

fn write(all: &[Checked]) -> io::Result<()> {
    let mut out = output::for_people();
    for Checked { file, remarks } in all {
        if remarks.is_empty() {
            writeln!(
                out,
                "{}: fine for every release of WPR",
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
