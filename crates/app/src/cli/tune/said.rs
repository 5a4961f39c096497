//! What inputs say, read for a command: files, folders, traces, and on Windows the live registry.

use std::path::{Path, PathBuf};

use tune::inputs::{self, Complaint, Input};
use tune::machine::Machine;

use crate::cli::{Failure, say};

/// What is known of a machine, and the machine as far as traces tell of it.
pub(super) struct Said {
    pub(super) inputs: Vec<Input>,
    /// What traces tell.
    pub(super) traced: Machine,
}

/// Reads files and folders, and the live registry if asked for; says what could not be read.
pub(super) fn read(paths: &[PathBuf], live: bool) -> Result<Said, Failure> {
    let (traces, files): (Vec<&PathBuf>, Vec<&PathBuf>) =
        paths.iter().partition(|path| is_trace(path));
    let mut inputs =
        inputs::read_files(&files).map_err(|error| Failure::Input(error.to_string()))?;
    if live {
        inputs.push(read_live()?);
    }
    for input in &inputs {
        for Complaint { at, what } in &input.complaints.first {
            let origin = tune::found::Origin {
                source: input.name.clone(),
                at: *at,
            };
            say(&format!("{origin}: {what}"));
        }
        let shown = input.complaints.first.len() as u64;
        if input.complaints.count > shown {
            let more = input.complaints.count - shown;
            say(&format!("{}: and {more} more of such", input.name));
        }
    }
    let mut traced = Machine::default();
    for trace in traces {
        inputs::complete(&mut traced, &machine_of_trace(trace)?);
    }
    Ok(Said { inputs, traced })
}

/// The machine asked for, completed by what traces tell.
impl Said {
    pub(super) fn machine(&self, asked: Machine) -> Machine {
        let mut machine = asked;
        inputs::complete(&mut machine, &self.traced);
        machine
    }
}

/// Whether the file is a trace by its name; those in archives are `laglab info`'s.
fn is_trace(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("etl"))
}

/// Which Windows a trace was recorded on. Settings are not among what the kernel logs of a system.
fn machine_of_trace(path: &Path) -> Result<Machine, Failure> {
    let trace = etl::open(&[path.to_owned()]).map_err(|error| Failure::input(path, error))?;
    let build = trace.header().map(|header| header.os_build);
    Ok(Machine {
        name: None,
        build: build.filter(|build| *build != 0),
        edition: None,
    })
}

#[cfg(windows)]
fn read_live() -> Result<Input, Failure> {
    Ok(inputs::live::read())
}

#[cfg(not(windows))]
fn read_live() -> Result<Input, Failure> {
    Err(Failure::Input(
        "--live reads the registry of the machine that it runs on, which only Windows has: give \
         files instead"
            .to_owned(),
    ))
}
