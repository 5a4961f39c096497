//! What `laglab export` writes, read by other people's programs and compared with the truth of
//! simulated traces.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{self, cargo, program, root, target};
use crate::python;

const READERS: [&str; 5] = [
    "pyarrow==26.0.1",
    "duckdb==2.0.0",
    "perfetto==0.59.1",
    "protobuf==7.36.2",
    "dpkt==1.9.8",
];

/// Scenarios, and how long they run: one with many DPCs, one that does a little of everything.
const SCENARIOS: [(&str, &str); 2] = [("dpc-flood-no-teaming", "2s"), ("healthy", "4s")];

/// Scenarios whose focus changes or whose programs are frozen: only Perfetto shows it.
const WATCHED: [(&str, &str); 2] = [("rank-stall", "60s"), ("frozen", "9s")];

/// A scenario whose packets are captured, half of them with a mark.
const CAPTURED: &str = "dscp-marked";

/// Exports traces in every format and has each read. Where the readers cannot be installed, it says
/// so and is content.
///
/// # Errors
///
/// When a trace cannot be made or exported, or a reader finds other than the truth.
pub(crate) fn agree() -> Result<(), String> {
    let python = match python::with("export-readers", &READERS) {
        Ok(python) => python,
        Err(error) => {
            println!("left out: the readers of exports cannot be installed: {error}");
            return Ok(());
        }
    };
    let folder = target().join("exports");
    // What an earlier version left would be read too.
    if folder.is_dir() {
        std::fs::remove_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    }
    std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
    let tables = folder.join("tables");
    let mut truths = Vec::new();
    for (scenario, duration) in SCENARIOS {
        let (trace, truth) = simulated(&folder, scenario, duration)?;
        for (extension, script) in [("pftrace", "read_perfetto.py"), ("json", "read_firefox.py")] {
            let exported = trace.with_extension(extension);
            export(&trace, &exported)?;
            command::run(reader(&python, script).arg(&exported).arg(&truth))?;
        }
        export(&trace, &tables)?;
        truths.push(format!("{scenario}={}", truth.display()));
    }
    for (scenario, duration) in WATCHED {
        let (trace, truth) = simulated(&folder, scenario, duration)?;
        let exported = trace.with_extension("pftrace");
        export(&trace, &exported)?;
        command::run(
            reader(&python, "read_perfetto.py")
                .arg(&exported)
                .arg(&truth),
        )?;
    }
    let (trace, truth) = simulated(&folder, CAPTURED, "4s")?;
    let capture = trace.with_extension("pcapng");
    export(&trace, &capture)?;
    command::run(reader(&python, "read_pcapng.py").arg(&capture).arg(truth))?;
    command::run(reader(&python, "read_parquet.py").arg(&tables).args(truths))
}

/// Simulates a scenario; gives the paths of the trace and of its truth.
fn simulated(folder: &Path, scenario: &str, duration: &str) -> Result<(PathBuf, PathBuf), String> {
    let trace = folder.join(scenario).with_extension("etl");
    let mut simulate = laglab(&["simulate", scenario, "--duration", duration, "--output"]);
    command::read(simulate.arg(&trace))?;
    let truth = trace.with_extension("truth.json");
    Ok((trace, truth))
}

fn laglab(arguments: &[&str]) -> Command {
    let mut command = cargo(&["run", "--quiet", "--bin", "laglab", "--"]);
    command.args(arguments);
    command
}

fn export(trace: &Path, to: &Path) -> Result<(), String> {
    let mut export = laglab(&["export"]);
    command::read(export.arg(trace).arg("--to").arg(to)).map(|_| ())
}

/// A script of `xtask/readers`.
fn reader(python: &Path, script: &str) -> Command {
    let mut reader = program(python);
    reader
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(root().join("xtask/readers").join(script));
    reader
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
