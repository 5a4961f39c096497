//! Checks that simulations and explanations are the same on all systems. The laglab of this system and the Windows
//! build simulate and explain every shipped scenario, and their files and answers are compared.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::built;
use crate::command::{self, root, target};
use crate::wine::Wine;

/// Options that limit each simulation. With this limit, a simulation is long enough to use all random
/// distributions.
const LIMIT: &[&str] = &["--events", "200000"];

/// Files and answers of one program for one scenario.
#[derive(PartialEq)]
struct ProgramOutput {
    trace: Vec<u8>,
    truth: Vec<u8>,
    explanation: String,
}

/// Simulates and explains every scenario with both programs, and compares the traces, the truth files and the
/// explanations.
///
/// # Errors
///
/// Returns an error if a scenario cannot be simulated or explained, or if the two programs write
/// different bytes.
pub(crate) fn on_windows_too(wine: &Wine) -> Result<(), String> {
    let folder = target().join("same-bytes");
    let scenarios = scenarios()?;
    for name in &scenarios {
        let written =
            |laglab: &dyn Fn() -> Command, system: &str| -> Result<ProgramOutput, String> {
                let of_system = folder.join(system);
                fs::create_dir_all(&of_system).map_err(|error| fault(&of_system, &error))?;
                let trace = of_system.join(format!("{name}.etl"));
                let mut simulate = laglab();
                simulate.args(["simulate", name, "--output"]).arg(&trace);
                command::read(simulate.args(LIMIT))?;
                let mut explain = laglab();
                explain.args(["explain", "--all", "--no-cache"]).arg(&trace);
                let read = |path: &Path| fs::read(path).map_err(|error| fault(path, &error));
                Ok(ProgramOutput {
                    trace: read(&trace)?,
                    truth: read(&trace.with_extension("truth.json"))?,
                    explanation: command::read(&mut explain)?,
                })
            };
        let (here, there) = thread::scope(|scope| {
            let here = scope.spawn(|| written(&|| built::run_laglab(&[]), "here"));
            let there = written(&|| wine.laglab(), "windows");
            (here.join(), there)
        });
        let here = here.map_err(|_| format!("{name}: the thread that simulates it panicked"))?;
        if here? != there? {
            return Err(format!(
                "{name}: the trace, its truth or its explanation differs between this system and \
                 Windows; compare the files in {}",
                folder.display()
            ));
        }
    }
    println!(
        "{} scenarios have equal bytes and equal explanations on both systems",
        scenarios.len()
    );
    fs::remove_dir_all(&folder).map_err(|error| fault(&folder, &error))
}

/// Returns the names of the shipped scenarios.
fn scenarios() -> Result<Vec<String>, String> {
    let folder = root().join("scenarios");
    let files = fs::read_dir(&folder).map_err(|error| fault(&folder, &error))?;
    let paths = files.map(|file| file.map(|file| file.path()));
    let mut names = Vec::new();
    for path in paths
        .collect::<Result<Vec<PathBuf>, _>>()
        .map_err(|error| fault(&folder, &error))?
    {
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            names.extend(
                path.file_stem()
                    .map(|name| name.to_string_lossy().into_owned()),
            );
        }
    }
    names.sort();
    Ok(names)
}

fn fault(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
