//! Checks files that `laglab export` writes. Independent readers open them and compare their content with the
//! truth files of simulations.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{self, program, root, target};
use crate::steps::left_out;
use crate::{built, python};

/// Python packages of the readers.
const READERS: [&str; 5] = [
    "pyarrow==26.0.1",
    "duckdb==2.0.0",
    "perfetto==0.59.1",
    "protobuf==7.36.2",
    "dpkt==1.9.8",
];

/// Scenarios and their durations. The first scenario has many DPCs. The second scenario has a few events of
/// each kind.
const SCENARIOS: [(&str, &str); 2] = [("dpc-flood-no-teaming", "2s"), ("healthy", "4s")];

/// Scenarios with focus changes and frozen processes. Only the export for Perfetto contains these two kinds of events.
const WATCHED: [(&str, &str); 2] = [("rank-stall", "60s"), ("frozen", "9s")];

/// Scenario with captured packets. Half of the packets have a DSCP mark.
const CAPTURED: &str = "dscp-marked";

/// Exports simulated traces in every format, and checks each file with an independent reader.
///
/// # Errors
///
/// Returns an error if a trace cannot be made or exported, or the content of a file differs from
/// the truth file. In CI, also if the readers cannot be installed.
pub(crate) fn agree() -> Result<(), String> {
    let python = match python::with("export-readers", &READERS) {
        Ok(python) => python,
        Err(error) => return left_out("reading exports", &error),
    };
    let folder = target().join("exports");
    // Files of an earlier run are removed, because the readers would read them, too.
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

/// Simulates a scenario. Returns the paths of the trace and of its truth file.
fn simulated(folder: &Path, scenario: &str, duration: &str) -> Result<(PathBuf, PathBuf), String> {
    let trace = folder.join(scenario).with_extension("etl");
    let mut simulate =
        built::run_laglab(&["simulate", scenario, "--duration", duration, "--output"]);
    command::read(simulate.arg(&trace))?;
    let truth = trace.with_extension("truth.json");
    Ok((trace, truth))
}

fn export(trace: &Path, to: &Path) -> Result<(), String> {
    let mut export = built::run_laglab(&["export"]);
    command::read(export.arg(trace).arg("-o").arg(to)).map(|_| ())
}

/// Returns a command that runs a script of `xtask/readers`.
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
