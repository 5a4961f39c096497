//! `laglab tune apply`.

use std::path::{Path, PathBuf};

use registry::Entry;
use tune::inputs;
use tune::placed_value::Place;
use tune::plan::{APPLY, UNDO};

use super::failure;
use crate::cli::Failure;

/// Applies the changes of a plan to the registry of this machine, or undoes them (Windows).
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    laglab tune apply plan                     print the changes\n  \
    laglab tune apply plan --apply             write a backup, then apply the changes\n  \
    laglab tune apply plan --undo --apply      restore the values from before the plan\n\n\
    Before it writes, the command compares the current values with the plan and saves them to a backup in \
    the folder of the plan. Changes outside the registry need apply.ps1 and undo.ps1.\n\n\
    Exit codes: 0 applied or printed, 1 the current values differ from the plan, 2 wrong usage or unreadable \
    input.")]
pub(super) struct Args {
    /// Folder that `laglab tune plan` wrote
    #[arg(value_name = "DIR")]
    plan: PathBuf,
    /// Write to the registry; without this option, the command only prints the changes
    #[arg(long)]
    apply: bool,
    /// Restore the values that were set before the plan was applied
    #[arg(long)]
    undo: bool,
}

/// Reads the registry entries in a file of the plan.
fn entries(folder: &Path, name: &str) -> Result<Vec<Entry>, Failure> {
    let inputs = inputs::read_files(&[folder.join(name)]);
    let inputs = inputs.map_err(|error| failure(&error))?;
    let values = inputs.into_iter().flat_map(|input| input.found);
    Ok(values
        .filter_map(|entry| match entry.place {
            Place::Registry { key, name } => Some(Entry {
                key,
                name,
                value: entry.value,
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
            format!("the plan has no changes of the registry: run its {script} as administrator"),
        ));
    }
    if args.undo {
        std::mem::swap(&mut from, &mut to);
    }
    live_registry::change(&args.plan, &from, &to, args.apply, json)
}

#[cfg(not(windows))]
mod live_registry {
    use super::*;

    pub(super) fn change(
        _: &Path,
        _: &[Entry],
        _: &[Entry],
        _: bool,
        _: bool,
    ) -> Result<(), Failure> {
        Err(Failure::Input(
            "tune apply needs Windows: run it on the machine that the plan is for".to_owned(),
        ))
    }
}

#[cfg(windows)]
mod live_registry {
    use std::fs;
    use std::io::Write;

    use serde::Serialize;
    use tune::inputs::{live, reg};

    use super::super::texts;
    use super::*;
    use crate::output;

    /// JSON output: change of one registry value. Programs rely on its fields.
    #[derive(Serialize)]
    struct ChangeJson {
        place: String,
        now: String,
        then: String,
        /// True if the new value is already set.
        done: bool,
    }

    /// Changes registry values from the values in `from` to the values in `to`. Each current value must be
    /// equal to the old value or to the new value. Without `apply`, only prints the changes.
    pub(super) fn change(
        folder: &Path,
        from: &[Entry],
        to: &[Entry],
        apply: bool,
        json: bool,
    ) -> Result<(), Failure> {
        let mut now = Vec::new();
        let mut changes = Vec::new();
        for (before, after) in from.iter().zip(to) {
            let entry = live::current(before).map_err(|error| failure(&error))?;
            let done = entry.value == after.value;
            if !done && entry.value != before.value {
                return Err(Failure::Negative(format!(
                    "{}\\{} is {}, not {} as in the plan: make a new plan",
                    entry.key,
                    entry.name,
                    texts::value(entry.value.as_ref()),
                    texts::value(before.value.as_ref())
                )));
            }
            changes.push(ChangeJson {
                place: format!("{}\\{}", entry.key, entry.name),
                now: texts::value(entry.value.as_ref()),
                then: texts::value(after.value.as_ref()),
                done,
            });
            now.push(entry);
        }
        let backup = if apply {
            Some(back_up(folder, &now)?)
        } else {
            None
        };
        if apply {
            for entry in to {
                live::write(entry).map_err(|error| failure(&error))?;
            }
        }
        if json {
            output::json(&changes)?;
            return Ok(());
        }
        let mut out = output::for_people();
        output::first_heading(&mut out, if apply { "Applied" } else { "Changes" })?;
        for line in &changes {
            let done = if line.done { " (already set)" } else { "" };
            let text = format!("{}: {} becomes {}{done}", line.place, line.now, line.then);
            output::paragraph(&mut out, &text)?;
        }
        match backup {
            Some(path) => {
                let text = format!("The previous values are in {}.", path.display());
                output::paragraph(&mut out, &text)?;
            }
            None => output::quiet(
                &mut out,
                "Nothing was written: add --apply to apply the changes.",
            )?,
        }
        out.flush()?;
        Ok(())
    }

    /// Writes the current values to a new backup file, and returns its path.
    fn back_up(folder: &Path, now: &[Entry]) -> Result<PathBuf, Failure> {
        let bytes = reg::to_bytes(now).map_err(|error| failure(&error))?;
        for number in 1..10_000 {
            let path = folder.join(format!("backup-{number}.reg"));
            match fs::File::create_new(&path) {
                Ok(mut file) => {
                    let written = file.write_all(&bytes).and_then(|()| file.sync_all());
                    written.map_err(|error| Failure::writing(&path, &error))?;
                    return Ok(path);
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Failure::writing(&path, &error)),
            }
        }
        Err(Failure::input(folder, "the folder has too many backups"))
    }
}
