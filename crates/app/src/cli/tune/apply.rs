//! `laglab tune apply`.

use std::path::{Path, PathBuf};

use tune::found::Place;
use tune::inputs;
use tune::plan::{APPLY, UNDO};
use tune::registry::Entry;

use crate::cli::Failure;

/// Makes the changes of a plan in the registry of this machine, or undoes them (Windows).
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune apply plan                     what would be done\n  \
    laglab tune apply plan --apply             does it, after writing a backup\n  \
    laglab tune apply plan --undo --apply      brings back what was there before\n\n\
    Before anything is written, what is there is compared with what the plan found, and saved to a\n\
    backup in its folder. What is not in the registry is left to apply.ps1 and undo.ps1.\n\n\
    Exit codes: 0 done or shown, 1 the machine is not as the plan found it, 2 wrong usage or unreadable\n\
    input.")]
pub(super) struct Args {
    /// The folder that `laglab tune plan` wrote
    #[arg(value_name = "DIR")]
    plan: PathBuf,
    /// Write to the registry; without it, only say what would be done
    #[arg(long)]
    apply: bool,
    /// Bring back what was there before
    #[arg(long)]
    undo: bool,
}

/// A plan's file of entries.
fn entries(folder: &Path, name: &str) -> Result<Vec<Entry>, Failure> {
    let inputs = inputs::read_files(&[folder.join(name)]);
    let inputs = inputs.map_err(|error| Failure::Input(error.to_string()))?;
    let found = inputs.into_iter().flat_map(|input| input.found);
    Ok(found
        .filter_map(|found| match found.place {
            Place::Registry { key, name } => Some(Entry {
                key,
                name,
                value: found.value,
            }),
            _ => None,
        })
        .collect())
}

pub(super) fn run(args: &Args, json: bool) -> Result<(), Failure> {
    let mut from = entries(&args.plan, UNDO)?;
    let mut to = entries(&args.plan, APPLY)?;
    if to.is_empty() {
        let script = if args.undo { "undo.ps1" } else { "apply.ps1" };
        return Err(Failure::input(
            &args.plan,
            format!("nothing of this plan is in the registry: run its {script} as administrator"),
        ));
    }
    if args.undo {
        std::mem::swap(&mut from, &mut to);
    }
    registry::change(&args.plan, &from, &to, args.apply, json)
}

#[cfg(not(windows))]
mod registry {
    use super::*;

    pub(super) fn change(
        _: &Path,
        _: &[Entry],
        _: &[Entry],
        _: bool,
        _: bool,
    ) -> Result<(), Failure> {
        Err(Failure::Input(
            "there is no registry here: run laglab tune apply on the Windows machine that the plan is for"
                .to_owned(),
        ))
    }
}

#[cfg(windows)]
mod registry {
    use std::fs;
    use std::io::Write;

    use serde::Serialize;
    use tune::inputs::{live, reg};

    use super::super::described;
    use super::*;
    use crate::output;

    /// What is done to one value, in its stable shape for programs.
    #[derive(Serialize)]
    struct Told {
        place: String,
        now: String,
        then: String,
        /// Whether it is there already.
        done: bool,
    }

    /// Makes what `to` says of what `from` says, if all is as `from` says or already as `to` does.
    pub(super) fn change(
        folder: &Path,
        from: &[Entry],
        to: &[Entry],
        apply: bool,
        json: bool,
    ) -> Result<(), Failure> {
        let mut now = Vec::new();
        let mut told = Vec::new();
        for (before, after) in from.iter().zip(to) {
            let entry = live::now(before).map_err(|error| Failure::Input(error.to_string()))?;
            let done = entry.value == after.value;
            if !done && entry.value != before.value {
                return Err(Failure::Negative(format!(
                    "{}\\{} is {}, not {} as the plan found it: plan anew",
                    entry.key,
                    entry.name,
                    described::value(entry.value.as_ref()),
                    described::value(before.value.as_ref())
                )));
            }
            told.push(Told {
                place: format!("{}\\{}", entry.key, entry.name),
                now: described::value(entry.value.as_ref()),
                then: described::value(after.value.as_ref()),
                done,
            });
            now.push(entry);
        }
        let backup = match apply {
            true => Some(back_up(folder, &now)?),
            false => None,
        };
        if apply {
            for entry in to {
                live::write(entry).map_err(|error| Failure::Input(error.to_string()))?;
            }
        }
        if json {
            output::json(&told)?;
            return Ok(());
        }
        let mut out = output::for_people();
        output::first_heading(&mut out, if apply { "Done" } else { "Would be done" })?;
        for line in &told {
            let done = if line.done { ", which it is" } else { "" };
            let text = format!("{}: {} becomes {}{done}", line.place, line.now, line.then);
            output::paragraph(&mut out, &text)?;
        }
        match backup {
            Some(path) => {
                let text = format!("What was there before is in {}.", path.display());
                output::paragraph(&mut out, &text)?;
            }
            None => output::quiet(&mut out, "Nothing was written: add --apply to do it.")?,
        }
        out.flush()?;
        Ok(())
    }

    /// Writes what is there now to a file of its own.
    fn back_up(folder: &Path, now: &[Entry]) -> Result<PathBuf, Failure> {
        let text = reg::write(now);
        let units = [0xFEFF].into_iter().chain(text.encode_utf16());
        let bytes: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
        for number in 1..10_000 {
            let path = folder.join(format!("backup-{number}.reg"));
            match fs::File::create_new(&path) {
                Ok(mut file) => {
                    let written = file.write_all(&bytes).and_then(|()| file.sync_all());
                    written.map_err(|error| Failure::input(&path, error))?;
                    return Ok(path);
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Failure::input(&path, error)),
            }
        }
        Err(Failure::input(folder, "holds too many backups"))
    }
}
