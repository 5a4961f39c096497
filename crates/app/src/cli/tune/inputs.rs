//! Inputs of a command: files, folders, traces, and the registry of this machine on Windows.

use std::path::{Path, PathBuf};

use tune::inputs::{Complaint, Input, complete, read_files};
use tune::machine::Machine;
use tune::placed_value::Origin;

use super::failure;
use crate::cli::Failure;
use crate::output::say;

/// Settings from all inputs, and properties of the machine that the traces contain.
pub(super) struct Inputs {
    pub(super) inputs: Vec<Input>,
    traced: Machine,
}

/// Reads files and folders. If `live` is true, also reads the registry of this machine. Prints the faults of
/// inputs that could not be read.
pub(super) fn read(paths: &[PathBuf], live: bool) -> Result<Inputs, Failure> {
    let (traces, files): (Vec<&PathBuf>, Vec<&PathBuf>) =
        paths.iter().partition(|path| is_trace(path));
    let mut inputs = read_files(&files).map_err(|error| failure(&error))?;
    if live {
        inputs.push(read_live()?);
    }
    for input in &inputs {
        for Complaint { at, what } in &input.complaints.first {
            let origin = Origin {
                source: input.name.as_str().into(),
                at: *at,
            };
            say(&format!("{origin}: {what}"));
        }
        let shown = input.complaints.first.len() as u64;
        if input.complaints.count > shown {
            let more = input.complaints.count - shown;
            say(&format!("{}: {more} more of these", input.name));
        }
    }
    let mut traced = Machine::default();
    for trace in traces {
        complete(&mut traced, &machine_of_trace(trace)?);
    }
    Ok(Inputs { inputs, traced })
}

impl Inputs {
    /// Returns the properties of the machine. Properties that are missing in `given` are taken from the
    /// traces.
    pub(super) fn machine(&self, given: Machine) -> Machine {
        let mut machine = given;
        complete(&mut machine, &self.traced);
        machine
    }
}

/// Returns true if the path has the extension of a trace (.etl). Traces in archives are not read.
fn is_trace(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("etl"))
}

/// Returns the machine on which a trace was recorded. Only its build of Windows is known. A trace has no
/// other property and no setting.
fn machine_of_trace(path: &Path) -> Result<Machine, Failure> {
    let trace = etl::open(&[path.to_owned()]).map_err(|error| Failure::Input(error.to_string()))?;
    let build = trace.header().map(|header| header.os_build);
    Ok(Machine {
        name: None,
        build: build.filter(|build| *build != 0),
        edition: None,
    })
}

#[cfg(windows)]
fn read_live() -> Result<Input, Failure> {
    Ok(tune::inputs::live::read())
}

#[cfg(not(windows))]
fn read_live() -> Result<Input, Failure> {
    Err(Failure::Input(
        "--live needs Windows: it reads the registry of this machine; give files instead"
            .to_owned(),
    ))
}
