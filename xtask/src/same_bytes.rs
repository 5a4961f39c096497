//! Checks that simulations are the same on all systems. The laglab of this system and the Windows build
//! simulate every shipped scenario, and their files are compared.

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

/// Simulates every scenario with both programs, and compares the traces and the truth files.
///
/// # Errors
///
/// Returns an error if a scenario cannot be simulated, or if the two programs write different
/// bytes.
pub(crate) fn on_windows_too(wine: &Wine) -> Result<(), String> {
    let folder = target().join("same-bytes");
    fs::create_dir_all(&folder).map_err(|error| fault(&folder, &error))?;
    let scenarios = scenarios()?;
    for name in &scenarios {
        let written = |mut laglab: Command, system: &str| -> Result<[Vec<u8>; 2], String> {
            let trace = folder.join(format!("{name}-{system}.etl"));
            laglab.args(["simulate", name, "--output"]).arg(&trace);
            command::read(laglab.args(LIMIT))?;
            let truth = trace.with_extension("truth.json");
            let read = |path: &Path| fs::read(path).map_err(|error| fault(path, &error));
            Ok([read(&trace)?, read(&truth)?])
        };
        let (here, there) = thread::scope(|scope| {
            let here = scope.spawn(|| written(built::run_laglab(&[]), "here"));
            let there = written(wine.laglab(), "windows");
            (here.join(), there)
        });
        let here = here.map_err(|_| format!("{name}: the thread that simulates it panicked"))?;
        if here? != there? {
            return Err(format!(
                "{name}: the trace or its truth differs between this system and Windows; compare \
                 the files in {}",
                folder.display()
            ));
        }
    }
    println!(
        "{} scenarios have equal bytes on both systems",
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
